"""PostgreSQL's append path: one statement a table, all rows of a batch as arrays.

The record is sent once and its columns are derived from it by the database, so they cannot differ.
COPY is refused under row level security; unnest is the fastest way that is not. `load` and `save` work under
the head's lock; `look` reads without it, for a batch that is thought about while another is written, and
`run` writes such a batch only if the head is still where the thinking began.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from functools import lru_cache
from typing import Any

import asyncpg
import msgspec
from sqlalchemy import Table

from observatory.errors import StatementFailed
from observatory.ledger.chain import Head
from observatory.pipeline.ports import Finished, Statement
from observatory.pipeline.rows import Agent, Breaker, Hold, Member, Session, Step, Tenant
from observatory.pipeline.state import HOME_TENANT, Changes, Memory, Rulebook, Wants
from observatory.protocol.steps import step_name
from observatory.store import control, tables
from observatory.store.keys import dedupe_key, entity_key
from observatory.store.memory import (
    AGENT_CHANGES,
    AGENT_COLUMNS,
    BREAKER_CHANGES,
    BREAKER_COLUMNS,
    DELIVERY_COLUMNS,
    GOOD_KEYS,
    HOLD_CHANGES,
    HOLD_COLUMNS,
    MEMBER_CHANGES,
    MEMBER_COLUMNS,
    SESSION_CHANGES,
    SESSION_COLUMNS,
    agent_of,
    agent_row,
    breaker_row,
    delivery_row,
    hold_row,
    member_of,
    member_row,
    session_of,
    session_row,
    write_sql,
)
from observatory.store.rulebook import read_rulebook
from observatory.store.shredding import on_postgres

TENANT_LOCK = 0x0B5E71  # advisory: numbers of new tenants are given one at a time
NAME_TENANT = "SELECT set_config('app.tenant', $1, true), set_config('app.presented', $2, true)"


def _bulk(table: str, columns: str, conflict: str = "", update: tuple[str, ...] = ()) -> str:
    """All rows of one tenant in one statement: each `column:type` is sent as an array."""
    names, types = zip(*(word.split(":") for word in columns.split()), strict=True)
    arrays = ", ".join(f"${number}::{kind}[]" for number, kind in enumerate(types, 2))
    sql = f"INSERT INTO {table} (tenant_id, {', '.join(names)}) SELECT $1, * FROM unnest({arrays})"
    if conflict:
        sets = ", ".join(f"{name} = excluded.{name}" for name in update)
        sql += f" ON CONFLICT (tenant_id, {conflict}) DO UPDATE SET {sets}"
    return sql


# jsonb_to_record reads the record once a row; it is sent once and its columns cannot differ from it.
INSERT_EVENTS = """
INSERT INTO audit_events (tenant_id, sequence_number, record, leaf_hash, audit_event_id, timestamp,
    observed_timestamp, trace_id, span_id, parent_span_id, trace_flags, severity_number, severity_text, body,
    resource, attributes, event_hash, previous_hash, sender_key, recipient_key)
SELECT $1, u.seq, u.record, u.leaf, r.audit_event_id, r.timestamp, r.observed_timestamp, r.trace_id,
    r.span_id, r.parent_span_id, r.trace_flags, r.severity_number, r.severity_text, r.body, r.resource,
    r.attributes, r.hash_chain ->> 'event_hash', r.hash_chain ->> 'previous_hash', u.sender, u.recipient
FROM unnest($2::bigint[], $3::bytea[], $4::bytea[], $5::bigint[], $6::bigint[])
    AS u (seq, record, leaf, sender, recipient),
    jsonb_to_record(convert_from(u.record, 'UTF8')::jsonb) AS r (audit_event_id text, timestamp timestamptz,
        observed_timestamp timestamptz, trace_id text, span_id text, parent_span_id text,
        trace_flags smallint, severity_number smallint, severity_text text, body jsonb, resource jsonb,
        attributes jsonb, hash_chain jsonb)"""
INSERT_MESSAGES = _bulk(
    "messages",
    "sequence_number:bigint message_id:text step_id:text session_no:bigint message_type:text state:text "
    "parents:text parent_inferred:smallint warnings:text dedupe:bigint digest:bytea entropy:float8",
)
INSERT_PAYLOADS = _bulk("payloads", "sequence_number:bigint raw:bytea")
LIMITS_TRANSACTIONS = 17  # from this version on
KINDS = {"TEXT": "text", "BIGINT": "bigint", "INTEGER": "smallint", "BLOB": "bytea", "FLOAT": "float8"}


def _keep(table: Table, columns: tuple[str, ...], conflict: str = "", update: tuple[str, ...] = ()) -> str:
    """`_bulk` of a small table: its columns' types are known."""
    spec = " ".join(f"{name}:{KINDS[str(table.c[name].type)]}" for name in columns)
    return _bulk(table.name, spec, conflict, update)


SAVE_AGENTS = _keep(tables.agents, AGENT_COLUMNS, "entity_id", AGENT_CHANGES)
SAVE_SESSIONS = _keep(tables.sessions, SESSION_COLUMNS, "session_id", SESSION_CHANGES)
SAVE_MEMBERS = _keep(tables.members, MEMBER_COLUMNS, "session_no, agent_no", MEMBER_CHANGES)
SAVE_HOLDS = _keep(tables.holds, HOLD_COLUMNS, "sequence_number", HOLD_CHANGES)
SAVE_BREAKERS = _keep(tables.breakers, BREAKER_COLUMNS, "capability", BREAKER_CHANGES)
INSERT_DELIVERIES = _keep(tables.deliveries, DELIVERY_COLUMNS)
_MOVE = """
WITH head AS (
    UPDATE chain_heads SET sequence_number = $2, event_hash = $3, sessions = $4, agents = $5,
        access_version = $6, rulebook_version = $7 WHERE {} RETURNING tenant_id, sequence_number)
SELECT pg_notify('observatory', tenant_id || ':' || sequence_number) FROM head"""
MOVE_HEAD = _MOVE.format("tenant_id = $1")
# The wait for the lock, the test and the move in one: the test is made on the row as it is after the wait.
MOVE_FROM = _MOVE.format("tenant_id = $1 AND sequence_number = $8 AND event_hash = $9")
SEE_HEAD = """
SELECT tenant_no, sequence_number, event_hash, sessions, agents, access_version, rulebook_version
FROM chain_heads WHERE tenant_id = $1"""
LOCK_HEAD = f"{SEE_HEAD} FOR NO KEY UPDATE"
FENCE = "SELECT name, epoch FROM leases WHERE name = ANY($1::text[]) FOR SHARE"
IMPATIENT = (
    "SELECT set_config('idle_in_transaction_session_timeout', '2s', true), "
    "set_config('statement_timeout', '2s', true)"
)
# Neither ends a session that stopped half way through what it sends (seen with PostgreSQL 18: a cancel waits
# for the end of a message, and between those of one statement nobody is idle); this does, from 17 on.
HURRIED = "SELECT set_config('transaction_timeout', '3s', true)"
LIVE_KEYS = f"{GOOD_KEYS} AND k.tenant_id = $1 AND k.key_id = ANY($2::text[])"


def _known(table: Table, key: str, columns: tuple[str, ...]) -> str:
    """The rows of each of these keys, each looked up by itself.

    `key = ANY(…)` says the same, but until the table was analysed a tenant is taken for 1/200 of it: ten
    look-ups then seem dearer than walking through the tenant and holding every row against every key.
    """
    names = ", ".join(columns)
    return f"""
SELECT found.* FROM unnest($2::{KINDS[str(table.c[key].type)]}[]) AS asked (key) CROSS JOIN LATERAL (
    SELECT {names} FROM {table.name} WHERE tenant_id = $1 AND {key} = asked.key OFFSET 0) AS found"""


_STEP = ("sequence_number", "digest", "session_no", "step_id", "message_id", "state", "warnings")
KNOWN_STEPS = f"""
SELECT m.sequence_number, m.digest, s.session_id, m.step_id, m.message_id, m.state, m.warnings
FROM ({_known(tables.pg_messages, "dedupe", _STEP)}) AS m CROSS JOIN LATERAL (
    SELECT session_id FROM sessions WHERE tenant_id = $1 AND session_no = m.session_no OFFSET 0) AS s"""
KNOWN_SESSIONS = _known(tables.sessions, "session_id", SESSION_COLUMNS)
KNOWN_AGENTS = _known(tables.agents, "entity_id", AGENT_COLUMNS)
KNOWN_MEMBERS = _known(tables.members, "session_no", MEMBER_COLUMNS)


@lru_cache(maxsize=4_096)
def _step_key(tenant_id: str, name: str) -> int:
    """It is asked for when a step is looked up and again when it is written."""
    return dedupe_key(tenant_id, name)


class PostgresReading:
    """Used synchronously; each call runs the thread's own loop until the answer is there."""

    def __init__(self, wait: Callable[[Awaitable[Any]], Any], connection: asyncpg.Connection) -> None:
        self._wait, self._connection = wait, connection

    def _ask(self, sql: str, *values: Any) -> list[asyncpg.Record]:
        found: list[asyncpg.Record] = self._wait(self._connection.fetch(sql, *values))
        return found

    def _name(self, tenant_id: str) -> None:
        self._tenant_id = tenant_id
        self._ask(NAME_TENANT, tenant_id, "")

    def look(self, tenant_id: str, wants: Wants, known: Memory | None, is_pending: bool) -> Memory | None:
        self._name(tenant_id)
        heads = self._ask(SEE_HEAD, tenant_id)
        return self._begin(heads[0], tenant_id, wants, known, is_pending) if heads else None

    def look_more(self, memory: Memory, wants: Wants) -> None:
        self._name(memory.tenant.tenant_id)
        self._load(memory, wants)

    def _begin(
        self, row: asyncpg.Record, tenant_id: str, wants: Wants, known: Memory | None, is_pending: bool
    ) -> Memory:
        tenant = Tenant(
            tenant_id=tenant_id,
            tenant_no=row[0],
            sessions=row[3],
            agents=row[4],
            access_version=row[5],
            rulebook_version=row[6],
        )
        rulebook = known.rulebook if known is not None else Rulebook()
        memory = Memory(tenant=tenant, head=Head(row[1], row[2]), rulebook=rulebook)
        # Read after the lock was given, not with it: a row beside the locked one may be older than the wait.
        disabled = self._ask("SELECT disabled_ns FROM tenants WHERE tenant_id = $1", tenant_id)
        tenant.disabled = bool(disabled) and disabled[0][0] is not None
        memory.recall(known, is_pending)
        if rulebook.version != memory.tenant.rulebook_version:
            memory.rulebook = read_rulebook(row[6], self.find)
        self._load(memory, wants)
        return memory

    def _load(self, memory: Memory, wants: Wants) -> None:
        tenant_id = memory.tenant.tenant_id
        self._load_gone_keys(memory, wants.keys)
        self._load_steps(memory, wants.steps)
        sessions = wants.sessions | {step.session_id for step in memory.steps.values()}
        if missing := sessions - memory.sessions.keys():
            found = [session_of(row) for row in self._ask(KNOWN_SESSIONS, tenant_id, list(missing))]
            memory.sessions.update({session.session_id: session for session in found})
            self._load_members(memory, [session.session_no for session in found])
            control.holds(self, memory, found)
        if strangers := wants.agents - memory.agents.keys():
            agents = [agent_of(row) for row in self._ask(KNOWN_AGENTS, tenant_id, list(strangers))]
            memory.agents.update({agent.entity_id: agent for agent in agents})
        control.look(self, memory, wants)

    def find(
        self,
        table: str,
        columns: Collection[str],
        where: dict[str, Any] | None = None,
        among: tuple[str, Collection[Any]] | None = None,
        tail: str = "",
    ) -> control.Rows:
        tests = {"tenant_id": self._tenant_id} | (where or {})
        sql, values = control.select_sql(
            table, columns, tests, among, tail, lambda number: f"${number}", True
        )
        return self._ask(sql, *values)

    def payloads(self, memory: Memory, numbers: Collection[int]) -> control.Rows:
        return self.find("payloads", ("sequence_number", "raw"), among=("sequence_number", numbers))

    def unshredded(self, memory: Memory, numbers: Collection[int]) -> control.Rows:
        there = "AND raw IS NOT NULL"
        return self.find("payloads", ("sequence_number",), among=("sequence_number", numbers), tail=there)

    def leases(self, names: Collection[str]) -> control.Rows:
        """Who would take one over waits for this transaction: one that hangs in it is cut off soon."""
        self._ask(IMPATIENT)
        if self._connection.get_server_version().major >= LIMITS_TRANSACTIONS:
            self._ask(HURRIED)
        return self._ask(FENCE, list(names))

    def _load_gone_keys(self, memory: Memory, keys: dict[str, int]) -> None:
        """Keys checked before the last change of access are looked at again, under the lock."""
        doubtful = [key for key, version in keys.items() if version != memory.tenant.access_version]
        if doubtful:
            live = self._ask(LIVE_KEYS, memory.tenant.tenant_id, doubtful)
            memory.gone_keys |= set(doubtful) - {row[0] for row in live}

    def _load_steps(self, memory: Memory, names: set[str]) -> None:
        if not names:
            return
        tenant_id = memory.tenant.tenant_id
        for row in self._ask(KNOWN_STEPS, tenant_id, [_step_key(tenant_id, name) for name in names]):
            number, digest, session_id, step_id, message_id, state, warnings = row
            name = step_name(session_id, step_id, message_id)
            if name in names:
                notes = tuple(msgspec.json.decode(warnings)) if warnings else ()
                memory.steps[name] = Step(name, number, digest, session_id, step_id, message_id, state, notes)

    def _load_members(self, memory: Memory, sessions: list[int]) -> None:
        """All of them: a recalled session must be known whole."""
        if sessions:
            for row in self._ask(KNOWN_MEMBERS, memory.tenant.tenant_id, sessions):
                memory.members[row[0], row[1]] = member_of(row)


class PostgresTransaction(PostgresReading):
    """Inside BEGIN: the head is locked before anything else is read."""

    def load(self, tenant_id: str, wants: Wants, known: Memory | None) -> Memory:
        self._name(tenant_id)
        heads = self._ask(LOCK_HEAD, tenant_id) or self._heads_under_lock(tenant_id)
        if heads:
            return self._begin(heads[0], tenant_id, wants, known, is_pending=False)
        number = self._next_number(tenant_id)
        return Memory(Tenant(tenant_id=tenant_id, tenant_no=number), Head.genesis(), Rulebook())

    def _heads_under_lock(self, tenant_id: str) -> list[asyncpg.Record]:
        """Tenants are made one at a time, so that no two are given one number."""
        self._ask("SELECT pg_advisory_xact_lock($1)", TENANT_LOCK)
        return self._ask(LOCK_HEAD, tenant_id)

    def _next_number(self, tenant_id: str) -> int:
        """For a tenant not there yet; stored only if the batch creates it."""
        self._ask(NAME_TENANT, HOME_TENANT, "")
        last: int = self._ask("SELECT coalesce(max(tenant_no), 0) FROM chain_heads")[0][0]
        self._ask(NAME_TENANT, tenant_id, "")
        return last + 1

    def save(self, memory: Memory, changes: Changes) -> None:
        self._execute(_rows(memory, changes))
        if not self._ask(MOVE_HEAD, *_head_values(memory)):
            raise StatementFailed("there is no such tenant")

    def run(self, batch: Finished) -> bool:
        """False, and nothing is written, when the head is not where the thinking began."""
        self._ask(NAME_TENANT, batch.tenant_id, "")
        if not self._ask(batch.head.sql, *batch.head.values):
            return False
        self._execute(batch.statements)
        return True

    def _execute(self, statements: list[Statement]) -> None:
        for sql, values, must_hit in statements:
            done = self._wait(self._connection.execute(sql, *values))
            if must_hit and done == "UPDATE 0":
                raise StatementFailed("an update found no row")


def finished(base: Head, memory: Memory, changes: Changes) -> Finished:
    values = [*_head_values(memory), base.sequence_number, base.event_hash]
    return Finished(memory.tenant.tenant_id, Statement(MOVE_FROM, values), _rows(memory, changes))


def _head_values(memory: Memory) -> list[Any]:
    tenant = memory.tenant
    return [
        tenant.tenant_id,
        memory.head.sequence_number,
        memory.head.event_hash,
        tenant.sessions,
        tenant.agents,
        tenant.access_version,
        tenant.rulebook_version,
    ]


def _rows(memory: Memory, changes: Changes) -> list[Statement]:
    """Everything of a batch but its head: all rows of a table in one statement, a column an array."""
    tenant_id = memory.tenant.tenant_id
    statements = []
    for write in changes.writes:
        for sql, values in write_sql(write, lambda number: f"${number}"):
            statements.append(Statement(sql, values, must_hit=write.where is not None))
    events = [
        (
            row.sequence_number,
            row.record,
            row.leaf_hash,
            None if row.sender_id is None else entity_key(tenant_id, row.sender_id),
            None if row.recipient_id is None else entity_key(tenant_id, row.recipient_id),
        )
        for row in changes.audit
    ]
    messages = [
        (
            row.sequence_number,
            row.message_id,
            row.step_id,
            row.session_no,
            row.message_type,
            row.state,
            row.parents,
            int(row.parent_inferred),
            row.warnings,
            _step_key(tenant_id, row.name),
            row.digest,
            row.entropy,
        )
        for row in changes.messages
    ]
    tables: list[tuple[str, list[tuple[Any, ...]]]] = [
        (INSERT_EVENTS, events),
        (INSERT_MESSAGES, messages),
        (INSERT_PAYLOADS, [(row.sequence_number, row.raw) for row in changes.messages]),
        (SAVE_AGENTS, [agent_row(tenant_id, agent)[1:] for agent in memory.touched(Agent)]),
        (SAVE_SESSIONS, [session_row(tenant_id, session)[1:] for session in memory.touched(Session)]),
        (SAVE_MEMBERS, [member_row(tenant_id, member)[1:] for member in memory.touched(Member)]),
        (SAVE_HOLDS, [hold_row(tenant_id, hold)[1:] for hold in memory.touched(Hold)]),
        (SAVE_BREAKERS, [breaker_row(tenant_id, breaker)[1:] for breaker in memory.touched(Breaker)]),
        (INSERT_DELIVERIES, [delivery_row(tenant_id, row)[1:] for row in changes.deliveries]),
    ]
    for sql, rows in tables:
        if rows:
            statements.append(Statement(sql, [tenant_id, *map(list, zip(*rows, strict=True))]))
    for ordered_by, numbers in changes.shreds:
        statements += on_postgres(tenant_id, ordered_by, list(numbers))
    return statements

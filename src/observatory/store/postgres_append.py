"""PostgreSQL's append path: one statement per table, all rows of a batch as arrays.

The record is sent once and its columns are derived from it by the database, so they cannot differ.
COPY is refused under row level security; unnest is the fastest alternative. `load` and `save` work under
the head's lock; `look` reads without it, for a batch that is computed while another is written, and `run`
writes such a batch only if the head has not moved since.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from functools import lru_cache
from typing import Any

import asyncpg
import msgspec
from sqlalchemy import Table

from observatory.errors import StatementFailed
from observatory.ledger.chain import ChainHead
from observatory.pipeline.ports import PreparedBatch, SqlStatement
from observatory.pipeline.rows import AgentRow, BreakerRow, HoldRow, MemberRow, SessionRow, StepRow, TenantRow
from observatory.pipeline.state import HOME_TENANT, BatchState, ReadSet, TenantConfig, TransactionChanges
from observatory.protocol.steps import step_name
from observatory.store import read_set as control
from observatory.store import tables
from observatory.store.keys import dedupe_key, entity_key
from observatory.store.row_mapping import (
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
from observatory.store.shredding import on_postgres
from observatory.store.tenant_config import read_tenant_config

TENANT_LOCK = 0x0B5E71  # advisory lock: numbers of new tenants are assigned one at a time
NAME_TENANT = "SELECT set_config('app.tenant', $1, true), set_config('app.presented', $2, true)"


def _bulk(table: str, columns: str, conflict: str = "", update: tuple[str, ...] = ()) -> str:
    """An INSERT of all rows of one tenant: each `column:type` is sent as an array."""
    names, types = zip(*(word.split(":") for word in columns.split()), strict=True)
    arrays = ", ".join(f"${number}::{kind}[]" for number, kind in enumerate(types, 2))
    sql = f"INSERT INTO {table} (tenant_id, {', '.join(names)}) SELECT $1, * FROM unnest({arrays})"
    if conflict:
        sets = ", ".join(f"{name} = excluded.{name}" for name in update)
        sql += f" ON CONFLICT (tenant_id, {conflict}) DO UPDATE SET {sets}"
    return sql


# jsonb_to_record parses the record once per row; it is sent once and its columns cannot differ from it.
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
    """`_bulk` for a small table, whose column types are known."""
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
# Lock, test and move in one statement: the test uses the row as it is after waiting for the lock.
MOVE_FROM = _MOVE.format("tenant_id = $1 AND sequence_number = $8 AND event_hash = $9")
SEE_HEAD = """
SELECT tenant_no, sequence_number, event_hash, sessions, agents, access_version, rulebook_version
FROM chain_heads WHERE tenant_id = $1"""
LOCK_HEAD = f"{SEE_HEAD} FOR NO KEY UPDATE"
LOCK_LEASES = "SELECT name, epoch FROM leases WHERE name = ANY($1::text[]) FOR SHARE"
SHORT_TIMEOUTS = (
    "SELECT set_config('idle_in_transaction_session_timeout', '2s', true), "
    "set_config('statement_timeout', '2s', true)"
)
# Neither ends a session that stopped while sending a message (seen with PostgreSQL 18: a cancel waits for the
# end
# of a message, and the session does not count as idle between those of one statement); this does, from 17 on.
SHORT_TRANSACTION = "SELECT set_config('transaction_timeout', '3s', true)"
LIVE_KEYS = f"{GOOD_KEYS} AND k.tenant_id = $1 AND k.key_id = ANY($2::text[])"


def _known(table: Table, key: str, columns: tuple[str, ...]) -> str:
    """The rows of each of these keys, each looked up separately.

    `key = ANY(…)` is equivalent, but until the table is analysed a tenant is estimated as 1/200 of it: ten
    look-ups then seem more expensive than scanning the tenant and comparing every row with every key.
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
    """Cached: needed when a step is looked up and again when it is written."""
    return dedupe_key(tenant_id, name)


class PostgresReading:
    """Synchronous reads; each call runs the thread's own event loop until the result arrives."""

    def __init__(self, wait: Callable[[Awaitable[Any]], Any], connection: asyncpg.Connection) -> None:
        self._wait, self._connection = wait, connection

    def _ask(self, sql: str, *values: Any) -> list[asyncpg.Record]:
        found: list[asyncpg.Record] = self._wait(self._connection.fetch(sql, *values))
        return found

    def _name(self, tenant_id: str) -> None:
        self._tenant_id = tenant_id
        self._ask(NAME_TENANT, tenant_id, "")

    def look(
        self, tenant_id: str, read_set: ReadSet, known: BatchState | None, is_pending: bool
    ) -> BatchState | None:
        self._name(tenant_id)
        heads = self._ask(SEE_HEAD, tenant_id)
        return self._begin(heads[0], tenant_id, read_set, known, is_pending) if heads else None

    def read_more(self, memory: BatchState, read_set: ReadSet) -> None:
        self._name(memory.tenant.tenant_id)
        self._load(memory, read_set)

    def _begin(
        self,
        row: asyncpg.Record,
        tenant_id: str,
        read_set: ReadSet,
        known: BatchState | None,
        is_pending: bool,
    ) -> BatchState:
        tenant = TenantRow(
            tenant_id=tenant_id,
            tenant_no=row[0],
            sessions=row[3],
            agents=row[4],
            access_version=row[5],
            rulebook_version=row[6],
        )
        tenant_config = known.tenant_config if known is not None else TenantConfig()
        memory = BatchState(tenant=tenant, head=ChainHead(row[1], row[2]), tenant_config=tenant_config)
        # Read after locking, not with it: a joined row could be older than the wait for the lock.
        disabled = self._ask("SELECT disabled_ns FROM tenants WHERE tenant_id = $1", tenant_id)
        tenant.disabled = bool(disabled) and disabled[0][0] is not None
        memory.recall(known, is_pending)
        if tenant_config.version != memory.tenant.rulebook_version:
            memory.tenant_config = read_tenant_config(row[6], self.find)
        self._load(memory, read_set)
        return memory

    def _load(self, memory: BatchState, read_set: ReadSet) -> None:
        tenant_id = memory.tenant.tenant_id
        self._load_gone_keys(memory, read_set.keys)
        self._load_steps(memory, read_set.steps)
        sessions = read_set.sessions | {step.session_id for step in memory.steps.values()}
        if missing := sessions - memory.sessions.keys():
            found = [session_of(row) for row in self._ask(KNOWN_SESSIONS, tenant_id, list(missing))]
            memory.sessions.update({session.session_id: session for session in found})
            self._load_members(memory, [session.session_no for session in found])
            control.load_holds(self, memory, found)
        if unknown_agents := read_set.agents - memory.agents.keys():
            agents = [agent_of(row) for row in self._ask(KNOWN_AGENTS, tenant_id, list(unknown_agents))]
            memory.agents.update({agent.entity_id: agent for agent in agents})
        control.load_read_set(self, memory, read_set)

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

    def payloads(self, memory: BatchState, numbers: Collection[int]) -> control.Rows:
        return self.find("payloads", ("sequence_number", "raw"), among=("sequence_number", numbers))

    def unshredded(self, memory: BatchState, numbers: Collection[int]) -> control.Rows:
        exists = "AND raw IS NOT NULL"
        return self.find("payloads", ("sequence_number",), among=("sequence_number", numbers), tail=exists)

    def leases(self, names: Collection[str]) -> control.Rows:
        """A takeover waits for this transaction, so a hanging one is ended soon."""
        self._ask(SHORT_TIMEOUTS)
        if self._connection.get_server_version().major >= LIMITS_TRANSACTIONS:
            self._ask(SHORT_TRANSACTION)
        return self._ask(LOCK_LEASES, list(names))

    def _load_gone_keys(self, memory: BatchState, keys: dict[str, int]) -> None:
        """Check keys again that were checked before the last change of access, under the lock."""
        outdated = [key for key, version in keys.items() if version != memory.tenant.access_version]
        if outdated:
            live = self._ask(LIVE_KEYS, memory.tenant.tenant_id, outdated)
            memory.revoked_keys |= set(outdated) - {row[0] for row in live}

    def _load_steps(self, memory: BatchState, names: set[str]) -> None:
        if not names:
            return
        tenant_id = memory.tenant.tenant_id
        for row in self._ask(KNOWN_STEPS, tenant_id, [_step_key(tenant_id, name) for name in names]):
            number, digest, session_id, step_id, message_id, state, warnings = row
            name = step_name(session_id, step_id, message_id)
            if name in names:
                notes = tuple(msgspec.json.decode(warnings)) if warnings else ()
                memory.steps[name] = StepRow(
                    name, number, digest, session_id, step_id, message_id, state, notes
                )

    def _load_members(self, memory: BatchState, sessions: list[int]) -> None:
        """Load all members: a cached session must be complete."""
        if sessions:
            for row in self._ask(KNOWN_MEMBERS, memory.tenant.tenant_id, sessions):
                memory.members[row[0], row[1]] = member_of(row)


class PostgresTransaction(PostgresReading):
    """Within BEGIN: the head is locked before anything else is read."""

    def load(self, tenant_id: str, read_set: ReadSet, known: BatchState | None) -> BatchState:
        self._name(tenant_id)
        heads = self._ask(LOCK_HEAD, tenant_id) or self._heads_under_lock(tenant_id)
        if heads:
            return self._begin(heads[0], tenant_id, read_set, known, is_pending=False)
        number = self._next_number(tenant_id)
        return BatchState(
            TenantRow(tenant_id=tenant_id, tenant_no=number), ChainHead.genesis(), TenantConfig()
        )

    def _heads_under_lock(self, tenant_id: str) -> list[asyncpg.Record]:
        """Tenants are created one at a time, so that no two get the same number."""
        self._ask("SELECT pg_advisory_xact_lock($1)", TENANT_LOCK)
        return self._ask(LOCK_HEAD, tenant_id)

    def _next_number(self, tenant_id: str) -> int:
        """A number for a new tenant; stored only if the batch creates it."""
        self._ask(NAME_TENANT, HOME_TENANT, "")
        last: int = self._ask("SELECT coalesce(max(tenant_no), 0) FROM chain_heads")[0][0]
        self._ask(NAME_TENANT, tenant_id, "")
        return last + 1

    def save(self, memory: BatchState, changes: TransactionChanges) -> None:
        self._execute(_rows(memory, changes))
        if not self._ask(MOVE_HEAD, *_head_values(memory)):
            raise StatementFailed("there is no such tenant")

    def run(self, batch: PreparedBatch) -> bool:
        """Returns False and writes nothing when the head has moved since the batch was computed."""
        self._ask(NAME_TENANT, batch.tenant_id, "")
        if not self._ask(batch.head.sql, *batch.head.values):
            return False
        self._execute(batch.statements)
        return True

    def _execute(self, statements: list[SqlStatement]) -> None:
        for sql, values, must_hit in statements:
            done = self._wait(self._connection.execute(sql, *values))
            if must_hit and done == "UPDATE 0":
                raise StatementFailed("an update found no row")


def finished(base: ChainHead, memory: BatchState, changes: TransactionChanges) -> PreparedBatch:
    values = [*_head_values(memory), base.sequence_number, base.event_hash]
    return PreparedBatch(memory.tenant.tenant_id, SqlStatement(MOVE_FROM, values), _rows(memory, changes))


def _head_values(memory: BatchState) -> list[Any]:
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


def _rows(memory: BatchState, changes: TransactionChanges) -> list[SqlStatement]:
    """Everything in a batch except its head: one statement per table, one array per column."""
    tenant_id = memory.tenant.tenant_id
    statements = []
    for write in changes.writes:
        for sql, values in write_sql(write, lambda number: f"${number}"):
            statements.append(SqlStatement(sql, values, must_hit=write.where is not None))
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
        (SAVE_AGENTS, [agent_row(tenant_id, agent)[1:] for agent in memory.touched(AgentRow)]),
        (SAVE_SESSIONS, [session_row(tenant_id, session)[1:] for session in memory.touched(SessionRow)]),
        (SAVE_MEMBERS, [member_row(tenant_id, member)[1:] for member in memory.touched(MemberRow)]),
        (SAVE_HOLDS, [hold_row(tenant_id, hold)[1:] for hold in memory.touched(HoldRow)]),
        (SAVE_BREAKERS, [breaker_row(tenant_id, breaker)[1:] for breaker in memory.touched(BreakerRow)]),
        (INSERT_DELIVERIES, [delivery_row(tenant_id, row)[1:] for row in changes.deliveries]),
    ]
    for sql, rows in tables:
        if rows:
            statements.append(SqlStatement(sql, [tenant_id, *map(list, zip(*rows, strict=True))]))
    for ordered_by, numbers in changes.shreds:
        statements += on_postgres(tenant_id, ordered_by, list(numbers))
    return statements

"""PostgreSQL's append path: one statement a table, all rows of a batch as arrays.

The record is sent once and its columns are derived from it by the database, so they cannot differ.
COPY is refused under row level security; unnest is the fastest way that is not.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import asyncpg
import msgspec

from observatory.errors import StatementFailed
from observatory.ledger.chain import Head
from observatory.protocol.steps import step_name
from observatory.state import (
    HOME_TENANT,
    Agent,
    Changes,
    Member,
    Memory,
    Rulebook,
    Session,
    Step,
    Tenant,
    Wants,
)
from observatory.store.keys import dedupe_key, entity_key
from observatory.store.memory import (
    AGENT_CHANGES,
    AGENT_COLUMNS,
    GOOD_KEYS,
    MEMBER_CHANGES,
    SESSION_CHANGES,
    SESSION_COLUMNS,
    agent_of,
    agent_row,
    member_of,
    member_row,
    session_of,
    session_row,
    write_sql,
)
from observatory.store.rulebook import rulebook_of

T = TypeVar("T")
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
    "parents:text parent_inferred:smallint warnings:text dedupe:bigint digest:bytea",
)
INSERT_PAYLOADS = _bulk("payloads", "sequence_number:bigint raw:bytea")
SAVE_AGENTS = _bulk(
    "agents",
    "agent_no:bigint entity_id:text agent_id:text agent_type:text capability_version:text cluster_id:text "
    "model:text provider:text hub_address:text trust_level:text first_seen_ns:bigint last_seen_ns:bigint "
    "violation_ns:bigint messages:bigint",
    conflict="entity_id",
    update=AGENT_CHANGES,
)
SAVE_SESSIONS = _bulk(
    "sessions",
    "session_no:bigint session_id:text trace_id:text first_seq:bigint last_seq:bigint started_ns:bigint "
    "last_ns:bigint messages:bigint",
    conflict="session_id",
    update=SESSION_CHANGES,
)
SAVE_MEMBERS = _bulk(
    "members",
    "session_no:bigint agent_no:bigint last_step:text last_seq:bigint messages:bigint tokens:bigint "
    "cost:float8",
    conflict="session_no, agent_no",
    update=MEMBER_CHANGES,
)
SAVE_HEAD = """
WITH head AS (
    UPDATE chain_heads SET sequence_number = $2, event_hash = $3, sessions = $4, agents = $5,
        access_version = $6, rulebook_version = $7 WHERE tenant_id = $1 RETURNING tenant_id, sequence_number)
SELECT pg_notify('observatory', tenant_id || ':' || sequence_number) FROM head"""
LOCK_HEAD = """
SELECT tenant_no, sequence_number, event_hash, sessions, agents, access_version, rulebook_version
FROM chain_heads WHERE tenant_id = $1 FOR NO KEY UPDATE"""
LIVE_KEYS = f"{GOOD_KEYS} AND k.tenant_id = $1 AND k.key_id = ANY($2::text[])"
KNOWN_STEPS = """
SELECT m.sequence_number, m.digest, s.session_id, m.step_id, m.message_id, m.state, m.warnings
FROM messages m JOIN sessions s ON s.tenant_id = m.tenant_id AND s.session_no = m.session_no
WHERE m.tenant_id = $1 AND m.dedupe = ANY($2::bigint[])"""
KNOWN_SESSIONS = f"""
SELECT {", ".join(SESSION_COLUMNS)} FROM sessions WHERE tenant_id = $1 AND session_id = ANY($2::text[])"""
KNOWN_AGENTS = f"""
SELECT {", ".join(AGENT_COLUMNS)} FROM agents WHERE tenant_id = $1 AND entity_id = ANY($2::text[])"""
KNOWN_MEMBERS = """
SELECT session_no, agent_no, last_step, last_seq, messages, tokens, cost FROM members
WHERE tenant_id = $1 AND session_no = ANY($2::bigint[])"""


class PostgresTransaction:
    """Used synchronously by the unit; each call runs the lane's own loop until the answer is there."""

    def __init__(self, wait: Callable[[Awaitable[Any]], Any], connection: asyncpg.Connection) -> None:
        self._wait, self._connection = wait, connection

    def _ask(self, sql: str, *values: Any) -> list[asyncpg.Record]:
        found: list[asyncpg.Record] = self._wait(self._connection.fetch(sql, *values))
        return found

    def load(self, tenant_id: str, wants: Wants, known: Memory | None) -> Memory:
        self._ask(NAME_TENANT, tenant_id, "")
        heads = self._ask(LOCK_HEAD, tenant_id) or self._heads_under_lock(tenant_id)
        if not heads:
            number = self._next_number(tenant_id)
            return Memory(Tenant(tenant_id=tenant_id, tenant_no=number), Head.genesis(), Rulebook())
        row = heads[0]
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
        memory.recall(known)
        # Read after the lock was given, not with it: a row beside the locked one may be older than the wait.
        disabled = self._ask("SELECT disabled_ns FROM tenants WHERE tenant_id = $1", tenant_id)
        tenant.disabled = bool(disabled) and disabled[0][0] is not None
        if rulebook.version != row[6]:
            entries = self._ask(
                "SELECT agent_type, version, status, fields FROM versions WHERE tenant_id = $1", tenant_id
            )
            memory.rulebook = rulebook_of(row[6], entries)
        self._load_gone_keys(memory, wants.keys)
        self._load_steps(memory, wants.steps)
        sessions = wants.sessions | {step.session_id for step in memory.steps.values()}
        if missing := sessions - memory.sessions.keys():
            found = [session_of(row) for row in self._ask(KNOWN_SESSIONS, tenant_id, list(missing))]
            memory.sessions.update({session.session_id: session for session in found})
            self._load_members(memory, [session.session_no for session in found])
        if strangers := wants.agents - memory.agents.keys():
            agents = [agent_of(row) for row in self._ask(KNOWN_AGENTS, tenant_id, list(strangers))]
            memory.agents.update({agent.entity_id: agent for agent in agents})
        return memory

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

    def _load_gone_keys(self, memory: Memory, keys: dict[str, int]) -> None:
        """Keys checked before the last change of access are looked at again, under the lock."""
        doubtful = [key for key, version in keys.items() if version != memory.tenant.access_version]
        if doubtful:
            live = self._ask(LIVE_KEYS, memory.tenant.tenant_id, doubtful)
            memory.gone_keys = set(doubtful) - {row[0] for row in live}

    def _load_steps(self, memory: Memory, names: set[str]) -> None:
        if not names:
            return
        tenant_id = memory.tenant.tenant_id
        for row in self._ask(KNOWN_STEPS, tenant_id, [dedupe_key(tenant_id, name) for name in names]):
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

    def save(self, memory: Memory, changes: Changes) -> None:
        tenant, audit, messages = memory.tenant, changes.audit, changes.messages
        for write in changes.writes:
            sql, values = write_sql(write, lambda number: f"${number}")
            if self._wait(self._connection.execute(sql, *values)) == "UPDATE 0":
                raise StatementFailed("an update found no row")
        self._many(
            INSERT_EVENTS,
            tenant,
            [
                (
                    row.sequence_number,
                    row.record,
                    row.leaf_hash,
                    None if row.sender_id is None else entity_key(tenant.tenant_id, row.sender_id),
                    None if row.recipient_id is None else entity_key(tenant.tenant_id, row.recipient_id),
                )
                for row in audit
            ],
        )
        self._many(
            INSERT_MESSAGES,
            tenant,
            [
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
                    dedupe_key(tenant.tenant_id, row.name),
                    row.digest,
                )
                for row in messages
            ],
        )
        self._many(INSERT_PAYLOADS, tenant, [(row.sequence_number, row.raw) for row in messages])
        self._save_fleet(memory)
        head = memory.head
        values = [head.sequence_number, head.event_hash, tenant.sessions, tenant.agents]
        values += [tenant.access_version, tenant.rulebook_version]
        if not self._ask(SAVE_HEAD, tenant.tenant_id, *values):
            raise StatementFailed("there is no such tenant")

    def _save_fleet(self, memory: Memory) -> None:
        tenant, name = memory.tenant, memory.tenant.tenant_id
        agents = [agent_row(name, agent)[1:] for agent in memory.touched(Agent)]
        sessions = [session_row(name, session)[1:] for session in memory.touched(Session)]
        members = [member_row(name, member)[1:] for member in memory.touched(Member)]
        self._many(SAVE_AGENTS, tenant, agents)
        self._many(SAVE_SESSIONS, tenant, sessions)
        self._many(SAVE_MEMBERS, tenant, members)

    def _many(self, sql: str, tenant: Tenant, rows: list[tuple[Any, ...]]) -> None:
        """All rows of a table in one statement, a column an array."""
        if rows:
            self._ask(sql, tenant.tenant_id, *map(list, zip(*rows, strict=True)))

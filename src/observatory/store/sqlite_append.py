"""SQLite's append path: what a batch reads, and its rows as multi-row statements.

`load` and `save` work under the lock of an open transaction. `look` reads without one, for a batch that is
thought about while another is written; `finished` is that batch with every row built, and `run` writes it
only if the chain's head is still where the thinking began.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache, lru_cache
from typing import Any

import msgspec

from observatory.errors import StatementFailed
from observatory.ledger.chain import Head
from observatory.pipeline.ports import Finished, Statement
from observatory.pipeline.rows import Agent, Breaker, Hold, Member, Session, Step, Tenant
from observatory.pipeline.state import Changes, Memory, Rulebook, Wants
from observatory.protocol.steps import step_name
from observatory.store import control
from observatory.store.keys import SEQ_MASK, dedupe_key, entity_key
from observatory.store.lists import padded, portioned
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
from observatory.store.shredding import FORGET, SHRED, UNSHREDDED, on_sqlite

BIG = 100  # rows of a statement that is worth being written without its empty columns
DELIVERIES = f"deliveries (tenant_id, {', '.join(DELIVERY_COLUMNS)})"
Rows = list[tuple[Any, ...]]
HEAD = (
    "SELECT h.tenant_no, h.sequence_number, h.event_hash, h.sessions, h.agents, h.access_version, "
    "h.rulebook_version, t.disabled_ns FROM chain_heads h JOIN tenants t USING (tenant_id) "
    "WHERE tenant_id = ?"
)
MOVE_HEAD = (
    "UPDATE chain_heads SET sequence_number=?, event_hash=?, sessions=?, agents=?, access_version=?, "
    "rulebook_version=? WHERE tenant_id=?"
)
MOVE_FROM = f"{MOVE_HEAD} AND sequence_number=? AND event_hash=?"


@lru_cache(maxsize=4_096)
def _step_key(tenant_id: str, name: str) -> int:
    """It is asked for when a step is looked up and again when it is written."""
    return dedupe_key(tenant_id, name)


def _inserts(table: str, width: int, flat: list[Any], conflict: str = "") -> Iterable[Statement]:
    """Rows laid end to end, as multi-row statements."""
    start = 0
    for rows in portioned(len(flat) // width):
        end = start + rows * width
        values = flat[start:end]
        # Not for every number of rows: each set of empty columns is a statement of its own to keep compiled.
        empty = _without_empty(values, width) if rows >= BIG else ()
        yield Statement(_insert_sql(table, width, rows, conflict, empty), values)
        start = end


def _without_empty(values: list[Any], width: int) -> tuple[int, ...]:
    """Takes out the columns that are None in every row, and names them: to bind a None costs the driver as
    much as ten numbers, and it keeps the interpreter meanwhile."""
    rows = len(values) // width
    empty = [i for i in range(width) if values[i] is None and values[i::width].count(None) == rows]
    for gone, i in enumerate(reversed(empty)):
        del values[i :: width - gone]
    return tuple(empty)


@cache
def _insert_sql(table: str, width: int, rows: int, conflict: str, empty: tuple[int, ...]) -> str:
    one = "(" + ",".join("NULL" if i in empty else "?" for i in range(width)) + ")"
    return f"INSERT INTO {table} VALUES {','.join([one] * rows)} {conflict}"


@cache
def _upsert(key: str, columns: tuple[str, ...]) -> str:
    sets = ", ".join(f"{column} = excluded.{column}" for column in columns)
    return f"ON CONFLICT ({key}) DO UPDATE SET {sets}"


def _in(values: Iterable[Any]) -> tuple[str, list[Any]]:
    items = padded(values)
    return "(" + ",".join("?" * len(items)) + ")", items


# What a touched row is written by: table, its values, their number, what is done if it is there.
FLEET: dict[type, tuple[str, Callable[[str, Any], tuple[Any, ...]], int, str]] = {
    kind: (table, row, 1 + len(columns), _upsert(f"tenant_id, {key}", changes))
    for kind, table, row, columns, key, changes in (
        (Agent, "agents", agent_row, AGENT_COLUMNS, "entity_id", AGENT_CHANGES),
        (Session, "sessions", session_row, SESSION_COLUMNS, "session_id", SESSION_CHANGES),
        (Member, "members", member_row, MEMBER_COLUMNS, "session_no, agent_no", MEMBER_CHANGES),
        (Hold, "holds", hold_row, HOLD_COLUMNS, "sequence_number", HOLD_CHANGES),
        (Breaker, "breakers", breaker_row, BREAKER_COLUMNS, "capability", BREAKER_CHANGES),
    )
}


def _rows(memory: Memory, changes: Changes) -> list[Statement]:
    """Everything of a batch but its head.

    Bytes go as bytearrays: those the driver binds as they are, while it searches for an adapter of `bytes`
    every time, which takes longer than the copy.
    """
    tenant_id, number = memory.tenant.tenant_id, memory.tenant.tenant_no
    base = number << 40
    statements = []
    for write in changes.writes:
        for sql, values in write_sql(write, lambda number: "?"):
            statements.append(Statement(sql, values, must_hit=write.where is not None))
    audit: list[Any] = []
    for row in changes.audit:
        audit += (
            base | row.sequence_number,
            number,
            row.timestamp_ns,
            row.severity,
            base | row.session_no,
            None if row.sender_id is None else entity_key(tenant_id, row.sender_id),
            None if row.recipient_id is None else entity_key(tenant_id, row.recipient_id),
            bytearray(row.record),
            bytearray(row.leaf_hash),
        )
    messages: list[Any] = []
    payloads: list[Any] = []
    for told in changes.messages:
        key = base | told.sequence_number
        messages += (
            key,
            told.message_id,
            told.step_id,
            told.session_no,
            told.message_type,
            told.state,
            told.parents,
            int(told.parent_inferred),
            told.warnings,
            _step_key(tenant_id, told.name),
            bytearray(told.digest),
            told.entropy,
        )
        payloads += (key, None if told.raw is None else bytearray(told.raw), None, None)
    statements += _inserts("audit_log", 9, audit)
    statements += _inserts("messages", 12, messages)
    statements += _inserts("payloads", 4, payloads)
    fleet: dict[type, list[Any]] = {kind: [] for kind in FLEET}
    for touched in memory.changed:
        fleet[type(touched)] += FLEET[type(touched)][1](tenant_id, touched)
    for kind, (table, _, width, conflict) in FLEET.items():
        statements += _inserts(table, width, fleet[kind], conflict)
    told_of: list[Any] = []
    for delivery in changes.deliveries:
        told_of += delivery_row(tenant_id, delivery)
    statements += _inserts(DELIVERIES, 1 + len(DELIVERY_COLUMNS), told_of)
    for ordered_by, numbers in changes.shreds:
        statements += on_sqlite(tenant_id, base, ordered_by, list(numbers))
    return statements


def _head_values(memory: Memory) -> list[Any]:
    tenant = memory.tenant
    return [
        memory.head.sequence_number,
        memory.head.event_hash,
        tenant.sessions,
        tenant.agents,
        tenant.access_version,
        tenant.rulebook_version,
        tenant.tenant_id,
    ]


def finished(base: Head, memory: Memory, changes: Changes) -> Finished:
    values = [*_head_values(memory), base.sequence_number, base.event_hash]
    return Finished(memory.tenant.tenant_id, Statement(MOVE_FROM, values), _rows(memory, changes))


class SqliteReading:
    """What a batch must know, read by any connection."""

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    def look(self, tenant_id: str, wants: Wants, known: Memory | None, is_pending: bool) -> Memory | None:
        memory = self._beginning(tenant_id, known, is_pending)
        if memory is not None:
            self.look_more(memory, wants)
        return memory

    def _beginning(self, tenant_id: str, known: Memory | None, is_pending: bool) -> Memory | None:
        """The tenant, its head and rulebook, and what of `known` is true; None for an unknown tenant."""
        self._tenant_id = tenant_id
        row = self._cursor.execute(HEAD, (tenant_id,)).fetchone()
        if row is None:
            return None
        tenant = Tenant(
            tenant_id=tenant_id,
            tenant_no=row[0],
            sessions=row[3],
            agents=row[4],
            access_version=row[5],
            rulebook_version=row[6],
            disabled=row[7] is not None,
        )
        rulebook = known.rulebook if known is not None else Rulebook()
        memory = Memory(tenant=tenant, head=Head(row[1], row[2]), rulebook=rulebook)
        memory.recall(known, is_pending)
        if rulebook.version != memory.tenant.rulebook_version:
            memory.rulebook = read_rulebook(row[6], self.find)
        return memory

    def look_more(self, memory: Memory, wants: Wants) -> None:
        self._tenant_id = memory.tenant.tenant_id
        self._load_gone_keys(memory, wants.keys)
        self._load_steps(memory, wants.steps)
        self._load_sessions(memory, wants.sessions | {step.session_id for step in memory.steps.values()})
        self._load_agents(memory, wants.agents)
        control.look(self, memory, wants)

    def find(
        self,
        table: str,
        columns: Collection[str],
        where: dict[str, Any] | None = None,
        among: tuple[str, Collection[Any]] | None = None,
        tail: str = "",
    ) -> Rows:
        tests = {"tenant_id": self._tenant_id} | (where or {})
        sql, values = control.select_sql(table, columns, tests, among, tail, lambda number: "?", False)
        try:
            found: Rows = self._cursor.execute(sql, values).fetchall()
        except sqlite3.OperationalError as error:
            if "UTF-8" not in str(error):
                raise
            found = self._bent(sql, values)
        return found

    def _bent(self, sql: str, values: Sequence[Any]) -> Rows:
        """Text that somebody made no text past the gateway: it is for the act to find out, not to fail by."""
        connection = self._cursor.connection
        connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        try:
            found: Rows = self._cursor.execute(sql, values).fetchall()
        finally:
            connection.text_factory = str
        return found

    def payloads(self, memory: Memory, numbers: Collection[int]) -> Rows:
        base = memory.tenant.tenant_no << 40
        marks, keys = _in(base | number for number in numbers)
        found = self._cursor.execute(f"SELECT key, raw FROM payloads WHERE key IN {marks}", keys)
        return [(key & SEQ_MASK, raw) for key, raw in found.fetchall()]

    def unshredded(self, memory: Memory, numbers: Collection[int]) -> Rows:
        base = memory.tenant.tenant_no << 40
        marks, keys = _in(base | number for number in numbers)
        found = self._cursor.execute(f"{UNSHREDDED} {marks}", keys)
        return [(key & SEQ_MASK,) for (key,) in found.fetchall()]

    def leases(self, names: Collection[str]) -> Rows:
        marks, values = _in(names)
        found = self._cursor.execute(f"SELECT name, epoch FROM leases WHERE name IN {marks}", values)
        return [tuple(row) for row in found.fetchall()]

    def _load_gone_keys(self, memory: Memory, keys: dict[str, int]) -> None:
        """Keys checked before the last change of access are looked at again, under the lock."""
        doubtful = [key for key, version in keys.items() if version != memory.tenant.access_version]
        if doubtful:
            marks, values = _in(doubtful)
            found = self._cursor.execute(
                f"{GOOD_KEYS} AND k.tenant_id = ? AND k.key_id IN {marks}",
                [memory.tenant.tenant_id, *values],
            )
            memory.gone_keys |= set(doubtful) - {row[0] for row in found.fetchall()}

    def _load_steps(self, memory: Memory, names: set[str]) -> None:
        if not names:
            return
        tenant_id = memory.tenant.tenant_id
        marks, keys = _in(_step_key(tenant_id, name) for name in names)
        found = self._cursor.execute(
            "SELECT m.key, m.digest, s.session_id, m.step_id, m.message_id, m.state, m.warnings "
            "FROM messages m JOIN sessions s ON s.tenant_id = ? AND s.session_no = m.session_no "
            f"WHERE m.dedupe IN {marks}",
            [tenant_id, *keys],
        )
        for key, digest, session_id, step_id, message_id, state, warnings in found.fetchall():
            name = step_name(session_id, step_id, message_id)
            if name in names and key >> 40 == memory.tenant.tenant_no:
                notes = tuple(msgspec.json.decode(warnings)) if warnings else ()
                memory.steps[name] = Step(
                    name, key & SEQ_MASK, digest, session_id, step_id, message_id, state, notes
                )

    def _load_sessions(self, memory: Memory, ids: set[str]) -> None:
        missing = ids - memory.sessions.keys()
        if missing:
            marks, values = _in(missing)
            columns = ", ".join(SESSION_COLUMNS)
            found = self._cursor.execute(
                f"SELECT {columns} FROM sessions WHERE tenant_id = ? AND session_id IN {marks}",
                [memory.tenant.tenant_id, *values],
            )
            sessions = [session_of(row) for row in found.fetchall()]
            memory.sessions.update({session.session_id: session for session in sessions})
            self._load_members(memory, [session.session_no for session in sessions])
            control.holds(self, memory, sessions)

    def _load_agents(self, memory: Memory, ids: set[str]) -> None:
        missing = ids - memory.agents.keys()
        if missing:
            marks, values = _in(missing)
            columns = ", ".join(AGENT_COLUMNS)
            found = self._cursor.execute(
                f"SELECT {columns} FROM agents WHERE tenant_id = ? AND entity_id IN {marks}",
                [memory.tenant.tenant_id, *values],
            )
            memory.agents.update({row[1]: agent_of(row) for row in found.fetchall()})

    def _load_members(self, memory: Memory, sessions: list[int]) -> None:
        """All of them: a recalled session must be known whole."""
        if sessions:
            marks, values = _in(sessions)
            columns = ", ".join(MEMBER_COLUMNS)
            found = self._cursor.execute(
                f"SELECT {columns} FROM members WHERE tenant_id = ? AND session_no IN {marks}",
                [memory.tenant.tenant_id, *values],
            )
            memory.members.update({(row[0], row[1]): member_of(row) for row in found.fetchall()})


class SqliteTransaction(SqliteReading):
    """Inside BEGIN IMMEDIATE: what is read cannot change before it ends."""

    has_shredded = False

    def load(self, tenant_id: str, wants: Wants, known: Memory | None) -> Memory:
        memory = self.look(tenant_id, wants, known, is_pending=False)
        if memory is not None:
            return memory
        # A number for a tenant not there yet; stored only if the batch creates it.
        found = self._cursor.execute("SELECT coalesce(max(tenant_no), 0) + 1 FROM chain_heads").fetchone()
        return Memory(Tenant(tenant_id=tenant_id, tenant_no=found[0]), Head.genesis(), Rulebook())

    def save(self, memory: Memory, changes: Changes) -> None:
        self._execute(_rows(memory, changes))
        if self._cursor.execute(MOVE_HEAD, _head_values(memory)).rowcount != 1:
            raise StatementFailed("there is no such tenant")

    def run(self, batch: Finished) -> bool:
        """False, and nothing is written, when the head is not where the thinking began."""
        if self._cursor.execute(batch.head.sql, batch.head.values).rowcount != 1:
            return False
        self._execute(batch.statements)
        return True

    def _execute(self, statements: Iterable[Statement]) -> None:
        for sql, values, must_hit in statements:
            found = self._cursor.execute(sql, values)
            self.has_shredded = self.has_shredded or sql.startswith((SHRED, *FORGET))
            if must_hit and found.rowcount == 0:
                raise StatementFailed("an update found no row")

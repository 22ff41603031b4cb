"""SQLite's append path: what a batch reads, and its rows as multi-row statements.

`load` and `save` work under the lock of an open transaction. `look` reads without one, for a batch that is
computed while another is written; `finished` builds all rows of such a batch, and `run` writes it only if the
chain's head has not moved since.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache, lru_cache
from typing import Any

import msgspec

from observatory.errors import StatementFailed
from observatory.ledger.chain import ChainHead
from observatory.pipeline.ports import PreparedBatch, SqlStatement
from observatory.pipeline.rows import AgentRow, BreakerRow, HoldRow, MemberRow, SessionRow, StepRow, TenantRow
from observatory.pipeline.state import BatchState, ReadSet, TenantConfig, TransactionChanges
from observatory.protocol.steps import step_name
from observatory.store import read_set as control
from observatory.store.keys import SEQ_MASK, dedupe_key, entity_key
from observatory.store.lists import padded, portioned
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
from observatory.store.shredding import FORGET, SHRED, UNSHREDDED, on_sqlite
from observatory.store.tenant_config import read_tenant_config

BIG = 100  # from this many rows on, a statement omits its empty columns
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
    """Cached: needed when a step is looked up and again when it is written."""
    return dedupe_key(tenant_id, name)


def _inserts(table: str, width: int, flat: list[Any], conflict: str = "") -> Iterable[SqlStatement]:
    """Multi-row INSERT statements for a flat list of values."""
    start = 0
    for rows in portioned(len(flat) // width):
        end = start + rows * width
        values = flat[start:end]
        # Not for few rows: each set of empty columns is a separate statement in the cache.
        empty = _without_empty(values, width) if rows >= BIG else ()
        yield SqlStatement(_insert_sql(table, width, rows, conflict, empty), values)
        start = end


def _without_empty(values: list[Any], width: int) -> tuple[int, ...]:
    """Remove the columns that are None in every row, and return their indexes: binding a None costs the
    driver as much as ten numbers, and it keeps the interpreter lock meanwhile."""
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


# How a touched row is written: table, its values, their number, and the conflict clause.
FLEET: dict[type, tuple[str, Callable[[str, Any], tuple[Any, ...]], int, str]] = {
    kind: (table, row, 1 + len(columns), _upsert(f"tenant_id, {key}", changes))
    for kind, table, row, columns, key, changes in (
        (AgentRow, "agents", agent_row, AGENT_COLUMNS, "entity_id", AGENT_CHANGES),
        (SessionRow, "sessions", session_row, SESSION_COLUMNS, "session_id", SESSION_CHANGES),
        (MemberRow, "members", member_row, MEMBER_COLUMNS, "session_no, agent_no", MEMBER_CHANGES),
        (HoldRow, "holds", hold_row, HOLD_COLUMNS, "sequence_number", HOLD_CHANGES),
        (BreakerRow, "breakers", breaker_row, BREAKER_COLUMNS, "capability", BREAKER_CHANGES),
    )
}


def _rows(memory: BatchState, changes: TransactionChanges) -> list[SqlStatement]:
    """Everything in a batch except its head.

    Bytes are passed as bytearrays: the driver binds these directly, while it searches for an adapter of
    `bytes` every time, which takes longer than the copy.
    """
    tenant_id, number = memory.tenant.tenant_id, memory.tenant.tenant_no
    base = number << 40
    statements = []
    for write in changes.writes:
        for sql, values in write_sql(write, lambda number: "?"):
            statements.append(SqlStatement(sql, values, must_hit=write.where is not None))
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
    for message in changes.messages:
        key = base | message.sequence_number
        messages += (
            key,
            message.message_id,
            message.step_id,
            message.session_no,
            message.message_type,
            message.state,
            message.parents,
            int(message.parent_inferred),
            message.warnings,
            _step_key(tenant_id, message.name),
            bytearray(message.digest),
            message.entropy,
        )
        payloads += (key, None if message.raw is None else bytearray(message.raw), None, None)
    statements += _inserts("audit_log", 9, audit)
    statements += _inserts("messages", 12, messages)
    statements += _inserts("payloads", 4, payloads)
    fleet: dict[type, list[Any]] = {kind: [] for kind in FLEET}
    for touched in memory.changed:
        fleet[type(touched)] += FLEET[type(touched)][1](tenant_id, touched)
    for kind, (table, _, width, conflict) in FLEET.items():
        statements += _inserts(table, width, fleet[kind], conflict)
    inbox_rows: list[Any] = []
    for delivery in changes.deliveries:
        inbox_rows += delivery_row(tenant_id, delivery)
    statements += _inserts(DELIVERIES, 1 + len(DELIVERY_COLUMNS), inbox_rows)
    for ordered_by, numbers in changes.shreds:
        statements += on_sqlite(tenant_id, base, ordered_by, list(numbers))
    return statements


def _head_values(memory: BatchState) -> list[Any]:
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


def finished(base: ChainHead, memory: BatchState, changes: TransactionChanges) -> PreparedBatch:
    values = [*_head_values(memory), base.sequence_number, base.event_hash]
    return PreparedBatch(memory.tenant.tenant_id, SqlStatement(MOVE_FROM, values), _rows(memory, changes))


class SqliteReading:
    """Reads what a batch needs, with any connection."""

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    def look(
        self, tenant_id: str, read_set: ReadSet, known: BatchState | None, is_pending: bool
    ) -> BatchState | None:
        memory = self._beginning(tenant_id, known, is_pending)
        if memory is not None:
            self.read_more(memory, read_set)
        return memory

    def _beginning(self, tenant_id: str, known: BatchState | None, is_pending: bool) -> BatchState | None:
        """The tenant, its head and configuration, and what is still valid of `known`; None for an unknown
        tenant."""
        self._tenant_id = tenant_id
        row = self._cursor.execute(HEAD, (tenant_id,)).fetchone()
        if row is None:
            return None
        tenant = TenantRow(
            tenant_id=tenant_id,
            tenant_no=row[0],
            sessions=row[3],
            agents=row[4],
            access_version=row[5],
            rulebook_version=row[6],
            disabled=row[7] is not None,
        )
        tenant_config = known.tenant_config if known is not None else TenantConfig()
        memory = BatchState(tenant=tenant, head=ChainHead(row[1], row[2]), tenant_config=tenant_config)
        memory.recall(known, is_pending)
        if tenant_config.version != memory.tenant.rulebook_version:
            memory.tenant_config = read_tenant_config(row[6], self.find)
        return memory

    def read_more(self, memory: BatchState, read_set: ReadSet) -> None:
        self._tenant_id = memory.tenant.tenant_id
        self._load_gone_keys(memory, read_set.keys)
        self._load_steps(memory, read_set.steps)
        self._load_sessions(memory, read_set.sessions | {step.session_id for step in memory.steps.values()})
        self._load_agents(memory, read_set.agents)
        control.load_read_set(self, memory, read_set)

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
            found = self._find_invalid_text(sql, values)
        return found

    def _find_invalid_text(self, sql: str, values: Sequence[Any]) -> Rows:
        """Read text that is not valid UTF-8, changed outside the gateway: the command must detect it, not
        fail."""
        connection = self._cursor.connection
        connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        try:
            found: Rows = self._cursor.execute(sql, values).fetchall()
        finally:
            connection.text_factory = str
        return found

    def payloads(self, memory: BatchState, numbers: Collection[int]) -> Rows:
        base = memory.tenant.tenant_no << 40
        marks, keys = _in(base | number for number in numbers)
        found = self._cursor.execute(f"SELECT key, raw FROM payloads WHERE key IN {marks}", keys)
        return [(key & SEQ_MASK, raw) for key, raw in found.fetchall()]

    def unshredded(self, memory: BatchState, numbers: Collection[int]) -> Rows:
        base = memory.tenant.tenant_no << 40
        marks, keys = _in(base | number for number in numbers)
        found = self._cursor.execute(f"{UNSHREDDED} {marks}", keys)
        return [(key & SEQ_MASK,) for (key,) in found.fetchall()]

    def leases(self, names: Collection[str]) -> Rows:
        marks, values = _in(names)
        found = self._cursor.execute(f"SELECT name, epoch FROM leases WHERE name IN {marks}", values)
        return [tuple(row) for row in found.fetchall()]

    def _load_gone_keys(self, memory: BatchState, keys: dict[str, int]) -> None:
        """Check keys again that were checked before the last change of access, under the lock."""
        outdated = [key for key, version in keys.items() if version != memory.tenant.access_version]
        if outdated:
            marks, values = _in(outdated)
            found = self._cursor.execute(
                f"{GOOD_KEYS} AND k.tenant_id = ? AND k.key_id IN {marks}",
                [memory.tenant.tenant_id, *values],
            )
            memory.revoked_keys |= set(outdated) - {row[0] for row in found.fetchall()}

    def _load_steps(self, memory: BatchState, names: set[str]) -> None:
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
                memory.steps[name] = StepRow(
                    name, key & SEQ_MASK, digest, session_id, step_id, message_id, state, notes
                )

    def _load_sessions(self, memory: BatchState, ids: set[str]) -> None:
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
            control.load_holds(self, memory, sessions)

    def _load_agents(self, memory: BatchState, ids: set[str]) -> None:
        missing = ids - memory.agents.keys()
        if missing:
            marks, values = _in(missing)
            columns = ", ".join(AGENT_COLUMNS)
            found = self._cursor.execute(
                f"SELECT {columns} FROM agents WHERE tenant_id = ? AND entity_id IN {marks}",
                [memory.tenant.tenant_id, *values],
            )
            memory.agents.update({row[1]: agent_of(row) for row in found.fetchall()})

    def _load_members(self, memory: BatchState, sessions: list[int]) -> None:
        """Load all members: a cached session must be complete."""
        if sessions:
            marks, values = _in(sessions)
            columns = ", ".join(MEMBER_COLUMNS)
            found = self._cursor.execute(
                f"SELECT {columns} FROM members WHERE tenant_id = ? AND session_no IN {marks}",
                [memory.tenant.tenant_id, *values],
            )
            memory.members.update({(row[0], row[1]): member_of(row) for row in found.fetchall()})


class SqliteTransaction(SqliteReading):
    """Within BEGIN IMMEDIATE: what is read cannot change before it ends."""

    has_shredded = False

    def load(self, tenant_id: str, read_set: ReadSet, known: BatchState | None) -> BatchState:
        memory = self.look(tenant_id, read_set, known, is_pending=False)
        if memory is not None:
            return memory
        # A number for a new tenant; stored only if the batch creates it.
        found = self._cursor.execute("SELECT coalesce(max(tenant_no), 0) + 1 FROM chain_heads").fetchone()
        return BatchState(
            TenantRow(tenant_id=tenant_id, tenant_no=found[0]), ChainHead.genesis(), TenantConfig()
        )

    def save(self, memory: BatchState, changes: TransactionChanges) -> None:
        self._execute(_rows(memory, changes))
        if self._cursor.execute(MOVE_HEAD, _head_values(memory)).rowcount != 1:
            raise StatementFailed("there is no such tenant")

    def run(self, batch: PreparedBatch) -> bool:
        """Returns False and writes nothing when the head has moved since the batch was computed."""
        if self._cursor.execute(batch.head.sql, batch.head.values).rowcount != 1:
            return False
        self._execute(batch.statements)
        return True

    def _execute(self, statements: Iterable[SqlStatement]) -> None:
        for sql, values, must_hit in statements:
            found = self._cursor.execute(sql, values)
            self.has_shredded = self.has_shredded or sql.startswith((SHRED, *FORGET))
            if must_hit and found.rowcount == 0:
                raise StatementFailed("an update found no row")

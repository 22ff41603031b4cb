"""SQLite: one file, one writer, WAL with synchronous=FULL.

The law kept here: a transaction locks the chain head first (BEGIN IMMEDIATE), writes rows in sequence
order with multi-row statements (the driver gives up the GIL once a statement, so a busy event loop
does not starve the writer), and returns only after the commit is on disk. Readers have connections of
their own, read-only, in short transactions, so the WAL can be checkpointed.
"""

from __future__ import annotations

import asyncio
import sqlite3 as stdlib_sqlite3
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from sqlalchemy import Executable, create_engine
from sqlalchemy.pool import QueuePool

from observatory.errors import NotDurable, StartupError, StatementFailed
from observatory.ledger.chain import Head
from observatory.protocol.steps import step_name
from observatory.state import Changes, Member, Memory, Rulebook, Step, Tenant, Wants, Write
from observatory.store.keys import SEQ_MASK, dedupe_key, entity_key
from observatory.store.memory import GOOD_KEYS, agent_of, agent_row, session_of, session_row, write_sql
from observatory.store.reads import Reads
from observatory.store.rulebook import rulebook_of
from observatory.store.shapes import SqliteShape

try:
    import pysqlite3  # many Pythons' own sqlite3 is years old

    driver: Any = pysqlite3
except ImportError:  # pragma: no cover - platforms without the wheel
    driver = stdlib_sqlite3

T = TypeVar("T")
PRAGMAS = {
    "journal_mode": "wal",
    "synchronous": 2,
    "recursive_triggers": 1,
    "foreign_keys": 1,
    "wal_autocheckpoint": 20_000,
    "cache_size": -65_536,
    "temp_store": 2,
}
# PERM, BUSY, LOCKED, NOMEM, READONLY, IOERR, CORRUPT, FULL, CANTOPEN, PROTOCOL: the medium, not the row.
MEDIUM_ERRORS = {3, 5, 6, 7, 8, 10, 11, 13, 14, 15}
CHUNK = 100
Rows = list[tuple[Any, ...]]


def connect(path: Path, read_only: bool = False) -> Any:
    """A connection whose pragmas were set *and read back*: durability is never assumed."""
    mode = "?mode=ro" if read_only else ""
    try:
        connection = driver.connect(
            f"file:{path}{mode}", uri=True, isolation_level=None, timeout=10, check_same_thread=False
        )
        if read_only:
            connection.execute("PRAGMA query_only=1")
            return connection
        for name, value in PRAGMAS.items():
            connection.execute(f"PRAGMA {name}={value}")
    except driver.Error as error:
        raise StartupError(f"the database {path} cannot be opened: {error}") from error
    for name, value in PRAGMAS.items():
        found = connection.execute(f"PRAGMA {name}").fetchone()[0]
        if found != value:
            raise StartupError(
                f"SQLite did not accept {name}={value} (it says {found}); is {path} on a network disk?"
            )
    return connection


def _translated(error: Exception) -> Exception:
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        full = any(
            word in str(error) for word in ("full", "disk I/O", "locked", "readonly", "unable to open")
        )
        code = 13 if full else 1
    if code & 0xFF in MEDIUM_ERRORS:
        return NotDurable(f"the database cannot be written now: {error}")
    return StatementFailed(f"the database refused a row: {type(error).__name__}")


def _insert_rows(cursor: Any, table: str, width: int, rows: Rows) -> None:
    for start in range(0, len(rows), CHUNK):
        part = rows[start : start + CHUNK]
        cursor.execute(_insert_sql(table, width, len(part)), list(chain.from_iterable(part)))


@cache
def _insert_sql(table: str, width: int, rows: int) -> str:
    one = "(" + ",".join("?" * width) + ")"
    return f"INSERT INTO {table} VALUES " + ",".join([one] * rows)


def _in(values: Iterable[Any]) -> tuple[str, list[Any]]:
    items = list(values)
    return "(" + ",".join("?" * len(items)) + ")", items


class SqliteTransaction:
    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    def load(self, tenant_id: str, wants: Wants, known: Rulebook) -> Memory:
        ask = self._cursor.execute
        row = ask(
            "SELECT h.tenant_no, h.sequence_number, h.event_hash, h.sessions, h.agents, h.access_version, "
            "h.rulebook_version, t.disabled_ns FROM chain_heads h JOIN tenants t USING (tenant_id) "
            "WHERE tenant_id = ?",
            (tenant_id,),
        ).fetchone()
        if row is None:
            # A number for a tenant not there yet; stored only if the batch creates it.
            number = ask("SELECT coalesce(max(tenant_no), 0) + 1 FROM chain_heads").fetchone()[0]
            return Memory(Tenant(tenant_id=tenant_id, tenant_no=number), Head.genesis(), Rulebook())
        tenant = Tenant(
            tenant_id=tenant_id,
            tenant_no=row[0],
            sessions=row[3],
            agents=row[4],
            access_version=row[5],
            rulebook_version=row[6],
            disabled=row[7] is not None,
        )
        if known.version != row[6]:
            entries = ask(
                "SELECT agent_type, version, status, fields FROM versions WHERE tenant_id = ?", (tenant_id,)
            )
            known = rulebook_of(row[6], entries.fetchall())
        memory = Memory(tenant=tenant, head=Head(row[1], row[2]), rulebook=known)
        self._load_gone_keys(memory, wants.keys)
        self._load_steps(memory, wants.steps)
        self._load_sessions(memory, wants.sessions | {step.session_id for step in memory.steps.values()})
        self._load_agents(memory, wants.agents)
        self._load_members(memory)
        return memory

    def _load_gone_keys(self, memory: Memory, keys: dict[str, int]) -> None:
        """Keys checked before the last change of access are looked at again, under the lock."""
        doubtful = [key for key, version in keys.items() if version != memory.tenant.access_version]
        if doubtful:
            marks, values = _in(doubtful)
            found = self._cursor.execute(
                f"{GOOD_KEYS} AND k.tenant_id = ? AND k.key_id IN {marks}",
                [memory.tenant.tenant_id, *values],
            )
            memory.gone_keys = set(doubtful) - {row[0] for row in found.fetchall()}

    def _load_steps(self, memory: Memory, names: set[str]) -> None:
        if not names:
            return
        tenant_id = memory.tenant.tenant_id
        marks, keys = _in(dedupe_key(tenant_id, name) for name in names)
        found = self._cursor.execute(
            "SELECT m.key, m.digest, s.session_id, m.step_id, m.message_id, m.state, m.warnings "
            "FROM messages m JOIN sessions s ON s.tenant_id = ? AND s.session_no = m.session_no "
            f"WHERE m.dedupe IN {marks}",
            [tenant_id, *keys],
        )
        for key, digest, session_id, step_id, message_id, state, warnings in found.fetchall():
            name = step_name(session_id, step_id)
            if name in names and key >> 40 == memory.tenant.tenant_no:
                notes = tuple(msgspec.json.decode(warnings)) if warnings else ()
                memory.steps[name] = Step(
                    name, key & SEQ_MASK, digest, session_id, step_id, message_id, state, notes
                )

    def _load_sessions(self, memory: Memory, ids: set[str]) -> None:
        if ids:
            marks, values = _in(ids)
            found = self._cursor.execute(
                "SELECT session_no, session_id, trace_id, first_seq, last_seq, started_ns, last_ns, messages "
                f"FROM sessions WHERE tenant_id = ? AND session_id IN {marks}",
                [memory.tenant.tenant_id, *values],
            )
            memory.sessions = {row[1]: session_of(row) for row in found.fetchall()}

    def _load_agents(self, memory: Memory, ids: set[str]) -> None:
        if ids:
            marks, values = _in(ids)
            found = self._cursor.execute(
                "SELECT agent_no, entity_id, agent_id, agent_type, capability_version, cluster_id, model, "
                "provider, hub_address, trust_level, first_seen_ns, last_seen_ns, violation_ns, messages "
                f"FROM agents WHERE tenant_id = ? AND entity_id IN {marks}",
                [memory.tenant.tenant_id, *values],
            )
            memory.agents = {row[1]: agent_of(row) for row in found.fetchall()}

    def _load_members(self, memory: Memory) -> None:
        sessions = [session.session_no for session in memory.sessions.values()]
        if sessions:
            marks, values = _in(sessions)
            found = self._cursor.execute(
                "SELECT session_no, agent_no, last_step, last_seq, messages, tokens, cost FROM members "
                f"WHERE tenant_id = ? AND session_no IN {marks}",
                [memory.tenant.tenant_id, *values],
            )
            for row in found.fetchall():
                memory.members[row[0], row[1]] = Member(
                    session_no=row[0],
                    agent_no=row[1],
                    last_step=row[2],
                    last_seq=row[3],
                    messages=row[4],
                    tokens=row[5],
                    cost=row[6],
                )

    def save(self, memory: Memory, changes: Changes) -> None:
        tenant = memory.tenant
        for write in changes.writes:
            self._write(write)
        base = tenant.tenant_no << 40
        tenant_id, number = tenant.tenant_id, tenant.tenant_no
        audit: Rows = [
            (
                base | row.sequence_number,
                number,
                row.timestamp_ns,
                row.severity,
                base | row.session_no,
                None if row.sender_id is None else entity_key(tenant_id, row.sender_id),
                None if row.recipient_id is None else entity_key(tenant_id, row.recipient_id),
                row.record,
                row.leaf_hash,
            )
            for row in changes.audit
        ]
        messages: Rows = [
            (
                base | row.sequence_number,
                row.message_id,
                row.step_id,
                row.session_no,
                row.message_type,
                row.state,
                row.parents,
                int(row.parent_inferred),
                row.warnings,
                dedupe_key(tenant_id, row.name),
                row.digest,
            )
            for row in changes.messages
        ]
        payloads: Rows = [(base | row.sequence_number, row.raw, None, None) for row in changes.messages]
        _insert_rows(self._cursor, "audit_log", 9, audit)
        _insert_rows(self._cursor, "messages", 11, messages)
        _insert_rows(self._cursor, "payloads", 4, payloads)
        self._save_fleet(memory)
        self._cursor.execute(
            "UPDATE chain_heads SET sequence_number=?, event_hash=?, sessions=?, agents=?, access_version=?, "
            "rulebook_version=? WHERE tenant_id=?",
            (
                memory.head.sequence_number,
                memory.head.event_hash,
                tenant.sessions,
                tenant.agents,
                tenant.access_version,
                tenant.rulebook_version,
                tenant_id,
            ),
        )
        if self._cursor.rowcount != 1:
            raise StatementFailed("there is no such tenant")

    def _save_fleet(self, memory: Memory) -> None:
        tenant_id = memory.tenant.tenant_id
        many = self._cursor.executemany
        agents = [agent for agent in memory.agents.values() if agent.dirty]
        sessions = [session for session in memory.sessions.values() if session.dirty]
        members = [member for member in memory.members.values() if member.dirty]
        if agents:
            many(
                f"INSERT OR REPLACE INTO agents VALUES ({','.join('?' * 15)})",
                [agent_row(tenant_id, a) for a in agents],
            )
        old = [(s.last_seq, s.last_ns, s.messages, tenant_id, s.session_id) for s in sessions if not s.fresh]
        if old:
            many(
                "UPDATE sessions SET last_seq=?, last_ns=?, messages=? WHERE tenant_id=? AND session_id=?",
                old,
            )
        new = [session_row(tenant_id, s) for s in sessions if s.fresh]
        _insert_rows(self._cursor, "sessions", 9, new)
        if members:
            many(
                "INSERT OR REPLACE INTO members VALUES (?,?,?,?,?,?,?,?)",
                [
                    (
                        tenant_id,
                        m.session_no,
                        m.agent_no,
                        m.last_step,
                        m.last_seq,
                        m.messages,
                        m.tokens,
                        m.cost,
                    )
                    for m in members
                ],
            )

    def _write(self, write: Write) -> None:
        sql, values = write_sql(write, lambda number: "?")
        self._cursor.execute(sql, values)


class SqliteStore(Reads):
    """One lane: SQLite has one writer, so all tenants share it."""

    dialect = "sqlite"
    lanes = 1

    def __init__(self, path: Path) -> None:
        super().__init__(SqliteShape())
        self._path = path
        self._connection: Any = None
        self._readers = ThreadPoolExecutor(4, thread_name_prefix="sqlite-read")
        self._engine = create_engine(
            "sqlite://",
            module=driver,
            creator=lambda: connect(path, read_only=True),
            poolclass=QueuePool,
            pool_size=4,
            max_overflow=0,
        )

    def lane(self, tenant_id: str) -> int:
        return 0

    def transact(self, lane: int, unit: Callable[[SqliteTransaction], T]) -> T:
        try:
            if self._connection is None:
                self._connection = connect(self._path)
            cursor = self._connection.cursor()
            cursor.execute("BEGIN IMMEDIATE")
        except (driver.Error, StartupError) as error:
            self.close_lane(lane)
            raise NotDurable(f"the database cannot be written now: {error}") from error
        try:
            value = unit(SqliteTransaction(cursor))
            cursor.execute("COMMIT")
        except BaseException as error:
            self._undo(cursor)
            if isinstance(error, driver.Error | OverflowError | UnicodeEncodeError):
                translated = _translated(error)
                if isinstance(translated, NotDurable):
                    self.close_lane(lane)
                raise translated from error
            raise
        return value

    def _undo(self, cursor: Any) -> None:
        with suppress(driver.Error):  # already rolled back by SQLite itself, as after a full disk
            cursor.execute("ROLLBACK")

    def close_lane(self, lane: int) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            connection.close()

    async def fetch(self, tenant_id: str, statement: Executable, presented: str = "") -> list[Any]:
        def run() -> list[Any]:
            with self._engine.connect() as connection:
                return list(connection.execute(statement).all())

        try:
            return await asyncio.get_running_loop().run_in_executor(self._readers, run)
        except driver.Error as error:
            raise NotDurable(f"the database cannot be read now: {error}") from error

    async def start(self) -> None:
        await self.ping()

    async def ping(self) -> None:
        if not self._path.exists():
            raise NotDurable("the database file is gone")
        await self.head("tnt_none")

    async def stop(self) -> None:
        self._readers.shutdown(wait=True)
        self._engine.dispose()

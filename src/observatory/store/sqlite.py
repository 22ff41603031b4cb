"""SQLite: one file, one writer, WAL with synchronous=FULL.

The law kept here: a transaction locks the chain head first (BEGIN IMMEDIATE), writes rows in sequence
order with multi-row statements (the driver gives up the GIL once a statement, so a busy event loop
does not starve the writer), and returns only after the commit is on disk. Readers have connections of
their own, read-only, in short transactions, so the WAL can be checkpointed.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec
from sqlalchemy import Executable, create_engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import QueuePool

from observatory.errors import NotDurable, StartupError, StatementFailed
from observatory.ledger.chain import Head
from observatory.protocol.steps import step_name
from observatory.state import Agent, Changes, Member, Memory, Rulebook, Session, Step, Tenant, Wants, Write
from observatory.store.keys import SEQ_MASK, dedupe_key, entity_key
from observatory.store.memory import (
    AGENT_CHANGES,
    AGENT_COLUMNS,
    GOOD_KEYS,
    MEMBER_CHANGES,
    MEMBER_COLUMNS,
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
from observatory.store.reads import Reads
from observatory.store.rulebook import rulebook_of
from observatory.store.shapes import SqliteShape

T = TypeVar("T")
PRAGMAS = {
    "journal_mode": "wal",
    "synchronous": 2,
    "recursive_triggers": 1,
    "foreign_keys": 1,
    # The lane is the only one that checkpoints: with a second checkpointer SQLite before 3.51.3 can lose
    # committed pages (its WAL-reset bug).
    "wal_autocheckpoint": 20_000,
    "cache_size": -65_536,
    "temp_store": 2,
}
# PERM, BUSY, LOCKED, NOMEM, READONLY, IOERR, CORRUPT, FULL, CANTOPEN, PROTOCOL: the medium, not the row.
MEDIUM_ERRORS = {3, 5, 6, 7, 8, 10, 11, 13, 14, 15}
OLDEST = (3, 35, 0)  # upserts and the JSON functions the seed's view is made of
CHUNK = 100
Rows = list[tuple[Any, ...]]


def connect(path: Path, read_only: bool = False, create: bool = False) -> Any:
    """A connection whose pragmas were set *and read back*: durability is never assumed.

    Only a migration creates the file; anyone else who finds it gone must say so.
    """
    if sqlite3.sqlite_version_info < OLDEST:
        raise StartupError(
            f"SQLite {sqlite3.sqlite_version} of this Python is too old; 3.35 or PostgreSQL is needed"
        )
    mode = "ro" if read_only else "rwc" if create else "rw"
    try:
        connection = sqlite3.connect(
            f"file:{quote(str(path))}?mode={mode}",
            uri=True,
            isolation_level=None,
            timeout=10,
            check_same_thread=False,
        )
        if read_only:
            connection.execute("PRAGMA query_only=1")
            return connection
        for name, value in PRAGMAS.items():
            connection.execute(f"PRAGMA {name}={value}")
    except sqlite3.Error as error:
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


def _insert_rows(cursor: Any, table: str, width: int, rows: Rows, conflict: str = "") -> None:
    for start in range(0, len(rows), CHUNK):
        part = rows[start : start + CHUNK]
        cursor.execute(_insert_sql(table, width, len(part), conflict), list(chain.from_iterable(part)))


@cache
def _insert_sql(table: str, width: int, rows: int, conflict: str) -> str:
    one = "(" + ",".join("?" * width) + ")"
    return f"INSERT INTO {table} VALUES {','.join([one] * rows)} {conflict}"


@cache
def _upsert(key: str, columns: tuple[str, ...]) -> str:
    sets = ", ".join(f"{column} = excluded.{column}" for column in columns)
    return f"ON CONFLICT ({key}) DO UPDATE SET {sets}"


def _in(values: Iterable[Any]) -> tuple[str, list[Any]]:
    items = list(values)
    return "(" + ",".join("?" * len(items)) + ")", items


class SqliteTransaction:
    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    def load(self, tenant_id: str, wants: Wants, known: Memory | None) -> Memory:
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
        rulebook = known.rulebook if known is not None else Rulebook()
        if rulebook.version != row[6]:
            entries = ask(
                "SELECT agent_type, version, status, fields FROM versions WHERE tenant_id = ?", (tenant_id,)
            )
            rulebook = rulebook_of(row[6], entries.fetchall())
        memory = Memory(tenant=tenant, head=Head(row[1], row[2]), rulebook=rulebook)
        memory.recall(known)
        self._load_gone_keys(memory, wants.keys)
        self._load_steps(memory, wants.steps)
        self._load_sessions(memory, wants.sessions | {step.session_id for step in memory.steps.values()})
        self._load_agents(memory, wants.agents)
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
        """Upserts in multi-row statements: `executemany` would give up the interpreter at every row."""
        tenant_id, put = memory.tenant.tenant_id, self._cursor
        agents = [agent_row(tenant_id, agent) for agent in memory.touched(Agent)]
        sessions = [session_row(tenant_id, session) for session in memory.touched(Session)]
        members = [member_row(tenant_id, member) for member in memory.touched(Member)]
        _insert_rows(put, "agents", 15, agents, _upsert("tenant_id, entity_id", AGENT_CHANGES))
        _insert_rows(put, "sessions", 9, sessions, _upsert("tenant_id, session_id", SESSION_CHANGES))
        _insert_rows(put, "members", 8, members, _upsert("tenant_id, session_no, agent_no", MEMBER_CHANGES))

    def _write(self, write: Write) -> None:
        sql, values = write_sql(write, lambda number: "?")
        self._cursor.execute(sql, values)
        if write.where is not None and self._cursor.rowcount == 0:
            raise StatementFailed("an update found no row")


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
            module=sqlite3,
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
        except (sqlite3.Error, StartupError) as error:
            self.close_lane(lane)
            raise NotDurable(f"the database cannot be written now: {error}") from error
        try:
            value = unit(SqliteTransaction(cursor))
            cursor.execute("COMMIT")
        except BaseException as error:
            self._undo(cursor)
            if isinstance(error, sqlite3.Error | OverflowError | UnicodeEncodeError):
                translated = _translated(error)
                if isinstance(translated, NotDurable):
                    self.close_lane(lane)
                raise translated from error
            raise
        return value

    def _undo(self, cursor: Any) -> None:
        with suppress(sqlite3.Error):  # already rolled back by SQLite itself, as after a full disk
            cursor.execute("ROLLBACK")

    def close_lane(self, lane: int) -> None:
        """Close the lane; what its log holds goes into the file, so that a copy of it is whole."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            with suppress(sqlite3.Error):  # a full disk, or a reader at work: the log stays and is read again
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.close()

    async def fetch(self, tenant_id: str, statement: Executable, presented: str = "") -> list[Any]:
        def run() -> list[Any]:
            with self._engine.connect() as connection:
                return list(connection.execute(statement).all())

        try:
            return await asyncio.get_running_loop().run_in_executor(self._readers, run)
        except (sqlite3.Error, SQLAlchemyError, StartupError) as error:
            raise NotDurable(f"the database cannot be read now: {type(error).__name__}") from error

    async def start(self) -> None:
        await self.ping()

    async def ping(self) -> None:
        if not self._path.exists():
            raise NotDurable("the database file is gone")
        await self.head("tnt_none")

    async def stop(self) -> None:
        self._readers.shutdown(wait=True)
        self._engine.dispose()

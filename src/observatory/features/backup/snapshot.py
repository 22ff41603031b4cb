"""A snapshot of the database as of one moment, written into a SQLite file from either database: for backups.

Law: one moment. SQLite is copied within one read transaction, PostgreSQL read in one, so what is committed
meanwhile is in it wholly or not at all; writers are not blocked. The derived store is left out: it is
rebuilt from the record. Rows of PostgreSQL become what the append path would have written into SQLite.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from observatory.errors import StartupError, StoreError
from observatory.pipeline.state import HOME_TENANT
from observatory.protocol.clock import to_ns
from observatory.store import tables
from observatory.store.keys import SEQ_BITS, entity_key
from observatory.store.migrations.migrate import NO_DRIVER, REVISIONS, migrate_sqlite
from observatory.store.sqlite import connect

Progress = Callable[[int, int], None]
PAGES = 1_000  # of a SQLite file at one step
BATCH = 1_000
MESSAGE_COLUMNS = (
    "sequence_number, message_id, step_id, session_no, message_type, state, parents, parent_inferred, "
    "warnings, dedupe, digest, entropy"
)
WIDTHS = {"audit_log": 9, "messages": 12, "payloads": 4}


class TenantSnapshot(msgspec.Struct, frozen=True):
    """One tenant in a snapshot: how far its record reaches, and how far that was signed."""

    tenant_id: str
    events: int
    event_hash: str
    messages: int
    signed: int


def snapshot(url: str, into: Path, progress: Progress) -> None:
    """Write the snapshot to `into`. StartupError when there is nothing to copy, StoreError when it fails."""
    try:
        if url.startswith("sqlite:///"):
            _of_sqlite(Path(url.removeprefix("sqlite:///")), into, progress)
        else:
            asyncio.run(_of_postgres(url, into, progress))
    except sqlite3.Error as error:
        raise StoreError(f"the copy ended at SQLite: {error}") from error


def look(path: Path) -> tuple[str, list[TenantSnapshot]]:
    """(schema, tenants) of a snapshot; StartupError when it is not an Observatory's database."""
    try:
        connection = connect(path, read_only=True)
        try:
            return _look(connection)
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise StartupError(f"this is not a database of an Observatory: {error}") from error


def _look(connection: Any) -> tuple[str, list[TenantSnapshot]]:
    schema = str(connection.execute("SELECT version_num FROM alembic_version").fetchone()[0])
    has_log = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'checkpoints'").fetchone()
    found = []
    for tenant_id, number, length, event_hash in connection.execute(
        "SELECT tenant_id, tenant_no, sequence_number, event_hash FROM chain_heads ORDER BY tenant_no"
    ).fetchall():
        span = (number << SEQ_BITS, (number + 1) << SEQ_BITS)
        messages = connection.execute("SELECT count(*) FROM messages WHERE key > ? AND key < ?", span)
        signed = None
        if has_log:
            newest = "SELECT max(size) FROM checkpoints WHERE tenant_id = ?"
            signed = connection.execute(newest, (tenant_id,)).fetchone()[0]
        found.append(TenantSnapshot(tenant_id, length, event_hash, messages.fetchone()[0], signed or 0))
    return schema, found


def _of_sqlite(path: Path, into: Path, progress: Progress) -> None:
    if not path.exists():
        raise StartupError(f"there is no database at {path}")
    source = connect(path, read_only=True)
    target = sqlite3.connect(str(into))
    try:
        # A step that finds the source changed would start over, for ever while others write. Within a read
        # transaction it always finds the same state.
        source.execute("BEGIN")
        source.execute("SELECT version_num FROM alembic_version").fetchone()
        source.backup(
            target, pages=PAGES, progress=lambda _, left, total: progress(total - left, total), sleep=0
        )
    finally:
        target.close()
        source.close()


async def _of_postgres(url: str, into: Path, progress: Progress) -> None:
    try:
        from observatory.store import postgres
    except ModuleNotFoundError as error:
        raise StartupError(NO_DRIVER) from error
    try:
        source = await postgres.connect(url, postgres.SESSION)
    except postgres.DRIVER_ERRORS as error:
        raise StartupError(f"PostgreSQL cannot be reached: {type(error).__name__}") from error
    migrate_sqlite(into)
    target = connect(into)
    target.execute("PRAGMA journal_mode=OFF")  # a failed snapshot is deleted: a journal would only take space
    try:
        async with source.transaction(isolation="repeatable_read", readonly=True):
            target.execute("BEGIN IMMEDIATE")
            await _Fill(source, target, progress).run()
            target.execute("COMMIT")
    except postgres.DRIVER_ERRORS as error:
        raise StoreError(f"the copy ended at PostgreSQL: {type(error).__name__}: {error}") from error
    finally:
        target.close()
        source.terminate()


class _Fill:
    """One pass over a PostgreSQL database, tenant by tenant, in one transaction."""

    def __init__(self, source: Any, target: sqlite3.Connection, progress: Progress) -> None:
        self._source, self._target, self._progress = source, target, progress
        self._done = self._total = 0

    async def run(self) -> None:
        present = await self._source.fetchval("SELECT version_num FROM alembic_version")
        if present != REVISIONS[-1]:
            raise StartupError(
                f"this database is at schema {present}, this program at {REVISIONS[-1]}; "
                "run `observatory migrate`, or use the program it was written by"
            )
        await self._name(HOME_TENANT)  # the one tenant that sees all others
        tenants = await self._source.fetch(
            "SELECT tenant_id, sequence_number FROM chain_heads ORDER BY tenant_no"
        )
        self._total = sum(row[1] for row in tenants)
        for number, (tenant_id, _) in enumerate(tenants, 1):
            await self._name(tenant_id)
            for table in tables.OWNED:
                await self._small(table, tenant_id, number)
            await self._trail(tenant_id, number)

    async def _name(self, tenant_id: str) -> None:
        from observatory.store.postgres_append import NAME_TENANT

        await self._source.execute(NAME_TENANT, tenant_id, "")

    async def _small(self, name: str, tenant_id: str, tenant_no: int) -> None:
        columns = [column.name for column in tables.SMALL[name].c]
        place = columns.index("tenant_no") if "tenant_no" in columns else None
        sql = f"SELECT {', '.join(columns)} FROM {name} WHERE tenant_id = $1"
        insert = f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
        cursor = await self._source.cursor(sql, tenant_id)
        while found := await cursor.fetch(BATCH):
            rows = [tuple(row) for row in found]
            if place is not None:
                rows = [(*row[:place], tenant_no, *row[place + 1 :]) for row in rows]
            self._target.executemany(insert, rows)

    async def _trail(self, tenant_id: str, number: int) -> None:
        base = number << SEQ_BITS
        sessions = await self._source.fetch(
            "SELECT trace_id, session_no FROM sessions WHERE tenant_id = $1 ORDER BY session_no DESC",
            tenant_id,
        )
        by_trace = {row[0]: row[1] for row in sessions}  # of two sessions with one trace the first
        events = await self._source.cursor(
            "SELECT e.sequence_number, e.record, e.leaf_hash, m.session_no FROM audit_events e "
            "LEFT JOIN messages m ON m.tenant_id = e.tenant_id AND m.sequence_number = e.sequence_number "
            "WHERE e.tenant_id = $1 ORDER BY e.sequence_number",
            tenant_id,
        )
        while rows := await events.fetch(BATCH):
            self._insert("audit_log", [_event(tenant_id, number, by_trace, row) for row in rows])
            self._done += len(rows)
            self._progress(self._done, self._total)
        for table, columns in (
            ("messages", MESSAGE_COLUMNS),
            ("payloads", "sequence_number, raw, salt, shredded_by"),
        ):
            found = await self._source.cursor(
                f"SELECT {columns} FROM {table} WHERE tenant_id = $1 ORDER BY sequence_number", tenant_id
            )
            while rows := await found.fetch(BATCH):
                self._insert(table, [(base | row[0], *tuple(row)[1:]) for row in rows])

    def _insert(self, table: str, rows: list[tuple[Any, ...]]) -> None:
        self._target.executemany(f"INSERT INTO {table} VALUES ({','.join('?' * WIDTHS[table])})", rows)


def _event(tenant_id: str, tenant_no: int, by_trace: dict[str, int], row: Any) -> tuple[Any, ...]:
    """A row of `audit_log` as the append path writes it."""
    number, record, leaf_hash, session_no = row
    event, base = msgspec.json.decode(record), tenant_no << SEQ_BITS
    names = (event["attributes"].get(f"av.{one}.entity_id") for one in ("sender", "recipient"))
    return (
        base | number,
        tenant_no,
        to_ns(event["timestamp"]),
        event["severity_number"],
        base | (session_no or by_trace.get(event["trace_id"], 0)),
        *(None if name is None else entity_key(tenant_id, name) for name in names),
        record,
        leaf_hash,
    )

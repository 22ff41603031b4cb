"""Moves a deployment from SQLite to an empty PostgreSQL: every row, every hash checked, one way only.

Law: the source is locked against writing from the first row to the mark that says where it was moved;
the target carries the mark `copying` until heads and counts agree, so an unfinished copy never
starts. The source is marked first, the target opened last: at no moment could both be started. Rows are
rebuilt from the recorded bytes; surrogate tenant numbers never leave the file (ADR-024).
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import msgspec

from observatory.errors import StartupError, StoreError
from observatory.ledger.verify import ChainCheck, payload_matches
from observatory.store import tables
from observatory.store.keys import SEQ_BITS, SEQ_MASK, entity_key
from observatory.store.migrations.migrate import is_empty_postgres, migrate_postgres, migrate_sqlite
from observatory.store.postgres import DRIVER_ERRORS, dsn
from observatory.store.postgres_append import INSERT_EVENTS, INSERT_MESSAGES, NAME_TENANT
from observatory.store.sqlite import connect

Progress = Callable[[int, int], None]
Rows = list[tuple[Any, ...]]
BATCH = 1_000
INSERT_PAYLOADS = """
INSERT INTO payloads (tenant_id, sequence_number, raw, salt, shredded_by)
SELECT $1, * FROM unnest($2::bigint[], $3::bytea[], $4::bytea[], $5::bigint[])"""
MESSAGE_COLUMNS = (
    "message_id step_id session_no message_type state parents parent_inferred warnings dedupe digest entropy"
)
# A gateway still running on the moved file finds that its next commit is refused.
CLOSE_SOURCE = (
    "CREATE TRIGGER moved_no_commit BEFORE UPDATE ON chain_heads "
    "BEGIN SELECT RAISE(ABORT, 'this database was moved'); END"
)


class CopyReport(msgspec.Struct, frozen=True):
    tenants: int
    events: int
    messages: int
    shredded: int
    moved_to: str


def copy_database(source_url: str, target_url: str, progress: Progress) -> CopyReport:
    """Copy, verify, and hand over. Raises StartupError before anything was touched, StoreError after."""
    if not source_url.startswith("sqlite:///"):
        raise StartupError("the source of a copy is a SQLite database: sqlite:///PATH")
    path = Path(source_url.removeprefix("sqlite:///"))
    if not path.exists():
        raise StartupError(f"there is no database at {path}")
    dsn(target_url)
    try:
        return asyncio.run(_copy(path, target_url, progress))
    except DRIVER_ERRORS as error:
        raise StoreError(f"the copy ended at PostgreSQL: {type(error).__name__}: {error}") from error
    except sqlite3.Error as error:
        raise StoreError(f"the copy ended at SQLite: {error}") from error


def without_password(url: str) -> str:
    parts = urlsplit(url)
    user, at, place = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=user.partition(":")[0] + at + place))


async def _copy(path: Path, target_url: str, progress: Progress) -> CopyReport:
    name = without_password(target_url)
    source = connect(path)
    target = await asyncpg.connect(dsn(target_url), timeout=10)
    try:
        begun = await _is_half_open(target)
        if begun and _mark(source) == name:  # only the very last step is missing
            await target.execute("DELETE FROM house WHERE name = 'copying'")
            return await _counted(target, source, name)
        migrate_sqlite(path)
        await _refuse_unless_empty(target, begun)
        await migrate_postgres(target_url)
        await target.execute("INSERT INTO house (name, value) VALUES ('copying', $1)", path.name)
        source.execute("BEGIN IMMEDIATE")
        await _Move(source, target, progress).run()
        report = await _counted(target, source, name)
        source.execute("INSERT INTO house (name, value) VALUES ('moved_to', ?)", (name,))
        source.execute(CLOSE_SOURCE)
        source.execute("COMMIT")
        await target.execute("DELETE FROM house WHERE name = 'copying'")
        await target.execute("ANALYZE")
        return report
    finally:
        if source.in_transaction:
            source.execute("ROLLBACK")
        source.close()
        await target.close()


def _mark(source: Any) -> str | None:
    if not source.execute("SELECT 1 FROM sqlite_master WHERE name = 'house'").fetchone():
        return None
    row = source.execute("SELECT value FROM house WHERE name = 'moved_to'").fetchone()
    return None if row is None else str(row[0])


async def _has_table(target: asyncpg.Connection, name: str) -> bool:
    return bool(await target.fetchval("SELECT to_regclass($1) IS NOT NULL", name))


async def _is_half_open(target: asyncpg.Connection) -> bool:
    if not await _has_table(target, "house"):
        return False
    return bool(await target.fetchval("SELECT count(*) FROM house WHERE name = 'copying'"))


async def _refuse_unless_empty(target: asyncpg.Connection, begun: bool) -> None:
    if begun:
        raise StartupError("an earlier copy into this database never finished; drop it and give an empty one")
    if not await is_empty_postgres(target):
        raise StartupError(
            "the target already holds an Observatory; a copy needs an empty PostgreSQL database"
        )


class _Move:
    """One pass over the source, tenant by tenant, table by table."""

    def __init__(self, source: Any, target: asyncpg.Connection, progress: Progress) -> None:
        self._source, self._target, self._progress = source, target, progress
        self._total = int(source.execute("SELECT count(*) FROM audit_log").fetchone()[0])
        self._done = 0

    async def run(self) -> None:
        tenants = self._source.execute(
            "SELECT tenant_id, tenant_no, sequence_number, event_hash FROM chain_heads ORDER BY tenant_no"
        ).fetchall()
        for number, (tenant_id, old_number, length, event_hash) in enumerate(tenants, 1):
            for table in tables.OWNED:
                await self._small(table, tenant_id, number)
            await self._trail(tenant_id, old_number, (length, event_hash))
            await self._messages(tenant_id, old_number)

    async def _in_tenant(self, tenant_id: str, sql: str, rows: Rows) -> None:
        async with self._target.transaction():
            await self._target.execute(NAME_TENANT, tenant_id, "")
            await self._target.execute(sql, tenant_id, *map(list, zip(*rows, strict=True)))

    async def _small(self, name: str, tenant_id: str, tenant_no: int) -> None:
        columns = [column.name for column in tables.SMALL[name].c]
        marks = ", ".join(f"${number}" for number in range(1, len(columns) + 1))
        found = self._source.execute(
            f"SELECT {', '.join(columns)} FROM {name} WHERE tenant_id = ? ORDER BY 1, 2", (tenant_id,)
        )
        place = columns.index("tenant_no") if "tenant_no" in columns else None
        while rows := found.fetchmany(BATCH):
            if place is not None:
                rows = [(*row[:place], tenant_no, *row[place + 1 :]) for row in rows]
            async with self._target.transaction():
                await self._target.execute(NAME_TENANT, tenant_id, "")
                await self._target.executemany(
                    f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({marks})", rows
                )

    def _pages(self, table: str, columns: str, tenant_no: int) -> Iterator[Rows]:
        """A tenant's rows of a big table in key order, a page at a time."""
        last, end = tenant_no << SEQ_BITS, (tenant_no + 1) << SEQ_BITS
        while rows := self._source.execute(
            f"SELECT key, {columns} FROM {table} WHERE key > ? AND key < ? ORDER BY key LIMIT {BATCH}",
            (last, end),
        ).fetchall():
            last = rows[-1][0]
            yield [(row[0] & SEQ_MASK, *row[1:]) for row in rows]

    async def _trail(self, tenant_id: str, tenant_no: int, head: tuple[int, str]) -> None:
        check = ChainCheck(tenant_id)
        for rows in self._pages("audit_log", "record, leaf_hash", tenant_no):
            check.feed((number, record, leaf) for number, record, leaf in rows)
            _refuse_break(tenant_id, check)
            await self._in_tenant(tenant_id, INSERT_EVENTS, [_event(tenant_id, *row) for row in rows])
            self._done += len(rows)
            self._progress(self._done, self._total)
        _refuse_break(tenant_id, check, head)

    async def _messages(self, tenant_id: str, tenant_no: int) -> None:
        pages = self._pages("messages", MESSAGE_COLUMNS.replace(" ", ", "), tenant_no)
        for rows in pages:
            await self._in_tenant(tenant_id, INSERT_MESSAGES, rows)
        for rows in self._pages("payloads", "raw, salt, shredded_by", tenant_no):
            self._check_payloads(tenant_id, tenant_no, rows)
            await self._in_tenant(tenant_id, INSERT_PAYLOADS, rows)

    def _check_payloads(self, tenant_id: str, tenant_no: int, rows: Rows) -> None:
        base = tenant_no << SEQ_BITS
        records = dict(
            self._source.execute(
                "SELECT key, record FROM audit_log WHERE key BETWEEN ? AND ?",
                (base | rows[0][0], base | rows[-1][0]),
            ).fetchall()
        )
        for number, raw, _, shredded_by in rows:
            if raw is None and shredded_by is not None:
                continue
            if raw is None or not payload_matches(records[base | number], raw):
                raise StoreError(
                    f"message {number} of {tenant_id} is not the one its event records; nothing was moved"
                )


def _event(tenant_id: str, number: int, record: bytes, leaf: bytes) -> tuple[Any, ...]:
    attributes = msgspec.json.decode(record)["attributes"]
    names = (attributes.get("av.sender.entity_id"), attributes.get("av.recipient.entity_id"))
    return (number, record, leaf, *(None if name is None else entity_key(tenant_id, name) for name in names))


def _refuse_break(tenant_id: str, check: ChainCheck, head: tuple[int, str] | None = None) -> None:
    broken = check.result(head).first_break
    if broken is not None:
        raise StoreError(f"the trail of {tenant_id} is broken, nothing was moved: {broken.sentence}")


async def _counted(target: asyncpg.Connection, source: Any, name: str) -> CopyReport:
    """Heads and counts of both sides; any difference ends the copy before a mark is set."""
    events = messages = shredded = tenants = 0
    heads = source.execute(
        "SELECT tenant_id, tenant_no, sequence_number, event_hash FROM chain_heads"
    ).fetchall()
    for tenant_id, tenant_no, length, event_hash in heads:
        low, high = tenant_no << SEQ_BITS, (tenant_no + 1) << SEQ_BITS
        mine = [length, event_hash if length else None]
        for table in ("messages", "payloads"):
            mine += source.execute(
                f"SELECT count(*) FROM {table} WHERE key > ? AND key < ?", (low, high)
            ).fetchone()
        for table in tables.OWNED:
            mine += source.execute(
                f"SELECT count(*) FROM {table} WHERE tenant_id = ?", (tenant_id,)
            ).fetchone()
        async with target.transaction():
            await target.execute(NAME_TENANT, tenant_id, "")
            theirs = [
                await target.fetchval("SELECT count(*) FROM audit_events WHERE tenant_id = $1", tenant_id)
            ]
            theirs.append(
                await target.fetchval(
                    "SELECT event_hash FROM audit_events WHERE tenant_id = $1 "
                    "ORDER BY sequence_number DESC LIMIT 1",
                    tenant_id,
                )
            )
            for table in ("messages", "payloads", *tables.OWNED):
                count = f"SELECT count(*) FROM {table} WHERE tenant_id = $1"
                theirs.append(await target.fetchval(count, tenant_id))
            gone = "SELECT count(*) FROM payloads WHERE tenant_id = $1 AND raw IS NULL"
            shredded += await target.fetchval(gone, tenant_id)
        if mine != theirs:
            raise StoreError(f"the copy of {tenant_id} differs from its source; nothing was moved")
        tenants, events, messages = tenants + 1, events + length, messages + mine[2]
    return CopyReport(tenants, events, messages, shredded, name)

"""The derived store on SQLite: `derived.db` in the record's folder, WAL with synchronous=NORMAL.

A power failure may lose its last transactions, never half of one: the cursor is committed with the rows. A
file that is missing, corrupt or of another version is replaced by a new one; readers detect the replacement.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import create_engine, event
from sqlalchemy.exc import DisconnectionError, SQLAlchemyError
from sqlalchemy.pool import QueuePool

from observatory.derived.reads import DerivedReads, ddl, mark
from observatory.derived.seen import DerivedWrite, Finding
from observatory.derived.tables import DERIVED, documents
from observatory.derived.writes import sqlite_sql, writes_of
from observatory.errors import NotDurable, StatementFailed
from observatory.store.fetches import PooledFetches
from observatory.store.search_sqlite import put_documents
from observatory.store.short_reads import ShortReads
from observatory.store.sqlite import truncate_wal

log = logging.getLogger("observatory.derived")
FILE = "derived.db"
RECORD = "observatory.db"
BROKEN = {11, 26}  # CORRUPT, NOTADB
# Disk errors, or another writer: retry. PERM, BUSY, LOCKED, NOMEM, READONLY, IOERR, FULL, CANTOPEN.
AWAY = {3, 5, 6, 7, 8, 10, 13, 14, 15}
READ_CACHE_KB = 32_768  # the keys of a large spread are scattered over the indexes
PRAGMAS = (
    *("journal_mode=wal", "synchronous=1", "cache_size=-32768", "temp_store=2", "secure_delete=1"),
    # pages, as for the record: pages that batches change repeatedly are written once
    "wal_autocheckpoint=20000",
)
MERGE = "INSERT INTO insight_words (insight_words, rank) VALUES ('merge', ?)"
PAGES = 2_000  # pages of the word index merged with each batch after something was shredded
CURSOR = "SELECT seq FROM insight_cursors WHERE tenant_id = ? AND name = 'fold'"
MOVE = (
    "INSERT INTO insight_cursors (tenant_id, name, seq, at_ns) VALUES (?, 'fold', ?, ?) "
    "ON CONFLICT (tenant_id, name) DO UPDATE SET seq = excluded.seq, at_ns = excluded.at_ns"
)
COUNT = (
    "INSERT INTO insight_cursors (tenant_id, name, seq, at_ns) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (tenant_id, name) DO UPDATE SET seq = insight_cursors.seq + excluded.seq, "
    "at_ns = excluded.at_ns"
)


def derived_path_of(record: Path) -> Path:
    """The path of a record's derived store; records with other names in the same folder have their own."""
    return record.with_name(FILE if record.name == RECORD else f"{record.name}.{FILE}")


def connect(path: Path, mode: str, cache_kb: int = READ_CACHE_KB) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?mode={mode}",
        uri=True,
        isolation_level=None,
        timeout=10,
        check_same_thread=False,
        cached_statements=256,
    )
    if mode == "ro":
        connection.execute("PRAGMA query_only=1")
        connection.execute(f"PRAGMA cache_size=-{cache_kb}")
    else:
        for pragma in PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")
    return connection


def is_ready(path: Path) -> bool:
    """Whether the file exists, is readable and of this version."""
    if not path.exists():
        return False
    try:
        connection = connect(path, "ro")
        try:
            found = connection.execute("SELECT mark FROM insight_version").fetchone()
        finally:
            connection.close()
    except sqlite3.Error as error:
        if code_of(error) in AWAY:
            raise NotDurable(f"the derived store cannot be read now: {type(error).__name__}") from error
        return False
    return found is not None and found[0] == mark("sqlite")


def create_file(path: Path) -> None:
    """Create the file under another name, then rename it: no reader ever sees half of it."""
    fresh = path.with_name(f"{path.name}.new")
    remove(fresh)
    try:
        os.close(os.open(fresh, os.O_CREAT | os.O_WRONLY, 0o600))
        connection = connect(fresh, "rw")
        try:
            connection.execute("BEGIN")
            for statement in ddl("sqlite"):
                connection.execute(statement)
            connection.execute("CREATE TABLE insight_version (mark TEXT NOT NULL)")
            connection.execute("INSERT INTO insight_version VALUES (?)", (mark("sqlite"),))
            connection.execute("COMMIT")
        finally:
            connection.close()  # the last connection: its log is written into the file
        remove(path)
        fresh.replace(path)
    except (sqlite3.Error, OSError) as error:
        raise NotDurable(f"the derived store cannot be made: {error}") from error


def remove(path: Path) -> None:
    for end in ("", "-wal", "-shm"):  # in this order: a file without its log must not be opened
        with suppress(FileNotFoundError):
            os.unlink(f"{path}{end}")


def code_of(error: BaseException) -> int:
    return int(getattr(error, "sqlite_errorcode", 1)) & 0xFF


class SqliteDerived(PooledFetches, DerivedReads):
    dialect = "sqlite"

    def __init__(self, path: Path, read_cache_kb: int = READ_CACHE_KB) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._inode = 0
        self._purging = self._merging = False
        self._readers = ThreadPoolExecutor(2, thread_name_prefix="derived-read")
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="derived-write")
        self._engine = create_engine(
            "sqlite://",
            module=sqlite3,
            creator=lambda: connect(path, "ro", read_cache_kb),
            poolclass=QueuePool,
            pool_size=2,
            max_overflow=0,
            pool_use_lifo=True,  # each has a page cache: a rarely needed connection need not fill its own
        )
        self._short = ShortReads(lambda: connect(path, "ro"), self._file)
        event.listen(self._engine, "connect", self._remember)
        event.listen(self._engine, "checkout", self._check)

    def _file(self) -> int:
        try:
            return self._path.stat().st_ino
        except FileNotFoundError:
            return 0

    def _remember(self, _connection: Any, record: Any) -> None:
        record.info["inode"] = self._file()

    def _check(self, _connection: Any, record: Any, _proxy: Any) -> None:
        if (
            record.info["inode"] != self._file()
        ):  # the file was replaced: this connection reads the deleted one
            raise DisconnectionError

    async def start(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._writer, self._prepare)

    async def claim(self, tenant_id: str) -> bool:
        return True  # a file has one gateway, and that has one analyst

    async def release(self, tenant_id: str) -> None:
        return None

    async def ready(self) -> bool:
        if self._inode == self._file() != 0:
            return True
        await self.start()
        return False

    def _prepare(self) -> None:
        if not is_ready(self._path):
            if self._path.exists():
                log.warning("the derived store is corrupt or of another version; it is rebuilt")
            elif self._inode:
                log.warning("the derived store is missing; it is rebuilt")
            self._close()
            create_file(self._path)
        self._inode = self._file()

    def figures(self) -> dict[str, float]:
        return {"derived_bytes": self._path.stat().st_size} if self._path.exists() else {}

    async def stop(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._writer, self._close)
        self._writer.shutdown(wait=True)
        self._short.close()
        self._readers.shutdown(wait=True)
        self._engine.dispose()

    async def _reading(self, run: Callable[[], list[Any]]) -> list[Any]:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._readers, run)
        except (sqlite3.Error, SQLAlchemyError) as error:
            if code_of(getattr(error, "orig", None) or error) in BROKEN:
                self._discard()
            raise NotDurable(f"the derived store cannot be read now: {type(error).__name__}") from error

    async def apply(
        self,
        tenant_id: str,
        after: int,
        until: int,
        at_ns: int,
        puts: Sequence[DerivedWrite],
        findings: Sequence[Finding],
        passed: tuple[int, int] = (0, 0),
    ) -> bool:
        def run() -> bool:
            return self._apply(tenant_id, after, until, at_ns, puts, findings, passed)

        return await asyncio.get_running_loop().run_in_executor(self._writer, run)

    def _apply(
        self,
        tenant_id: str,
        after: int,
        until: int,
        at_ns: int,
        puts: Sequence[DerivedWrite],
        findings: Sequence[Finding],
        passed: tuple[int, int],
    ) -> bool:
        writes = writes_of(puts, findings, after, until)
        try:
            connection = self._writing()
            connection.execute("BEGIN IMMEDIATE")
            row = connection.execute(CURSOR, (tenant_id,)).fetchone()
            if (row[0] if row else 0) != after:
                connection.execute("ROLLBACK")
                return False
            for table, numbers in writes.clears.items():
                sql = f"DELETE FROM {table} WHERE tenant_id = ? AND seq = ?"
                connection.executemany(sql, [(tenant_id, number) for number in numbers])
            for one in writes.upserts:
                if (
                    one.table == documents.name
                ):  # last: a write after the words would turn them into a savepoint
                    continue
                sql = sqlite_sql(one.table, one.columns, one.mode)
                connection.executemany(sql, [(tenant_id, *values) for values in one.rows])
            connection.execute(MOVE, (tenant_id, until, at_ns))
            for name, count in zip(("skipped", "unread"), passed, strict=True):
                if count:
                    connection.execute(COUNT, (tenant_id, name, count, at_ns))
            put_documents(connection, tenant_id, after, writes.upserts)
            self._purge(connection, any(put.purge for put in puts))
            connection.execute("COMMIT")
            if self._purging and truncate_wal(connection):
                self._purging = self._merging
        except (sqlite3.Error, OverflowError, UnicodeEncodeError) as error:
            raise self._failed(error) from error
        return True

    def _purge(self, connection: sqlite3.Connection, begins: bool) -> None:
        """Merge FTS5's segments, some pages at a time: deleted words stay in the file until then."""
        if begins or self._purging:
            before = connection.total_changes
            connection.execute(MERGE, (-PAGES if begins else PAGES,))
            self._purging, self._merging = True, connection.total_changes - before > 1

    async def restart(self, tenant_id: str) -> None:
        def run() -> None:
            try:
                connection = self._writing()
                connection.execute("BEGIN IMMEDIATE")
                for table in DERIVED.tables:
                    connection.execute(f"DELETE FROM {table} WHERE tenant_id = ?", (tenant_id,))
                connection.execute("COMMIT")
            except sqlite3.Error as error:
                raise self._failed(error) from error

        await asyncio.get_running_loop().run_in_executor(self._writer, run)

    def _writing(self) -> sqlite3.Connection:
        if self._connection is not None and self._inode != self._file():
            self._close()
        if self._connection is None:
            self._prepare()
            self._connection = connect(self._path, "rw")
        return self._connection

    def _failed(self, error: Exception) -> Exception:
        """The exception to raise. A corrupt store is rebuilt with the next batch, which finds its cursor at
        0."""
        code = code_of(error)
        connection = self._connection
        if isinstance(error, sqlite3.Error) and code in BROKEN:
            self._close()
            self._discard()
            return NotDurable("the derived store was corrupt")
        if connection is not None and connection.in_transaction:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
        if isinstance(error, sqlite3.Error) and code in AWAY:
            self._close()
            return NotDurable(f"the derived store cannot be written now: {type(error).__name__}")
        return StatementFailed(f"the derived store refused a row: {type(error).__name__}: {error}")

    def _discard(self) -> None:
        """Remove a corrupt file; the analyst finds it missing and rebuilds it."""
        log.warning("the derived store is corrupt and was removed; it is rebuilt from the record")
        with suppress(OSError):
            remove(self._path)

    def _close(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            with suppress(sqlite3.Error):
                connection.close()

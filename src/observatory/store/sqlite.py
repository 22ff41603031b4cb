"""The SQLite store: one file, one writer, WAL with synchronous=FULL.

Law: a transaction locks the chain head first (BEGIN IMMEDIATE), writes rows in sequence order with multi-row
statements (the driver releases the GIL once per statement, so a busy event loop does not starve the writer),
and returns only after the commit is on disk. Readers have their own connections, read-only, in short
transactions, so the WAL can be checkpointed.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from sqlalchemy import create_engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import QueuePool

from observatory.errors import NotDurable, StartupError, StatementFailed
from observatory.ledger.chain import ChainHead
from observatory.pipeline.ports import PreparedBatch
from observatory.pipeline.state import BatchState, ReadSet, TransactionChanges
from observatory.store.fetches import PooledFetches
from observatory.store.leases import SqliteLeases
from observatory.store.reads import Reads
from observatory.store.shapes import SqliteShape
from observatory.store.short_reads import ShortReads
from observatory.store.sqlite_append import SqliteReading, SqliteTransaction, finished

log = logging.getLogger("observatory.store")
T = TypeVar("T")
MEND = "stop the gateway, run `observatory doctor`, and restore a good backup"
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
    # Shredded data is overwritten in the file, not only freed. Inserts are not slowed down.
    "secure_delete": 1,
}
# PERM, BUSY, LOCKED, NOMEM, READONLY, IOERR, CORRUPT, FULL, CANTOPEN, PROTOCOL, NOTADB: never the row.
MEDIUM_ERRORS = {3, 5, 6, 7, 8, 10, 11, 13, 14, 15, 26}
BUSY_S = 10
FEW = 50  # up to this many tenants, heads are read without a thread
HEADS = (
    "SELECT t.tenant_id, h.sequence_number FROM tenants t JOIN chain_heads h ON h.tenant_id = t.tenant_id "
    "WHERE t.disabled_ns IS NULL"
)
STATEMENTS = 512  # inserts of up to a hundred rows into a handful of tables
MALFORMED = {11, 26}  # CORRUPT, NOTADB: pages that are not what SQLite wrote
OLDEST = (3, 35, 0)  # for upserts and the JSON functions of the seed's view


def connect(path: Path, read_only: bool = False, create: bool = False) -> Any:
    """A connection whose pragmas were set *and read back*: durability is never assumed.

    Only a migration creates the file; otherwise a missing file is an error.
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
            timeout=BUSY_S,
            check_same_thread=False,
            cached_statements=STATEMENTS,
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
                f"SQLite did not accept {name}={value} (it returned {found}); is {path} on a network disk?"
            )
    return connection


def truncate_wal(connection: Any) -> bool:
    """Truncate the write-ahead log, which still contains what was overwritten in the file.

    Returns False while a reader uses it; then it is truncated after the next shredding, or at shutdown.
    """
    try:
        connection.execute("PRAGMA busy_timeout=0")
        try:
            busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        finally:
            connection.execute(f"PRAGMA busy_timeout={BUSY_S * 1_000}")
    except sqlite3.Error:  # a full disk: the commit is durable, the log is replayed
        return False
    return not busy


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


def is_malformed(error: BaseException) -> bool:
    """Whether SQLite found a corrupt page; SQLAlchemy wraps the driver's error."""
    code = getattr(getattr(error, "orig", None) or error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in MALFORMED


class SqliteStore(PooledFetches, Reads, SqliteLeases):
    """One lane: SQLite has one writer, so all tenants share it."""

    dialect = "sqlite"
    lanes = 1
    mixes_tenants = True  # one writer, one lock

    def __init__(self, path: Path) -> None:
        Reads.__init__(self, SqliteShape())
        SqliteLeases.__init__(self)
        self._path = path
        self._is_malformed = False  # a reader or the writer found a corrupt page; never reset
        self._connection: Any = None
        self._read_ahead: Any = None  # for reading ahead, while another batch is written
        self._watcher: Any = None  # only detects whether another connection has written
        self._watcher_no = 0  # counts watcher connections; a version is valid only for one of them
        self._heads: tuple[tuple[int, int] | None, dict[str, int]] | None = None
        self._readers = ThreadPoolExecutor(4, thread_name_prefix="sqlite-read")
        self._engine = create_engine(
            "sqlite://",
            module=sqlite3,
            creator=lambda: connect(path, read_only=True),
            poolclass=QueuePool,
            pool_size=4,
            max_overflow=0,
            pool_use_lifo=True,  # each caches pages and statements: a rarely needed one need not
        )
        self._short = ShortReads(lambda: connect(path, read_only=True))

    def lane(self, tenant_id: str) -> int:
        return 0

    def transact(self, lane: int, unit: Callable[[SqliteTransaction], T]) -> T:
        try:
            if self._connection is None:
                self._connection = connect(self._path)
            cursor = self._connection.cursor()
            cursor.execute("BEGIN IMMEDIATE")
        except (sqlite3.Error, StartupError) as error:
            self._note_malformed(error)
            self._close_writing()
            raise NotDurable(f"the database cannot be written now: {error}") from error
        try:
            transaction = SqliteTransaction(cursor)
            value = unit(transaction)
            cursor.execute("COMMIT")
        except BaseException as error:
            self._undo(cursor)
            self._note_malformed(error)
            if isinstance(error, sqlite3.Error | OverflowError | UnicodeEncodeError):
                translated = _translated(error)
                if isinstance(translated, NotDurable):
                    self._close_writing()
                raise translated from error
            raise
        if transaction.has_shredded:
            truncate_wal(self._connection)
        return value

    def look(
        self, lane: int, tenant_id: str, read_set: ReadSet, known: BatchState | None, is_pending: bool
    ) -> BatchState | None:
        return self._read(lambda reading: reading.look(tenant_id, read_set, known, is_pending))

    def read_more(self, lane: int, memory: BatchState, read_set: ReadSet) -> None:
        self._read(lambda reading: reading.read_more(memory, read_set))

    def _read(self, ask: Callable[[SqliteReading], T]) -> T:
        try:
            if self._read_ahead is None:
                self._read_ahead = connect(self._path, read_only=True)
            return ask(SqliteReading(self._read_ahead.cursor()))
        except (sqlite3.Error, StartupError) as error:
            self._note_malformed(error)
            self._close_read_ahead()
            raise NotDurable(f"the database cannot be read now: {type(error).__name__}") from error

    def finish(self, base: ChainHead, memory: BatchState, changes: TransactionChanges) -> PreparedBatch:
        return finished(base, memory, changes)

    def write(
        self, lane: int, batch: PreparedBatch, then: Callable[[SqliteTransaction], None] | None = None
    ) -> bool:
        def both(transaction: SqliteTransaction) -> bool:
            stands = transaction.run(batch)
            if then is not None:
                then(transaction)
            return stands

        return self.transact(lane, both)

    def _note_malformed(self, error: BaseException) -> None:
        cause = error.__cause__ if isinstance(error, StartupError) else error
        if cause is not None and is_malformed(cause) and not self._is_malformed:
            self._is_malformed = True
            log.error("the database %s has malformed pages: %s", self._path, MEND)

    def _undo(self, cursor: Any) -> None:
        with suppress(sqlite3.Error):  # already rolled back by SQLite itself, as after a full disk
            cursor.execute("ROLLBACK")

    def close_lane(self, lane: int) -> None:
        self._close_read_ahead()
        self._close_writing()

    def _close_read_ahead(self) -> None:
        if self._read_ahead is not None:
            self._read_ahead.close()
            self._read_ahead = None

    def _close_writing(self) -> None:
        """Write the log into the file, so that a copy of the file is complete."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            with suppress(sqlite3.Error):  # a full disk, or an active reader: the log stays and is replayed
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.close()

    async def _reading(self, run: Callable[[], list[Any]]) -> list[Any]:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._readers, run)
        except (sqlite3.Error, SQLAlchemyError, StartupError) as error:
            self._note_malformed(error)
            raise NotDurable(f"the database cannot be read now: {type(error).__name__}") from error

    async def heads(self) -> dict[str, int]:
        """Cached until something is written: background workers call this a dozen times a second."""
        version, known = self._version(), self._heads
        if known is None or version is None or known[0] != version:
            few = version is not None and known is not None and len(known[1]) <= FEW
            found = self._heads_here() if few else await super().heads()
            # The version is from before the query: a write in between causes another query.
            self._heads = known = (version, found)
        return dict(known[1])

    def _heads_here(self) -> dict[str, int]:
        """For a few tenants this is faster than switching to another thread."""
        try:
            return dict(self._watcher.execute(HEADS).fetchall())
        except sqlite3.Error as error:
            self._note_malformed(error)
            self._close_watcher()
            raise NotDurable(f"the database cannot be read now: {type(error).__name__}") from error

    def _version(self) -> tuple[int, int] | None:
        """Changes with every commit of any other connection, of any process; None when unknown."""
        try:
            if self._watcher is None:
                self._watcher = connect(self._path, read_only=True)
                self._watcher_no += 1
            return self._watcher_no, int(self._watcher.execute("PRAGMA data_version").fetchall()[0][0])
        except (sqlite3.Error, StartupError):
            self._close_watcher()
            return None

    def _close_watcher(self) -> None:
        if self._watcher is not None:
            self._watcher.close()
            self._watcher = None

    async def start(self) -> None:
        await self.ping()

    async def ping(self) -> None:
        if not self._path.exists():
            raise NotDurable("the database file is missing")
        if self._is_malformed:
            raise NotDurable(f"the database has malformed pages: {MEND}")
        await self.head("tnt_none")

    def figures(self) -> dict[str, float]:
        """File sizes and pool usage, without a query."""
        sizes = {"database_bytes": self._path, "wal_bytes": self._path.with_name(f"{self._path.name}-wal")}
        found = {name: path.stat().st_size for name, path in sizes.items() if path.exists()}
        pool = self._engine.pool
        assert isinstance(pool, QueuePool)
        busy = pool.checkedout()
        return {**found, "readers": busy + pool.checkedin(), "readers_busy": busy}

    async def stop(self) -> None:
        self._close_watcher()
        self._short.close()
        self._readers.shutdown(wait=True)
        self._engine.dispose()

"""The PostgreSQL store: a lane and a connection per group of tenants, row level security, the seed's columns.

Law: every working connection uses the role `observatory_app`, which owns nothing and bypasses no policy;
every transaction sets its tenant before it accesses a table; the chain head is locked first; a response is
sent only after a commit with synchronous_commit=on. A commit whose outcome is unknown is reported as
`NotDurable`: the client sends again and the dedupe key gives the same response. No asyncpg exception leaves
this module.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import asyncpg
from sqlalchemy import Executable
from sqlalchemy.dialects.postgresql import asyncpg as sqlalchemy_asyncpg

from observatory.errors import NotDurable, StartupError, StatementFailed
from observatory.ledger.chain import ChainHead
from observatory.pipeline.ports import CommitNotice, PreparedBatch
from observatory.pipeline.state import BatchState, ReadSet, TransactionChanges
from observatory.store import tables
from observatory.store.leases_postgres import PostgresLeases
from observatory.store.plans import FORGET_PLANS, Plans
from observatory.store.postgres_append import NAME_TENANT, PostgresReading, PostgresTransaction, finished
from observatory.store.reads import Reads
from observatory.store.shapes import PostgresShape

T = TypeVar("T")
ROLE = "observatory_app"
CHANNEL = "observatory"
OLDEST = 140_000
COMMAND_TIMEOUT_S = 30
DIALECT = sqlalchemy_asyncpg.dialect()  # type: ignore[no-untyped-call]
# Data the database refuses: 22 data, 23 constraint, 54 limits, 42501 a row of another tenant. All others are
# failures of the database or the gateway, and no reason to reject a message.
ROW_ERRORS = ("22", "23", "54", "42501")
DRIVER_ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError, EOFError)
MALFORMED = ("XX001", "XX002")  # data_corrupted, index_corrupted
SESSION = {"application_name": "observatory", "synchronous_commit": "on", "jit": "off", "TimeZone": "UTC"}
# The append path reads only by key, so scans are disabled. A hanging gateway must not keep a head locked for
# longer than others wait for it (COMMAND_TIMEOUT_S): between two statements it is idle, in one it is slow,
# and
# half way through sending one it is neither: a limit on transactions would end that too, but also long
# imports.
LANE_SESSION = SESSION | {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "idle_in_transaction_session_timeout": "10s",
    "statement_timeout": "10s",
}


def dsn(url: str) -> str:
    """The URL for asyncpg, from `postgres://` or `postgresql://`; unix sockets as `?host=/folder`."""
    scheme, mark, rest = url.partition("://")
    if not mark or scheme.partition("+")[0] not in ("postgres", "postgresql"):
        raise StartupError("the database URL must start with postgresql://")
    return "postgresql://" + rest


async def connect(url: str, session: dict[str, str]) -> asyncpg.Connection:
    """A working connection: with the role and the settings, which are *read back*."""
    connection = await asyncpg.connect(
        dsn(url), timeout=10, command_timeout=COMMAND_TIMEOUT_S, server_settings=session
    )
    try:
        await prepare(connection)
    except BaseException:
        connection.terminate()
        raise
    return connection


async def prepare(connection: asyncpg.Connection) -> None:
    await connection.execute(f"SET ROLE {ROLE}")
    durable = await connection.fetchval("SELECT current_setting('synchronous_commit')")
    if durable != "on":
        raise NotDurable(f"PostgreSQL did not accept synchronous_commit=on (it says {durable})")


def translated(error: BaseException) -> Exception:
    code = getattr(error, "sqlstate", None) or ""
    # asyncpg's own DataError: a value that cannot be encoded for its column; it never left the process.
    if isinstance(error, asyncpg.DataError | UnicodeEncodeError | OverflowError) or code.startswith(
        ROW_ERRORS
    ):
        return StatementFailed(f"the database refused a row: {type(error).__name__}")
    return NotDurable(f"the database cannot be written now: {type(error).__name__} {code}".rstrip())


class _Lane:
    """One thread's event loop and connection; created and used in that thread only."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._loop: asyncio.AbstractEventLoop | None = None
        self._connection: asyncpg.Connection | None = None
        self._plans = Plans()

    def wait(self, awaitable: Awaitable[T]) -> T:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        return self._loop.run_until_complete(awaitable)

    def read(self, ask: Callable[[PostgresReading], T]) -> T:
        """A short transaction without locks; every failure in it is one of the database."""
        try:
            return self.run(ask, "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY")
        except StatementFailed as error:
            raise NotDurable("the database cannot be read now") from error

    # Explicit, because another server default could make a second gateway's batches fail.
    def run(
        self,
        unit: Callable[[PostgresTransaction], T],
        begin: str = "BEGIN ISOLATION LEVEL READ COMMITTED",
    ) -> T:
        connection = self._begin(begin)
        try:
            value = unit(PostgresTransaction(self.wait, connection))
            # PostgreSQL answers the COMMIT of a failed transaction with ROLLBACK, and no error.
            if self.wait(connection.execute("COMMIT")) != "COMMIT":
                raise NotDurable("the transaction had failed and was rolled back")
        except (*DRIVER_ERRORS, UnicodeEncodeError, OverflowError) as error:
            fault = translated(error)
            self._undo(lost=isinstance(fault, NotDurable))
            raise fault from error
        except BaseException:
            self._undo(lost=False)
            raise
        return value

    def _begin(self, begin: str) -> asyncpg.Connection:
        """A connection inside a transaction. A failure here is one of the database, never of a message."""
        try:
            if self._connection is not None and self._connection.is_closed():
                self._drop()
            if self._connection is None:
                self._connection = self.wait(connect(self._url, LANE_SESSION))
            if self._plans.are_old(self._connection):
                self.wait(self._connection.execute(FORGET_PLANS))
            self.wait(self._connection.execute(begin))
        except DRIVER_ERRORS as error:
            self._undo(lost=True)
            raise NotDurable(f"the database cannot be written now: {type(error).__name__}") from error
        return self._connection

    def _undo(self, lost: bool) -> None:
        if self._connection is None:
            return
        try:
            if not lost and not self._connection.is_closed():
                self.wait(self._connection.execute("ROLLBACK"))
                return
        except DRIVER_ERRORS:
            pass
        self._drop()

    def _drop(self) -> None:
        """Close a connection in an unknown state: the server rolls back its transaction."""
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None
            self.wait(asyncio.sleep(0))  # lets the loop close the socket

    def close(self) -> None:
        if self._loop is None:
            return
        if self._connection is not None and not self._connection.is_closed():
            with suppress(*DRIVER_ERRORS):
                self.wait(self._connection.close(timeout=5))
        self._drop()
        self._loop.close()
        self._loop = None


# The SQL for the driver, the names of its parameters in order, and the values in the statement.
_CompiledSql = tuple[str, tuple[str, ...], Mapping[str, Any]]


def _compile(statement: Executable) -> _CompiledSql:
    # Lists are expanded here: the driver binds single values only.
    compiled = statement.compile(  # type: ignore[attr-defined]
        dialect=DIALECT, compile_kwargs={"render_postcompile": True}
    )
    return str(compiled), tuple(compiled.positiontup or ()), compiled.params


class _Row(asyncpg.Record):  # type: ignore[misc]
    """A row as `Reads` expects it: by index, and as a mapping."""

    @property
    def _mapping(self) -> _Row:
        return self


class PostgresStore(Reads, PostgresLeases):
    """Several lanes: tenants of different lanes commit at the same time, one tenant never does."""

    dialect = "postgresql"

    def __init__(self, url: str, lanes: int = 4, readers: int = 4) -> None:
        super().__init__(PostgresShape())
        self._is_malformed = False
        self._url, self._readers = url, readers
        self._lanes = [_Lane(url) for _ in range(lanes)]
        # For reading ahead, while another batch is written; opened on first use.
        self._read_ahead = [_Lane(url) for _ in range(lanes)]
        self._pool: asyncpg.Pool | None = None
        self._compiled: WeakKeyDictionary[Executable, _CompiledSql] = WeakKeyDictionary()
        self._plans = Plans()

    mixes_tenants = False

    @property
    def lanes(self) -> int:
        return len(self._lanes)

    def lane(self, tenant_id: str) -> int:
        return zlib.crc32(tenant_id.encode()) % len(self._lanes)

    def transact(self, lane: int, unit: Callable[[PostgresTransaction], T]) -> T:
        return self._lanes[lane].run(unit)

    def look(
        self, lane: int, tenant_id: str, read_set: ReadSet, known: BatchState | None, is_pending: bool
    ) -> BatchState | None:
        return self._read_ahead[lane].read(
            lambda reading: reading.look(tenant_id, read_set, known, is_pending)
        )

    def read_more(self, lane: int, memory: BatchState, read_set: ReadSet) -> None:
        self._read_ahead[lane].read(lambda reading: reading.read_more(memory, read_set))

    def finish(self, base: ChainHead, memory: BatchState, changes: TransactionChanges) -> PreparedBatch:
        return finished(base, memory, changes)

    def write(
        self, lane: int, batch: PreparedBatch, then: Callable[[PostgresTransaction], None] | None = None
    ) -> bool:
        def both(transaction: PostgresTransaction) -> bool:
            stands = transaction.run(batch)
            if then is not None:
                then(transaction)
            return stands

        return self.transact(lane, both)

    def close_lane(self, lane: int) -> None:
        self._read_ahead[lane].close()
        self._lanes[lane].close()

    async def fetch(
        self, tenant_id: str, statement: Executable, presented: str = "", **values: Any
    ) -> list[Any]:
        sql, names, given = self._compiled_sql(statement)
        bound = [values[name] if name in values else given[name] for name in names]
        async with self._reader() as connection:
            if self._plans.are_old(connection):
                await connection.execute(FORGET_PLANS)
            async with connection.transaction(readonly=True):
                await connection.execute(NAME_TENANT, tenant_id, presented)
                return list(await connection.fetch(sql, *bound, record_class=_Row))

    def _compiled_sql(self, statement: Executable) -> _CompiledSql:
        """A prebuilt statement is compiled only once."""
        found = self._compiled.get(statement)
        if found is None:
            found = self._compiled[statement] = _compile(statement)
        return found

    @asynccontextmanager
    async def _reader(self) -> AsyncIterator[asyncpg.Connection]:
        if self._pool is None:
            raise NotDurable("the store has not started")
        try:
            async with self._pool.acquire(timeout=COMMAND_TIMEOUT_S) as connection:
                yield connection
        except DRIVER_ERRORS as error:
            # Once set it stays, although other pages can be read.
            self._is_malformed |= getattr(error, "sqlstate", None) in MALFORMED
            raise NotDurable(f"the database cannot be read now: {type(error).__name__}") from error

    async def start(self) -> None:
        """Open the reader connections and refuse a server without the required guarantees."""
        try:
            self._pool = await asyncpg.create_pool(
                dsn(self._url),
                min_size=1,
                max_size=self._readers,
                command_timeout=COMMAND_TIMEOUT_S,
                server_settings=SESSION,
                init=prepare,
                reset=_nothing,  # all settings are local to their transaction
            )
            async with self._pool.acquire() as connection:
                await _refuse_unsafe(connection)
        except BaseException as error:
            await self.stop()
            if isinstance(error, asyncpg.PostgresError) and "observatory_app" in str(error):
                raise StartupError(
                    "this database is not migrated; run `observatory migrate` first"
                ) from error
            if isinstance(error, (*DRIVER_ERRORS, NotDurable)):
                raise StartupError(f"PostgreSQL cannot be used: {error}") from error
            raise

    def figures(self) -> dict[str, float]:
        """Pool usage, without a query."""
        if self._pool is None:
            return {}
        size = self._pool.get_size()
        return {"readers": size, "readers_busy": size - self._pool.get_idle_size()}

    async def stop(self) -> None:
        if self._pool is not None:
            pool, self._pool = self._pool, None
            await pool.close()

    async def ping(self) -> None:
        if self._is_malformed:
            raise NotDurable("the database has malformed pages: restore a good backup")
        async with self._reader() as connection:
            row = await connection.fetchrow(
                "SELECT pg_is_in_recovery(), current_setting('transaction_read_only')"
            )
        if row is None or row[0] or row[1] != "off":
            raise NotDurable("this PostgreSQL server is read-only now")

    async def listen(self, callback: Callable[[CommitNotice], None]) -> None:
        """Report every commit on this database, of any gateway, until cancelled; a background worker.

        Commits missed while disconnected are found by polling: notices are levels.
        """

        def on_notify(_connection: object, _pid: int, _channel: str, payload: object) -> None:
            tenant_id, _, number = str(payload).rpartition(":")
            callback(CommitNotice(tenant_id, int(number)))

        while True:
            with suppress(*DRIVER_ERRORS, NotDurable):
                await self._listen(on_notify)
            await asyncio.sleep(1)

    async def _listen(self, on_notify: Callable[..., None]) -> None:
        """Listen until the connection is closed."""
        ended = asyncio.Event()
        connection = await connect(self._url, SESSION)
        try:
            connection.add_termination_listener(lambda _: ended.set())
            await connection.add_listener(CHANNEL, on_notify)
            await ended.wait()
        finally:
            connection.terminate()


async def _nothing(_connection: asyncpg.Connection) -> None:
    return None


async def _refuse_unsafe(connection: asyncpg.Connection) -> None:
    version = await connection.fetchval("SELECT current_setting('server_version_num')::int")
    if version < OLDEST:
        raise StartupError(f"PostgreSQL {version // 10_000} is too old; Observatory needs 14 or newer")
    if await connection.fetchval("SELECT current_setting('fsync')") != "on":
        raise StartupError(
            "PostgreSQL runs with fsync=off: a power cut would destroy the record; set it to on"
        )
    owned = [*tables.OWNED, *tables.BIG]
    found = await connection.fetch(
        "SELECT relname, row_security_active(oid) FROM pg_class WHERE relname = ANY($1::text[]) "
        "AND relnamespace = current_schema()::regnamespace",
        owned,
    )
    missing = set(owned) - {row[0] for row in found}
    if missing:
        raise StartupError(f"the table {min(missing)} is missing; run `observatory migrate` first")
    bare = sorted(row[0] for row in found if not row[1])
    if bare:
        raise StartupError(
            f"row level security is not active on {', '.join(bare)} for the role {ROLE}; "
            "it must not be superuser, owner or BYPASSRLS, and the tables need FORCE ROW LEVEL SECURITY"
        )

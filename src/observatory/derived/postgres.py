"""The derived store on PostgreSQL: tables in the record's database, under the same row policies, created by
the migration.

Reads use the record's connection pool. The analyst writes on one connection with asynchronous commits: rows
and cursor are committed together, and whatever is lost is folded again. Of several analysts on one database,
one holds the claim to a tenant: a lock of its connection's session, released with it; the others do not read
that tenant. In any case rows are written only from the position of the cursor, under its lock.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import asyncpg
from sqlalchemy import Executable, text

from observatory.derived.reads import DerivedReads, ddl, mark
from observatory.derived.seen import DerivedWrite, Finding
from observatory.derived.tables import DERIVED
from observatory.derived.writes import Writes, once_each, postgres_sql, writes_of
from observatory.errors import NotDurable, StartupError
from observatory.store.postgres import (
    COMMAND_TIMEOUT_S,
    DRIVER_ERRORS,
    ROLE,
    SESSION,
    PostgresStore,
    dsn,
    translated,
)
from observatory.store.postgres_append import NAME_TENANT

WRITING = SESSION | {"synchronous_commit": "off", "idle_in_transaction_session_timeout": "60s"}
FIRST = (
    "INSERT INTO insight_cursors (tenant_id, name, seq, at_ns) VALUES ($1, 'fold', 0, 0) "
    "ON CONFLICT DO NOTHING"
)
LOCK = "SELECT seq FROM insight_cursors WHERE tenant_id = $1 AND name = 'fold' FOR UPDATE SKIP LOCKED"
MOVE = "UPDATE insight_cursors SET seq = $2, at_ns = $3 WHERE tenant_id = $1 AND name = 'fold'"
COUNT = (
    "INSERT INTO insight_cursors (tenant_id, name, seq, at_ns) VALUES ($1, $2, $3, $4) "
    "ON CONFLICT (tenant_id, name) DO UPDATE SET seq = insight_cursors.seq + excluded.seq, "
    "at_ns = excluded.at_ns"
)
# The second half of the key is a hash of the tenant: if two collide, one analyst folds both.
CLAIM = "SELECT pg_try_advisory_lock($1, hashtext($2))"
RELEASE = "SELECT pg_advisory_unlock($1, hashtext($2))"
FOLDING = 0x0B5E72
SHIELDED = text(
    "SELECT relname, row_security_active(oid) FROM pg_class WHERE relkind = 'r' "
    "AND relnamespace = current_schema()::regnamespace"
)
MINE = (
    "SELECT c.relname, "
    "EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant_id') "
    "FROM pg_class c WHERE c.relkind = 'r' AND c.relname LIKE 'insight\\_%' "
    "AND c.relnamespace = current_schema()::regnamespace"
)


async def prepare_postgres(connection: Any) -> bool:
    """Create the tables unless this version exists; as their owner, in the migration's transaction."""
    found = {row[0]: row[1] for row in await connection.fetch(MINE)}
    present = None
    if "insight_version" in found:
        present = await connection.fetchval("SELECT mark FROM insight_version")
    if present == mark("postgresql"):
        return False
    for name in found:
        await connection.execute(f"DROP TABLE IF EXISTS {name} CASCADE")
    for statement in ddl("postgresql"):
        await connection.execute(statement)
    await connection.execute("CREATE TABLE insight_version (mark TEXT NOT NULL)")
    await connection.execute("INSERT INTO insight_version VALUES ($1)", mark("postgresql"))
    await connection.execute(f"GRANT SELECT ON insight_version TO {ROLE}")
    mine = "tenant_id = current_setting('app.tenant')"
    for name, is_owned in await connection.fetch(MINE):
        if is_owned:
            await connection.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {name} TO {ROLE}")
            await connection.execute(f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY")
            await connection.execute(f"ALTER TABLE {name} FORCE ROW LEVEL SECURITY")
            await connection.execute(f"CREATE POLICY tenant ON {name} USING ({mine}) WITH CHECK ({mine})")
    return True


class PostgresDerived(DerivedReads):
    dialect = "postgresql"

    def __init__(self, store: PostgresStore, url: str) -> None:
        self._store, self._url = store, url
        self._connection: asyncpg.Connection | None = None
        self._is_sure = False  # whether the tables are known to be of this version
        self._claimed: set[str] = set()  # by the current connection

    async def fetch(
        self, tenant_id: str, statement: Executable, presented: str = "", **values: Any
    ) -> list[Any]:
        return await self._store.fetch(tenant_id, statement, presented, **values)

    async def start(self) -> None:
        """Check the tables the migration created; refuse one that would show rows of other tenants."""
        found = {row[0]: row[1] for row in await self._store.fetch("", SHIELDED)}
        bare = sorted(name for name in DERIVED.tables if not found.get(name))
        if bare:
            raise StartupError(
                f"the table {bare[0]} is missing or shows rows of all tenants; run `observatory migrate`"
            )

    async def stop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(*DRIVER_ERRORS):
                await connection.close(timeout=1)

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
        writes = writes_of(puts, findings, after, until)
        try:
            connection = await self._writing()
            async with connection.transaction():
                await connection.execute(NAME_TENANT, tenant_id, "")
                if after == 0:
                    await connection.execute(FIRST, tenant_id)
                rows = await connection.fetch(LOCK, tenant_id)
                if not rows or rows[0][0] != after:
                    self._is_sure = False  # perhaps because a newer version recreated the tables
                    return False
                await self._write(connection, tenant_id, writes)
                for name, count in zip(("skipped", "unread"), passed, strict=True):
                    if count:
                        await connection.execute(COUNT, tenant_id, name, count, at_ns)
                await connection.execute(MOVE, tenant_id, until, at_ns)
        except (*DRIVER_ERRORS, UnicodeEncodeError, OverflowError) as error:
            raise self._failed(error) from error
        return True

    async def claim(self, tenant_id: str) -> bool:
        try:
            connection = await self._writing()
            if tenant_id not in self._claimed and await connection.fetchval(CLAIM, FOLDING, tenant_id):
                self._claimed.add(tenant_id)
        except DRIVER_ERRORS as error:
            raise self._failed(error) from error
        return tenant_id in self._claimed

    async def release(self, tenant_id: str) -> None:
        if tenant_id not in self._claimed:
            return
        self._claimed.discard(tenant_id)
        try:
            await (await self._writing()).execute(RELEASE, FOLDING, tenant_id)
        except DRIVER_ERRORS as error:
            raise self._failed(error) from error

    async def ready(self) -> bool:
        return True

    async def restart(self, tenant_id: str) -> None:
        try:
            connection = await self._writing()
            async with connection.transaction():
                await connection.execute(NAME_TENANT, tenant_id, "")
                for table in DERIVED.tables:
                    await connection.execute(f"DELETE FROM {table} WHERE tenant_id = $1", tenant_id)
        except DRIVER_ERRORS as error:
            raise self._failed(error) from error

    def _failed(self, error: BaseException) -> Exception:
        fault = translated(error)
        if isinstance(fault, NotDurable) and self._connection is not None:
            self._connection.terminate()
            self._connection = None
        return fault

    async def _write(self, connection: asyncpg.Connection, tenant_id: str, writes: Writes) -> None:
        for table, numbers in writes.clears.items():
            sql = f"DELETE FROM {table} WHERE tenant_id = $1 AND seq = ANY($2::bigint[])"
            await connection.execute(sql, tenant_id, numbers)
        for one in writes.upserts:
            columns = list(zip(*once_each(one), strict=True))
            await connection.execute(postgres_sql(one.table, one.columns, one.mode), tenant_id, *columns)

    async def _writing(self) -> asyncpg.Connection:
        """A connection in the working role; refused while the tables are of another version."""
        connection = self._connection
        if connection is None or connection.is_closed():
            connection = self._connection = await asyncpg.connect(
                dsn(self._url), timeout=10, command_timeout=COMMAND_TIMEOUT_S, server_settings=WRITING
            )
            self._claimed.clear()
            await connection.execute(f"SET ROLE {ROLE}")
            self._is_sure = False
        if not self._is_sure:
            if await connection.fetchval("SELECT mark FROM insight_version") != mark("postgresql"):
                raise NotDurable("the derived tables are of another version of Observatory")
            self._is_sure = True
        return connection

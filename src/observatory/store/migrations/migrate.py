"""Migrates a database to this version: forward only, in one transaction, after a safety copy.

A database that is newer than this program, that was moved to another one, or that belongs to another program
is refused with an error message. On SQLite the migration runs in one transaction and the copy next to the
file is kept; on PostgreSQL DDL is transactional and an advisory lock serialises gateways.
"""

from __future__ import annotations

import asyncio
import sqlite3
from io import StringIO
from pathlib import Path
from shutil import copymode
from typing import Any

from sqlalchemy import create_engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import StaticPool

from observatory.errors import StartupError
from observatory.pipeline.state import HOME_TENANT
from observatory.store.sqlite import connect

SCRIPTS = Path(__file__).parent
# Every revision, oldest first; a test compares with the scripts.
REVISIONS = (
    *(f"{number:04}" for number in range(1, 17)),
    *("0018", "0019", "0017", "0018b", "0020", "0018c"),
)
NO_DRIVER = "PostgreSQL needs its driver: pip install 'hypervisor-observatory[postgres]'"
LOCK = 0x0B5E70  # any constant: one advisory lock for "migrating this database"


def _upgrade(target: str, sql: bool = False, **given: Any) -> None:
    """Import Alembic only when needed: it takes a third of the start time."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(SCRIPTS))
    config.attributes.update(given)
    command.upgrade(config, target, sql=sql)


def _needed(present: str | None, names: set[str], house: dict[str, str], target: str) -> bool:
    """Whether an upgrade is needed; raises when the database must not be touched."""
    if present is None and names - {"alembic_version"}:
        raise StartupError(
            "this database contains tables of another program; Observatory needs a separate database"
        )
    if present is not None and present not in REVISIONS:
        raise StartupError(
            f"this database was written by a newer Observatory (schema {present}); "
            "upgrade the program, or start it on another database"
        )
    if house.get("moved_to"):
        raise StartupError(
            f"this database was moved to {house['moved_to']} and is only a copy; "
            "start Observatory on that one"
        )
    if house.get("copying"):
        raise StartupError(
            "a copy into this database was started and never finished; "
            "drop it and copy again into an empty one"
        )
    wanted = REVISIONS[-1] if target == "head" else target
    return present is None or REVISIONS.index(present) < REVISIONS.index(wanted)


def migrate_sqlite(path: Path, target: str = "head") -> tuple[str | None, Path | None]:
    """Returns the previous revision and the safety copy, if any."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StartupError(
            f"the folder of the database {path} cannot be created: {error.strerror}"
        ) from error
    raw = connect(path, create=True)
    try:
        engine = create_engine("sqlite://", module=sqlite3, creator=lambda: raw, poolclass=StaticPool)
        with engine.connect() as connection:
            # After the engine's initial query, which ends with a rollback. Two programs may start at once:
            # the
            # second waits here and finds the migration done.
            raw.execute("BEGIN IMMEDIATE")
            present, names, house = _look(raw)
            if not _needed(present, names, house, target):
                return present, None
            copy = None if present is None else _safety_copy(path, present)
            _upgrade(target, connection=connection)
            if raw.in_transaction:
                raw.execute("COMMIT")
            return present, copy
    except (sqlite3.Error, SQLAlchemyError) as error:
        raise StartupError(
            f"the database {path} could not be migrated, nothing was changed: {error}"
        ) from error
    finally:
        if raw.in_transaction:
            raw.execute("ROLLBACK")
        raw.close()


def _look(raw: Any) -> tuple[str | None, set[str], dict[str, str]]:
    """(current revision, tables, rows of the table `house`) of a SQLite file."""
    names = {row[0] for row in raw.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")}
    version = (
        raw.execute("SELECT version_num FROM alembic_version").fetchone()
        if "alembic_version" in names
        else None
    )
    house = raw.execute("SELECT name, value FROM house").fetchall() if "house" in names else []
    return version[0] if version else None, names, dict(house)


def _safety_copy(path: Path, present: str) -> Path:
    copy = path.with_name(f"{path.name}.before-{present}")
    source, safety = connect(path, read_only=True), sqlite3.connect(str(copy))
    try:
        source.backup(safety)
    finally:
        safety.close()
        source.close()
    copymode(path, copy)
    return copy


async def _connected(url: str) -> Any:
    try:
        import asyncpg

        from observatory.store.postgres import DRIVER_ERRORS, dsn
    except ModuleNotFoundError as error:
        raise StartupError(NO_DRIVER) from error

    try:
        return await asyncpg.connect(dsn(url), timeout=10)
    except DRIVER_ERRORS as error:
        raise StartupError(f"PostgreSQL cannot be reached: {error}") from error


async def migrate_postgres(url: str, target: str = "head") -> str | None:
    """Returns the previous revision. Runs as the URL's role, which owns the tables."""
    connection = await _connected(url)
    from observatory.store.postgres import DRIVER_ERRORS

    try:
        async with connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock($1)", LOCK)
            return await _upgrade_postgres(connection, target)
    except DRIVER_ERRORS as error:
        raise StartupError(f"PostgreSQL refused the migration, nothing was changed: {error}") from error
    finally:
        await connection.close()


async def is_empty(url: str) -> bool:
    """Whether the database has no tenant; does not create or change anything."""
    if url.startswith("sqlite:///"):
        return await asyncio.to_thread(_is_empty_sqlite, Path(url.removeprefix("sqlite:///")))
    connection = await _connected(url)
    try:
        return await is_empty_postgres(connection)
    finally:
        await connection.close()


def _is_empty_sqlite(path: Path) -> bool:
    if not path.exists():
        return True
    try:
        raw = connect(path, read_only=True)
    except sqlite3.Error:
        return False  # an unusable file is reported when it is opened
    try:
        _, names, _ = _look(raw)
        return "tenants" not in names or not raw.execute("SELECT count(*) FROM tenants").fetchone()[0]
    except sqlite3.Error:
        return False
    finally:
        raw.close()


async def is_empty_postgres(connection: Any) -> bool:
    from observatory.store.postgres_append import NAME_TENANT

    if not await connection.fetchval("SELECT to_regclass('tenants') IS NOT NULL"):
        return True
    async with connection.transaction():
        await connection.execute(NAME_TENANT, HOME_TENANT, "")  # the only tenant that may read all of them
        return not await connection.fetchval("SELECT count(*) FROM tenants")


async def _upgrade_postgres(connection: Any, target: str) -> str | None:
    from observatory.derived.postgres import prepare_postgres

    found = await connection.fetch(
        "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p', 'v', 'm') "
        "AND relnamespace = current_schema()::regnamespace"
    )
    names = {row[0] for row in found}
    present: str | None = None
    if "alembic_version" in names:
        present = await connection.fetchval("SELECT version_num FROM alembic_version")
    house = await connection.fetch("SELECT name, value FROM house") if "house" in names else []
    if _needed(present, names, {row[0]: row[1] for row in house}, target):
        script = StringIO()
        _upgrade(f"{present or 'base'}:{target}", sql=True, script=script)
        await connection.execute(script.getvalue())
    if target == "head":
        await prepare_postgres(connection)
    return present


def migrate(url: str, target: str = "head") -> tuple[str | None, Any]:
    """Migrate whichever database the URL names."""
    if url.startswith("sqlite:///"):
        return migrate_sqlite(Path(url.removeprefix("sqlite:///")), target)
    return asyncio.run(migrate_postgres(url, target)), None

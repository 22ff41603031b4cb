"""What `observatory doctor` asks of a database: versions, how it keeps what it is told, what waits in it.

Everything is read, and read back: what a database was told to do is not what it does. Nothing is changed.
"""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from observatory.errors import NotDurable, StartupError
from observatory.runtime.leader import PRESENT
from observatory.settings import Settings
from observatory.store.migrate import NO_DRIVER, REVISIONS
from observatory.store.sqlite import OLDEST, PRAGMAS, connect

MOST_SKEW_S = 5.0
LEASE_LATE_S = 60.0
MIGRATE = "run `observatory migrate`, or upgrade the program"
# Of PostgreSQL, as a session of ours finds them: what keeps what was committed, and what to do otherwise.
KEEPS = {
    "synchronous_commit": ("on", "commits could be lost: set it to on"),
    "fsync": ("on", "a power cut could destroy the database: set it to on"),
    "full_page_writes": ("on", "a power cut could tear pages: set it to on"),
}


class Finding(NamedTuple):
    check: str
    ok: bool
    found: str
    do: str = ""
    warns: bool = False
    """Nothing is broken, but it should be known; only for what is ok."""


def database(settings: Settings, is_running: bool) -> Iterator[Finding]:
    if settings.is_postgres:
        yield from _postgres(settings.database_url, is_running)
        return
    path = Path(settings.database_url.removeprefix("sqlite:///"))
    ok = sqlite3.sqlite_version_info >= OLDEST
    yield Finding("SQLite", ok, sqlite3.sqlite_version, "use a Python with SQLite 3.35 or newer")
    if not path.exists():
        yield Finding("database", True, "not made yet; `observatory serve` makes it")
        return
    yield from _sqlite(path, is_running)


def schema(revision: str | None, told: str) -> Finding:
    newest = REVISIONS[-1]
    more = "" if revision == newest else f", this program has {newest}"
    return Finding("database", revision == newest, f"{told}schema {revision}{more}", MIGRATE)


def leases(rows: list[tuple[str, str, int, int]], now_ns: int | None, is_running: bool) -> Finding:
    """Who leads in what. A lease that ran out is nobody's fault while nothing runs.

    Without a time, as on SQLite: there the one gateway knows by itself until when it leads.
    """
    told, late = [], []
    for name, holder, epoch, expires_ns in rows:
        left_s = 0.0 if now_ns is None else (expires_ns - now_ns) / 1e9
        told.append(f"{name}: {holder} (epoch {epoch}" + (")" if now_ns is None else f", {left_s:+.0f} s)"))
        # A gateway that is gone leads in nothing: its own lease just ran out.
        if left_s < -LEASE_LATE_S and not name.startswith(PRESENT):
            late.append(name)
    do = f"nobody leads in {', '.join(late)}: see the gateway's log"
    return Finding("leases", not late or not is_running, "; ".join(told) or "none", do)


def dead_letters(count: int) -> Finding:
    return Finding(
        "dead letters", not count, f"{count:,} wait", "look at `observatory dead-letters`: retry or discard"
    )


def _sqlite(path: Path, is_running: bool) -> Iterator[Finding]:
    try:
        connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)
        try:
            found = connection.execute("SELECT version_num FROM alembic_version").fetchone()
            revision = None if found is None else str(found[0])
            yield schema(revision, "")
            if revision == REVISIONS[-1]:
                waiting = connection.execute("SELECT count(*) FROM dead_letters WHERE state = 'dead'")
                yield dead_letters(waiting.fetchone()[0])
                rows = connection.execute("SELECT name, holder, epoch, expires_ns FROM leases ORDER BY name")
                yield leases(rows.fetchall(), None, is_running)
        finally:
            connection.close()
    except sqlite3.Error as error:
        yield Finding("database", False, f"{path}: {error}", "restore it: `observatory restore`")
        return
    try:
        # Sets and reads back every pragma, as the gateway does; raises when one is not accepted.
        connect(path).close()
    except StartupError as error:
        yield Finding("pragmas", False, str(error), "use a local disk")
        return
    yield Finding("pragmas", True, ", ".join(f"{name}={value}" for name, value in PRAGMAS.items()))
    yield _room(path)


def _room(path: Path) -> Finding:
    """A backup takes a copy and the file made of it."""
    wal = path.with_name(f"{path.name}-wal")
    needed = 2 * sum(file.stat().st_size for file in (path, wal) if file.exists())
    free = shutil.disk_usage(path.parent).free
    told = f"{needed / (1 << 20):,.0f} MiB needed, {free / (1 << 20):,.0f} free beside the database"
    return Finding("room for a backup", free >= needed, told, "free some, or give --to another disk")


def _postgres(url: str, is_running: bool) -> Iterator[Finding]:
    try:
        found = asyncio.run(_asked(url))
    except ModuleNotFoundError:
        yield Finding("database", False, "no driver", NO_DRIVER)
        return
    except (StartupError, NotDurable) as error:
        yield Finding("database", False, str(error), "check --db, or run `observatory migrate`")
        return
    yield schema(found["revision"], f"PostgreSQL {found['version']}, {found['events']:,} events, ")
    for name, (wanted, cost) in KEEPS.items():
        yield Finding(name, found[name] == wanted, f"{found[name]}", cost)
    skew = found["skew_s"]
    yield Finding(
        "database clock",
        abs(skew) <= MOST_SKEW_S,
        f"{skew:+.1f} s from this machine's",
        "synchronise the clocks",
    )
    yield Finding("row security", found["is_guarded"], "in force", "run `observatory migrate`")
    if found["revision"] == REVISIONS[-1]:
        yield dead_letters(found["dead"])
        yield leases(found["leases"], found["now_ns"], is_running)


async def _asked(url: str) -> dict[str, Any]:
    from observatory.pipeline.state import HOME_TENANT
    from observatory.store import postgres
    from observatory.store.postgres_append import NAME_TENANT

    try:
        connection = await postgres.connect(url, postgres.SESSION)
    except postgres.DRIVER_ERRORS as error:
        raise StartupError(f"PostgreSQL cannot be used: {type(error).__name__}") from error
    try:
        told: dict[str, Any] = {
            name: await connection.fetchval("SELECT current_setting($1)", name) for name in KEEPS
        }
        before = time.time()
        told["now_ns"] = int(
            await connection.fetchval("SELECT (extract(epoch FROM clock_timestamp()) * 1000000000)::bigint")
        )
        told["skew_s"] = told["now_ns"] / 1e9 - (before + time.time()) / 2
        told["version"] = await connection.fetchval("SELECT current_setting('server_version')")
        told["revision"] = await connection.fetchval("SELECT version_num FROM alembic_version")
        told["is_guarded"] = await connection.fetchval("SELECT row_security_active('messages')")
        async with connection.transaction(readonly=True):
            await connection.execute(NAME_TENANT, HOME_TENANT, "")
            tenants = await connection.fetch("SELECT tenant_id, sequence_number FROM chain_heads")
            told["events"], told["dead"], told["leases"] = sum(row[1] for row in tenants), 0, []
            if told["revision"] == REVISIONS[-1]:
                rows = await connection.fetch(
                    "SELECT name, holder, epoch, expires_ns FROM leases ORDER BY name"
                )
                told["leases"] = [tuple(row) for row in rows]
                for tenant_id, _ in tenants:
                    await connection.execute(NAME_TENANT, tenant_id, "")
                    told["dead"] += await connection.fetchval(
                        "SELECT count(*) FROM dead_letters WHERE tenant_id = $1 AND state = 'dead'", tenant_id
                    )
        return told
    except postgres.DRIVER_ERRORS as error:
        raise StartupError(f"PostgreSQL cannot be read: {type(error).__name__}") from error
    finally:
        connection.terminate()

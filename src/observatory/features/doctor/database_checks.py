"""The database checks of `observatory doctor`: versions, durability settings, and pending work.

Settings are read back from the database: what was configured may not be in force. Nothing is changed.
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
from observatory.store.migrations.migrate import NO_DRIVER, REVISIONS
from observatory.store.sqlite import OLDEST, PRAGMAS, connect

MAX_SKEW_S = 5.0
LEASE_LATE_S = 60.0
MIGRATE = "run `observatory migrate`, or upgrade the program"
# PostgreSQL settings, as our sessions see them: the value that keeps commits durable, and the advice
# otherwise.
KEEPS = {
    "synchronous_commit": ("on", "commits could be lost: set it to on"),
    "fsync": ("on", "a power cut could destroy the database: set it to on"),
    "full_page_writes": ("on", "a power cut could tear pages: set it to on"),
}


class CheckResult(NamedTuple):
    check: str
    ok: bool
    found: str
    do: str = ""
    warns: bool = False
    """A warning: nothing is broken; only with `ok`."""


def database(settings: Settings, is_running: bool) -> Iterator[CheckResult]:
    if settings.is_postgres:
        yield from _postgres(settings.database_url, is_running)
        return
    path = Path(settings.database_url.removeprefix("sqlite:///"))
    ok = sqlite3.sqlite_version_info >= OLDEST
    yield CheckResult("SQLite", ok, sqlite3.sqlite_version, "use a Python with SQLite 3.35 or newer")
    if not path.exists():
        yield CheckResult("database", True, "not created yet; `observatory serve` creates it")
        return
    yield from _sqlite(path, is_running)


def schema(revision: str | None, prefix: str) -> CheckResult:
    newest = REVISIONS[-1]
    more = "" if revision == newest else f", this program has {newest}"
    return CheckResult("database", revision == newest, f"{prefix}schema {revision}{more}", MIGRATE)


def leases(rows: list[tuple[str, str, int, int]], now_ns: int | None, is_running: bool) -> CheckResult:
    """Which gateway leads what. An expired lease is no problem while no gateway runs.

    `now_ns` is None on SQLite, where the one gateway keeps the end of its lease itself.
    """
    texts, late = [], []
    for name, holder, epoch, expires_ns in rows:
        left_s = 0.0 if now_ns is None else (expires_ns - now_ns) / 1e9
        texts.append(f"{name}: {holder} (epoch {epoch}" + (")" if now_ns is None else f", {left_s:+.0f} s)"))
        # The presence lease of a stopped gateway just expires: nothing is missing.
        if left_s < -LEASE_LATE_S and not name.startswith(PRESENT):
            late.append(name)
    do = f"no leader for {', '.join(late)}: see the gateway's log"
    return CheckResult("leases", not late or not is_running, "; ".join(texts) or "none", do)


def dead_letters(count: int) -> CheckResult:
    return CheckResult(
        "dead letters", not count, f"{count:,} waiting", "see `observatory dead-letters`: retry or discard"
    )


def _sqlite(path: Path, is_running: bool) -> Iterator[CheckResult]:
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
        yield CheckResult("database", False, f"{path}: {error}", "restore it: `observatory restore`")
        return
    try:
        # Sets and reads back every pragma, as the gateway does; raises when one is not accepted.
        connect(path).close()
    except StartupError as error:
        yield CheckResult("pragmas", False, str(error), "use a local disk")
        return
    yield CheckResult("pragmas", True, ", ".join(f"{name}={value}" for name, value in PRAGMAS.items()))
    yield _backup_space(path)


def _backup_space(path: Path) -> CheckResult:
    """A backup needs space for a copy and for the file made of it."""
    wal = path.with_name(f"{path.name}-wal")
    needed = 2 * sum(file.stat().st_size for file in (path, wal) if file.exists())
    free = shutil.disk_usage(path.parent).free
    text = f"{needed / (1 << 20):,.0f} MiB needed, {free / (1 << 20):,.0f} MiB free next to the database"
    return CheckResult("space for a backup", free >= needed, text, "free some, or use --to on another disk")


def _postgres(url: str, is_running: bool) -> Iterator[CheckResult]:
    try:
        found = asyncio.run(_query_postgres(url))
    except ModuleNotFoundError:
        yield CheckResult("database", False, "no driver", NO_DRIVER)
        return
    except (StartupError, NotDurable) as error:
        yield CheckResult("database", False, str(error), "check --db, or run `observatory migrate`")
        return
    yield schema(found["revision"], f"PostgreSQL {found['version']}, {found['events']:,} events, ")
    for name, (required, cost) in KEEPS.items():
        yield CheckResult(name, found[name] == required, f"{found[name]}", cost)
    skew = found["skew_s"]
    yield CheckResult(
        "database clock",
        abs(skew) <= MAX_SKEW_S,
        f"{skew:+.1f} s from this machine's",
        "synchronise the clocks",
    )
    yield CheckResult("row security", found["is_guarded"], "in force", "run `observatory migrate`")
    if found["revision"] == REVISIONS[-1]:
        yield dead_letters(found["dead"])
        yield leases(found["leases"], found["now_ns"], is_running)


async def _query_postgres(url: str) -> dict[str, Any]:
    from observatory.pipeline.state import HOME_TENANT
    from observatory.store import postgres
    from observatory.store.postgres_append import NAME_TENANT

    try:
        connection = await postgres.connect(url, postgres.SESSION)
    except postgres.DRIVER_ERRORS as error:
        raise StartupError(f"PostgreSQL cannot be used: {type(error).__name__}") from error
    try:
        values: dict[str, Any] = {
            name: await connection.fetchval("SELECT current_setting($1)", name) for name in KEEPS
        }
        before = time.time()
        values["now_ns"] = int(
            await connection.fetchval("SELECT (extract(epoch FROM clock_timestamp()) * 1000000000)::bigint")
        )
        values["skew_s"] = values["now_ns"] / 1e9 - (before + time.time()) / 2
        values["version"] = await connection.fetchval("SELECT current_setting('server_version')")
        values["revision"] = await connection.fetchval("SELECT version_num FROM alembic_version")
        values["is_guarded"] = await connection.fetchval("SELECT row_security_active('messages')")
        async with connection.transaction(readonly=True):
            await connection.execute(NAME_TENANT, HOME_TENANT, "")
            tenants = await connection.fetch("SELECT tenant_id, sequence_number FROM chain_heads")
            values["events"], values["dead"], values["leases"] = sum(row[1] for row in tenants), 0, []
            if values["revision"] == REVISIONS[-1]:
                rows = await connection.fetch(
                    "SELECT name, holder, epoch, expires_ns FROM leases ORDER BY name"
                )
                values["leases"] = [tuple(row) for row in rows]
                for tenant_id, _ in tenants:
                    await connection.execute(NAME_TENANT, tenant_id, "")
                    values["dead"] += await connection.fetchval(
                        "SELECT count(*) FROM dead_letters WHERE tenant_id = $1 AND state = 'dead'", tenant_id
                    )
        return values
    except postgres.DRIVER_ERRORS as error:
        raise StartupError(f"PostgreSQL cannot be read: {type(error).__name__}") from error
    finally:
        connection.terminate()

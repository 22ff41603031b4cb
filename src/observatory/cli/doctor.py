"""`observatory doctor`: is everything as it must be, and what to do where it is not. Changes nothing."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Annotated, NamedTuple

import httpx2
from cyclopts import Parameter

from observatory import settings as settings_module
from observatory.cli.door import read_credentials
from observatory.cli.terminal import CommandFailed, show_json, show_table
from observatory.errors import StartupError
from observatory.settings import Settings
from observatory.store.sqlite import OLDEST, PRAGMAS, connect

LEAST_FREE = 1 << 30
MOST_SKEW_S = 5


class Finding(NamedTuple):
    check: str
    ok: bool
    found: str
    do: str = ""


def doctor(
    *,
    data: str | None = None,
    db: Annotated[str | None, Parameter(help="Database URL instead of the folder's own.")] = None,
    json: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Check Python, SQLite, the folder, the disk, the database, the gateway and the clock."""
    settings = settings_module.load({"data": data, "db": db})
    found = [f if not f.ok else f._replace(do="") for check in CHECKS for f in check(settings)]
    if json:
        show_json([finding._asdict() for finding in found])
    else:
        rows = [(f.check, "ok" if f.ok else "PROBLEM", f.found, f.do) for f in found]
        show_table(("CHECK", "STATE", "FOUND", "WHAT TO DO"), rows)
    return 0 if all(finding.ok for finding in found) else 1


def _python(_: Settings) -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield Finding("Python", sys.version_info >= (3, 11), version, "install Python 3.11 or newer")


def _sqlite(settings: Settings) -> Iterator[Finding]:
    if settings.is_postgres:
        return
    ok = sqlite3.sqlite_version_info >= OLDEST
    yield Finding("SQLite", ok, sqlite3.sqlite_version, "use a Python with SQLite 3.35 or newer")


def _folder(settings: Settings) -> Iterator[Finding]:
    folder = settings.folder
    if not folder.exists():
        yield Finding("data folder", True, f"{folder} is not there yet; `observatory serve` makes it")
        return
    yield _mode("data folder", folder, 0o700)
    credentials = folder / "credentials.json"
    if credentials.exists():
        yield _mode("credentials", credentials, 0o600)
    writable = os.access(folder, os.W_OK)
    yield Finding(
        "folder rights", writable, "writable" if writable else "not writable", f"run as the owner of {folder}"
    )


def _mode(name: str, path: Path, wanted: int) -> Finding:
    found = stat.S_IMODE(path.stat().st_mode)
    told = f"{path} is {found:04o}"
    return Finding(name, not found & ~wanted, told, f"others can read it: chmod {wanted:o} {path}")


def _disk(settings: Settings) -> Iterator[Finding]:
    place = settings.folder
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    yield Finding(
        "disk space", free >= LEAST_FREE, f"{free / (1 << 30):.1f} GiB free", "free some: 1 GiB at least"
    )


def _database(settings: Settings) -> Iterator[Finding]:
    if settings.is_postgres:
        from observatory.cli.trail import open_trail

        try:
            trail = open_trail(settings.database_url)
            events = sum(head.sequence_number for head in trail.heads())
            trail.close()
        except CommandFailed as error:
            yield Finding("database", False, str(error), "check --db, or run `observatory migrate`")
            return
        yield Finding("database", True, f"PostgreSQL, {events:,} events")
        return
    path = Path(settings.database_url.removeprefix("sqlite:///"))
    if not path.exists():
        yield Finding("database", True, "not made yet; `observatory serve` makes it")
        return
    yield from _sqlite_file(path)


def _sqlite_file(path: Path) -> Iterator[Finding]:
    from alembic.script import ScriptDirectory

    from observatory.store.migrate import SCRIPTS

    newest = ScriptDirectory(str(SCRIPTS)).get_current_head()
    try:
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        revision = connection.execute("SELECT version_num FROM alembic_version").fetchone()[0]
        connection.close()
    except sqlite3.Error as error:
        yield Finding("database", False, f"{path}: {error}", "restore it from a backup or an export")
        return
    told = f"schema {revision}" + ("" if revision == newest else f", this program has {newest}")
    yield Finding("database", revision == newest, told, "run `observatory migrate`, or upgrade the program")
    try:
        # Sets and reads back every pragma, as the gateway does; raises when one is not accepted.
        connect(path).close()
    except StartupError as error:
        yield Finding("pragmas", False, str(error), "use a local disk")
        return
    yield Finding("pragmas", True, ", ".join(f"{name}={value}" for name, value in PRAGMAS.items()))


def _gateway(settings: Settings) -> Iterator[Finding]:
    known = read_credentials(settings.folder)
    if known is None:
        yield Finding("gateway", True, "never started on this folder; `observatory serve` starts it")
        return
    url = known["url"]
    try:
        answer = httpx2.get(f"{url}/readyz", timeout=3, trust_env=False)
    except httpx2.TransportError:
        yield Finding("gateway", False, f"no answer at {url}", "start it with `observatory serve`")
        return
    yield Finding("gateway", answer.status_code == 200, f"{url} answers {answer.status_code}", "see its log")
    with suppress(KeyError, ValueError, TypeError):
        skew = abs(parsedate_to_datetime(answer.headers["date"]).timestamp() - time.time())
        yield Finding(
            "clock", skew <= MOST_SKEW_S, f"{skew:.0f} s from the gateway's", "synchronise the clocks"
        )


def _clock(settings: Settings) -> Iterator[Finding]:
    """A clock behind the trail's own files is wrong: nothing was written in the future."""
    path = Path(settings.database_url.removeprefix("sqlite:///"))
    newest = path.stat().st_mtime if not settings.is_postgres and path.exists() else 0.0
    ok = time.time() > max(newest - MOST_SKEW_S, 1_735_689_600)
    now = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    yield Finding("time", ok, now, "set the system clock; audit times come from it")


CHECKS: tuple[Callable[[Settings], Iterator[Finding]], ...] = (
    _python,
    _sqlite,
    _folder,
    _disk,
    _database,
    _gateway,
    _clock,
)

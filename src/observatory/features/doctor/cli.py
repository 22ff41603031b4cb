"""`observatory doctor`: is everything as it must be, and what to do where it is not. Changes nothing."""

from __future__ import annotations

import ctypes
import os
import shutil
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Annotated

import httpx2
from cyclopts import Parameter

from observatory import settings as settings_module
from observatory.cli.gateway_client import read_credentials
from observatory.cli.terminal import CommandFailed, show_json, show_table
from observatory.errors import ObservatoryError, StartupError
from observatory.features.doctor.database_checks import MOST_SKEW_S, Finding, database
from observatory.features.doctor.record_checks import record as record_of
from observatory.sdk.client import tls
from observatory.sdk.credentials import AGENT_FILE, find_trust
from observatory.settings import VERSION, Settings

KEY = "OBSERVATORY_KEY"
LEAST_FREE = 1 << 30
UNSYNCHRONISED = 5  # what adjtimex answers when nobody keeps the clock


def doctor(
    *,
    data: str | None = None,
    db: Annotated[str | None, Parameter(help="Database URL instead of the folder's own.")] = None,
    record: Annotated[bool, Parameter(help="Also verify the whole record, which takes its time.")] = True,
    json: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Check settings, versions, folder, keys, disk, database, record, gateway and clocks."""
    findings = _findings({"data": data, "db": db}, record)
    found = [f if f.warns or not f.ok else f._replace(do="") for f in findings]
    if json:
        show_json([finding._asdict() for finding in found])
    else:
        rows = [(f.check, _state(f), f.found, f.do) for f in found]
        show_table(("CHECK", "STATE", "FOUND", "WHAT TO DO"), rows)
    return 0 if all(finding.ok for finding in found) else 1


def _state(finding: Finding) -> str:
    return "PROBLEM" if not finding.ok else "WARNING" if finding.warns else "ok"


def _findings(flags: dict[str, str | None], with_record: bool) -> Iterator[Finding]:
    yield from _versions()
    try:
        settings = settings_module.load(flags)
        _serve_would_take(settings)
        yield Finding("settings", True, "every name is known and every value usable")
    except StartupError as error:  # the rest can be looked at all the same
        yield Finding("settings", False, str(error), "mend it: the gateway does not start like this")
        settings = Settings(
            data=flags["data"] or os.environ.get("OBSERVATORY_DATA") or Settings().data,
            db=flags["db"] or os.environ.get("OBSERVATORY_DB", ""),
        )
    yield from _key(settings)
    yield from _folder(settings)
    yield from _disk(settings)
    answer = _answer(settings)
    is_running = answer is not None and answer[1] is not None
    yield from database(settings, is_running)
    if with_record:
        yield from record_of(settings, is_certain=flags["db"] is None or flags["data"] is not None)
    yield from _gateway(answer)
    yield from _clock(settings)


def _serve_would_take(settings: Settings) -> None:
    """The very checks of a start, but for the port, which a running gateway holds."""
    from observatory.bootstrap import examine
    from observatory.http import server

    examine(settings)
    server.bind(settings.host, 0).close()


def _versions() -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield Finding("Python", sys.version_info >= (3, 11), version, "install Python 3.11 or newer")
    yield Finding("Observatory", True, VERSION)


def _folder(settings: Settings) -> Iterator[Finding]:
    folder = settings.folder
    if not folder.exists():
        yield Finding("data folder", True, f"{folder} is not there yet; `observatory serve` makes it")
        return
    yield _mode("data folder", folder, 0o700)
    key = settings.log_key_path
    private = {
        "credentials": folder / "credentials.json",
        "agents' key": folder / AGENT_FILE,
        "log key": key,
        "last signed": key.with_name(f"{key.name}.signed"),
    }
    if not settings.is_postgres:
        private["database file"] = Path(settings.database_url.removeprefix("sqlite:///"))
    for name, path in private.items():
        if path.exists():
            yield _mode(name, path, 0o600)
    if (folder / "credentials.json").exists() and not key.exists():
        told = "put it back where log_key says, from where keys are kept; without it nothing is signed"
        yield Finding("log key", False, f"there is none at {key}", told)
    yield from _bound(folder)
    yield from _agents(folder)
    writable = os.access(folder, os.W_OK)
    yield Finding(
        "folder rights", writable, "writable" if writable else "not writable", f"run as the owner of {folder}"
    )


def _bound(folder: Path) -> Iterator[Finding]:
    """Keys of bound agents: those that are in order need no line each."""
    found = (_mode("agents' key", path, 0o600) for path in folder.glob(f"agents/*/{AGENT_FILE}"))
    yield from (finding for finding in found if not finding.ok)


def _agents(folder: Path) -> Iterator[Finding]:
    """What an agent finds when it is started like this: its own key, or its governor's (S981)."""
    credentials = folder / "credentials.json"
    if not credentials.exists():
        return
    if not (folder / AGENT_FILE).exists():
        told = "start the gateway once: it writes the file; until then no agent finds its key"
        yield Finding("agents' key", False, f"there is no {folder / AGENT_FILE}", told)
    with suppress(CommandFailed):
        known = read_credentials(folder) or {}
        held = [role for role in ("admin", "operator") if os.environ.get(KEY) == known.get(f"{role}_key", "")]
        if held:
            told = f"unset {KEY}, or set it to an agent's key: what is started here could govern itself"
            yield Finding("agents' environment", False, f"{KEY} is the {held[0]}'s key", told)
    looked = Path(os.environ.get("OBSERVATORY_DATA") or Path.home() / ".observatory").expanduser()
    if looked.absolute() == folder.absolute() and os.access(credentials, os.R_OK):
        told = (
            "run agents as another user, with what `observatory keys bind AGENT --to FOLDER` makes for them"
        )
        found = f"agents that run as this user can read {credentials}"
        yield Finding("agents' environment", True, found, told, warns=True)


def _key(settings: Settings) -> Iterator[Finding]:
    """A log key that cannot be used; of one that others can read its rights are told."""
    from observatory.features.transparency.log_key import Keyring

    path = settings.log_key_path
    if not path.exists() or stat.S_IMODE(path.stat().st_mode) & 0o077:
        return
    try:
        Keyring.open(path, settings.log_key_passphrase)
    except StartupError as error:
        yield Finding("log key", False, str(error), "mend it: the gateway does not start like this")


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


def _answer(settings: Settings) -> tuple[str, httpx2.Response | None] | None:
    """(address, what it said); None where none was ever started."""
    try:
        known = read_credentials(settings.folder)
    except CommandFailed:
        return None
    if known is None:
        return None
    url = known["url"]
    try:
        verify = tls(url, find_trust(authority=known.get("ca")))
        return url, httpx2.get(f"{url}/readyz", timeout=3, trust_env=False, verify=verify)
    except (httpx2.TransportError, ObservatoryError):
        return known["url"], None


def _gateway(answer: tuple[str, httpx2.Response | None] | None) -> Iterator[Finding]:
    if answer is None:
        yield Finding("gateway", True, "never started on this folder; `observatory serve` starts it")
        return
    url, said = answer
    if said is None:
        yield Finding("gateway", False, f"no answer at {url}", "start it with `observatory serve`")
        return
    yield Finding("gateway", said.status_code == 200, f"{url} answers {said.status_code}", "see its log")
    with suppress(KeyError, ValueError, TypeError):
        skew = abs(parsedate_to_datetime(said.headers["date"]).timestamp() - time.time())
        yield Finding(
            "gateway clock",
            skew <= MOST_SKEW_S,
            f"{skew:.0f} s from this machine's",
            "synchronise the clocks",
        )
    with suppress(ValueError, KeyError, TypeError):
        detail = said.json()["detail"]
        yield Finding("gateway's word", False, str(detail), "see docs/guides/operate.md")


def _clock(settings: Settings) -> Iterator[Finding]:
    """A clock behind the trail's own files is wrong: nothing was written in the future."""
    path = Path(settings.database_url.removeprefix("sqlite:///"))
    newest = path.stat().st_mtime if not settings.is_postgres and path.exists() else 0.0
    ok = time.time() > max(newest - MOST_SKEW_S, 1_735_689_600)
    now = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    yield Finding("time", ok, now, "set the system clock; audit times come from it")
    synchronised = _is_synchronised()
    if synchronised is None:
        yield Finding("time service", True, "whether the clock is kept right cannot be known here")
    else:
        told = "the clock is kept right" if synchronised else "the kernel says nobody keeps the clock right"
        yield Finding("time service", True, told)


def _is_synchronised() -> bool | None:
    """As the kernel was told by whoever keeps the time; None where it cannot be asked."""
    try:
        ask = ctypes.CDLL(None, use_errno=True).adjtimex
    except (OSError, AttributeError):
        return None
    told = ctypes.create_string_buffer(512)  # larger than any kernel's struct; zero modes: only read
    state = ask(told)
    return None if state < 0 else state != UNSYNCHRONISED

"""`observatory doctor`: checks an installation and says what to do about each problem. Changes nothing."""

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
from observatory.features.doctor.database_checks import MAX_SKEW_S, CheckResult, database
from observatory.features.doctor.record_checks import record as record_of
from observatory.sdk.client import tls
from observatory.sdk.credentials import AGENT_FILE, find_trust
from observatory.settings import VERSION, Settings

KEY = "OBSERVATORY_KEY"
MIN_FREE_BYTES = 1 << 30
UNSYNCHRONISED = 5  # what adjtimex returns when the clock is not synchronised


def doctor(
    *,
    data: str | None = None,
    db: Annotated[str | None, Parameter(help="Database URL instead of the folder's own.")] = None,
    record: Annotated[bool, Parameter(help="Also verify the whole record, which takes a while.")] = True,
    json: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Check settings, versions, folder, keys, disk, database, record, gateway and clocks."""
    findings = _findings({"data": data, "db": db}, record)
    results = [f if f.warns or not f.ok else f._replace(do="") for f in findings]
    if json:
        show_json([finding._asdict() for finding in results])
    else:
        rows = [(f.check, _state(f), f.found, f.do) for f in results]
        show_table(("CHECK", "STATE", "FOUND", "WHAT TO DO"), rows)
    return 0 if all(finding.ok for finding in results) else 1


def _state(finding: CheckResult) -> str:
    return "PROBLEM" if not finding.ok else "WARNING" if finding.warns else "ok"


def _findings(flags: dict[str, str | None], with_record: bool) -> Iterator[CheckResult]:
    yield from _versions()
    try:
        settings = settings_module.load(flags)
        _check_startup(settings)
        yield CheckResult("settings", True, "every name is known and every value valid")
    except StartupError as error:  # the rest can be checked all the same
        yield CheckResult("settings", False, str(error), "fix it: the gateway does not start like this")
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


def _check_startup(settings: Settings) -> None:
    """The same checks as at start, except for the port, which a running gateway uses."""
    from observatory.bootstrap import check_settings
    from observatory.http import server

    check_settings(settings)
    server.bind(settings.host, 0).close()


def _versions() -> Iterator[CheckResult]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield CheckResult("Python", sys.version_info >= (3, 11), version, "install Python 3.11 or newer")
    yield CheckResult("Observatory", True, VERSION)


def _folder(settings: Settings) -> Iterator[CheckResult]:
    folder = settings.folder
    if not folder.exists():
        yield CheckResult("data folder", True, f"{folder} does not exist yet; `observatory serve` creates it")
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
        advice = "restore it to the path of log_key from your key backup; without it nothing is signed"
        yield CheckResult("log key", False, f"not found at {key}", advice)
    yield from _bound(folder)
    yield from _agents(folder)
    writable = os.access(folder, os.W_OK)
    yield CheckResult(
        "folder rights", writable, "writable" if writable else "not writable", f"run as the owner of {folder}"
    )


def _bound(folder: Path) -> Iterator[CheckResult]:
    """Keys of bound agents: those without problems need no line."""
    results = (_mode("agents' key", path, 0o600) for path in folder.glob(f"agents/*/{AGENT_FILE}"))
    yield from (finding for finding in results if not finding.ok)


def _agents(folder: Path) -> Iterator[CheckResult]:
    """What an agent started in this environment finds: its own key, or an operator's (S981)."""
    credentials = folder / "credentials.json"
    if not credentials.exists():
        return
    if not (folder / AGENT_FILE).exists():
        advice = "start the gateway once: it writes the file; until then no agent finds its key"
        yield CheckResult("agents' key", False, f"{folder / AGENT_FILE} does not exist", advice)
    with suppress(CommandFailed):
        known = read_credentials(folder) or {}
        held = [role for role in ("admin", "operator") if os.environ.get(KEY) == known.get(f"{role}_key", "")]
        if held:
            advice = f"unset {KEY}, or set it to an agent's key: agents started here could approve themselves"
            yield CheckResult("agents' environment", False, f"{KEY} is the {held[0]}'s key", advice)
    data_folder = Path(os.environ.get("OBSERVATORY_DATA") or Path.home() / ".observatory").expanduser()
    if data_folder.absolute() == folder.absolute() and os.access(credentials, os.R_OK):
        advice = "run agents as another user, with the files of `observatory keys bind AGENT --to FOLDER`"
        problem = f"agents that run as this user can read {credentials}"
        yield CheckResult("agents' environment", True, problem, advice, warns=True)


def _key(settings: Settings) -> Iterator[CheckResult]:
    """A log key that cannot be used; wrong file modes are reported by `_mode`."""
    from observatory.runtime.log_key import Keyring

    path = settings.log_key_path
    if not path.exists() or stat.S_IMODE(path.stat().st_mode) & 0o077:
        return
    try:
        Keyring.open(path, settings.log_key_passphrase)
    except StartupError as error:
        yield CheckResult("log key", False, str(error), "fix it: the gateway does not start like this")


def _mode(name: str, path: Path, allowed: int) -> CheckResult:
    mode = stat.S_IMODE(path.stat().st_mode)
    text = f"{path} is {mode:04o}"
    return CheckResult(name, not mode & ~allowed, text, f"others can read it: chmod {allowed:o} {path}")


def _disk(settings: Settings) -> Iterator[CheckResult]:
    existing = settings.folder
    while not existing.exists():
        existing = existing.parent
    free = shutil.disk_usage(existing).free
    yield CheckResult(
        "disk space", free >= MIN_FREE_BYTES, f"{free / (1 << 30):.1f} GiB free", "free some: 1 GiB at least"
    )


def _answer(settings: Settings) -> tuple[str, httpx2.Response | None] | None:
    """(URL, response); None where no gateway was ever started."""
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


def _gateway(answer: tuple[str, httpx2.Response | None] | None) -> Iterator[CheckResult]:
    if answer is None:
        yield CheckResult("gateway", True, "never started on this folder; `observatory serve` starts it")
        return
    url, response = answer
    if response is None:
        yield CheckResult("gateway", False, f"no response from {url}", "start it with `observatory serve`")
        return
    yield CheckResult(
        "gateway", response.status_code == 200, f"{url} returns {response.status_code}", "see its log"
    )
    with suppress(KeyError, ValueError, TypeError):
        skew = abs(parsedate_to_datetime(response.headers["date"]).timestamp() - time.time())
        yield CheckResult(
            "gateway clock",
            skew <= MAX_SKEW_S,
            f"{skew:.0f} s from this machine's",
            "synchronise the clocks",
        )
    with suppress(ValueError, KeyError, TypeError):
        detail = response.json()["detail"]
        yield CheckResult("gateway's report", False, str(detail), "see docs/guides/operate.md")


def _clock(settings: Settings) -> Iterator[CheckResult]:
    """A clock behind the trail's own files is wrong: they cannot have been written in the future."""
    path = Path(settings.database_url.removeprefix("sqlite:///"))
    newest = path.stat().st_mtime if not settings.is_postgres and path.exists() else 0.0
    ok = time.time() > max(newest - MAX_SKEW_S, 1_735_689_600)
    now = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    yield CheckResult("time", ok, now, "set the system clock; audit times come from it")
    synchronised = _is_synchronised()
    if synchronised is None:
        yield CheckResult("time service", True, "whether the clock is synchronised cannot be determined here")
    else:
        text = "the clock is synchronised" if synchronised else "the kernel reports an unsynchronised clock"
        yield CheckResult("time service", True, text)


def _is_synchronised() -> bool | None:
    """Whether the kernel's clock is synchronised; None where it cannot be queried."""
    try:
        adjtimex = ctypes.CDLL(None, use_errno=True).adjtimex
    except (OSError, AttributeError):
        return None
    buffer = ctypes.create_string_buffer(512)  # larger than any kernel's struct; zero modes: only read
    state = adjtimex(buffer)
    return None if state < 0 else state != UNSYNCHRONISED

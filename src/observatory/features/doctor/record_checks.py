"""The record checks of `observatory doctor`: whether the database pages are readable, and `verify`.

The same check as `observatory verify --data`, so it takes as long; what could not be checked is reported as
not checked and is no problem by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

from observatory.cli.terminal import CommandFailed
from observatory.cli.verify import log_root as log_check
from observatory.cli.verify import marks as signed_marks
from observatory.cli.verify.report import VerifyReport, of_folder
from observatory.cli.verify.rows import malformed_page
from observatory.errors import StartupError
from observatory.features.doctor.database_checks import CheckResult
from observatory.settings import Settings

NOT_CHECKED = "not checked"
CHECKSUMS = (
    "SELECT current_setting('data_checksums'), checksum_failures FROM pg_stat_database "
    "WHERE datname = current_database()"
)
RESTORE = "stop the gateway, keep a copy of the file, and restore a good backup: `observatory restore`"
LOOK = "see docs/guides/prove-it.md, and `observatory verify` for each check"


def record(settings: Settings, is_certain: bool) -> Iterator[CheckResult]:
    """Yields nothing where there is no database yet: the check before reports that."""
    path = Path(settings.database_url.removeprefix("sqlite:///"))
    if not settings.is_postgres and not path.exists():
        return
    yield (
        _postgres_pages(settings.database_url)
        if settings.is_postgres
        else _sqlite_pages(settings.database_url)
    )
    try:
        marks = signed_marks.read_marks(settings, is_certain)
        reports = of_folder(settings.database_url, marks, None, log_check.TrustedInputs(), (1, None), 2, True)
    except CommandFailed as error:
        yield CheckResult("record", False, str(error), RESTORE)
        return
    for report in reports:
        yield _finding_of(report)


def _finding_of(report: VerifyReport) -> CheckResult:
    name = f"record of {report.tenant_id}"
    if report.first_break is not None:
        return CheckResult(name, False, f"BROKEN: {report.first_break['sentence']}", LOOK)
    left = [check for check, held in report.checks.items() if held is None]
    text = f"{report.events_verified:,} events verified"
    return CheckResult(name, True, text + (f"; {NOT_CHECKED}: {', '.join(left)}" if left else ""))


def _sqlite_pages(url: str) -> CheckResult:
    found = malformed_page(url)
    return CheckResult("database pages", found is None, f"quick_check: {found or 'ok'}", RESTORE)


def _postgres_pages(url: str) -> CheckResult:
    """What the server checks by itself: checksums of every page that it reads."""
    try:
        checksums, failures = asyncio.run(_checksums(url))
    except (ModuleNotFoundError, StartupError) as error:
        return CheckResult("database pages", True, f"{NOT_CHECKED}: {error}")
    if checksums != "on":
        return CheckResult("database pages", True, f"{NOT_CHECKED}: data_checksums is {checksums}")
    text = f"checksums on, {failures:,} failures since the statistics were reset"
    return CheckResult("database pages", not failures, text, "restore it from a good backup")


async def _checksums(url: str) -> tuple[str, int]:
    from observatory.store import postgres

    try:
        connection = await postgres.connect(url, postgres.SESSION)
    except postgres.DRIVER_ERRORS as error:
        raise StartupError(f"PostgreSQL cannot be queried:  {type(error).__name__}") from error
    try:
        row = await connection.fetchrow(CHECKSUMS)
        return str(row[0]), int(row[1] or 0)
    except postgres.DRIVER_ERRORS as error:
        raise StartupError(f"PostgreSQL cannot be queried:  {type(error).__name__}") from error
    finally:
        connection.terminate()

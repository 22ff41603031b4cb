"""What `observatory doctor` asks of the record: whether its pages can be read, and what `verify` says of it.

The same check as `observatory verify --data`, so it takes as long; what could not be checked is said to be
not checked and is no problem by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

from observatory.cli.terminal import CommandFailed
from observatory.errors import StartupError
from observatory.features.doctor.database_checks import Finding
from observatory.features.verification import verify_log_root as log_check
from observatory.features.verification import verify_marks as signed_marks
from observatory.features.verification.cli import Report, of_folder
from observatory.features.verification.verify_rows import malformed
from observatory.settings import Settings

NOT_CHECKED = "not checked"
CHECKSUMS = (
    "SELECT current_setting('data_checksums'), checksum_failures FROM pg_stat_database "
    "WHERE datname = current_database()"
)
RESTORE = "stop the gateway, keep a copy of the file, and restore a good backup: `observatory restore`"
LOOK = "see docs/guides/prove-it.md, and `observatory verify` for each check"


def record(settings: Settings, is_certain: bool) -> Iterator[Finding]:
    """Nothing where there is no database yet: the check before says so."""
    path = Path(settings.database_url.removeprefix("sqlite:///"))
    if not settings.is_postgres and not path.exists():
        return
    yield (
        _postgres_pages(settings.database_url)
        if settings.is_postgres
        else _sqlite_pages(settings.database_url)
    )
    try:
        marks = signed_marks.beside(settings, is_certain)
        reports = of_folder(settings.database_url, marks, None, log_check.Held(), (1, None), 2, True)
    except CommandFailed as error:
        yield Finding("record", False, str(error), RESTORE)
        return
    for report in reports:
        yield _told(report)


def _told(report: Report) -> Finding:
    name = f"record of {report.tenant_id}"
    if report.first_break is not None:
        return Finding(name, False, f"BROKEN: {report.first_break['sentence']}", LOOK)
    left = [check for check, held in report.checks.items() if held is None]
    told = f"{report.events_verified:,} events verified"
    return Finding(name, True, told + (f"; {NOT_CHECKED}: {', '.join(left)}" if left else ""))


def _sqlite_pages(url: str) -> Finding:
    found = malformed(url)
    return Finding("database pages", found is None, f"quick_check: {found or 'ok'}", RESTORE)


def _postgres_pages(url: str) -> Finding:
    """As far as the server looks by itself: checksums of every page that it reads."""
    try:
        checksums, failures = asyncio.run(_checksums(url))
    except (ModuleNotFoundError, StartupError) as error:
        return Finding("database pages", True, f"{NOT_CHECKED}: {error}")
    if checksums != "on":
        return Finding("database pages", True, f"{NOT_CHECKED}: data_checksums is {checksums}")
    told = f"checksums on, {failures:,} failures since the statistics were reset"
    return Finding("database pages", not failures, told, "restore it from a good backup")


async def _checksums(url: str) -> tuple[str, int]:
    from observatory.store import postgres

    try:
        connection = await postgres.connect(url, postgres.SESSION)
    except postgres.DRIVER_ERRORS as error:
        raise StartupError(f"PostgreSQL cannot be asked: {type(error).__name__}") from error
    try:
        row = await connection.fetchrow(CHECKSUMS)
        return str(row[0]), int(row[1] or 0)
    except postgres.DRIVER_ERRORS as error:
        raise StartupError(f"PostgreSQL cannot be asked: {type(error).__name__}") from error
    finally:
        connection.terminate()

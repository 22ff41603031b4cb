"""`observatory backup` and `observatory restore`: a whole deployment in one file, and back.

Laws: a backup is of one moment, taken while the gateway runs or not. A restore goes only into an empty place,
and restores only what was verified: digests, chain, archived bytes, signed log, heads. `credentials.json`
is in no backup, and the record of the last signature is never restored: a restored deployment may hold less
than it once signed, and must not continue as if it did not (ruling 35).
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from observatory import settings as settings_module
from observatory.cli import unfinished_files as unfinished
from observatory.cli.terminal import CommandFailed, note, progress_to, say, show_json
from observatory.cli.verify import log_root as log_check
from observatory.cli.verify.report import VerifyReport, of_database, read_heads
from observatory.features.backup import backup_file, snapshot
from observatory.features.backup.backup_file import DATABASE, KEY, BackupManifest
from observatory.protocol.clock import from_ns
from observatory.runtime.log_key import private_bytes, write_atomically
from observatory.settings import VERSION, Settings
from observatory.store.migrations import migrate

ENDING = (signal.SIGTERM, signal.SIGHUP)
Json = Annotated[bool, Parameter(negative=())]
# Files that may be in the target folder of a restore: the separately kept key, and what belongs to it.
HARMLESS = {"lock", "observatory.toml"}
SIGNED_LESS = (
    "What was signed after this backup was made is not in it, so the first start says that the logs are",
    "not signed. If log.key.signed of the old deployment still exists, put it next to the key: the gateway",
    "then knows whether anything is missing. If something is, or it cannot be known, start with",
    "`observatory serve --accept-rollback`, once: it is recorded, and witnesses will see it.",
)


def backup(
    *,
    to: Annotated[Path, Parameter(help="A new file, or a folder: the file is then named by the time.")],
    data: str | None = None,
    db: Annotated[str | None, Parameter(help="Database URL instead of the folder's own.")] = None,
    without_key: Annotated[bool, Parameter(negative=(), help="Leave the log's private key out.")] = False,
    json: Json = False,
) -> None:
    """Write the whole deployment into one file, as of one moment, while the gateway runs or not."""
    settings = settings_module.load({"data": data, "db": db})
    now_ns = time.time_ns()
    path = to
    if to.is_dir():
        path = to / f"observatory-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(now_ns / 1e9))}.backup"
    if not path.parent.is_dir():
        raise CommandFailed(f"the folder {path.parent} does not exist")
    key = None if without_key else private_bytes(settings.log_key_path)
    with _cleanup_on_signal(), backup_file.appearing(path) as temporary:
        _check_space(settings, path.parent)
        with unfinished.folder(path.parent) as folder:
            manifest = _written(settings, folder / DATABASE, key, temporary, now_ns)
        digest = backup_file.digest_of(temporary)
    if json:
        show_json({"file": str(path), "sha256": digest, "manifest": manifest})
        return
    size = path.stat().st_size / (1 << 20)
    say(
        f"backed up {_counted(manifest)} to {path} ({size:,.1f} MiB)",
        f"  sha256:{digest}",
        "  keep the digest elsewhere: `observatory restore --digest` checks the file against it",
    )
    if key is not None:
        say("  with the log's private key: anyone with the file can sign for this deployment")
    elif not without_key:
        say(f"  without the log's key: not found at {settings.log_key_path}")


def _written(
    settings: Settings, database: Path, key: bytes | None, temporary: Path, now_ns: int
) -> BackupManifest:
    with progress_to("copying") as report_progress:
        snapshot.snapshot(settings.database_url, database, report_progress)
    schema, tenants = snapshot.look(database)
    if not tenants:
        raise CommandFailed("this database is empty; start `observatory serve` on it first")
    members: dict[str, Any] = {
        "made_at": from_ns(now_ns),
        "program": VERSION,
        "schema": schema,
        "database": "postgresql" if settings.is_postgres else "sqlite",
        "tenants": tenants,
    }
    parts: dict[str, Path | bytes] = {DATABASE: database} | ({} if key is None else {KEY: key})
    with progress_to("packing") as report_progress:
        return backup_file.write(temporary, parts, members, report_progress)


def _check_space(settings: Settings, folder: Path) -> None:
    """Check before anything is written: space for the copy and for the file made of it."""
    needed = room_needed(settings)
    free = shutil.disk_usage(folder).free
    if needed is not None and free < needed:
        raise CommandFailed(
            f"a backup may need {needed / (1 << 20):,.0f} MiB in {folder}, and {free / (1 << 20):,.0f} are "
            "free; choose another disk with --to"
        )


def room_needed(settings: Settings) -> int | None:
    """Bytes a backup may take while it is made; None where the database cannot be measured from here."""
    if settings.is_postgres:
        return None
    path = Path(settings.database_url.removeprefix("sqlite:///"))
    files = (path, path.with_name(f"{path.name}-wal"))
    return 2 * sum(file.stat().st_size for file in files if file.exists())


def restore(
    *,
    from_: Annotated[Path, Parameter(name="--from", help="A file made by `observatory backup`.")],
    data: str | None = None,
    db: Annotated[str | None, Parameter(help="An empty database instead of the folder's own.")] = None,
    digest: Annotated[str | None, Parameter(help="sha256 of the file, kept elsewhere.")] = None,
    check: Annotated[bool, Parameter(negative=(), help="Verify the file; restore nothing.")] = False,
    workers: Annotated[int, Parameter(help="Processes to share the verifying.")] = 2,
    json: Json = False,
) -> None:
    """Restore a backup into an empty place, after verifying every part of it."""
    if workers < 1:
        raise CommandFailed("--workers is at least 1")
    if (
        digest is not None
        and backup_file.digest_of(_existing(from_)) != digest.removeprefix("sha256:").lower()
    ):
        raise CommandFailed(f"{from_} does not have that digest; nothing was restored")
    settings = settings_module.load({"data": data, "db": db})
    with _cleanup_on_signal(), backup_file.opened(_existing(from_)) as opened:
        if check:
            with tempfile.TemporaryDirectory(prefix="observatory-check-") as folder:
                reports = _verified(opened, Path(folder) / DATABASE, workers)
            _print(opened.manifest, reports, None, json)
            return
        where, reports = _restored(opened, settings, workers)
        _print(opened.manifest, reports, where, json)


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise CommandFailed(f"the file {path} does not exist")
    return path


def _restored(
    opened: backup_file.OpenedBackup, settings: Settings, workers: int
) -> tuple[str, list[VerifyReport]]:
    from observatory.bootstrap import locked_folder

    _refuse_unless_empty(settings)
    target = Path(settings.database_url.removeprefix("sqlite:///"))
    place = settings.folder if settings.is_postgres else target.parent
    with nullcontext() if settings.is_postgres else locked_folder(settings.folder):
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        unfinished.clear(place)
        with unfinished.folder(place) as folder:
            database = folder / DATABASE
            reports = _verified(opened, database, workers)
            where = str(target)
            if settings.is_postgres:
                where = _into_postgres(settings, database)
            if KEY in opened.manifest.files:
                _put_key(opened, settings, folder / KEY)
            if not settings.is_postgres:
                _put_database(database, target)
            return where, reports


def _refuse_unless_empty(settings: Settings) -> None:
    """Refuse a folder in use, or with old files: its keys would not fit the restored database."""
    folder = settings.folder
    target = Path(settings.database_url.removeprefix("sqlite:///"))
    key = settings.log_key_path.name
    found = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    left = [name for name in found if name not in HARMLESS and not name.startswith((key, "."))]
    if settings.is_postgres:
        return
    if left or target.exists():
        raise CommandFailed(
            f"{folder} is not empty ({', '.join(sorted(left)[:3]) or target.name}); a backup is restored "
            "only into an empty folder: give another one with --data"
        )


def _verified(opened: backup_file.OpenedBackup, database: Path, workers: int) -> list[VerifyReport]:
    """Unpack the database, migrate it if it is older, and verify everything that can be verified."""
    manifest = opened.manifest
    try:
        with database.open("xb") as out, progress_to("unpacking") as report_progress:
            opened.take(DATABASE, out, report_progress)
    except OSError as error:
        raise CommandFailed(f"the backup cannot be unpacked: {error.strerror}") from error
    schema, tenants = snapshot.look(database)
    if (schema, tenants) != (manifest.schema, manifest.tenants):
        raise CommandFailed("the heads in this backup do not match its manifest; nothing was restored")
    _, old = migrate.migrate_sqlite(database)
    if old is not None:
        old.unlink(missing_ok=True)
    place = f"sqlite:///{database}"
    kept = log_check.trusted_inputs((), None)
    reports = [
        of_database(place, head, claim, kept, (1, None), workers, True)
        for head, claim in read_heads(place, None)
    ]
    broken = next((report for report in reports if not report.valid), None)
    if broken is not None and broken.first_break is not None:
        raise CommandFailed(
            f"the trail of {broken.tenant_id} in this backup is broken; nothing was restored: "
            f"{broken.first_break['sentence']}"
        )
    return reports


def _put_key(opened: backup_file.OpenedBackup, settings: Settings, temporary: Path) -> None:
    """An existing key is newer than the backup: it stays, with the record of what it signed last."""
    with temporary.open("xb") as out:
        opened.take(KEY, out)
    path = settings.log_key_path
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_atomically(path, temporary.read_bytes(), is_first=True)
    except FileExistsError:
        note(f"the log's key {path} already exists and was not changed")
    except OSError as error:
        raise CommandFailed(f"the log's key {path} cannot be written: {error.strerror}") from error


def _put_database(database: Path, target: Path) -> None:
    """The last step: before it there is no database here, after it a complete one."""
    try:
        os.chmod(database, 0o600)
        database.replace(target)
    except OSError as error:
        raise CommandFailed(f"{target} could not be written: {error.strerror}") from error


def _into_postgres(settings: Settings, database: Path) -> str:
    from observatory.features.backup.copy import copy_database

    with progress_to("restoring") as report_progress:
        return copy_database(f"sqlite:///{database}", settings.database_url, report_progress).moved_to


@contextmanager
def _cleanup_on_signal() -> Iterator[None]:
    """On a signal, as on Ctrl-C: remove unfinished files at once."""
    before = {kind: signal.signal(kind, signal.default_int_handler) for kind in ENDING}
    try:
        yield
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)


def _counted(manifest: BackupManifest) -> str:
    count = len(manifest.tenants)
    tenants = "1 tenant" if count == 1 else f"{count:,} tenants"
    return f"{tenants}, {manifest.events:,} events and {manifest.messages:,} messages"


def _print(manifest: BackupManifest, reports: list[VerifyReport], where: str | None, json: bool) -> None:
    if json:
        show_json({"restored_to": where, "manifest": manifest, "tenants": msgspec.to_builtins(reports)})
        return
    done = "verified" if where is None else "restored"
    say(f"{done} {_counted(manifest)} of {manifest.made_at}" + ("" if where is None else f" to {where}"))
    checked = sum(report.payloads_checked for report in reports)
    signed = sum(tenant.signed for tenant in manifest.tenants)
    say(
        f"  verified: digests, heads, chain, records, leaves, thoughts, and {checked:,} messages' bytes; "
        f"{signed:,} events are under valid signed checkpoints"
    )
    if where is None:
        return
    say("  not in a backup: credentials.json (the first start creates new keys; all others keep working)")
    if KEY not in manifest.files:
        say("  nor the log's key: put it in place before the first start")
    if signed:
        for line in SIGNED_LESS:
            note(f"  {line}")

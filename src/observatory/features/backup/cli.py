"""`observatory backup` and `observatory restore`: a whole house in one file, and back.

Laws: a backup is of one moment, taken while the gateway runs or not. A restore goes only where nothing is,
and only what was verified gets there: digests, chain, archived bytes, signed log, heads. `credentials.json`
is in no backup, and what was signed last is never restored: a house that came out of a backup may hold less
than it once signed, and must not go on as if it did not (ruling 35).
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
from observatory.features.backup import backup_file, snapshot
from observatory.features.backup.backup_file import DATABASE, KEY, Manifest
from observatory.features.transparency.log_key import private_bytes, put
from observatory.features.verification import verify_log_root as log_check
from observatory.features.verification.cli import Report, heads, of_database
from observatory.protocol.clock import from_ns
from observatory.settings import VERSION, Settings
from observatory.store import migrate

ENDING = (signal.SIGTERM, signal.SIGHUP)
Json = Annotated[bool, Parameter(negative=())]
# What may lie in a folder that is restored into: the key that was kept apart, and what belongs to it.
HARMLESS = {"lock", "observatory.toml"}
SIGNED_LESS = (
    "What was signed after this backup was made is not in it, so the first start says that the logs are",
    "not signed. If log.key.signed of the old house is left, put it beside the key: the gateway then knows",
    "whether anything is missing. Where something is, or nobody can know, go on with",
    "`observatory serve --accept-rollback`, once: it is put on record, and witnesses will see it.",
)


def backup(
    *,
    to: Annotated[Path, Parameter(help="A file that does not exist, or a folder: named by the time then.")],
    data: str | None = None,
    db: Annotated[str | None, Parameter(help="Database URL instead of the folder's own.")] = None,
    without_key: Annotated[bool, Parameter(negative=(), help="Leave the log's private key out.")] = False,
    json: Json = False,
) -> None:
    """Write the whole house into one file, of one moment, while the gateway runs or not."""
    settings = settings_module.load({"data": data, "db": db})
    now_ns = time.time_ns()
    path = to
    if to.is_dir():
        path = to / f"observatory-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(now_ns / 1e9))}.backup"
    if not path.parent.is_dir():
        raise CommandFailed(f"there is no folder {path.parent}")
    key = None if without_key else private_bytes(settings.log_key_path)
    with _tidy(), backup_file.appearing(path) as beside:
        _check_room(settings, path.parent)
        with unfinished.folder(path.parent) as folder:
            manifest = _written(settings, folder / DATABASE, key, beside, now_ns)
        digest = backup_file.digest_of(beside)
    if json:
        show_json({"file": str(path), "sha256": digest, "manifest": manifest})
        return
    size = path.stat().st_size / (1 << 20)
    say(
        f"backed up {_counted(manifest)} to {path} ({size:,.1f} MiB)",
        f"  sha256:{digest}",
        "  keep that elsewhere: `observatory restore --digest` holds the file against it",
    )
    if key is not None:
        say("  with the log's private key: whoever has the file can sign for this house")
    elif not without_key:
        say(f"  without the log's key: there is none at {settings.log_key_path}")


def _written(settings: Settings, database: Path, key: bytes | None, beside: Path, now_ns: int) -> Manifest:
    with progress_to("copying") as tell:
        snapshot.snapshot(settings.database_url, database, tell)
    schema, tenants = snapshot.look(database)
    if not tenants:
        raise CommandFailed("there is nothing in this database yet; start `observatory serve` on it first")
    told: dict[str, Any] = {
        "made_at": from_ns(now_ns),
        "program": VERSION,
        "schema": schema,
        "database": "postgresql" if settings.is_postgres else "sqlite",
        "tenants": tenants,
    }
    parts: dict[str, Path | bytes] = {DATABASE: database} | ({} if key is None else {KEY: key})
    with progress_to("packing") as tell:
        return backup_file.write(beside, parts, told, tell)


def _check_room(settings: Settings, folder: Path) -> None:
    """Before anything is written: the copy and the file made of it."""
    needed = room_needed(settings)
    free = shutil.disk_usage(folder).free
    if needed is not None and free < needed:
        raise CommandFailed(
            f"a backup may need {needed / (1 << 20):,.0f} MiB in {folder}, and {free / (1 << 20):,.0f} are "
            "free; choose another place with --to"
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
    """Put a backup where nothing is yet, after verifying every part of it."""
    if workers < 1:
        raise CommandFailed("--workers is at least 1")
    if digest is not None and backup_file.digest_of(_there(from_)) != digest.removeprefix("sha256:").lower():
        raise CommandFailed(f"{from_} is not the file that digest is of; nothing was restored")
    settings = settings_module.load({"data": data, "db": db})
    with _tidy(), backup_file.opened(_there(from_)) as opened:
        if check:
            with tempfile.TemporaryDirectory(prefix="observatory-check-") as folder:
                reports = _verified(opened, Path(folder) / DATABASE, workers)
            _tell(opened.manifest, reports, None, json)
            return
        where, reports = _restored(opened, settings, workers)
        _tell(opened.manifest, reports, where, json)


def _there(path: Path) -> Path:
    if not path.is_file():
        raise CommandFailed(f"there is no file {path}")
    return path


def _restored(opened: backup_file.Opened, settings: Settings, workers: int) -> tuple[str, list[Report]]:
    from observatory.bootstrap import owned

    _refuse_unless_empty(settings)
    target = Path(settings.database_url.removeprefix("sqlite:///"))
    place = settings.folder if settings.is_postgres else target.parent
    with nullcontext() if settings.is_postgres else owned(settings.folder):
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
    """A folder with a house, or with what was another's: its keys would not open what is restored."""
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
            "only where nothing is: give another folder with --data"
        )


def _verified(opened: backup_file.Opened, database: Path, workers: int) -> list[Report]:
    """Written out, brought to this version if it is older, and checked: everything that can be."""
    manifest = opened.manifest
    try:
        with database.open("xb") as out, progress_to("unpacking") as tell:
            opened.take(DATABASE, out, tell)
    except OSError as error:
        raise CommandFailed(f"the backup cannot be unpacked: {error.strerror}") from error
    schema, tenants = snapshot.look(database)
    if (schema, tenants) != (manifest.schema, manifest.tenants):
        raise CommandFailed("the heads in this backup are not those of its manifest; nothing was restored")
    _, old = migrate.migrate_sqlite(database)
    if old is not None:
        old.unlink(missing_ok=True)
    place = f"sqlite:///{database}"
    kept = log_check.held((), None)
    reports = [
        of_database(place, head, claim, kept, (1, None), workers, True) for head, claim in heads(place, None)
    ]
    broken = next((report for report in reports if not report.valid), None)
    if broken is not None and broken.first_break is not None:
        raise CommandFailed(
            f"the trail of {broken.tenant_id} in this backup is broken; nothing was restored: "
            f"{broken.first_break['sentence']}"
        )
    return reports


def _put_key(opened: backup_file.Opened, settings: Settings, beside: Path) -> None:
    """A key that is there knows more than the backup: it stays, with what it signed last."""
    with beside.open("xb") as out:
        opened.take(KEY, out)
    path = settings.log_key_path
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        put(path, beside.read_bytes(), is_first=True)
    except FileExistsError:
        note(f"the log's key {path} is there already and was left as it is")
    except OSError as error:
        raise CommandFailed(f"the log's key {path} cannot be written: {error.strerror}") from error


def _put_database(database: Path, target: Path) -> None:
    """The last step: before it there is no house here, after it a whole one."""
    try:
        os.chmod(database, 0o600)
        database.replace(target)
    except OSError as error:
        raise CommandFailed(f"{target} could not be written: {error.strerror}") from error


def _into_postgres(settings: Settings, database: Path) -> str:
    from observatory.features.backup.copy import copy_database

    with progress_to("restoring") as tell:
        return copy_database(f"sqlite:///{database}", settings.database_url, tell).moved_to


@contextmanager
def _tidy() -> Iterator[None]:
    """Ended by a signal, as after Ctrl-C: what is not finished is taken away at once."""
    before = {kind: signal.signal(kind, signal.default_int_handler) for kind in ENDING}
    try:
        yield
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)


def _counted(manifest: Manifest) -> str:
    count = len(manifest.tenants)
    tenants = "1 tenant" if count == 1 else f"{count:,} tenants"
    return f"{tenants}, {manifest.events:,} events and {manifest.messages:,} messages"


def _tell(manifest: Manifest, reports: list[Report], where: str | None, json: bool) -> None:
    if json:
        show_json({"restored_to": where, "manifest": manifest, "tenants": msgspec.to_builtins(reports)})
        return
    done = "verified" if where is None else "restored"
    say(f"{done} {_counted(manifest)} of {manifest.made_at}" + ("" if where is None else f" to {where}"))
    checked = sum(report.payloads_checked for report in reports)
    signed = sum(tenant.signed for tenant in manifest.tenants)
    say(
        f"  digests, heads, chain, records, leaves and thoughts held; {checked:,} messages' bytes held; "
        f"{signed:,} events are under signed checkpoints, which held"
    )
    if where is None:
        return
    say("  not in a backup: credentials.json (the first start makes new keys; all others go on working)")
    if KEY not in manifest.files:
        say("  nor the log's key: put it in its place before the first start")
    if signed:
        for line in SIGNED_LESS:
            note(f"  {line}")

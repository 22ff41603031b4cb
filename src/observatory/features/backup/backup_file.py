"""The backup file format: one zip with the database as SQLite, optionally the log's key, and a manifest.

Law: it appears under its name only when complete, and never overwrites another file; only its owner can read
it. Members are checked against the manifest's digests, one by one, and never written past the sizes it
states: a file that is truncated, damaged or of another format is refused before anything is written.
"""

from __future__ import annotations

import errno
import hashlib
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import msgspec

from observatory.cli import unfinished_files as unfinished
from observatory.cli.terminal import CommandFailed
from observatory.features.backup.snapshot import TenantSnapshot
from observatory.store.migrations.migrate import REVISIONS

FORMAT = "observatory-backup/1"
MANIFEST, DATABASE, KEY = "manifest.json", "observatory.db", "log.key"
MAX_MANIFEST_BYTES = 16 << 20
CHUNK = 1 << 20
SPAN = (1980, 1, 1, 0, 0, 0)  # the same for every member: the manifest holds the time
Progress = Callable[[int, int], None]  # in KiB
BAD_ZIP = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError)


class BackupMember(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    bytes: int
    sha256: str


class BackupManifest(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of a backup, and its time."""

    format: str
    made_at: str
    program: str
    schema: str
    database: str
    tenants: list[TenantSnapshot]
    files: dict[str, BackupMember]

    @property
    def events(self) -> int:
        return sum(tenant.events for tenant in self.tenants)

    @property
    def messages(self) -> int:
        return sum(tenant.messages for tenant in self.tenants)


@contextmanager
def appearing(path: Path) -> Iterator[Path]:
    """A temporary file, renamed at the end if the name is free; removed when anything fails."""
    if path.exists():
        raise CommandFailed(f"{path} already exists and is not overwritten; choose another name")
    unfinished.clear(path.parent)
    with ExitStack() as stack:
        try:
            temporary = stack.enter_context(unfinished.file(path))
        except OSError as error:
            raise CommandFailed(f"nothing can be written into {path.parent}: {error.strerror}") from error
        try:
            yield temporary
            with temporary.open("rb") as file:
                os.fsync(file.fileno())
            _publish(temporary, path)
        except OSError as error:
            raise CommandFailed(_problem(error, path)) from error


def _publish(temporary: Path, path: Path) -> None:
    """Link it, which fails if the name is taken meanwhile; rename it where links are not supported."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:
        temporary.rename(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _problem(error: OSError, path: Path) -> str:
    if error.errno == errno.ENOSPC:
        return f"the disk of {path.parent} is full; no file was left there, free some space and start again"
    return f"{path} could not be written: {error.strerror}"


def write(
    target: Path, parts: dict[str, Path | bytes], members: dict[str, Any], progress: Progress
) -> BackupManifest:
    """Write all parts and then the manifest with their digests."""
    total = sum(len(part) if isinstance(part, bytes) else part.stat().st_size for part in parts.values())
    files: dict[str, BackupMember] = {}
    done = 0
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, part in parts.items():
            digest, size = hashlib.sha256(), 0
            with archive.open(_entry(name), "w", force_zip64=True) as out:
                for chunk in _chunks(part):
                    out.write(chunk)
                    digest.update(chunk)
                    size += len(chunk)
                    progress((done + size) >> 10, total >> 10)
            done += size
            files[name] = BackupMember(size, digest.hexdigest())
        manifest = BackupManifest(format=FORMAT, files=files, **members)
        archive.writestr(_entry(MANIFEST), msgspec.json.format(msgspec.json.encode(manifest), indent=1))
    return manifest


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, SPAN)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o600 << 16
    return entry


def _chunks(part: Path | bytes) -> Iterator[bytes]:
    if isinstance(part, bytes):
        yield part
        return
    with part.open("rb") as file:
        while chunk := file.read(CHUNK):
            yield chunk


def digest_of(path: Path) -> str:
    digest = hashlib.sha256()
    for chunk in _chunks(path):
        digest.update(chunk)
    return digest.hexdigest()


class OpenedBackup:
    """A backup whose manifest was read and is valid."""

    def __init__(self, archive: zipfile.ZipFile, manifest: BackupManifest) -> None:
        self._archive, self.manifest = archive, manifest

    def take(self, name: str, out: IO[bytes], progress: Progress | None = None) -> None:
        """Write one member out, checking it against the manifest."""
        expected, digest, size = self.manifest.files[name], hashlib.sha256(), 0
        try:
            with self._archive.open(name) as member:
                while chunk := member.read(CHUNK):
                    size += len(chunk)
                    if size > expected.bytes:
                        break
                    digest.update(chunk)
                    out.write(chunk)
                    if progress is not None:
                        progress(size >> 10, expected.bytes >> 10)
        except BAD_ZIP as error:
            raise CommandFailed(f"{name} in this backup is damaged; nothing was restored") from error
        if size != expected.bytes or digest.hexdigest() != expected.sha256:
            raise CommandFailed(f"{name} in this backup does not match its manifest; nothing was restored")


@contextmanager
def opened(path: Path) -> Iterator[OpenedBackup]:
    try:
        archive = zipfile.ZipFile(path)
    except OSError as error:
        raise CommandFailed(f"{path} cannot be read: {error.strerror}") from error
    except BAD_ZIP as error:
        raise CommandFailed(f"{path} is not a backup, or it is truncated") from error
    with archive:
        yield OpenedBackup(archive, _manifest(archive, path))


def _manifest(archive: zipfile.ZipFile, path: Path) -> BackupManifest:
    names = archive.namelist()
    try:
        entry = archive.getinfo(MANIFEST)
        if entry.file_size > MAX_MANIFEST_BYTES:
            raise CommandFailed(f"the manifest of {path} is too long")
        content = archive.read(entry)
    except (KeyError, *BAD_ZIP) as error:
        raise CommandFailed(f"{path} holds no readable manifest: it is not a backup") from error
    with suppress(msgspec.MsgspecError):  # in a later format the rest may mean something else
        found = msgspec.json.decode(content, type=dict[str, Any]).get("format")
        if found != FORMAT:
            raise CommandFailed(f"{path} has the format {str(found)[:40]!r}; this program reads {FORMAT}")
    try:
        manifest = msgspec.json.decode(content, type=BackupManifest)
    except msgspec.MsgspecError as error:
        raise CommandFailed(f"the manifest of {path} is damaged") from error
    if manifest.schema not in REVISIONS:
        raise CommandFailed(
            f"this backup was made by a newer Observatory ({manifest.program[:40]}, schema "
            f"{manifest.schema[:40]}); upgrade the program"
        )
    members = {*manifest.files, MANIFEST}
    if len(names) != len(set(names)) or set(names) != members or not members <= {MANIFEST, DATABASE, KEY}:
        raise CommandFailed(f"{path} holds other files than its manifest lists; nothing was restored")
    if DATABASE not in members:
        raise CommandFailed(f"{path} holds no database")
    return manifest

"""Export files on disk: written atomically, read line by line, never silently truncated."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, cast

from observatory.cli.terminal import Advance, CommandFailed, progress
from observatory.cli.verify import log_root as log_check
from observatory.cli.verify.log_root import TrustedInputs
from observatory.cli.verify.rows import ArchivedEvent
from observatory.cli.verify.thoughts import ExportedThoughts
from observatory.cli.verify.workers import ArchiveCheck, LogLeaves, SegmentResult, first_unordered_shred
from observatory.ledger import export
from observatory.ledger.export import ExportEntry, ExportManifest, ExportTally, FileDigest
from observatory.ledger.verify import GENESIS, ChainCheck
from observatory.ledger.verify_log import leaf_hash, leaf_text

BLOCK = 1 << 20
LINES = 1_000


def manifest_path(path: Path) -> Path:
    return path.with_name(path.name + export.MANIFEST)


class _Through:
    """A file object that adds everything written to the digest."""

    def __init__(self, file: IO[bytes], digest: FileDigest) -> None:
        self._file, self._digest = file, digest

    def write(self, data: bytes) -> int:
        self._digest.add(data)
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()


@contextmanager
def written(path: Path) -> Iterator[tuple[IO[bytes], FileDigest, Path]]:
    """A temporary file for `path`, gzipped if its name says so, and its digest; removed if anything fails."""
    temporary = path.with_name(f".{path.name}.part")
    digest = FileDigest()
    try:
        with temporary.open("wb") as file:
            through = cast(IO[bytes], _Through(file, digest))
            if path.suffix == ".gz":
                # No name and no time inside: the same trail gives the same file.
                with gzip.GzipFile("", "wb", 6, through, mtime=0) as packed:
                    yield cast(IO[bytes], packed), digest, temporary
            else:
                yield through, digest, temporary
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise CommandFailed(
            f"{path} cannot be written ({error.strerror or error}); nothing was exported"
        ) from error
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def put(path: Path, temporary: Path, manifest: ExportManifest) -> None:
    """Write the manifest, then rename both files: a crash between leaves data without manifest."""
    target = manifest_path(path)
    temporary_manifest = target.with_name(f".{target.name}.part")
    try:
        with temporary_manifest.open("wb") as file:
            file.write(export.write_manifest(manifest))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        temporary_manifest.replace(target)
    except OSError as error:
        raise CommandFailed(f"{target} cannot be written ({error.strerror or error})") from error


def write_lines(
    file: IO[bytes], entries: Iterable[list[ExportEntry]], tally: ExportTally, advance: Advance
) -> None:
    for page in entries:
        for entry in page:
            tally.add(entry)
        file.write(b"".join(export.line_of(entry) + b"\n" for entry in page))
        advance(len(page))


def read_manifest(path: Path) -> ExportManifest:
    """The manifest, after checking that the data file is the one it describes."""
    try:
        with path.open("rb") as file:
            within = None if manifest_path(path).exists() else _last_line(file)
            if within is None:
                manifest, left = export.read_manifest(manifest_path(path).read_bytes()), None
            else:
                manifest, left = export.read_manifest_line(within[1]), within[0]
            digest = FileDigest()
            file.seek(0)
            while block := file.read(BLOCK if left is None else min(BLOCK, left)):
                digest.add(block)
                left = None if left is None else left - len(block)
    except FileNotFoundError as error:
        raise CommandFailed(
            f"{error.filename} does not exist; an export is two files, FILE and FILE.manifest.json, or one "
            "that ends with its manifest"
        ) from None
    except OSError as error:
        raise CommandFailed(f"{path} cannot be read: {error.strerror or error}") from None
    export.check_file(manifest, digest)
    return manifest


def _last_line(file: IO[bytes]) -> tuple[int, bytes] | None:
    """Where the manifest inside a file begins, and the line; None when it does not end with one."""
    size = file.seek(0, os.SEEK_END)
    start = max(0, size - BLOCK)
    file.seek(start)
    tail = file.read(BLOCK)
    begins = tail.rstrip(b"\n").rfind(b"\n") + 1
    line = tail[begins:]
    return (start + begins, line) if line.startswith(export.HEAD) and line.endswith(b"\n") else None


def entries(path: Path) -> Iterator[list[ExportEntry]]:
    """The entries of a file in pages, in order."""
    number, page = 0, []
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            for line in file:
                if line.startswith(export.HEAD):
                    break
                number += 1
                page.append(export.entry_of(line, number))
                if len(page) == LINES:
                    yield page
                    page = []
    except (OSError, EOFError, zlib.error) as error:
        raise CommandFailed(
            f"{path} cannot be read to its end ({error}); copy it from its source again"
        ) from None
    if page:
        yield page


def check_export(path: Path, kept: TrustedInputs | None = None) -> tuple[ExportManifest, SegmentResult]:
    """Check the file, counts and the whole chain of an export, its payloads and thoughts, and the log built
    from it."""
    manifest = read_manifest(path)
    claim = log_check.export_claim(manifest.checkpoint, manifest.vkeys)
    leaves = LogLeaves(manifest.from_sequence - 1, log_check.needed_sizes(claim, kept or TrustedInputs()))
    start = GENESIS if manifest.from_sequence == 1 else manifest.after_hash
    check = ChainCheck(manifest.tenant_id, manifest.from_sequence - 1, start)
    tally, archive, foreign = ExportTally(manifest.from_sequence), ArchiveCheck(), None
    thoughts, broken = ExportedThoughts(), None
    has_words = manifest.payloads and manifest.from_sequence == 1
    with progress(f"verifying {path.name}", manifest.events) as advance:
        for page in entries(path):
            if not check.feed([(entry.sequence_number, entry.record, entry.leaf_hash) for entry in page]):
                break
            for entry in page:
                tally.add(entry)
            leaves.add([_leaf(manifest.tenant_id, entry) for entry in page] if leaves.spans else [])
            foreign = archive.first_foreign(_stored(page)) if manifest.payloads else None
            broken = thoughts.first_broken(page) if has_words and broken is None else broken
            if foreign is not None:
                break
            advance(len(page))
        else:
            export.check_tally(manifest, tally)
    whole = foreign is None and manifest.to_sequence == manifest.head.sequence_number
    head = (manifest.head.sequence_number, manifest.head.event_hash) if whole else None
    found = archive.found(check.result(head), foreign, leaves.spans)
    if found.first_break is None:
        found.payload_break = first_unordered_shred(found, manifest.to_sequence, whole)
    if found.first_break is None and has_words:
        found.thinking = broken or thoughts.ended(manifest.to_sequence)
    return manifest, found


def _leaf(tenant_id: str, entry: ExportEntry) -> tuple[int, bytes, bytes]:
    """The leaf of an entry; an export through a gateway has none, so they are computed from the events."""
    number, leaf = entry.sequence_number, entry.leaf_hash
    if leaf is None:
        leaf = leaf_hash(leaf_text(tenant_id, number, export.hashes_of(entry.record)[0], entry.record))
    return number, b"", leaf


def _stored(page: list[ExportEntry]) -> Iterator[ArchivedEvent]:
    for entry in page:
        number, message = entry.sequence_number, entry.message
        leaf = entry.leaf_hash or b""
        if message is None:
            yield ArchivedEvent(number, entry.record, leaf, None, None, None, False, entry.rewritten)
            continue
        # A file has no digest column of its own: the record's is the only one.
        yield ArchivedEvent(number, entry.record, leaf, b"", message.raw, message.shredded_by, True)

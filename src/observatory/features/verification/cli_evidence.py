"""Evidence bundles at the terminal: fetched whole from a gateway, and checked without one.

A bundle may come from anybody. Before anything is unpacked its size is known and bounded; a name twice, a
file too many or too large ends it with a sentence.
"""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import msgspec

from observatory.cli.gateway_client import Gateway, door_of
from observatory.cli.terminal import CommandFailed, printable, say, show_json
from observatory.features.verification.verify_log_root import Held
from observatory.ledger.bundle import MOST_BYTES
from observatory.ledger.verify_bundle import CHECKS, Break, Found, check_bundle

MOST_FILES = 100
PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
WORDS = {True: "held", False: "BROKEN", None: "not checked"}
PIN = "by the key inside the bundle: pin it with --vkey"


def is_bundle(path: Path) -> bool:
    """By its content, or by its name where it cannot be read: then it is said why."""
    return path.suffix == ".zip" or zipfile.is_zipfile(path)


def fetch(gateway: Gateway, session: str, out: Path) -> None:
    """Whole or not there at all; an existing file is never overwritten."""
    if out.suffix != ".zip":
        raise CommandFailed("of a bundle --out ends in .zip")
    if out.exists():
        raise CommandFailed(f"{out} exists already; choose another --out or remove it")
    if not out.absolute().parent.is_dir():
        raise CommandFailed(f"the folder {out.absolute().parent} does not exist; create it first")
    door = door_of(gateway)
    try:
        content = door.bytes(f"/v1/sessions/{quote(session, safe='')}/evidence")
    finally:
        door.close()
    beside = out.with_name(f".{out.name}.part")
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(out)
    except OSError as error:
        with suppress(OSError):
            beside.unlink()
        raise CommandFailed(f"{out} cannot be written ({error.strerror or error})") from error
    say(
        f"evidence of session {printable(session)}: {out} ({len(content):,} bytes)",
        f"  check it  observatory verify {out} --vkey VKEY",
        "  VKEY is told by: observatory log-key show",
    )


def opened(path: Path) -> dict[str, bytes]:
    """Every file of a bundle; CommandFailed for what is none, so that it is not called broken evidence."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            if len(entries) > MOST_FILES or sum(entry.file_size for entry in entries) > MOST_BYTES:
                raise CommandFailed(f"{path} is larger than any evidence bundle")
            if len({entry.filename for entry in entries}) != len(entries):
                raise CommandFailed(f"{path} holds two files of one name; which is meant cannot be told")
            if any(entry.compress_type not in PACKED for entry in entries):
                raise CommandFailed(f"{path} is packed as no evidence bundle is")
            return {entry.filename: _content(archive, entry) for entry in entries}
    except FileNotFoundError:
        raise CommandFailed(f"{path} is not there") from None
    except OSError as error:
        raise CommandFailed(f"{path} cannot be read: {error.strerror or error}") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError) as error:
        # RuntimeError: under a password, or packed in a way this Python does not know.
        raise CommandFailed(f"{path} is not a whole zip file ({type(error).__name__})") from None


def _content(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """No more than the archive says of it: a packed file may unpack to anything."""
    with archive.open(entry) as file:
        content = file.read(entry.file_size + 1)
    if len(content) != entry.file_size:
        raise ValueError("another size than the archive says")
    return content


def verify(path: Path, vkeys: Sequence[str], kept: Held, *, as_json: bool) -> int:
    """0: everything held. 2: something is broken."""
    found = _against_kept(check_bundle(opened(path), vkeys), kept)
    if as_json:
        show_json({"valid": found.valid, "bundle": found})
    else:
        _show(path, found)
    return 0 if found.valid else 2


def _against_kept(found: Found, kept: Held) -> Found:
    """A checkpoint kept from before: a bundle proves consistency only from the one it brings itself."""
    older = kept.older
    if older is None or found.tree_size is None:
        return found
    told = None
    if older.origin != found.origin:
        told = "The checkpoint that was kept is of another log."
    elif older.size == found.tree_size and older.text != found.checkpoint:
        told = "The checkpoint that was kept has another root for the same size."
    elif older.size not in (found.tree_size, found.older_size):
        raise CommandFailed(
            f"this bundle holds no proof from a checkpoint of {older.size:,} entries; "
            "verify a gateway's address, or an export, with it"
        )
    elif older.size == found.older_size and older.text != found.older_checkpoint:
        told = "The checkpoint that was kept has another root than the older one in the bundle."
    if told is None:
        return found
    return msgspec.structs.replace(
        found,
        valid=False,
        checks=found.checks | {"consistency": False},
        breaks=[*found.breaks, Break("consistency", told)],
    )


def _show(path: Path, found: Found) -> None:
    of = f"session {printable(found.session_id or '?')} of {printable(found.tenant_id or '?')}"
    if found.valid:
        counts = f"{found.events:,} events, {found.records:,} thought records"
        say(f"{path.name}: valid, {of}: {counts}, in the signed log of {found.tree_size:,} entries")
    else:
        say(f"{path.name}: BROKEN, {of}: {found.breaks[0].sentence}")
    sentences = {one.what: one.sentence for one in found.breaks}
    for name in CHECKS:
        more = f"  {sentences[name]}" if name in sentences else ""
        if name == "records" and found.shredded and found.checks[name]:
            more = f"  the words of {found.shredded:,} shredded by order"
        if name == "signature" and found.checks[name] and not found.pinned:
            more = f"  {PIN}"
        say(f"  {name:<12} {WORDS[found.checks[name]]}{more}")

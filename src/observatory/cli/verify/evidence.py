"""Evidence bundles on the command line: fetched from a gateway, and checked without one.

A bundle may come from an untrusted source. Its size is bounded before anything is unpacked; a duplicate name,
or too many or too large files end the check with a message.
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

from observatory.cli.gateway_client import GatewayOptions, open_api
from observatory.cli.terminal import CommandFailed, printable, say, show_json
from observatory.cli.verify.log_root import TrustedInputs
from observatory.ledger.bundle import MAX_BYTES
from observatory.ledger.verify_bundle import CHECKS, BundleBreak, BundleReport, check_bundle

MAX_FILES = 100
PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
RESULTS = {True: "ok", False: "BROKEN", None: "not checked"}
PIN = "by the key inside the bundle: pin it with --vkey"


def is_bundle(path: Path) -> bool:
    """By its content, or by its name if it cannot be read: then opening it reports why."""
    return path.suffix == ".zip" or zipfile.is_zipfile(path)


def fetch(gateway: GatewayOptions, session: str, out: Path) -> None:
    """Write the bundle whole or not at all; an existing file is never overwritten."""
    if out.suffix != ".zip":
        raise CommandFailed("for a bundle, --out must end in .zip")
    if out.exists():
        raise CommandFailed(f"{out} already exists; choose another --out or remove it")
    if not out.absolute().parent.is_dir():
        raise CommandFailed(f"the folder {out.absolute().parent} does not exist; create it first")
    client = open_api(gateway)
    try:
        content = client.bytes(f"/v1/sessions/{quote(session, safe='')}/evidence")
    finally:
        client.close()
    temporary = out.with_name(f".{out.name}.part")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(out)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise CommandFailed(f"{out} cannot be written ({error.strerror or error})") from error
    say(
        f"evidence of session {printable(session)}: {out} ({len(content):,} bytes)",
        f"  check it  observatory verify {out} --vkey VKEY",
        "  get VKEY with: observatory log-key show",
    )


def read_bundle(path: Path) -> dict[str, bytes]:
    """Every file of a bundle; CommandFailed if it is not a bundle, so that it is not reported as broken."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            if len(entries) > MAX_FILES or sum(entry.file_size for entry in entries) > MAX_BYTES:
                raise CommandFailed(f"{path} is larger than any evidence bundle")
            if len({entry.filename for entry in entries}) != len(entries):
                raise CommandFailed(f"{path} has two files of one name, so it is ambiguous")
            if any(entry.compress_type not in PACKED for entry in entries):
                raise CommandFailed(f"{path} uses a compression that evidence bundles do not use")
            return {entry.filename: _content(archive, entry) for entry in entries}
    except FileNotFoundError:
        raise CommandFailed(f"{path} does not exist") from None
    except OSError as error:
        raise CommandFailed(f"{path} cannot be read: {error.strerror or error}") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError) as error:
        # RuntimeError: password-protected, or a compression this Python does not support.
        raise CommandFailed(f"{path} is not a whole zip file ({type(error).__name__})") from None


def _content(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """Read no more than the declared size: a compressed file may expand to anything."""
    with archive.open(entry) as file:
        content = file.read(entry.file_size + 1)
    if len(content) != entry.file_size:
        raise ValueError("the size differs from the archive's directory")
    return content


def verify(path: Path, vkeys: Sequence[str], trusted: TrustedInputs, *, as_json: bool) -> int:
    """0: every check passed. 2: something is broken."""
    found = _against_older(check_bundle(read_bundle(path), vkeys), trusted)
    if as_json:
        show_json({"valid": found.valid, "bundle": found})
    else:
        _show(path, found)
    return 0 if found.valid else 2


def _against_older(found: BundleReport, trusted: TrustedInputs) -> BundleReport:
    """Compare with an older checkpoint: a bundle proves consistency only from the one it contains."""
    older = trusted.older
    if older is None or found.tree_size is None:
        return found
    problem = None
    if older.origin != found.origin:
        problem = "The older checkpoint is of another log."
    elif older.size == found.tree_size and older.text != found.checkpoint:
        problem = "The older checkpoint has another root for the same size."
    elif older.size not in (found.tree_size, found.older_size):
        raise CommandFailed(
            f"this bundle has no proof from a checkpoint of {older.size:,} entries; "
            "use it to verify a gateway's address or an export"
        )
    elif older.size == found.older_size and older.text != found.older_checkpoint:
        problem = "The older checkpoint has another root than the one in the bundle."
    if problem is None:
        return found
    return msgspec.structs.replace(
        found,
        valid=False,
        checks=found.checks | {"consistency": False},
        breaks=[*found.breaks, BundleBreak("consistency", problem)],
    )


def _show(path: Path, found: BundleReport) -> None:
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
            more = f"  the content of {found.shredded:,} shredded by order"
        if name == "signature" and found.checks[name] and not found.pinned:
            more = f"  {PIN}"
        say(f"  {name:<12} {RESULTS[found.checks[name]]}{more}")

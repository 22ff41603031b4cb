"""Writes evidence bundles: one session's records, events and proofs in one zip file that anyone can verify.

Pure: takes rows, returns files. The same state gives the same bytes: fixed order of names, no timestamp,
no randomness. Records and events are stored as JSON text, which preserves their exact bytes. The verifier
does not trust this code: `verify_bundle` reads the files without using any of it.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import IO, Any, Final

import msgspec

from observatory.ledger import tlog_proof
from observatory.ledger.merkle import leaf_data
from observatory.ledger.thoughts import Thought, ThoughtHashes, canonical

FORMAT: Final = "observatory-evidence/1"
MAX_BYTES: Final = 256 << 20  # unpacked; the verifier holds a bundle in memory
_LONG_AGO: Final = (1980, 1, 1, 0, 0, 0)  # the earliest time a zip can represent

_encode = msgspec.json.Encoder().encode


class BundleEvent(msgspec.Struct, frozen=True):
    """One audit event as stored, and its inclusion proof under the bundle's checkpoint."""

    sequence_number: int
    record: bytes
    event_hash: str
    proof: Sequence[bytes]


class BundleSeal(msgspec.Struct, frozen=True):
    """The body of the sealing event, its number, and each record's proof in the sealed tree."""

    said: Mapping[str, Any]
    sequence_number: int
    proofs: Sequence[Sequence[bytes]]


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """The content of one bundle. `session` and `thoughts` are set for a session with thought records."""

    tenant_id: str
    session_id: str
    vkeys: Sequence[str]
    checkpoint: bytes
    tree_size: int
    events: Sequence[BundleEvent]
    session: Mapping[str, Any] | None = None
    thoughts: Sequence[tuple[Thought, ThoughtHashes]] = ()
    shredded: Mapping[int, int] = {}  # index of a shredded record → the event that ordered the shredding
    seal: BundleSeal | None = None
    # An older checkpoint, and the proof that the log is a continuation of it.
    older: tuple[bytes, Sequence[bytes]] | None = None
    tool: str = ""


def files(evidence: Evidence) -> dict[str, bytes]:
    """Every file by name, in the order of the archive; the manifest lists all the others."""
    contents = {"README.txt": _readme(evidence).encode()} | _log_files(evidence) | _session_files(evidence)
    listed = [
        {"name": name, "bytes": len(data), "sha256": _digest(data)} for name, data in sorted(contents.items())
    ]
    counts = {
        name.removesuffix(".jsonl"): data.count(b"\n")
        for name, data in sorted(contents.items())
        if name.endswith(".jsonl")
    }
    manifest = {
        "format": FORMAT,
        "tenant_id": evidence.tenant_id,
        "session_id": evidence.session_id,
        "tree_size": evidence.tree_size,
        "counts": counts,
        "files": listed,
        "tool": evidence.tool,
    }
    readme = contents.pop("README.txt")
    return {"README.txt": readme, "manifest.json": _pretty(manifest)} | contents


def write(target: IO[bytes], named: Mapping[str, bytes]) -> None:
    """Write the zip archive, byte for byte the same for the same files."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name, data in named.items():
            entry = zipfile.ZipInfo(name, _LONG_AGO)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system, entry.external_attr = 3, 0o100600 << 16
            archive.writestr(entry, data)


def _log_files(evidence: Evidence) -> dict[str, bytes]:
    events = [
        {"sequence_number": event.sequence_number, "record": event.record.decode("utf-8")}
        for event in evidence.events
    ]
    proofs = [
        {"sequence_number": event.sequence_number, "hashes": list(event.proof)} for event in evidence.events
    ]
    contents = {
        "checkpoint": evidence.checkpoint,
        "vkeys.txt": "".join(f"{vkey}\n" for vkey in evidence.vkeys).encode(),
        "events.jsonl": _lines(events),
        "proofs.jsonl": _lines(proofs),
    }
    anchor = _anchor(evidence)
    if anchor is not None:
        place = anchor.sequence_number - 1
        contents["anchor.tlog-proof"] = tlog_proof.write(place, anchor.proof, evidence.checkpoint)
        contents["anchor.leaf"] = leaf_data(
            evidence.tenant_id, anchor.sequence_number, anchor.event_hash, _digest(anchor.record)
        )
    if evidence.older is not None:
        note, hashes = evidence.older
        contents["consistency.json"] = _pretty({"checkpoint": note.decode("utf-8"), "hashes": list(hashes)})
    return contents


def _anchor(evidence: Evidence) -> BundleEvent | None:
    """The event with a separate proof file: the sealing event, otherwise the last one."""
    if evidence.seal is None:
        return evidence.events[-1] if evidence.events else None
    number = evidence.seal.sequence_number
    return next((event for event in evidence.events if event.sequence_number == number), None)


def _line_of(thought: Thought, hashes: ThoughtHashes, shredded_by: int | None) -> dict[str, Any]:
    """A record; without its content if it was shredded, and then with the event that ordered it."""
    line: dict[str, Any] = {
        "index": thought.index,
        "record": canonical(thought, bare=shredded_by is not None).decode("utf-8"),
        "content_hash": hashes.content_hash,
        "parent_chain_hash": hashes.parent_chain_hash,
        "chain_hash": hashes.chain_hash,
    }
    return line if shredded_by is None else line | {"shredded_by": shredded_by}


def _session_files(evidence: Evidence) -> dict[str, bytes]:
    if evidence.session is None:
        return {}
    thoughts = [_line_of(*one, evidence.shredded.get(one[0].index)) for one in evidence.thoughts]
    contents = {"session.json": _pretty(evidence.session), "thoughts.jsonl": _lines(thoughts)}
    if evidence.seal is not None:
        proofs = [{"index": index, "hashes": list(path)} for index, path in enumerate(evidence.seal.proofs)]
        contents["seal.json"] = _pretty(evidence.seal.said)
        contents["seal_proofs.jsonl"] = _lines(proofs)
    return contents


def _lines(items: Iterable[Mapping[str, Any]]) -> bytes:
    return b"".join(_encode(item) + b"\n" for item in items)


def _pretty(value: Mapping[str, Any]) -> bytes:
    return msgspec.json.format(_encode(value), indent=2) + b"\n"


def _digest(data: bytes) -> str:
    return "sha256:" + sha256(data).hexdigest()


def _readme(evidence: Evidence) -> str:
    sealed = "It was sealed." if evidence.seal else "It was not sealed."
    heading = (
        f"This is evidence of the session {evidence.session_id} of the tenant {evidence.tenant_id}:\n"
        f"{len(evidence.events)} audit events and {len(evidence.thoughts)} thought records. {sealed}\n"
    )
    return heading + README


README: Final = """
What it proves, to anyone who has the log's verification key from a trusted source: these events are in the
log at these positions, the records are the ones the events refer to, in this order and unchanged, and if the
session was sealed none is missing at its end. It cannot prove that the recorded content is true, nor that no
other event belongs to the session: that requires the whole trail, `observatory export`.

CHECK IT with the Observatory's own verifier, which shares no code with the gateway that wrote this:

    observatory verify THIS-FILE.zip --vkey VKEY

VKEY is one line `name+id+key`. Get it over a channel you trust (the log serves it at /v1/audit/log).
vkeys.txt contains one too, but a forged bundle would contain the forger's key.

CHECK IT with third-party tools. The log is an RFC 6962 Merkle tree with C2SP signed checkpoints; any tool
that reads c2sp.org/tlog-proof can verify anchor.tlog-proof for the leaf data in anchor.leaf. With Go's
packages golang.org/x/mod/sumdb/note and tlog, see examples/prove in the Observatory's sources:

    tlogcheck proof VKEY anchor.tlog-proof anchor.leaf

By hand: anchor.leaf has five lines. The fourth is the event's hash in the chain, the fifth the SHA-256 of
the exact text of that event's "record" in events.jsonl:

    jq -j 'select(.sequence_number == N) | .record' events.jsonl | sha256sum

FILES
    manifest.json       the contents: sizes, SHA-256 and counts
    checkpoint          the signed root of the log: origin, size, root, signature (c2sp.org/signed-note)
    vkeys.txt           the signing keys, as the gateway reports them
    events.jsonl        audit events; the UTF-8 text of "record" is what was hashed (RFC 8785)
    proofs.jsonl        for each event its inclusion proof; its index in the log is sequence_number - 1
    anchor.tlog-proof   one such proof in c2sp.org/tlog-proof format: of the sealing event, or the last one
    anchor.leaf         the leaf it proves
    consistency.json    an older checkpoint, and the proof that the log continues it (if there is one)
    session.json        who started the session and when: the genesis is the SHA-256 of caller, session_id
                        and started_at as RFC 8785 text
    thoughts.jsonl      thought records: content_hash is the SHA-256 of "record", chain_hash the SHA-256 of
                        content_hash and parent_chain_hash, 32 raw bytes each; a shredded record has no
                        "content", and "shredded_by" is the event that ordered the shredding
    seal.json           the sealed root: RFC 6962 over content_hash and chain_hash of each record
    seal_proofs.jsonl   for each record its proof under that root
"""

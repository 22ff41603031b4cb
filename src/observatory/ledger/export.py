"""The file form of a trail: one JSON line per audit event, and a manifest that says what must be there.

Pure: bytes in, structs out. A record and a message travel as JSON text, which brings back their exact
bytes (both are valid UTF-8; anything else travels as base64). The manifest holds the digest of the data
file, the counts and the ends of the chain, so that a shortened or exchanged file is seen before anything
of it is used. It proves nothing by itself: `verify` walks the lines, the manifest only says which.
"""

from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from hashlib import sha256
from typing import Final

import msgspec

from observatory.errors import ObservatoryError

FORMAT: Final = "observatory-export/1"
MANIFEST: Final = ".manifest.json"
HEAD: Final = b'{"manifest":'  # no line of an event begins like this


class ExportUnusable(ObservatoryError):
    """The export is not what its manifest says; the sentence names the first difference."""


class Archived(msgspec.Struct, frozen=True, kw_only=True):
    """A message beside its event. `raw` is None when payloads were left out or shredded."""

    message_id: str
    session_id: str
    step_id: str
    message_type: str
    state: str
    parents: tuple[str, ...] = ()
    parent_inferred: bool = False
    warnings: tuple[str, ...] = ()
    raw: bytes | None = None
    shredded_by: int | None = None


class Entry(msgspec.Struct, frozen=True):
    """One audit event as stored, and the message it archived, if any."""

    sequence_number: int
    record: bytes
    leaf_hash: bytes | None
    message: Archived | None = None
    # Of an event that tells of a rewrite: the new content.
    rewritten: bytes | None = None
    # Of an event that tells of a thought: its content as it was hashed; of a session's start: the intent;
    # nothing (b"") of what was shredded.
    words: bytes | None = None


class End(msgspec.Struct, frozen=True):
    sequence_number: int
    event_hash: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """`after_hash` is what the first event must be linked to; `head` is where the chain stood at export."""

    format: str
    tenant_id: str
    from_sequence: int
    to_sequence: int
    events: int
    messages: int
    payloads: bool
    shredded: int
    file: str
    bytes: int
    sha256: str
    after_hash: str
    first_hash: str | None
    last_hash: str | None
    head: End
    created_at: str
    tool: str
    # The log's newest checkpoint when it was made, and the keys that sign it, as their owner tells them.
    checkpoint: str | None = None
    vkeys: tuple[str, ...] = ()


class _Message(msgspec.Struct, kw_only=True, omit_defaults=True):
    message_id: str
    session_id: str
    step_id: str
    message_type: str
    state: str
    parents: tuple[str, ...] = ()
    parent_inferred: bool = False
    warnings: tuple[str, ...] = ()
    raw: str | None = None
    raw_base64: str | None = None
    shredded_by: int | None = None


class _Line(msgspec.Struct, kw_only=True):
    sequence_number: int
    record: str
    leaf_hash: str | None
    message: _Message | None
    rewritten: str | msgspec.UnsetType | None = msgspec.UNSET
    words: str | msgspec.UnsetType | None = msgspec.UNSET


class _Chain(msgspec.Struct):
    event_hash: str
    previous_hash: str


class _Record(msgspec.Struct):
    hash_chain: _Chain


_encode = msgspec.json.Encoder().encode
_line = msgspec.json.Decoder(_Line).decode
_record = msgspec.json.Decoder(_Record).decode


def bare(page: list[Entry]) -> list[Entry]:
    """Without the messages' bytes, what people put in their place, and the words of thoughts."""
    replace = msgspec.structs.replace
    return [
        replace(entry, rewritten=None, words=None)
        if entry.message is None
        else replace(entry, message=replace(entry.message, raw=None))
        for entry in page
    ]


def line_of(entry: Entry) -> bytes:
    """One line without its newline."""
    leaf = None if entry.leaf_hash is None else entry.leaf_hash.hex()
    message = None if entry.message is None else _outward(entry.message)
    line = _Line(
        sequence_number=entry.sequence_number,
        record=entry.record.decode("utf-8"),
        leaf_hash=leaf,
        message=message,
    )
    if entry.rewritten is not None:
        line.rewritten = entry.rewritten.decode("utf-8")  # ours: always UTF-8
    if entry.words is not None:
        line.words = entry.words.decode("utf-8")
    return _encode(line)


def _outward(archived: Archived) -> _Message:
    raw = raw_base64 = None
    if archived.raw is not None:
        try:
            raw = archived.raw.decode("utf-8")
        except UnicodeDecodeError:
            raw_base64 = b64encode(archived.raw).decode("ascii")
    told = {name: getattr(archived, name) for name in Archived.__struct_fields__ if name != "raw"}
    return _Message(**told, raw=raw, raw_base64=raw_base64)


def entry_of(line: bytes, number: int) -> Entry:
    """The entry of a line; `number` is only for the sentence."""
    try:
        found = _line(line)
        leaf = None if found.leaf_hash is None else bytes.fromhex(found.leaf_hash)
        message = None if found.message is None else _inward(found.message)
        rewritten = found.rewritten.encode("utf-8") if isinstance(found.rewritten, str) else None
        words = found.words.encode("utf-8") if isinstance(found.words, str) else None
        return Entry(found.sequence_number, found.record.encode("utf-8"), leaf, message, rewritten, words)
    except (msgspec.MsgspecError, NotBase64, ValueError):
        raise ExportUnusable(f"line {number} of the export is not an event; export again") from None


def _inward(message: _Message) -> Archived:
    raw = None if message.raw is None else message.raw.encode("utf-8")
    if message.raw_base64 is not None:
        raw = b64decode(message.raw_base64, validate=True)
    told = {name: getattr(message, name) for name in Archived.__struct_fields__ if name != "raw"}
    return Archived(**told, raw=raw)


def hashes_of(record: bytes) -> tuple[str, str]:
    """(event_hash, previous_hash) as the record states them; nothing is verified here."""
    try:
        chain = _record(record).hash_chain
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise ExportUnusable(
            "a stored record is not an audit event; `observatory verify` says which"
        ) from None
    return chain.event_hash, chain.previous_hash


class Tally:
    """Counts entries as they pass and demands that their numbers are dense."""

    def __init__(self, from_sequence: int) -> None:
        self._next = from_sequence
        self.events = self.messages = self.raws = self.shredded = 0
        self.after_hash: str | None = None
        self.first_hash: str | None = None
        self._last: bytes | None = None

    def add(self, entry: Entry) -> None:
        if entry.sequence_number != self._next:
            raise ExportUnusable(
                f"event {entry.sequence_number} stands where event {self._next} must be; "
                "`observatory verify` says more"
            )
        if self.first_hash is None:
            self.first_hash, self.after_hash = hashes_of(entry.record)
        self._next += 1
        self._last = entry.record
        self.events += 1
        message = entry.message
        if message is not None:
            self.messages += 1
            self.raws += message.raw is not None
            self.shredded += message.shredded_by is not None

    @property
    def last_hash(self) -> str | None:
        return None if self._last is None else hashes_of(self._last)[0]


class Digest:
    """A file object's write side that hashes and counts what passes."""

    def __init__(self) -> None:
        self._hash = sha256()
        self.bytes = 0

    def add(self, data: bytes) -> None:
        self._hash.update(data)
        self.bytes += len(data)

    @property
    def text(self) -> str:
        return "sha256:" + self._hash.hexdigest()


def write_manifest(manifest: Manifest) -> bytes:
    return msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"


def manifest_line(manifest: Manifest) -> bytes:
    """The manifest as the last line of the file it speaks of: its size and digest are of all before it."""
    return HEAD + _encode(manifest) + b"}\n"


def read_manifest_line(line: bytes) -> Manifest:
    return read_manifest(line.removeprefix(HEAD).rstrip(b"\n").removesuffix(b"}"))


def read_manifest(data: bytes) -> Manifest:
    try:
        found = msgspec.json.decode(data, type=Manifest)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise ExportUnusable("the manifest is not one of an export; export again") from None
    if found.format != FORMAT:
        raise ExportUnusable(f"this export has the form {found.format}; this program reads {FORMAT}")
    return found


def check_file(manifest: Manifest, digest: Digest) -> None:
    """The data file is the one the manifest was written for."""
    if digest.bytes != manifest.bytes:
        raise ExportUnusable(
            f"the export holds {digest.bytes:,} bytes and its manifest says {manifest.bytes:,}: "
            "it was cut short or changed; take it from its source again"
        )
    if digest.text != manifest.sha256:
        raise ExportUnusable("the export is not the file its manifest was written for (SHA-256 differs)")


def check_tally(manifest: Manifest, tally: Tally) -> None:
    """Everything the manifest promises was read."""
    raws = manifest.messages - manifest.shredded if manifest.payloads else 0
    pairs: tuple[tuple[str, object, object], ...] = (
        ("events", manifest.events, tally.events),
        ("last number", manifest.to_sequence, manifest.from_sequence + tally.events - 1),
        ("messages", manifest.messages, tally.messages),
        ("payloads", raws, tally.raws),
        ("first hash", manifest.first_hash, tally.first_hash),
        ("last hash", manifest.last_hash, tally.last_hash),
    )
    for name, promised, found in pairs:
        if promised != found:
            raise ExportUnusable(f"{name}: the manifest says {promised}, the export has {found}")

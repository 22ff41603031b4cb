"""The export file format of a trail: one JSON line per audit event, and a manifest of the contents.

Pure: takes bytes, returns structs. Records and messages are stored as JSON text, which preserves their exact
bytes (both are valid UTF-8; anything else is stored as base64). The manifest has the digest of the data file,
the counts and the ends of the chain, so that a truncated or replaced file is detected before it is used. It
proves nothing by itself: `verify` checks the lines, the manifest only says which there must be.
"""

from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from hashlib import sha256
from typing import Final

import msgspec

from observatory.errors import ObservatoryError

FORMAT: Final = "observatory-export/1"
MANIFEST: Final = ".manifest.json"
HEAD: Final = b'{"manifest":'  # no event line starts with this


class ExportUnusable(ObservatoryError):
    """The export differs from its manifest; the message names the first difference."""


class ExportedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """The message of an event. `raw` is None when payloads were omitted or shredded."""

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


class ExportEntry(msgspec.Struct, frozen=True):
    """One audit event as stored, and the message it archived, if any."""

    sequence_number: int
    record: bytes
    leaf_hash: bytes | None
    message: ExportedMessage | None = None
    # For the event of a rewrite: the new content.
    rewritten: bytes | None = None
    # For the event of a thought: its content as hashed; of a session's start: the intent; b"" when it was
    # shredded.
    words: bytes | None = None


class ChainEnd(msgspec.Struct, frozen=True):
    sequence_number: int
    event_hash: str


class ExportManifest(msgspec.Struct, frozen=True, kw_only=True):
    """`after_hash` is the hash the first event must be linked to; `head` is the end of the chain at
    export."""

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
    head: ChainEnd
    created_at: str
    tool: str
    # The log's newest checkpoint at export, and the keys that sign it, as reported by the log.
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


def without_payloads(page: list[ExportEntry]) -> list[ExportEntry]:
    """The entries without messages' bytes, rewritten contents and the text of thoughts."""
    replace = msgspec.structs.replace
    return [
        replace(entry, rewritten=None, words=None)
        if entry.message is None
        else replace(entry, message=replace(entry.message, raw=None))
        for entry in page
    ]


def line_of(entry: ExportEntry) -> bytes:
    """One line without its newline."""
    leaf = None if entry.leaf_hash is None else entry.leaf_hash.hex()
    message = None if entry.message is None else _to_wire(entry.message)
    line = _Line(
        sequence_number=entry.sequence_number,
        record=entry.record.decode("utf-8"),
        leaf_hash=leaf,
        message=message,
    )
    if entry.rewritten is not None:
        line.rewritten = entry.rewritten.decode("utf-8")  # written by the gateway: always UTF-8
    if entry.words is not None:
        line.words = entry.words.decode("utf-8")
    return _encode(line)


def _to_wire(archived: ExportedMessage) -> _Message:
    raw = raw_base64 = None
    if archived.raw is not None:
        try:
            raw = archived.raw.decode("utf-8")
        except UnicodeDecodeError:
            raw_base64 = b64encode(archived.raw).decode("ascii")
    members = {name: getattr(archived, name) for name in ExportedMessage.__struct_fields__ if name != "raw"}
    return _Message(**members, raw=raw, raw_base64=raw_base64)


def entry_of(line: bytes, number: int) -> ExportEntry:
    """The entry of a line; `number` is used only for the error message."""
    try:
        decoded = _line(line)
        leaf = None if decoded.leaf_hash is None else bytes.fromhex(decoded.leaf_hash)
        message = None if decoded.message is None else _from_wire(decoded.message)
        rewritten = decoded.rewritten.encode("utf-8") if isinstance(decoded.rewritten, str) else None
        words = decoded.words.encode("utf-8") if isinstance(decoded.words, str) else None
        return ExportEntry(
            decoded.sequence_number, decoded.record.encode("utf-8"), leaf, message, rewritten, words
        )
    except (msgspec.MsgspecError, NotBase64, ValueError):
        raise ExportUnusable(f"line {number} of the export is not an event; export again") from None


def _from_wire(message: _Message) -> ExportedMessage:
    raw = None if message.raw is None else message.raw.encode("utf-8")
    if message.raw_base64 is not None:
        raw = b64decode(message.raw_base64, validate=True)
    members = {name: getattr(message, name) for name in ExportedMessage.__struct_fields__ if name != "raw"}
    return ExportedMessage(**members, raw=raw)


def hashes_of(record: bytes) -> tuple[str, str]:
    """(event_hash, previous_hash) as stated in the record; nothing is verified here."""
    try:
        chain = _record(record).hash_chain
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise ExportUnusable("a stored record is not an audit event; `observatory verify` names it") from None
    return chain.event_hash, chain.previous_hash


class ExportTally:
    """Counts entries and requires that their numbers are consecutive."""

    def __init__(self, from_sequence: int) -> None:
        self._next = from_sequence
        self.events = self.messages = self.raws = self.shredded = 0
        self.after_hash: str | None = None
        self.first_hash: str | None = None
        self._last: bytes | None = None

    def add(self, entry: ExportEntry) -> None:
        if entry.sequence_number != self._next:
            raise ExportUnusable(
                f"found event {entry.sequence_number} where event {self._next} must be; "
                "`observatory verify` reports details"
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


class FileDigest:
    """Hashes and counts the bytes written to a file."""

    def __init__(self) -> None:
        self._hash = sha256()
        self.bytes = 0

    def add(self, data: bytes) -> None:
        self._hash.update(data)
        self.bytes += len(data)

    @property
    def text(self) -> str:
        return "sha256:" + self._hash.hexdigest()


def write_manifest(manifest: ExportManifest) -> bytes:
    return msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"


def manifest_line(manifest: ExportManifest) -> bytes:
    """The manifest as the last line of the file it describes: size and digest cover everything before it."""
    return HEAD + _encode(manifest) + b"}\n"


def read_manifest_line(line: bytes) -> ExportManifest:
    return read_manifest(line.removeprefix(HEAD).rstrip(b"\n").removesuffix(b"}"))


def read_manifest(data: bytes) -> ExportManifest:
    try:
        decoded = msgspec.json.decode(data, type=ExportManifest)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise ExportUnusable("this is not the manifest of an export; export again") from None
    if decoded.format != FORMAT:
        raise ExportUnusable(f"this export has the format {decoded.format}; this program reads {FORMAT}")
    return decoded


def check_file(manifest: ExportManifest, digest: FileDigest) -> None:
    """Raise unless the data file is the one the manifest was written for."""
    if digest.bytes != manifest.bytes:
        raise ExportUnusable(
            f"the export has {digest.bytes:,} bytes and its manifest says {manifest.bytes:,}: "
            "it was truncated or changed; copy it from its source again"
        )
    if digest.text != manifest.sha256:
        raise ExportUnusable("the export is not the file its manifest was written for (SHA-256 differs)")


def check_tally(manifest: ExportManifest, tally: ExportTally) -> None:
    """Raise unless everything in the manifest was read."""
    raws = manifest.messages - manifest.shredded if manifest.payloads else 0
    pairs: tuple[tuple[str, object, object], ...] = (
        ("events", manifest.events, tally.events),
        ("last number", manifest.to_sequence, manifest.from_sequence + tally.events - 1),
        ("messages", manifest.messages, tally.messages),
        ("payloads", raws, tally.raws),
        ("first hash", manifest.first_hash, tally.first_hash),
        ("last hash", manifest.last_hash, tally.last_hash),
    )
    for name, expected, decoded in pairs:
        if expected != decoded:
            raise ExportUnusable(f"{name}: the manifest says {expected}, the export has {decoded}")

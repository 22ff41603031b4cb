"""The independent verifier of the hash chain: reads stored rows, trusts none, uses none of the writer's code.

Imports only the standard library and msgspec: an error in the writer's code cannot be repeated here.
msgspec is only a faster JSON (parsing and re-encoding are most of the work); `_canonical_slow` is the same
rule in plain `json` and decides wherever msgspec's key order is not RFC 8785's. For every row it checks
consecutive numbers, canonical bytes, tenant, link, the seed's event hash and the log's leaf (each element,
not just the head: immudb's CVE-2022-36111), stops at the first break and names it (ruling 36). It cannot
detect a missing tail alone: pass `result` a head from another source. Messages never contain payload.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from itertools import pairwise
from typing import Annotated, Any, Final, Literal

import msgspec

GENESIS: Final = "sha256:e3753ce47921e354762c3b3c3c0fe1ba4debafea8bbde227acbc56ae0278e0ee"
_MAX_INTEGER: Final = 9007199254740991

What = Literal["density", "record", "tenant", "chain", "event_hash", "leaf", "column", "head"]
Row = tuple[int, bytes, bytes | None] | tuple[int, bytes, bytes | None, Mapping[str, object] | None]


class ChainBreak(msgspec.Struct, frozen=True):
    """The first difference from what was written. `sequence_number` is the one expected at that position."""

    sequence_number: int
    what: What
    sentence: str


class CheckedProperties(msgspec.Struct, frozen=True):
    """Which properties hold for the verified events: False = broken, None = nothing to check against."""

    density: bool | None
    chain: bool | None
    record: bool | None
    leaf: bool | None
    columns: bool | None
    head: bool | None = None


class ChainResult(msgspec.Struct, frozen=True):
    """`after_*` is where the check began, `last_sequence`/`last_hash` the last verified event."""

    valid: bool
    events_verified: int
    after_sequence: int
    after_hash: str
    first_hash: str | None
    last_sequence: int
    last_hash: str | None
    first_break: ChainBreak | None
    held: CheckedProperties


class _Broken(Exception):
    def __init__(self, what: What, sentence: str) -> None:
        self.what: What = what
        self.sentence = sentence


class ChainCheck:
    """Checks one tenant's rows in order, starting after (`previous_sequence`, `previous_hash`)."""

    def __init__(self, tenant_id: str, previous_sequence: int = 0, previous_hash: str = GENESIS) -> None:
        self._tenant_id = tenant_id
        self._after = (previous_sequence, previous_hash)
        self._sequence, self._hash = self._after
        self._first_hash: str | None = None
        self._break: ChainBreak | None = None
        self._every_leaf = self._every_mirror = True

    def feed(self, rows: Iterable[Row]) -> bool:
        """Check the next rows; False once a break is found; nothing after it is checked."""
        if self._break:
            return False
        for row in rows:
            try:
                self._hash = self._verified_hash(row)
            except _Broken as broken:
                self._break = ChainBreak(self._sequence + 1, broken.what, broken.sentence)
                return False
            self._sequence += 1
            if self._first_hash is None:
                self._first_hash = self._hash
        return True

    def _verified_hash(self, row: Row) -> str:
        number, raw, leaf = row[:3]
        expected = self._sequence + 1
        if number != expected:
            raise _Broken("density", f"Found row {number} where event {expected} must be.")
        record = _decode_canonical(raw, number)
        try:
            chain, attributes = record["hash_chain"], record["attributes"]
            stated, hash_text = chain["sequence_number"], chain["event_hash"]
            previous, tenant_id = chain["previous_hash"], record["resource"]["av.tenant.id"]
            hashed = _Hashed(
                record["body"],
                previous,
                attributes.get("av.recipient.entity_id"),
                attributes.get("av.sender.entity_id"),
                number,
                record["span_id"],
                record["timestamp"],
                record["trace_id"],
            )
            whole = len(chain) == 3
        except (KeyError, TypeError, AttributeError):
            whole = False
        if not whole:
            raise _Broken(
                "record", f"The record of event {number} does not have the members of an audit event."
            )
        if type(stated) is not int or stated != number:
            raise _Broken("density", f"The record in row {number} does not have that sequence number.")
        if tenant_id != self._tenant_id:
            raise _Broken("tenant", f"The record of event {number} names another tenant.")
        if previous != self._hash:
            raise _Broken(
                "chain", f"previous_hash of event {number} is not {self._hash} of the event before."
            )
        if hash_text != _event_hash(hashed):
            raise _Broken("event_hash", f"event_hash of event {number} is not the hash of its content.")
        record_hash = sha256(raw)
        if leaf is not None:
            # Ruling 34's leaf; RFC 6962 §2.1: a leaf is hashed after a zero byte.
            record_text = "sha256:" + record_hash.hexdigest()
            text = f"\0observatory-audit-leaf/v1\n{tenant_id}\n{number}\n{hash_text}\n{record_text}\n"
            if sha256(text.encode()).digest() != leaf:
                raise _Broken("leaf", f"The record of event {number} is not the one in its log leaf.")
        else:
            self._every_leaf = False
        if len(row) == 4 and row[3] is not None:
            _check_columns(number, record, row[3], record_hash.digest())
        else:
            self._every_mirror = False
        return str(hash_text)

    def result(self, expected_head: tuple[int, str] | None = None) -> ChainResult:
        """The result. `expected_head` (number, hash), from another source, makes truncation visible."""
        number, start = self._after
        count = self._sequence - number
        found = ChainResult(
            valid=self._break is None,
            events_verified=count,
            after_sequence=number,
            after_hash=start,
            first_hash=self._first_hash,
            last_sequence=self._sequence,
            last_hash=self._hash if count else None,
            first_break=self._break,
            held=_held(self._break, count, self._every_leaf, self._every_mirror),
        )
        return _against_head(found, expected_head)


def _held(broken: ChainBreak | None, count: int, every_leaf: bool, every_mirror: bool) -> CheckedProperties:
    what = broken.what if broken else None
    reached = count > 0
    return CheckedProperties(
        density=False if what == "density" else reached or None,
        chain=False if what in ("chain", "event_hash") else reached or None,
        record=False if what in ("record", "tenant") else reached or None,
        leaf=False if what == "leaf" else (reached and every_leaf) or None,
        columns=False if what == "column" else (reached and every_mirror) or None,
    )


def _against_head(found: ChainResult, expected: tuple[int, str] | None) -> ChainResult:
    if expected is None or found.first_break:
        return found
    if (found.last_sequence, found.last_hash or found.after_hash) == tuple(expected):
        return msgspec.structs.replace(found, held=msgspec.structs.replace(found.held, head=True))
    sentence = (
        f"Head moved: rows end at event {found.last_sequence}, {found.last_hash or found.after_hash};"
        f" expected is event {expected[0]}, {expected[1]}."
    )
    broken = ChainBreak(min(found.last_sequence, expected[0]) + 1, "head", sentence)
    held = msgspec.structs.replace(found.held, head=False)
    return msgspec.structs.replace(found, valid=False, first_break=broken, held=held)


# ── one record ──────────────────────────────────────────────────────────────────────────────────────


def _refuse_number(_: str) -> Any:
    raise ValueError("audit records must not contain floats")


_FOUR_BYTE_LEADS: Final = (b"\xf0", b"\xf1", b"\xf2", b"\xf3", b"\xf4")  # UTF-8 of astral characters
_Plain = None | bool | str | Annotated[int, msgspec.Meta(ge=-_MAX_INTEGER, le=_MAX_INTEGER)]
# Nearly every record contains plain values and objects of plain values: then this decoder accepts it.
_flat_decoder = msgspec.json.Decoder(dict[str, _Plain | dict[str, _Plain]])
_decoder = msgspec.json.Decoder(float_hook=_refuse_number)
_encoder = msgspec.json.Encoder(order="sorted")


def _decode_canonical(raw: bytes, number: int) -> dict[str, Any]:
    """The record, if its bytes are in RFC 8785 form: no floats, spaces, duplicate or unsorted keys."""
    try:
        record = _decode_fitting(raw)
        again = _encoder.encode(record)
        if not again.isascii() and any(lead in again for lead in _FOUR_BYTE_LEADS):
            again = _canonical_slow(record).encode()
        canonical = again == raw
    except (msgspec.MsgspecError, ValueError, RecursionError):
        canonical = False
    if not canonical:
        raise _Broken("record", f"The bytes of event {number} are not the RFC 8785 form of an audit event.")
    return record


def canonical_object(raw: bytes) -> dict[str, Any] | None:
    """The object whose RFC 8785 form these bytes are; None if they are not canonical or contain a float."""
    try:
        return _decode_canonical(raw, 0)
    except _Broken:
        return None


def _decode_fitting(raw: bytes) -> dict[str, Any]:
    """Decode an object whose integers all lie within ±(2^53-1), without floats; otherwise ValueError."""
    try:
        return _flat_decoder.decode(raw)
    except msgspec.ValidationError:
        record = _decoder.decode(raw)
    if type(record) is not dict or not _integers_fit(record.values()):
        raise ValueError("not an audit event")
    return record


def _integers_fit(values: Iterable[Any]) -> bool:
    for value in values:
        kind = type(value)
        if kind is str:
            continue
        if kind is int and not -_MAX_INTEGER <= value <= _MAX_INTEGER:
            return False
        if kind is dict and not _integers_fit(value.values()):
            return False
        if kind is list and not _integers_fit(value):
            return False
    return True


def _canonical_slow(value: Any) -> str:
    """RFC 8785 in plain Python: §3.2.3 sorts names by UTF-16 unit, where msgspec sorts by code point."""
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be"))
        members = [f"{_canonical_slow(name)}:{_canonical_slow(value[name])}" for name in names]
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_canonical_slow, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


class _Hashed(msgspec.Struct, frozen=True, gc=False):
    """The members the seed's hash covers: eight in sorted order, so only the body must be sorted."""

    body: Any
    previous_hash: str
    recipient: Any
    sender: Any
    sequence_number: int
    span_id: Any
    timestamp: Any
    trace_id: Any


def _event_hash(hashed: _Hashed) -> str:
    encoded = _encoder.encode(hashed)
    # Without floats, printable ASCII is the same in both encoders; the seed also escapes DEL and all above.
    if not encoded.isascii() or b"\x7f" in encoded:
        members = msgspec.structs.asdict(hashed)
        encoded = json.dumps(members, sort_keys=True, separators=(",", ":")).encode("ascii")
    return "sha256:" + sha256(encoded).hexdigest()


_SECTIONS: Final = ("hash_chain", "body", "attributes", "resource")
_KEYS: Final = {"sender_key": "av.sender.entity_id", "recipient_key": "av.recipient.entity_id"}


@lru_cache(maxsize=4_096)
def _entity_key(tenant_id: str, entity_id: str) -> int:
    """The key by which the store finds the events of an entity: eight bytes of a hash (ADR-024)."""
    return int.from_bytes(sha256(f"{tenant_id}\n{entity_id}".encode()).digest()[:8], "big", signed=True)


def _check_columns(
    number: int, record: dict[str, Any], columns: Mapping[str, object], record_hash: bytes
) -> None:
    """Check the columns derived from the record; a wrong one would mislead every query."""
    for name, value in columns.items():
        if name == "record_hash":
            truth: Any = record_hash if isinstance(value, bytes) else "sha256:" + record_hash.hex()
        elif name == "tenant_id":
            truth = record["resource"]["av.tenant.id"]
        elif name in _KEYS:
            entity = record["attributes"].get(_KEYS[name])
            truth = None if entity is None else _entity_key(record["resource"]["av.tenant.id"], entity)
        elif name in record:
            truth = record[name]
        else:
            places = (record[section] for section in _SECTIONS)
            truth = next((place[name] for place in places if isinstance(place, dict) and name in place), None)
        if truth != value or type(truth) is not type(value):
            raise _Broken("column", f"Column {name} of event {number} differs from the event's record.")


def payload_matches(record: bytes | Mapping[str, Any], raw: bytes) -> bool:
    """Whether `raw` is the message whose digest is in the (verified) record as `av.message.digest`."""
    event = msgspec.json.decode(record) if isinstance(record, bytes) else record
    return bool(event["attributes"].get("av.message.digest") == "sha256:" + sha256(raw).hexdigest())


# ── a range in parallel ─────────────────────────────────────────────────────────────────────────────


def plan_segments(from_sequence: int, to_sequence: int, workers: int) -> list[tuple[int, int]]:
    """Inclusive, contiguous, near-equal segments. Each starts from the stored hash of the row before it."""
    total = to_sequence - from_sequence + 1
    if from_sequence < 1 or workers < 1:
        raise ValueError("a range must start at 1 or later and needs a worker")
    parts = min(workers, max(total, 0))
    edges = [from_sequence + total * part // parts for part in range(parts + 1)] if parts else []
    return [(start, end - 1) for start, end in pairwise(edges)]


def merge(results: Sequence[ChainResult], expected_head: tuple[int, str] | None = None) -> ChainResult:
    """Merge the results of consecutive segments. A segment's start was only read: the one before proves
    it."""
    if not results:
        raise ValueError("nothing to merge")
    whole = results[0]
    for part in results[1:]:
        if whole.first_break:
            break
        whole = _joined(whole, part)
    return _against_head(whole, expected_head)


def _joined(whole: ChainResult, part: ChainResult) -> ChainResult:
    last_hash = whole.last_hash or whole.after_hash
    seam: ChainBreak | None = None
    if part.after_sequence != whole.last_sequence:
        sentence = f"Rows end at {whole.last_sequence}; the next segment begins after {part.after_sequence}."
        seam = ChainBreak(whole.last_sequence + 1, "density", sentence)
    elif part.after_hash != last_hash:
        sentence = f"The hash stored for event {whole.last_sequence} is not the one in its record."
        seam = ChainBreak(whole.last_sequence, "chain", sentence)
    if seam:
        held = msgspec.structs.replace(whole.held, **{seam.what: False})
        return msgspec.structs.replace(whole, valid=False, first_break=seam, held=held)
    if not part.events_verified:
        # It verified nothing: it only shows what is broken, not what holds.
        failed = {name: False for name, value in msgspec.structs.asdict(part.held).items() if value is False}
        held = msgspec.structs.replace(whole.held, **failed)
    else:
        names = CheckedProperties.__struct_fields__ if whole.events_verified else ()
        both = {name: _and(getattr(whole.held, name), getattr(part.held, name)) for name in names}
        held = msgspec.structs.replace(part.held, **both)
    return msgspec.structs.replace(
        whole,
        valid=part.valid,
        events_verified=whole.events_verified + part.events_verified,
        first_hash=whole.first_hash or part.first_hash,
        last_sequence=part.last_sequence,
        last_hash=part.last_hash or whole.last_hash,
        first_break=part.first_break,
        held=held,
    )


def _and(left: bool | None, right: bool | None) -> bool | None:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True

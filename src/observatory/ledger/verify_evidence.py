"""The files of an evidence bundle: their structs, and how untrusted bytes are decoded into them.

Part of the verifier: imports nothing of this project except other verifier modules. Reading never raises:
what does not match its struct is None, and fails the check it was for.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID, uuid5

import msgspec

from observatory.ledger.verify_note import from_base64
from observatory.ledger.verify_thoughts import SealStatement, VerifiedThought

FORMAT: Final = "observatory-evidence/1"
_NAMESPACE: Final = UUID("a1b2c3d4-e5f6-7890-abcd-ef1234567890")
_UUID: Final = re.compile(r"[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch


class File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    bytes: int
    sha256: str


class EvidenceManifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: str
    tenant_id: str
    session_id: str
    tree_size: int
    counts: dict[str, int]
    files: list[File]
    tool: str


class EventLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    sequence_number: int
    record: str


class LogProof(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    sequence_number: int
    hashes: list[str]


class SealProof(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    index: int
    hashes: list[str]


class EvidenceThought(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    index: int
    record: str
    content_hash: str
    parent_chain_hash: str
    chain_hash: str
    shredded_by: int | None = None


class EvidenceSession(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    session_id: str
    caller: str
    started_at: str
    genesis: str


class Consistency(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An older checkpoint of the same log, and the proof that the newer one extends it."""

    checkpoint: str
    hashes: list[str]


class Leaf(NamedTuple):
    """A verified event: its content about a session, and its leaf data in the log."""

    sequence_number: int
    event_id: str
    trace_id: str
    body: Mapping[str, Any]  # empty where it names no session, to save memory
    text: bytes
    timestamp: str = ""  # the same

    def is_of(self, session_id: str, trace_id: str) -> bool:
        return self.trace_id == trace_id or self.body.get("session_id") == session_id


class EventClaims:
    """What the verified events record about the session's records."""

    def __init__(self, session_id: str, leaves: Sequence[Leaf]) -> None:
        self.genesis: str | None = None
        self.recorded: dict[str, tuple[str, str]] = {}
        self.sealed: SealStatement | None = None
        self._records: dict[str, dict[str, Any]] = {}
        self._orders: dict[int, object] = {}
        self._embedded: object = None
        for leaf in leaves:
            body = leaf.body
            if body.get("session_id") != session_id:
                continue
            match body.get("event_type"):
                case "thought_session_started":
                    self.genesis = string(body.get("genesis"))
                    self._embedded = body.get("predecessor_chain_hash")
                case "thought_recorded":
                    hashes = string(body.get("content_hash")), string(body.get("chain_hash"))
                    self.recorded[string(body.get("record_id"))] = hashes
                    self._records[string(body.get("record_id"))] = {**body, "created_at": leaf.timestamp}
                case "thoughts_shredded":
                    self._orders[leaf.sequence_number] = body.get("records")
                case "thought_session_sealed":
                    self.sealed = _converted(
                        {name: body.get(name) for name in SealStatement.__struct_fields__}
                    )

    def ordered(self, thought: VerifiedThought) -> bool:
        """Whether an event ordered the shredding of this record, and its remaining members are unchanged.

        No hash covers the remaining members any more: each is compared with the record's own event.
        """
        record = thought.record
        named = self._orders.get(thought.shredded_by or 0)
        members = self._records.get(record["record_id"], {})
        expected = self._embedded if record["index"] == 0 else None
        return (
            isinstance(named, list)
            and record["index"] in named
            and record["predecessor_chain_hash"] == expected
            and all(members.get(name) == record[name] for name in record if name != "predecessor_chain_hash")
        )


def leaf_of(number: int, record: Mapping[str, Any], text: bytes) -> Leaf:
    body = record.get("body")
    kept_body = body if isinstance(body, dict) and "session_id" in body else {}
    moment = string(record.get("timestamp")) if kept_body else ""
    ids = string(record.get("audit_event_id")), string(record.get("trace_id"))
    return Leaf(number, *ids, kept_body, text, moment)


def trace_of(session_id: str) -> str:
    """The trace id of a session: its own digits when it is a UUID, otherwise the UUID 5 of its name."""
    digits = session_id.lower()
    if _UUID(digits) and digits.strip("0-"):
        return digits.replace("-", "")
    return uuid5(_NAMESPACE, session_id).hex


def hashes_of(line: LogProof | SealProof | Consistency) -> list[bytes | None]:
    """The decoded hashes; None for one that is not canonical base64."""
    return [from_base64(text) for text in line.hashes]


def string(value: object) -> str:
    return value if isinstance(value, str) else ""


def readable(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def printable(name: str) -> str:
    """An untrusted file name, safe to print."""
    return "".join(letter if letter.isprintable() else "?" for letter in name[:100])


def decoded(raw: bytes | None, kind: Any) -> Any:
    try:
        return None if raw is None else msgspec.json.decode(raw, type=kind)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def _converted(body: Mapping[str, Any]) -> SealStatement | None:
    try:
        return msgspec.convert(body, SealStatement)
    except msgspec.ValidationError:
        return None

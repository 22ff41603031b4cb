"""Response types of the log's routes. Hashes are base64, as in notes; events use `sha256:…`."""

from __future__ import annotations

from typing import Any, Literal

import msgspec


class LogKey(msgspec.Struct, kw_only=True):
    """`since_sequence` is the event from which it signs; 0 for the first key of a log."""

    vkey: str
    since_sequence: int
    created_at: str
    current: bool


class LogWitness(msgspec.Struct, kw_only=True):
    name: str
    seen_at: str


class WitnessedCheckpoint(msgspec.Struct, kw_only=True):
    """The newest checkpoint that a witness cosigned; its note contains the witnesses' lines."""

    size: int
    checkpoint: str
    witnesses: list[LogWitness]


class LogAnswer(msgspec.Struct, kw_only=True):
    """`unsigned` events are not under a checkpoint yet; with `refused`, `detail` says why none is signed."""

    tenant_id: str
    origin: str
    url: str
    public: bool
    state: Literal["signed", "behind", "refused"]
    detail: str | None
    size: int
    head: int
    unsigned: int
    unsigned_age_s: float
    max_unsigned_age_s: float
    signed_at: str | None
    checkpoint: str | None
    witnessed: WitnessedCheckpoint | None
    vkey: str | None
    vkeys: list[LogKey]


class ProofAnswer(msgspec.Struct, kw_only=True):
    """`record` is the exact text that was hashed, `leaf` the log entry derived from it."""

    audit_event_id: str
    tenant_id: str
    sequence_number: int
    index: int
    size: int
    record: str
    leaf: str
    leaf_hash: str
    hashes: list[str]
    root: str
    checkpoint: str
    origin: str
    vkey: str
    vkeys: list[str]


class ConsistencyAnswer(msgspec.Struct, kw_only=True, rename={"from_size": "from", "to_size": "to"}):
    """`checkpoint` is a signed one of the size `to`, when there is one."""

    tenant_id: str
    origin: str
    from_size: int
    to_size: int
    from_root: str
    to_root: str
    hashes: list[str]
    checkpoint: str | None
    vkeys: list[str]


class CheckpointItem(msgspec.Struct, kw_only=True):
    """`checkpoint` is the signed note, with the lines of its witnesses."""

    size: int
    root: str
    signed_at: str
    checkpoint: str
    witnesses: list[LogWitness]


class CheckpointList(msgspec.Struct, kw_only=True):
    items: list[CheckpointItem]
    next_cursor: str | None


LOG_ANSWERS: dict[str, Any] = {
    "audit_log": LogAnswer,
    "rotate_log_key": LogAnswer,
    "audit_proof": ProofAnswer,
    "audit_consistency": ConsistencyAnswer,
    "list_checkpoints": CheckpointList,
}
# Responses that are not JSON: operation → media types.
LOG_PLAIN: dict[str, tuple[str, ...]] = {
    "audit_proof": ("text/plain",),
    "audit_records": ("application/x-ndjson",),
    "log_checkpoint": ("text/plain",),
    "log_tile": ("application/octet-stream",),
}

"""Key rotation of a log, as a third party can verify it: the event `log_key_rotated` in the signed tree.

Law: a second signature line next to the old key's proves nothing, because anyone can add a line to a public
checkpoint. A new key is authenticated by the event that names it, in a tree whose head the old key signed.
`read` parses the `.tlog-proof` of that event, with the event's exact bytes as `extra`, and `follows` checks
that it leads from a key to the one it names. Untrusted input is refused with `BadNote`, whose message quotes
nothing of it.
"""

from hashlib import sha256
from typing import Any, Final, NamedTuple

import msgspec

from observatory.ledger import merkle, tlog_proof
from observatory.ledger.note import BadNote, Verifier

MAX_BYTES: Final = tlog_proof.MAX_BYTES
EVENT: Final = "log_key_rotated"


class KeyRotation(NamedTuple):
    """One rotation as received: nothing but its format is verified."""

    place: int
    hashes: list[bytes]
    checkpoint: bytes
    record: bytes
    audit_event_id: str
    vkey: str
    previous: str  # the key that was in force before it


class _Body(msgspec.Struct):
    event_type: str
    vkey: str = ""
    previous_vkeys: list[str] = []


class _Chain(msgspec.Struct):
    event_hash: str
    sequence_number: int


class _Event(msgspec.Struct):
    audit_event_id: str
    body: _Body
    hash_chain: _Chain
    resource: dict[str, Any]


def read(proof: bytes) -> KeyRotation:
    index, hashes, checkpoint = tlog_proof.read(proof)
    record = tlog_proof.extra(proof)
    event = _event(record)
    if event.body.event_type != EVENT or not event.body.previous_vkeys:
        raise BadNote("the given event is not a key rotation")
    if event.hash_chain.sequence_number != index + 1:
        raise BadNote("the given event is at another position than its proof")
    body = event.body
    return KeyRotation(
        index, hashes, checkpoint, record, event.audit_event_id, body.vkey, body.previous_vkeys[-1]
    )


def _event(record: bytes) -> _Event:
    try:
        return msgspec.json.decode(record, type=_Event)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # not text, or nested too deeply
        raise BadNote("the data given with the proof is not an audit event") from None


def verify_rotation(rotation: KeyRotation, key: Verifier, size: int, root: bytes) -> Verifier:
    """The key that follows `key` by an event in the tree of this head; BadNote if the proof fails."""
    new = Verifier.from_vkey(rotation.vkey)
    old = Verifier.from_vkey(rotation.previous)
    if (old.name, old.public_key, old.kind) != (key.name, key.public_key, key.kind):
        raise BadNote("the given event rotates another key than the known one")
    if (new.name, new.kind) != (key.name, key.kind):
        raise BadNote("the new key has another name or another type")
    if not merkle.verify_inclusion(_leaf(rotation.record), rotation.place, size, rotation.hashes, root):
        raise BadNote("the given event is not in the log that was cosigned")
    return new


def _leaf(record: bytes) -> bytes:
    event = _event(record)
    tenant_id = event.resource.get("av.tenant.id")
    chain, digest = event.hash_chain, "sha256:" + sha256(record).hexdigest()
    data = merkle.leaf_data(str(tenant_id), chain.sequence_number, chain.event_hash, digest)
    return merkle.leaf_hash(data)

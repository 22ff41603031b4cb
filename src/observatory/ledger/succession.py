"""How a log's key follows another, as somebody outside can check it: `log_key_rotated` in the signed tree.

Law: a signature line beside the old key's proves nothing, for anybody can put a line under a checkpoint that
is public. What vouches for a new key is the event that names it, lying in a tree whose head the old key
signed. `read` takes the `.tlog-proof` of that event apart, the event's exact bytes as its `extra`, and
`follows` says whether it leads from a key to the one it names. What a stranger sent is answered with
`BadNote`, whose sentence quotes nothing of it.
"""

from hashlib import sha256
from typing import Any, Final, NamedTuple

import msgspec

from observatory.ledger import merkle, tlog_proof
from observatory.ledger.note import BadNote, Verifier

MOST_BYTES: Final = tlog_proof.MOST_BYTES
EVENT: Final = "log_key_rotated"


class Succession(NamedTuple):
    """One rotation, as it is shown: nothing of it is checked but its form."""

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


def read(proof: bytes) -> Succession:
    index, hashes, checkpoint = tlog_proof.read(proof)
    record = tlog_proof.extra(proof)
    event = _event(record)
    if event.body.event_type != EVENT or not event.body.previous_vkeys:
        raise BadNote("the event that is shown does not tell of a key that follows another")
    if event.hash_chain.sequence_number != index + 1:
        raise BadNote("the event that is shown stands at another place than its proof")
    body = event.body
    return Succession(
        index, hashes, checkpoint, record, event.audit_event_id, body.vkey, body.previous_vkeys[-1]
    )


def _event(record: bytes) -> _Event:
    try:
        return msgspec.json.decode(record, type=_Event)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # no text, or nested too deep
        raise BadNote("what is shown beside the proof is no audit event") from None


def follows(shown: Succession, key: Verifier, size: int, root: bytes) -> Verifier:
    """The key that follows `key`, told of in the tree of this head; BadNote if it does not."""
    new = Verifier.from_vkey(shown.vkey)
    old = Verifier.from_vkey(shown.previous)
    if (old.name, old.public_key, old.kind) != (key.name, key.public_key, key.kind):
        raise BadNote("the event that is shown leads from another key than the one that is known")
    if (new.name, new.kind) != (key.name, key.kind):
        raise BadNote("the key that is to follow has another name or another use")
    if not merkle.verify_inclusion(_leaf(shown.record), shown.place, size, shown.hashes, root):
        raise BadNote("the event that is shown does not lie in the log that was cosigned")
    return new


def _leaf(record: bytes) -> bytes:
    event = _event(record)
    tenant_id = event.resource.get("av.tenant.id")
    chain, digest = event.hash_chain, "sha256:" + sha256(record).hexdigest()
    data = merkle.leaf_data(str(tenant_id), chain.sequence_number, chain.event_hash, digest)
    return merkle.leaf_hash(data)

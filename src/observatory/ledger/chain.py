"""The tenant's hash chain: each audit event carries the hash of the one before (R450-R460).

`compute_event_hash` is the seed's function byte for byte; a test compares it with the literal one. `link` is
called for every message and computes the same bytes faster: it turns an event into what is stored, the exact
RFC 8785 record, its hash and the leaf of the tenant's log (ruling 34). It refuses, with ValueError, whatever
the independent verifier would later refuse, so that no unverifiable row is ever written. This module keeps no
state: functions take the head and return the new head.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final

import msgspec

from observatory.ledger.canonical import av_json, check_subset, encode_checked, jcs, sha256_text
from observatory.ledger.merkle import leaf_data, leaf_hash

GENESIS_HASH: Final = sha256_text(b"agentvault_genesis_v1")

_encode: Final = msgspec.json.Encoder(order="deterministic").encode


class ChainHead(msgspec.Struct, frozen=True):
    """The end of a tenant's chain: the last sequence number and its hash."""

    sequence_number: int
    event_hash: str

    @staticmethod
    def genesis() -> "ChainHead":
        return ChainHead(0, GENESIS_HASH)


class Linked(msgspec.Struct, frozen=True):
    """One event ready to be written: every member is derived from the head, the tenant and the event."""

    head: ChainHead
    event_hash: str
    record: bytes
    record_hash: bytes
    leaf_hash: bytes


class _Hashed(msgspec.Struct, frozen=True, gc=False):
    """The members the seed's hash covers, in their canonical order."""

    body: msgspec.Raw
    previous_hash: str
    recipient: object
    sender: object
    sequence_number: int
    span_id: object
    timestamp: object
    trace_id: object


def compute_event_hash(event: Mapping[str, Any], previous_hash: str) -> str:
    """The seed's hash. Severity, parent, resource and the rest are covered by `record_hash`, not here."""
    return sha256_text(_seed_bytes(event, previous_hash, event["hash_chain"]["sequence_number"]))


def _seed_bytes(event: Mapping[str, Any], previous_hash: str, sequence_number: object) -> bytes:
    participants = event["attributes"].get
    return av_json(
        {
            "body": event["body"],
            "previous_hash": previous_hash,
            "recipient": participants("av.recipient.entity_id"),
            "sender": participants("av.sender.entity_id"),
            "sequence_number": sequence_number,
            "span_id": event["span_id"],
            "timestamp": event["timestamp"],
            "trace_id": event["trace_id"],
        }
    )


def _checked_seed_bytes(event: Mapping[str, Any], body: bytes, head: ChainHead) -> bytes:
    """`_seed_bytes` of an event that passed `check_subset` and whose body is already encoded."""
    participants = event["attributes"].get
    number = head.sequence_number + 1
    hashed = _encode(
        _Hashed(
            msgspec.Raw(body),
            head.event_hash,
            participants("av.recipient.entity_id"),
            participants("av.sender.entity_id"),
            number,
            event["span_id"],
            event["timestamp"],
            event["trace_id"],
        )
    )
    # In printable ASCII both canonical forms are the same bytes; the seed's escapes DEL and all above.
    if hashed.isascii() and b"\x7f" not in hashed:
        return hashed
    return _seed_bytes(event, head.event_hash, number)


def link(head: ChainHead, event: Mapping[str, Any], tenant_id: str) -> Linked:
    """Append an event, still without `hash_chain`, after `head`.

    `resource` may be `msgspec.Raw` with its RFC 8785 bytes. ValueError for what could not be verified.
    """
    if "hash_chain" in event:
        raise ValueError("hash_chain is set by the ledger, not by the event")
    resource = event["resource"]
    check_resource(resource, tenant_id)
    whole = {**event, "resource": None}
    check_subset(whole.values())

    sequence_number = head.sequence_number + 1
    body = encode_checked(event["body"])
    event_hash = sha256_text(_checked_seed_bytes(event, body, head))
    whole["resource"] = resource
    whole["body"] = msgspec.Raw(body)
    whole["hash_chain"] = {
        "event_hash": event_hash,
        "previous_hash": head.event_hash,
        "sequence_number": sequence_number,
    }
    return _linked(sequence_number, event_hash, encode_checked(whole), tenant_id)


def link_text(
    head: ChainHead,
    tenant_id: str,
    attributes_and_id: str,
    body: str,
    observed_to_severity: str,
    recipient: str,
    sender: str,
    span_id: str,
    timestamp: str,
    trace_id: str,
) -> Linked | None:
    """`link` of an event that is already text; None when it is not plain, then `link` must do it.

    The fast path of every message: the caller guarantees that each part is the RFC 8785 text of the members
    in its name, in that order, that `check_resource` passed, and that the last three need no quoting.
    """
    sequence_number, before = head.sequence_number + 1, head.event_hash
    hashed = (
        f'{{"body":{body},"previous_hash":"{before}","recipient":{recipient},"sender":{sender},'
        f'"sequence_number":{sequence_number},"span_id":"{span_id}","timestamp":"{timestamp}",'
        f'"trace_id":"{trace_id}"}}'
    )
    if not hashed.isascii() or "\x7f" in hashed:  # as in `_checked_seed_bytes`
        return None
    event_hash = sha256_text(hashed.encode())
    record = (
        f'{{"attributes":{attributes_and_id},"body":{body},"hash_chain":{{"event_hash":"{event_hash}",'
        f'"previous_hash":"{before}","sequence_number":{sequence_number}}},{observed_to_severity},'
        f'"span_id":"{span_id}","timestamp":"{timestamp}","trace_flags":1,"trace_id":"{trace_id}"}}'
    )
    return _linked(sequence_number, event_hash, record.encode(), tenant_id)


def _linked(sequence_number: int, event_hash: str, record: bytes, tenant_id: str) -> Linked:
    digest = sha256(record).digest()
    leaf = leaf_data(tenant_id, sequence_number, event_hash, "sha256:" + digest.hex())
    return Linked(ChainHead(sequence_number, event_hash), event_hash, record, digest, leaf_hash(leaf))


def check_resource(resource: object, tenant_id: str) -> None:
    """ValueError for a resource that could not be verified, or of another tenant."""
    if type(resource) is msgspec.Raw:
        # A deployment has few resources: each is checked once, then cached by its bytes.
        named = _tenant_of_encoded(bytes(resource))
    else:
        check_subset((resource,))
        named = resource.get("av.tenant.id") if isinstance(resource, Mapping) else None
    if named != tenant_id:
        raise ValueError("resource av.tenant.id is not the tenant of this chain")


@lru_cache(maxsize=1024)
def _tenant_of_encoded(resource: bytes) -> object:
    decoded = msgspec.json.decode(resource)
    if type(decoded) is not dict or jcs(decoded) != resource:
        raise ValueError("a pre-encoded resource must be the RFC 8785 bytes of an object")
    return decoded.get("av.tenant.id")


def verify_chain(
    events: Sequence[Mapping[str, Any]], start: ChainHead | None = None
) -> tuple[bool, int | None]:
    """(True, None), or (False, index of the first break). Starts after any head and requires consecutive
    numbers."""
    head = start or ChainHead.genesis()
    for index, event in enumerate(events):
        chain = event["hash_chain"]
        if chain["previous_hash"] != head.event_hash or chain["sequence_number"] != head.sequence_number + 1:
            return (False, index)
        if chain["event_hash"] != compute_event_hash(event, head.event_hash):
            return (False, index)
        head = ChainHead(chain["sequence_number"], chain["event_hash"])
    return (True, None)

"""The tenant's hash chain: each audit event carries the hash of the one before (R450-R460).

`compute_event_hash` is the seed's function byte for byte, assembled by hand because `link` stands on the
path of every message; a test holds it against the literal one. `link` turns an event into what is stored:
the exact RFC 8785 record, its hash and the leaf of the tenant's log (ruling 34). It refuses, with ValueError,
whatever the independent verifier would later refuse, so that no unverifiable row is ever written.
This module keeps no state: the head comes in and the new head goes out.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from json.encoder import encode_basestring_ascii as _quoted
from typing import Any, Final

import msgspec

from observatory.ledger.canonical import av_json, check_subset, encode_checked, jcs
from observatory.ledger.merkle import leaf_data, leaf_hash

GENESIS_HASH: Final = "sha256:" + sha256(b"agentvault_genesis_v1").hexdigest()


class Head(msgspec.Struct, frozen=True):
    """Where a tenant's chain ends: the last number given and its hash."""

    sequence_number: int
    event_hash: str

    @staticmethod
    def genesis() -> "Head":
        return Head(0, GENESIS_HASH)


class Linked(msgspec.Struct, frozen=True):
    """One event ready to be written: every member is derived from the head, the tenant and the event."""

    head: Head
    event_hash: str
    record: bytes
    record_hash: bytes
    leaf_hash: bytes


def compute_event_hash(event: Mapping[str, Any], previous_hash: str) -> str:
    """The seed's hash. Severity, parent, resource and the rest are covered by `record_hash`, not here."""
    return _event_hash(
        event, av_json(event["body"]).decode("ascii"), previous_hash, event["hash_chain"]["sequence_number"]
    )


def _event_hash(event: Mapping[str, Any], body: str, previous_hash: str, sequence_number: object) -> str:
    participants = event["attributes"].get
    canonical = (
        f'{{"body":{body},"previous_hash":{_text(previous_hash)}'
        f',"recipient":{_text(participants("av.recipient.entity_id"))}'
        f',"sender":{_text(participants("av.sender.entity_id"))}'
        f',"sequence_number":{_text(sequence_number)},"span_id":{_text(event["span_id"])}'
        f',"timestamp":{_text(event["timestamp"])},"trace_id":{_text(event["trace_id"])}}}'
    )
    return "sha256:" + sha256(canonical.encode("ascii")).hexdigest()


def _text(value: object) -> str:
    if type(value) is str:
        return _quoted(value)
    if value is None:
        return "null"
    if type(value) is int:
        return str(value)
    return av_json(value).decode("ascii")


def link(head: Head, event: Mapping[str, Any], tenant_id: str) -> Linked:
    """Put an event, still without `hash_chain`, after `head`.

    `resource` may be `msgspec.Raw` holding its RFC 8785 bytes. ValueError for what could not be verified.
    """
    if "hash_chain" in event:
        raise ValueError("hash_chain is given by the ledger, not by the event")
    resource = event["resource"]
    if type(resource) is msgspec.Raw:
        # A deployment has a handful of resources: each is checked once, then found by its bytes.
        named = _tenant_of_encoded(bytes(resource))
    else:
        check_subset((resource,))
        named = resource.get("av.tenant.id")
    if named != tenant_id:
        raise ValueError("resource av.tenant.id is not the tenant whose chain this is")
    whole = {**event, "resource": None}
    check_subset(whole.values())

    sequence_number = head.sequence_number + 1
    body = encode_checked(event["body"])
    # In printable ASCII both canonical forms are the same bytes; the seed's escapes DEL and all above.
    shared = body.isascii() and b"\x7f" not in body
    seed_body = body.decode("ascii") if shared else av_json(event["body"]).decode("ascii")
    event_hash = _event_hash(event, seed_body, head.event_hash, sequence_number)
    whole["resource"] = resource
    whole["body"] = msgspec.Raw(body)
    whole["hash_chain"] = {
        "event_hash": event_hash,
        "previous_hash": head.event_hash,
        "sequence_number": sequence_number,
    }
    record = encode_checked(whole)
    digest = sha256(record)
    leaf = leaf_data(tenant_id, sequence_number, event_hash, "sha256:" + digest.hexdigest())
    return Linked(Head(sequence_number, event_hash), event_hash, record, digest.digest(), leaf_hash(leaf))


@lru_cache(maxsize=1024)
def _tenant_of_encoded(resource: bytes) -> object:
    decoded = msgspec.json.decode(resource)
    if type(decoded) is not dict or jcs(decoded) != resource:
        raise ValueError("a pre-encoded resource must be the RFC 8785 bytes of an object")
    return decoded.get("av.tenant.id")


def verify_chain(events: Sequence[Mapping[str, Any]], start: Head | None = None) -> tuple[bool, int | None]:
    """(True, None), or (False, index of the first break). Starts after any head and demands density."""
    head = start or Head.genesis()
    for index, event in enumerate(events):
        chain = event["hash_chain"]
        if chain["previous_hash"] != head.event_hash or chain["sequence_number"] != head.sequence_number + 1:
            return (False, index)
        if chain["event_hash"] != compute_event_hash(event, head.event_hash):
            return (False, index)
        head = Head(chain["sequence_number"], chain["event_hash"])
    return (True, None)

"""Linking: heads, refusals, pre-encoded resources, and verification from the middle."""

from itertools import pairwise
from typing import Any

import msgspec
import pytest

from observatory.ledger.canonical import jcs
from observatory.ledger.chain import GENESIS_HASH, ChainHead, compute_event_hash, link, verify_chain

TENANT = "tnt_1"


def event(number: int = 1, **changes: Any) -> dict[str, Any]:
    return {
        "audit_event_id": f"evt_{number}",
        "timestamp": "2026-02-16T14:32:01.123456789Z",
        "observed_timestamp": "2026-02-16T14:32:01.125000000Z",
        "trace_id": "a1b2c3d4e5f67890a1b2c3d4e5f67890",
        "span_id": f"{number:016x}",
        "parent_span_id": None,
        "trace_flags": 1,
        "severity_number": 9,
        "severity_text": "INFO",
        "body": {"event_type": "message_delivered", "summary": "text from agt_1"},
        "resource": {"service.name": "observatory", "av.tenant.id": TENANT},
        "attributes": {"av.sender.entity_id": "agt_1", "av.delivery.latency_ms": 2},
        **changes,
    }


def chain(count: int) -> list[dict[str, Any]]:
    head, events = ChainHead.genesis(), []
    for number in range(1, count + 1):
        linked = link(head, event(number), TENANT)
        head = linked.head
        events.append(msgspec.json.decode(linked.record))
    return events


def test_the_chain_begins_at_the_seeds_genesis() -> None:
    assert GENESIS_HASH == "sha256:e3753ce47921e354762c3b3c3c0fe1ba4debafea8bbde227acbc56ae0278e0ee"
    assert ChainHead.genesis() == ChainHead(0, GENESIS_HASH)


def test_each_event_carries_the_hash_of_the_one_before() -> None:
    events = chain(5)
    for before, after in pairwise(events):
        assert after["hash_chain"]["previous_hash"] == before["hash_chain"]["event_hash"]


def test_numbers_are_given_densely_from_one() -> None:
    assert [item["hash_chain"]["sequence_number"] for item in chain(5)] == [1, 2, 3, 4, 5]


def test_each_tenant_has_a_chain_of_its_own_and_no_event_of_another_enters_it() -> None:
    with pytest.raises(ValueError, match="tenant"):
        link(ChainHead.genesis(), event(), "tnt_2")
    with pytest.raises(ValueError, match="tenant"):
        link(ChainHead.genesis(), event(resource={"service.name": "observatory"}), TENANT)
    other = event(resource={"service.name": "observatory", "av.tenant.id": "tnt_2"})
    ours, theirs = link(ChainHead.genesis(), event(), TENANT), link(ChainHead.genesis(), other, "tnt_2")
    assert ours.event_hash == theirs.event_hash, "the seed's hash knows no tenant"
    assert ours.leaf_hash != theirs.leaf_hash, "the leaf does"


def test_a_resource_encoded_beforehand_gives_the_same_record() -> None:
    raw = msgspec.Raw(jcs(event()["resource"]))
    assert link(ChainHead.genesis(), event(resource=raw), TENANT) == link(
        ChainHead.genesis(), event(), TENANT
    )


@pytest.mark.parametrize(
    "encoded",
    [
        b'{"av.tenant.id": "tnt_1"}',
        b'{"service.name":"x","av.tenant.id":"tnt_1"}',
        b'{"av.tenant.id":"tnt_1","load":0.5}',
        b'["tnt_1"]',
        b'{"av.tenant.id":"tnt_2"}',
    ],
)
def test_a_resource_encoded_otherwise_is_refused(encoded: bytes) -> None:
    for _ in range(2):
        with pytest.raises(ValueError):
            link(ChainHead.genesis(), event(resource=msgspec.Raw(encoded)), TENANT)


def repr_of(changes: dict[str, Any]) -> str:
    """The same in every process: an address in a test's name would tell two workers' apart."""
    return str({name: "raw" if isinstance(value, msgspec.Raw) else value for name, value in changes.items()})


@pytest.mark.parametrize(
    "changes",
    [
        {"body": {"score": 0.5}},
        {"attributes": {"av.cost": 1.5}},
        {"severity_number": 2**53},
        {"body": {"summary": "\ud800"}},
        {"body": msgspec.Raw(b"{}")},
        {"hash_chain": {"sequence_number": 7}},
    ],
    ids=repr_of,
)
def test_nothing_is_linked_that_could_not_be_verified(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        link(ChainHead.genesis(), event(**changes), TENANT)


def test_linking_leaves_the_callers_event_alone() -> None:
    given = event()
    link(ChainHead.genesis(), given, TENANT)
    assert given == event()


@pytest.mark.parametrize("name", ["observed_timestamp", "severity_text", "parent_span_id", "resource"])
def test_the_event_hash_excludes_delivery_metadata_but_the_record_hash_does_not(name: str) -> None:
    changed = event() | {name: {"av.tenant.id": TENANT} if name == "resource" else "0000000000000009"}
    before, after = link(ChainHead.genesis(), event(), TENANT), link(ChainHead.genesis(), changed, TENANT)
    assert before.event_hash == after.event_hash
    assert before.record_hash != after.record_hash and before.leaf_hash != after.leaf_hash


@pytest.mark.parametrize(
    "changes",
    [
        {"timestamp": "2026-02-16T14:32:01.123456788Z"},
        {"trace_id": "b" * 32},
        {"span_id": "b" * 16},
        {"body": {"event_type": "message_delivered", "summary": "other"}},
        {"attributes": {"av.sender.entity_id": "agt_2"}},
        {"attributes": {"av.sender.entity_id": "agt_1", "av.recipient.entity_id": "usr_1"}},
    ],
    ids=str,
)
def test_the_event_hash_covers_time_trace_body_and_participants(changes: dict[str, Any]) -> None:
    before, after = (
        link(ChainHead.genesis(), event(), TENANT),
        link(ChainHead.genesis(), event(**changes), TENANT),
    )
    assert before.event_hash != after.event_hash


def test_the_event_hash_covers_its_predecessor_and_its_number() -> None:
    first = link(ChainHead.genesis(), event(), TENANT).event_hash
    assert first != link(ChainHead(0, "sha256:" + "0" * 64), event(), TENANT).event_hash
    assert first != link(ChainHead(1, GENESIS_HASH), event(), TENANT).event_hash


def test_an_absent_participant_is_hashed_as_null() -> None:
    absent = event(attributes={}) | {"hash_chain": {"sequence_number": 1}}
    null = event(attributes={"av.sender.entity_id": None}) | {"hash_chain": {"sequence_number": 1}}
    assert compute_event_hash(absent, GENESIS_HASH) == compute_event_hash(null, GENESIS_HASH)


def test_a_sound_chain_verifies_from_genesis_and_from_any_row() -> None:
    events = chain(6)
    assert verify_chain(events) == (True, None)
    assert verify_chain([]) == (True, None)
    third = events[2]["hash_chain"]
    assert verify_chain(events[3:], ChainHead(3, third["event_hash"])) == (True, None)
    assert verify_chain(events[3:]) == (False, 0)


def test_verification_names_the_index_of_a_broken_link_and_of_a_broken_hash() -> None:
    events = chain(6)
    events[4]["hash_chain"]["previous_hash"] = GENESIS_HASH
    assert verify_chain(events) == (False, 4)
    events[2]["body"]["summary"] = "edited"
    assert verify_chain(events) == (False, 2)


def test_a_jump_in_numbers_with_right_links_is_a_break() -> None:
    first = link(ChainHead.genesis(), event(1), TENANT)
    jumped = link(ChainHead(8, first.event_hash), event(2), TENANT)
    events = [msgspec.json.decode(item.record) for item in (first, jumped)]
    assert verify_chain(events) == (False, 1)

"""The seed's hash chain, byte for byte: golden vectors and the literal seed functions beside ours.

The two functions below are copied from the seed unchanged; nothing of ours may be used inside them.
"""

import hashlib
import json
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from observatory.ledger import chain
from observatory.ledger.canonical import av_json
from observatory.ledger.verify import ChainCheck

GOLDEN = json.loads((Path(__file__).parent / "golden/audit_chain.json").read_text("utf-8"))


def compute_event_hash(event: dict[str, Any], previous_hash: str) -> str:
    hash_input = {
        "previous_hash": previous_hash,
        "timestamp": event["timestamp"],
        "trace_id": event["trace_id"],
        "span_id": event["span_id"],
        "body": event["body"],
        "sender": event["attributes"].get("av.sender.entity_id"),
        "recipient": event["attributes"].get("av.recipient.entity_id"),
        "sequence_number": event["hash_chain"]["sequence_number"],
    }
    canonical = json.dumps(hash_input, sort_keys=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(canonical.encode("utf-8")).hexdigest()


GENESIS_HASH = "sha256:" + hashlib.sha256(b"agentvault_genesis_v1").hexdigest()


def verify_chain(events: list[dict[str, Any]]) -> tuple[bool, int | None]:
    for i, event in enumerate(events):
        expected_previous = GENESIS_HASH if i == 0 else events[i - 1]["hash_chain"]["event_hash"]
        if event["hash_chain"]["previous_hash"] != expected_previous:
            return (False, i)
        recomputed = compute_event_hash(event, expected_previous)
        if event["hash_chain"]["event_hash"] != recomputed:
            return (False, i)
    return (True, None)


ALPHABET = 'abcXYZ 0189_-./"\\\n\t\x00\x1f\x7f\x80é€ß\u2028\u2029\ue000\uffff\U0001f600\U00010000'


def text(rng: random.Random) -> str:
    # Half of the events are plain ASCII: both of link's branches must be walked.
    letters = ALPHABET if rng.random() < 0.5 else ALPHABET[:16]
    return "".join(rng.choices(letters, k=rng.randrange(14)))


def value(rng: random.Random, depth: int, floats: bool) -> Any:
    kind = rng.randrange(8 if depth else 6)
    if kind < 3:
        return text(rng)
    if kind == 3:
        return rng.choice([None, True, False])
    if kind == 4:
        return rng.randint(-(2**53) + 1, 2**53 - 1)
    if kind == 5:
        return rng.uniform(-1e9, 1e9) if floats else rng.randint(-9, 9)
    if kind == 6:
        return [value(rng, depth - 1, floats) for _ in range(rng.randrange(4))]
    return {text(rng): value(rng, depth - 1, floats) for _ in range(rng.randrange(5))}


def random_event(rng: random.Random, floats: bool = False) -> dict[str, Any]:
    attributes = {f"av.{text(rng)}": value(rng, 1, floats) for _ in range(3)}
    for name in ("av.sender.entity_id", "av.recipient.entity_id"):
        if rng.random() < 0.7:
            attributes[name] = rng.choice([text(rng), None])
    return {
        "audit_event_id": text(rng),
        "timestamp": text(rng),
        "trace_id": text(rng),
        "span_id": text(rng),
        "parent_span_id": rng.choice([None, text(rng)]),
        "severity_number": rng.randrange(25),
        "body": {text(rng): value(rng, 3, floats) for _ in range(rng.randrange(6))},
        "resource": {"av.tenant.id": "tnt_1", "service.name": text(rng)},
        "attributes": attributes,
    }


@pytest.mark.req(324)
@pytest.mark.req(454)
def test_golden_events_have_the_golden_hash() -> None:
    assert chain.GENESIS_HASH == GOLDEN["genesis"] == GENESIS_HASH
    for item in GOLDEN["events"]:
        assert chain.compute_event_hash(item["event"], item["previous_hash"]) == item["event_hash"]
        assert compute_event_hash(item["event"], item["previous_hash"]) == item["event_hash"]


@pytest.mark.req(453)
def test_golden_canonical_texts_are_the_seed_form_of_their_members() -> None:
    for item in GOLDEN["events"]:
        assert av_json(json.loads(item["canonical"])) == item["canonical"].encode("ascii")
        assert "sha256:" + hashlib.sha256(item["canonical"].encode()).hexdigest() == item["event_hash"]


@pytest.mark.req(457)
@pytest.mark.req(458)
def test_the_golden_chain_verifies_with_the_seeds_function_and_with_ours() -> None:
    events = []
    for item in GOLDEN["events"]:
        block = item["event"]["hash_chain"] | {k: item[k] for k in ("previous_hash", "event_hash")}
        events.append(item["event"] | {"hash_chain": block})
    assert verify_chain(events) == chain.verify_chain(events) == (True, None)
    events[2]["body"]["summary"] = "edited"
    assert verify_chain(events) == chain.verify_chain(events) == (False, 2)


@pytest.mark.req(324)
@pytest.mark.req(454)
@pytest.mark.req(455)
def test_ten_thousand_random_events_hash_as_the_literal_seed_function() -> None:
    rng = random.Random(20260216)
    for number in range(10_000):
        previous = "sha256:" + rng.randbytes(32).hex()
        event = random_event(rng, floats=True) | {"hash_chain": {"sequence_number": number}}
        assert chain.compute_event_hash(event, previous) == compute_event_hash(event, previous)


@pytest.mark.req(450)
@pytest.mark.req(451)
def test_ten_thousand_linked_events_are_sound_for_the_seed_and_for_the_verifier() -> None:
    rng = random.Random(6962)
    head, check = chain.ChainHead.genesis(), ChainCheck("tnt_1")
    stored: list[dict[str, Any]] = []
    for _ in range(10_000):
        event = random_event(rng)
        linked = chain.link(head, event, "tnt_1")
        head = linked.head
        # The stored bytes are read back by a decoder the writer does not use.
        stored.append(json.loads(linked.record))
        assert {**stored[-1], "hash_chain": None} == {**event, "hash_chain": None}
        assert check.feed([(head.sequence_number, linked.record, linked.leaf_hash)]), check.result()
    assert verify_chain(stored) == chain.verify_chain(stored) == (True, None)
    found = check.result(expected_head=(10_000, head.event_hash))
    assert found.valid and found.events_verified == 10_000


def test_a_record_read_by_msgspec_hashes_as_when_it_was_written() -> None:
    rng = random.Random(1)
    for _ in range(1_000):
        linked = chain.link(chain.ChainHead.genesis(), random_event(rng), "tnt_1")
        again = msgspec.json.decode(linked.record)
        assert compute_event_hash(again, GENESIS_HASH) == linked.event_hash

"""The verifier's own parts: starting anywhere, feeding in pieces, segments and their seams, payloads."""

from hashlib import sha256
from typing import Any

import pytest

from observatory.ledger.chain import ChainHead, link
from observatory.ledger.verify import (
    GENESIS,
    ChainCheck,
    ChainResult,
    Row,
    merge,
    payload_matches,
    plan_segments,
)

TENANT = "tnt_1"
PAYLOAD = b'{"step":1}'
DIGEST = "sha256:" + sha256(PAYLOAD).hexdigest()


def event(number: int) -> dict[str, Any]:
    return {
        "timestamp": "2026-02-16T14:32:01.123456789Z",
        "trace_id": "a" * 32,
        "span_id": f"{number:016x}",
        # An astral key among late-BMP keys: the one place where msgspec's order is not RFC 8785's.
        "body": {"summary": "\x7f", "\U0001f600": 1, "\ufb33": [2]} if number % 2 else {"summary": "s"},
        "resource": {"av.tenant.id": TENANT},
        "attributes": {"av.sender.entity_id": "agt_é", "av.message.digest": DIGEST},
    }


def stored(count: int) -> tuple[list[Row], list[str]]:
    head, rows, hashes = ChainHead.genesis(), list[Row](), [GENESIS]
    for number in range(1, count + 1):
        linked = link(head, event(number), TENANT)
        head = linked.head
        rows.append((number, linked.record, linked.leaf_hash))
        hashes.append(linked.event_hash)
    return rows, hashes


ROWS, HASHES = stored(40)


def segment(start: int, end: int, rows: list[Row] = ROWS, hashes: list[str] = HASHES) -> ChainResult:
    check = ChainCheck(TENANT, start - 1, hashes[start - 1])
    check.feed(rows[start - 1 : end])
    return check.result()


def place_of(found: ChainResult) -> tuple[str, int]:
    assert not found.valid and found.first_break
    return found.first_break.what, found.first_break.sequence_number


def test_rows_may_be_fed_in_pieces() -> None:
    check = ChainCheck(TENANT)
    assert check.feed(ROWS[:7]) and check.feed([]) and check.feed(ROWS[7:])
    found = check.result((40, HASHES[40]))
    assert found.valid and found.events_verified == 40 and found.held.head
    assert (found.first_hash, found.last_hash) == (HASHES[1], HASHES[40])


def test_a_range_begins_from_the_hash_of_the_row_before_it() -> None:
    assert segment(17, 40).valid
    check = ChainCheck(TENANT, 16, GENESIS)
    assert not check.feed(ROWS[16:])
    found = check.result()
    assert place_of(found) == ("chain", 17)
    assert found.held.chain is False and found.events_verified == 0 and found.last_hash is None


def test_nothing_after_the_first_break_is_looked_at() -> None:
    check = ChainCheck(TENANT)
    assert not check.feed([ROWS[0], ROWS[2]])
    assert not check.feed([ROWS[1]])
    assert check.result().events_verified == 1


def test_an_empty_chain_is_valid_and_claims_nothing() -> None:
    found = ChainCheck(TENANT).result()
    assert found.valid and found.events_verified == 0 and found.first_hash is None and found.last_hash is None
    assert not any((found.held.density, found.held.chain, found.held.record, found.held.leaf))
    assert ChainCheck(TENANT).result((0, GENESIS)).valid


@pytest.mark.parametrize("total", [0, 1, 2, 3, 40, 41])
@pytest.mark.parametrize("workers", [1, 2, 3, 7])
def test_segments_cover_a_range_once_and_evenly(total: int, workers: int) -> None:
    planned = plan_segments(5, 4 + total, workers)
    assert [number for start, end in planned for number in range(start, end + 1)] == list(range(5, 5 + total))
    sizes = [end - start + 1 for start, end in planned]
    assert len(planned) <= workers and all(sizes) and max(sizes, default=0) - min(sizes, default=0) <= 1


@pytest.mark.parametrize(("start", "workers"), [(0, 1), (1, 0)])
def test_a_plan_refuses_what_is_no_range(start: int, workers: int) -> None:
    with pytest.raises(ValueError):
        plan_segments(start, 9, workers)


@pytest.mark.parametrize("workers", [1, 2, 3, 7, 40])
def test_merged_segments_say_what_one_run_says(workers: int) -> None:
    merged = merge([segment(*part) for part in plan_segments(1, 40, workers)], (40, HASHES[40]))
    check = ChainCheck(TENANT)
    check.feed(ROWS)
    assert merged == check.result((40, HASHES[40]))


@pytest.mark.parametrize("broken", [1, 9, 10, 11, 20, 40])
def test_merged_segments_stop_at_the_same_break_as_one_run(broken: int) -> None:
    number, record, leaf = ROWS[broken - 1][:3]
    rows = [*ROWS[: broken - 1], (number, record.replace(b"2026", b"2025"), leaf), *ROWS[broken:]]
    merged = merge([segment(start, end, rows) for start, end in plan_segments(1, 40, 4)])
    check = ChainCheck(TENANT)
    check.feed(rows)
    assert merged == check.result() and merged.first_break and merged.first_break.sequence_number == broken


def test_a_segment_begun_from_a_false_hash_does_not_join() -> None:
    hashes = [*HASHES]
    hashes[20] = GENESIS
    alone = segment(21, 40, hashes=hashes)
    assert not alone.valid
    merged = merge([segment(1, 20), alone])
    assert place_of(merged) == ("chain", 20)
    assert merged.events_verified == 20 and merged.held.chain is False


def test_a_short_segment_leaves_a_gap_at_the_seam() -> None:
    merged = merge([segment(1, 19), segment(21, 40)])
    assert place_of(merged) == ("density", 20)
    assert merged.held.density is False


def test_a_cut_tail_of_the_last_segment_is_seen_against_the_head() -> None:
    merged = merge([segment(1, 20), segment(21, 38)], (40, HASHES[40]))
    assert place_of(merged) == ("head", 39)


def test_there_is_nothing_to_say_of_no_segments() -> None:
    with pytest.raises(ValueError):
        merge([])


def test_a_payload_is_recognised_by_the_digest_in_its_record() -> None:
    record = ROWS[0][1]
    assert payload_matches(record, PAYLOAD) and not payload_matches(record, PAYLOAD + b" ")
    assert payload_matches(event(1), PAYLOAD)
    assert not payload_matches({"attributes": {}}, PAYLOAD)


def test_sentences_hold_no_payload_text() -> None:
    number, record, leaf = ROWS[1][:3]
    secret = record.replace(b'"summary":"s"', b'"summary":"hunter2"')
    check = ChainCheck(TENANT)
    check.feed([ROWS[0], (number, secret, leaf)])
    found = check.result().first_break
    assert found and found.what == "event_hash" and "hunter2" not in found.sentence


def test_one_row_without_its_leaf_is_enough_for_the_leaves_not_to_be_called_checked() -> None:
    check = ChainCheck(TENANT)
    check.feed([(1, ROWS[0][1], None), (2, ROWS[1][1], ROWS[1][2], {"span_id": "other"})])
    assert place_of(check.result()) == ("column", 2)
    assert check.result().held.leaf is None
    assert check.result().held.columns is False

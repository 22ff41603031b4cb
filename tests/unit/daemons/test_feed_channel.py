"""A topic's channel by itself: present state by version, whoever reads and whenever."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from observatory.runtime.feed_channel import SHARED_NS, LiveTopic, SourceChanges, frame
from tests.unit.daemons.following import TENANT, Board, Client, records


def channel(removals: int = 5_000) -> LiveTopic:
    return LiveTopic(TENANT, "fleet", Board(), removals)


def received(made: LiveTopic, since: int | None) -> bytes:
    missed = None if since is None else made.since(since)
    if missed is None:
        return frame("snapshot", made, "", made.whole())
    return frame("delta", made, "", missed)


states = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 3), max_size=6)


@given(st.lists(st.tuples(states, st.booleans(), st.integers(0, 2), st.booleans()), min_size=1), st.data())
@settings(max_examples=200, deadline=None)
def test_whoever_reads_whenever_has_the_present_state_s284(
    story: list[tuple[dict[str, int], bool, int, bool]], data: st.DataObject
) -> None:
    """S284, S286: snapshot and deltas, read at any moments, add up to what is there; versions only rise."""
    made, client, heard, head = channel(removals=data.draw(st.integers(0, 3))), Client(), None, 0
    before: dict[str, int] = {}
    for state, whole, committed, reads in story:
        head += committed
        gone = [("node", name) for name in before if name not in state]
        made.fold(SourceChanges(records(state), () if whole else gone, whole), head)
        before = state
        if reads:
            client.take(received(made, heard))
            heard = made.turn
            assert client.records == made.records()
    client.take(received(made, heard))
    assert list(client.records.values()) != [] or not before
    assert {key[1]: record["value"] for key, record in client.records.items()} == before


@given(st.lists(states, min_size=1), st.integers(0, 12))
@settings(max_examples=100, deadline=None)
def test_who_comes_back_with_its_number_has_the_present_state_s287(
    story: list[dict[str, int]], cut: int
) -> None:
    """S287: by what changed since where that is known, else by all there is."""
    made, client = channel(), Client()
    for number, state in enumerate(story, 5):
        made.fold(SourceChanges(records(state), whole=True), number)
        if number - 5 <= cut:
            client.take(received(made, None))
    turn = made.turn_at(client.seq)
    client.take(received(made, turn))
    assert client.records == made.records()


def test_what_only_time_changes_has_a_version_of_its_own_s285() -> None:
    """S285: one more than before as long as nothing is committed; a record's own number where it has one."""
    made = channel()
    made.fold(SourceChanges([{"kind": "step", "id": "s", "version": 7, "state": "held"}]), 40)
    made.fold(SourceChanges([{"kind": "step", "id": "s", "version": 7, "state": "late"}]), 40)
    made.fold(SourceChanges([{"kind": "node", "id": "n", "state": "active"}]), 40)
    made.fold(SourceChanges([{"kind": "node", "id": "n", "state": "idle"}]), 40)
    made.fold(SourceChanges([{"kind": "node", "id": "n", "state": "idle"}]), 41)  # nothing changed
    made.fold(SourceChanges([{"kind": "node", "id": "n", "state": "active"}]), 60)
    versions = [(item["id"], item["version"]) for item in msgspec.json.decode(b"[" + made.whole() + b"]")]
    assert versions == [("s", 8), ("n", 60)] and made.turn == 5


def test_a_removal_no_longer_known_makes_a_reader_begin_again_s286() -> None:
    made = channel(removals=1)
    made.fold(SourceChanges(records({"a": 1, "b": 1, "c": 1}), whole=True), 1)
    made.fold(SourceChanges(records({"b": 1, "c": 1}), whole=True), 2)
    assert made.since(1) == b'{"kind":"node","id":"a","version":2,"removed":true}'
    made.fold(SourceChanges(records({"c": 1}), whole=True), 3)
    assert made.since(1) is None and made.turn_at(2) is None
    missed = made.since(2)
    assert missed is not None and b'"b"' in missed


def test_who_heard_the_same_is_told_the_same_bytes_of_nearly_the_same_time_s284_s286() -> None:
    """Compressed once for all of them; after a moment the time in it would be wrong."""
    made = channel()
    made.fold(SourceChanges(records({"a": 1, "b": 1}), whole=True), 1)
    made.fold(SourceChanges(records({"a": 2, "b": 1}), whole=True), 2)
    second = 1_000_000_000
    one = made.delta(1, second)
    assert one is not None and made.delta(1, second + SHARED_NS - 1) is one
    later = made.delta(1, second + SHARED_NS)
    assert later is not None and [msgspec.json.decode(it)["at"][17:23] for it in (one, later)] == [
        "01.000",
        "01.050",
    ]
    whole = made.snapshot(second)
    assert made.snapshot(second) is whole
    made.fold(SourceChanges([]), 3)  # nothing changed, but it is known up to here
    assert msgspec.json.decode(made.snapshot(second))["seq"] == 3

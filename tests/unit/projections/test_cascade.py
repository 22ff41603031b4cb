"""The blast equals a naive closure, the cut the best of all subsets; causes are ranked by signs."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from observatory.features.cascade.cascade import ForwardWalk
from observatory.features.cascade.min_cut import contain, smallest_cut
from observatory.features.cascade.root_cause import Ancestry, ExternalSigns
from observatory.features.cascade.types_rows import StepSigns, Upstream
from observatory.features.graph.types_spread import (
    LINK_KINDS,
    STATES,
    CrossingColumns,
    FactColumns,
    LinkColumns,
    Spread,
    StepColumns,
    UseColumns,
)
from tests.unit.projections.rows_before import TaintRow

NOTHING = ExternalSigns({}, {}, (), {}, 0.5)


def row(seq: int, session: int = 1, agent: int = 1, parent: int | None = None, **more: object) -> TaintRow:
    kind = more.get("kind", "declared") if parent is not None else None
    return TaintRow(
        seq,
        seq * 1_000,
        -seq,
        session,
        agent,
        int(str(more.get("to", 0))),
        str(more.get("state", "forwarded")),
        "success",
        None,
        0.01,
        seq,
        None if parent is None else parent * 1_000,
        None if kind is None else str(kind),
    )


def fed(cascade: ForwardWalk, rows: list[TaintRow], uses: dict[int, list[int]] | None = None) -> set[int]:
    """As a store would, session by session; (fact n is added by step n)."""
    sessions = {one.seq: one.session_no for one in rows}
    while cascade.wanted:
        wanted = set(cascade.wanted)
        mine = [one for one in rows if one.session_no in wanted]
        numbers = {one.seq for one in mine}
        cascade.feed(_spread(rows, mine, numbers, sessions, uses or {}), wanted)
    return set(cascade.settle().depth)


def _spread(
    rows: list[TaintRow],
    mine: list[TaintRow],
    numbers: set[int],
    sessions: dict[int, int],
    uses: dict[int, list[int]],
) -> Spread:
    steps = {
        one.seq: (*one[:6], one.cost, one.at_ns, STATES.index(one.state), one.status, one.tool)
        for one in mine
    }
    linked = [(one, LINK_KINDS.index(one.kind or "")) for one in rows if one.parent_key is not None]
    return Spread(
        StepColumns.of(steps.values()),
        LinkColumns.of(
            (one.seq, one.parent_key, one.session_no, kind) for one, kind in linked if one.seq in numbers
        ),
        FactColumns.of((seq << 18, sessions[seq]) for seq in uses if seq in numbers),
        UseColumns.of(
            (0, sessions[seq], seq << 18, user, 1.0, sessions[user], 0)
            for seq, users in uses.items()
            if seq in numbers
            for user in users
        ),
        CrossingColumns.of(
            (sessions[one.parent_key // 1_000], one.session_no, one.parent_key, one.seq, kind)
            for one, kind in linked
            if one.parent_key is not None and one.parent_key // 1_000 in numbers and one.seq not in numbers
        ),
    )


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_the_blast_equals_a_naive_closure(data: st.DataObject) -> None:
    """S262: over links and uses, over sessions, whatever is loaded when."""
    size = data.draw(st.integers(1, 14))
    homes = [data.draw(st.integers(1, 4)) for _ in range(size)]
    rows, edges = [], set()
    uses: dict[int, list[int]] = {}
    for seq in range(1, size + 1):
        parents = data.draw(st.sets(st.integers(1, seq - 1), max_size=2)) if seq > 1 else set()
        edges |= {(parent, seq) for parent in parents}
        rows += [row(seq, homes[seq - 1], seq, parent) for parent in parents or [None]]
        if seq > 1 and data.draw(st.booleans()):
            source = data.draw(st.integers(1, seq - 1))
            uses.setdefault(source, []).append(seq)
            edges.add((source, seq))
    start = data.draw(st.integers(1, size))
    closure = {start}
    while more := {b for a, b in edges if a in closure} - closure:
        closure |= more
    cascade = ForwardWalk(start, homes[start - 1])
    assert fed(cascade, rows, uses) == closure
    found = cascade.settle()
    assert found.strong == closure
    for seq in closure - {start}:
        came = {edge.from_seq for edge in cascade.evidence(found, {seq})[seq]}
        assert came == {a for a, b in edges if b == seq and a in closure}
        assert found.depth[seq] == 1 + min(found.depth[a] for a in came)


def test_strong_and_weak_are_told_apart() -> None:
    """S263"""
    rows = [
        row(1, agent=1, to=3),
        row(2, agent=1, parent=1, kind="inferred"),
        row(3, agent=2, parent=1),
        row(4, agent=3),  # the next step of whom it was addressed to
        row(5, agent=4, parent=4),
        row(6, agent=3),  # a later one of the same
        row(7, agent=5),
    ]
    cascade = ForwardWalk(1, 1)
    assert fed(cascade, rows) == {1, 2, 3, 4, 5}
    found = cascade.settle()
    assert found.strong == {1, 3}
    kinds = {
        seq: [edge.kind for edge in edges] for seq, edges in cascade.evidence(found, range(1, 6)).items()
    }
    assert kinds == {1: ["origin"], 2: ["inferred"], 3: ["parent"], 4: ["message"], 5: ["parent"]}
    assert found.weight[5] == 0.3 and cascade.received(found) == {3: 1}


def test_a_recipient_that_names_its_own_parents_or_a_held_message_is_no_way() -> None:
    """S263"""
    rows = [row(1, agent=9), row(2, agent=1, to=3), row(3, agent=3, parent=1)]
    assert fed(ForwardWalk(2, 1), rows) == {2}
    held = [row(2, agent=1, to=3, state="held"), row(3, agent=3)]
    cascade = ForwardWalk(2, 1)
    assert fed(cascade, held) == {2} and cascade.received(cascade.settle()) == {}


def test_a_link_that_closes_a_circle_leads_nowhere_and_a_late_parent_does() -> None:
    """S264"""
    circle = [row(1, agent=1, parent=3), row(2, agent=2, parent=1), row(3, agent=3, parent=2)]
    assert fed(ForwardWalk(3, 1), circle) == {3}
    assert fed(ForwardWalk(1, 1), circle) == {1, 2, 3}
    assert fed(ForwardWalk(1, 1), [row(1, parent=1)]) == {1}
    late = [row(1, agent=1, parent=2), row(2, agent=2)]
    assert fed(ForwardWalk(2, 1), late) == {1, 2}


def separates(edges: set[tuple[int, int]], cut: set[int], sources: set[int], sinks: set[int]) -> bool:
    found = sources - cut
    while more := {b for a, b in edges if a in found} - found - cut:
        found |= more
    return not found & sinks


@settings(max_examples=300, deadline=None)
@given(st.integers(2, 8), st.data())
def test_the_cut_is_as_small_as_any_subset_that_cuts(size: int, data: st.DataObject) -> None:
    """S265"""
    agents = list(range(size))
    pairs = st.tuples(st.sampled_from(agents), st.sampled_from(agents))
    edges = {(a, b) for a, b in data.draw(st.sets(pairs, max_size=20)) if a != b}
    holders = data.draw(st.sets(st.sampled_from(agents), min_size=1))
    halted = data.draw(st.sets(st.sampled_from(agents), max_size=2))
    found = contain(holders, edges, halted)
    live = {(a, b) for a, b in edges if not {a, b} & halted}
    sources, sinks = holders - halted, set(found.reached)

    def least(among: set[int]) -> int:
        for count in range(len(among) + 1):
            if any(separates(live, set(some), sources, sinks) for some in combinations(sorted(among), count)):
                return count
        raise AssertionError

    assert found.exact and separates(live, set(found.pause), sources, sinks)
    assert set(found.pause) <= sources and len(found.pause) == least(sources)
    anyone = least(sources | sinks)
    if found.smaller is None:
        assert anyone == len(found.pause)
    else:
        assert separates(live, set(found.smaller), sources, sinks) and len(found.smaller) == anyone
    rough = contain(holders, edges, halted, most=0)
    assert rough.exact is not bool(sources) and set(rough.pause) == set(found.pause)


@settings(max_examples=200, deadline=None)
@given(st.integers(3, 8), st.data())
def test_a_cut_between_any_two_sets_is_minimal(size: int, data: st.DataObject) -> None:
    """S265: also through agents that are on neither side."""
    agents = list(range(size))
    pairs = st.tuples(st.sampled_from(agents), st.sampled_from(agents))
    edges = {(a, b) for a, b in data.draw(st.sets(pairs, max_size=20)) if a != b}
    found = smallest_cut(edges, {0}, {size - 1}, set(agents))
    assert separates(edges, found, {0}, {size - 1})
    sizes = [
        count
        for count in range(3)
        if any(separates(edges, set(some), {0}, {size - 1}) for some in combinations(agents, count))
    ]
    assert len(found) == sizes[0]
    if (0, size - 1) in edges:
        with pytest.raises(ValueError, match="cannot be cut"):
            smallest_cut(edges, {0}, {size - 1}, set(agents) - {0, size - 1})


def sign(seq: int, parent: int | None = None, agent: int = 1, **more: object) -> StepSigns:
    base = StepSigns(
        seq, seq * 1_000, -seq, 1, agent, 0, "forwarded", "success", None, 0.01, None, None, seq,
        None if parent is None else parent * 1_000, None if parent is None else "declared",
    )  # fmt: skip
    return base._replace(**more)  # type: ignore[arg-type]


def ancestry(target: int, *rows: StepSigns) -> Ancestry:
    found = Ancestry(target, 1)
    found.feed(Upstream(rows, (), False), {1})
    return found


def test_the_first_failure_on_the_way_comes_before_those_that_followed() -> None:
    """S267"""
    found = ancestry(
        6,
        sign(1),
        sign(2, 1, status="failure", tool="query"),
        sign(3, 2, status="failure"),
        sign(4, 3, confidence=0.2),
        sign(5, 1, status="failure"),  # no ancestor
        sign(6, 4, status="failure"),
    )
    ranked = found.ranked(NOTHING)
    assert [one.seq for one in ranked] == [2, 6, 3, 4, 1]
    assert ranked[0].reasons == (
        ("failed", "its call of query failed"),
        ("first", "no step upstream of it had failed before"),
    )
    assert [seq for seq, _ in ranked[0].path] == [2, 3, 4, 6]
    assert [sign for sign, _ in ranked[-1].reasons] == ["root"]


def test_every_sign_is_told_in_words() -> None:
    """S268"""
    minute = 60_000_000_000
    rows = [
        sign(1),
        *(sign(seq, seq - 1) for seq in range(2, 7)),
        sign(7, 6, agent=2, at_ns=5 * minute, cost=1.0, entropy=0.2, confidence=0.1, state="refused"),
        sign(8, 7),
    ]
    known = ExternalSigns({7: "usr_1"}, {7: "rewrite"}, {7}, {(4, 2): (1, 1)}, 0.5)
    (first, *_) = ancestry(8, *rows).ranked(known)
    assert first.seq == 7
    assert {name for name, _ in first.reasons} == {
        "refused", "first", "false_fact", "loop", "violation", "alert", "rewritten", "told",
        "low_confidence", "cost",
    }  # fmt: skip
    assert len(ancestry(8, *rows).ranked(NOTHING, limit=1)) == 1


def test_causes_of_a_circle_end() -> None:
    """S267"""
    found = ancestry(3, sign(1, 3), sign(2, 1, status="failure"), sign(3, 2))
    assert next(one.seq for one in found.ranked(NOTHING)) == 2


def test_one_step_with_very_many_children_weighs_each_by_its_surest_edge() -> None:
    """S263: declared ones in full; what was inferred, less, unless it used a fact of it."""
    cascade = ForwardWalk(1, 1)
    rows = [row(1)] + [row(seq, parent=1) for seq in range(2, 40_000)]
    rows += [row(40_000, parent=1, kind="inferred"), row(40_001, parent=1, kind="inferred")]
    assert len(fed(cascade, rows, {1: [40_001]})) == 40_001
    weight = cascade.settle().weight
    assert {weight[seq] for seq in range(1, 40_000)} == {1.0}
    assert (weight[40_000], weight[40_001]) == (0.5, 1.0)

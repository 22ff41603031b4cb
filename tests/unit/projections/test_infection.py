"""The spread of a fact over rows: strong and weak apart, the same however sessions are fed."""

from __future__ import annotations

import random

from observatory.features.drift.conflicts import divergences, jensen_shannon
from observatory.features.facts.infection import Infection
from observatory.features.facts.types import UseRow, fact_number
from observatory.features.graph.types_spread import (
    USE_KINDS,
    CrossingColumns,
    FactColumns,
    LinkColumns,
    Spread,
    StepColumns,
    UseColumns,
)
from tests.unit.projections.rows_before import StepRow


def step(seq: int, session: int = 1, agent: int = 1, to: int = 0) -> StepRow:
    return StepRow(seq, seq * 10, -seq, session, agent, to, 0.5, seq)


def spread(
    steps: list[StepRow],
    uses: list[UseRow] | None = None,
    facts: list[int] | None = None,
    links: list[tuple[int, int, int]] | None = None,
) -> Spread:
    """`links` of (key of a parent, child, session of the child): to steps of these, from wherever."""
    here = {one.session_no for one in steps}
    kinds: tuple[str, ...] = USE_KINDS
    own = [(seq, key, place, 0) for key, seq, place in links or [] if place in here]
    abroad = [(0, place, key, seq, 0) for key, seq, place in links or [] if place not in here]
    return Spread(
        StepColumns.of((*one, 0, None, None) for one in steps),
        LinkColumns.of(own),
        FactColumns.of((fact_id, 0) for fact_id in facts or []),
        UseColumns.of(
            (kinds.index(one.kind), 0, one.fact_id, one.seq, one.weight, one.session_no, one.copy_id)
            for one in uses or []
        ),
        CrossingColumns.of(abroad),
    )


def test_copies_are_strong_and_what_only_follows_is_weak() -> None:
    """S249"""
    source, copy, other, own = (fact_number(seq, place) for seq, place in ((1, 0), (2, 0), (2, 1), (1, 1)))
    found = Infection(source, 1)
    assert found.wanted == {1}
    found.feed(
        spread(
            [
                step(1),
                step(2, agent=2),
                step(3, agent=3),
                step(4, agent=4),
                step(5, agent=5),
                step(6, agent=6, to=7),
                step(7, agent=8),
                step(8, agent=7),
                step(9, agent=9),
            ],
            [
                UseRow(source, 2, "near", 0.8, 2, 1, copy),
                UseRow(copy, 3, "declared", 1.0, 3, 1, 0),
                UseRow(other, 5, "exact", 1.0, 5, 1, 0),
                UseRow(own, 9, "exact", 1.0, 9, 1, 0),
            ],
            [source, own, copy, other],
            [(30, 4, 1), (10, 6, 1)],
        ),
        {1},
    )
    assert found.wanted == set()
    assert sorted(found.strong) == [1, 2, 3]
    assert sorted(found.weak) == [4, 5, 6, 8]
    assert [one.evidence[0].kind for one in found.with_evidence(found.infected())] == [
        "source",
        "near",
        "declared",
        "descent",
        "derived",
        "descent",
        "message",
    ]
    assert found.with_evidence([3])[0].weight == 0.8
    assert found.copies.keys() == {source, copy}
    assert found.later() == {other: True}
    assert [(one.strong, one.first, one.steps) for one in found.holders().values()][-1] == (False, 8, 1)
    assert found.spend(True) == (3, 1.5) and found.spend(False) == (4, 2.0)


def test_a_circle_of_parents_ends() -> None:
    found = Infection(fact_number(1, 0), 1)
    found.feed(spread([step(1), step(2), step(3)], links=[(30, 1, 1), (10, 2, 1), (20, 3, 1)]), {1})
    assert sorted(found.weak) == [2, 3]


def test_sessions_are_asked_for_as_they_are_reached_and_in_any_order() -> None:
    """S248"""
    dice = random.Random(3)
    source = fact_number(1, 0)
    rows = {
        place: [step(seq, place, seq) for seq in range(1, 40) if seq % 4 == place % 4]
        for place in range(1, 5)
    }
    uses = {
        1: [UseRow(source, 6, "exact", 1.0, 6, 2, fact_number(6, 0))],
        2: [UseRow(fact_number(6, 0), 11, "near", 0.9, 11, 3, 0)],
    }
    abroad = {3: [(110, 20, 4)]}
    shapes = []
    for _ in range(5):
        found = Infection(source, 1)
        while found.wanted:
            some = {dice.choice(sorted(found.wanted))}
            (place,) = some
            found.feed(spread(rows[place], uses.get(place), links=abroad.get(place)), some)
        shapes.append([(one.seq, one.strong, one.weight) for one in found.with_evidence(found.infected())])
    assert shapes[0] == [(1, True, 1.0), (6, True, 1.0), (11, True, 0.9), (20, False, 0.45)]
    assert all(shape == shapes[0] for shape in shapes)


def test_the_surest_way_counts_and_evidence_is_surest_first_in_any_order() -> None:
    """S249: random graphs over sessions, fed in any order,."""
    for seed in range(30):
        dice = random.Random(seed)
        size, places = 40, 5
        rows = {
            seq: step(seq, dice.randrange(1, places), seq % 7, dice.choice([0, 0, 3]))
            for seq in range(1, size)
        }
        rows[1] = step(1)
        uses = [
            UseRow(
                fact_number(a, 0),
                b,
                "near",
                dice.choice([1.0, 0.9, 0.7]),
                1,
                rows[b].session_no,
                dice.choice([0, fact_number(b, 0)]),
            )
            for a, b in {tuple(sorted(dice.sample(range(1, size), 2))) for _ in range(25)}
        ]
        links = [
            (a * 10, b, rows[b].session_no) for a, b in (dice.sample(range(1, size), 2) for _ in range(25))
        ]
        shapes = []
        for _ in range(4):
            found = Infection(fact_number(1, 0), 1)
            while found.wanted:
                some = set(dice.sample(sorted(found.wanted), dice.randint(1, len(found.wanted))))
                mine = [row for row in rows.values() if row.session_no in some]
                numbers = {row.seq for row in mine}
                found.feed(
                    spread(
                        mine,
                        [use for use in uses if use.fact_id >> 18 in numbers],
                        [fact_number(seq, 0) for seq in numbers],
                        [link for link in links if link[0] // 10 in numbers],
                    ),
                    some,
                )
            received = found.with_evidence(found.infected())
            assert all(one.weight == one.evidence[0].weight for one in received)
            weights = {one.seq: one.weight for one in received}
            assert all(edge.from_seq in weights for one in received for edge in one.evidence)
            shapes.append(received)
        assert all(shape == shapes[0] for shape in shapes)


def test_the_distance_of_distributions() -> None:
    """S260"""
    assert jensen_shannon({"a": 1.0}, {"a": 1.0}) == 0
    assert jensen_shannon({"a": 1.0}, {"b": 1.0}) == 1
    assert jensen_shannon({"a": 0.5, "b": 0.5}, {"a": 1.0}) == jensen_shannon(
        {"a": 1.0}, {"a": 0.5, "b": 0.5}
    )


def test_few_calls_and_few_peers_say_nothing() -> None:
    """S259"""
    used = [(1, "a", 30), (2, "a", 30), (3, "b", 30), (4, "b", 3)]
    assert [one.agent_no for one in divergences(used, dict.fromkeys(range(5), "t"))] == [3]
    assert divergences(used[1:], dict.fromkeys(range(5), "t")) == []
    assert divergences(used, {1: "t", 2: "t", 3: None, 4: "t"}) == []

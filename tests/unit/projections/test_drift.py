"""Conflicts of very many values and agents: bounded, and nobody is left out of the count."""

from __future__ import annotations

from itertools import count

from observatory.features.drift.conflicts import MAX_SIDES, conflicts, divergences
from observatory.features.facts.types import FactRow, StatedBelief

_numbers = count(1)


def new_message(agent: int, value: str, session: int = 1, cluster: str | None = None) -> StatedBelief:
    number = next(_numbers)
    row = FactRow(number << 18, number, session, agent, cluster, number, number, 7, "the limit", value, value)
    return StatedBelief(row, number)


def test_of_very_many_values_the_most_held_are_sides_and_the_rest_is_kept_apart() -> None:
    """S258"""
    stated = [new_message(agent, f"number:{agent}") for agent in range(1, 4_001)]
    stated += [new_message(agent, "number:5") for agent in range(5_001, 5_004)]
    (found,) = conflicts(stated)
    assert len(found.sides) == MAX_SIDES and len(found.rest) == 4_000 - MAX_SIDES
    assert found.sides[0].value == "number:5" and len(found.sides[0].holders) == 4
    holders = [row.agent_no for side in (*found.sides, *found.rest) for row in side.holders]
    assert len(holders) == len(set(holders)) == 4_003


def test_a_day_agrees_with_the_same_day_of_a_year_in_any_number() -> None:
    """S256: they are one side, in the order they were said, also beyond the most sides."""
    stated = [
        new_message(1, "date:--01-28"),
        new_message(2, "date:2026-01-28"),
        new_message(3, "date:--01-28"),
    ]
    assert conflicts(stated) == []
    stated += [new_message(agent, f"date:{2000 + agent}-01-28") for agent in range(4, 100)]
    assert [len(one.sides) for one in conflicts(stated)] == []
    (found,) = conflicts([*stated, new_message(100, "date:--01-29")])
    assert [len(side.holders) for side in found.sides] == [99, 1] and found.rest == []
    assert [row.agent_no for row in found.sides[0].holders] == list(range(1, 100))


def test_a_conflict_of_a_session_is_not_told_again_for_its_cluster() -> None:
    """S258: one with somebody else in it is."""
    stated = [new_message(1, "number:1", 1, "c"), new_message(2, "number:2", 1, "c")]
    assert [one.scope for one in conflicts(stated)] == [("session", 1)]
    stated.append(new_message(3, "number:3", 2, "c"))
    assert {one.scope for one in conflicts(stated)} == {("session", 1), ("cluster", "c")}


def test_agents_that_share_no_tool_are_held_against_the_mean() -> None:
    """S259, S260: of many tools that nobody else uses, too."""
    used = [(agent, f"tool-{agent}-{tool}", 1) for agent in range(300) for tool in range(30)]
    found = divergences(used, dict.fromkeys(range(300), "t"))
    assert len(found) == 300
    assert all(abs(sum(one.usual.values()) - 1) < 1e-9 and one.distance > 0.9 for one in found[:3])

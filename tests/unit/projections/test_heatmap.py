"""Money in a grid, burn rates, time to a cap, branches: pure arithmetic."""

from __future__ import annotations

from typing import Any

import pytest

from observatory.features.costs.branches import branches, hottest_branch
from observatory.features.costs.heatmap import grid, outlook, time_to, urgency
from observatory.features.costs.types_burn import MINUTE_NS, burn
from observatory.protocol.clock import from_ns

NOW = 10_000 * MINUTE_NS + MINUTE_NS // 2


def test_every_column_of_a_grid_adds_up_with_the_others() -> None:
    """S236"""
    cells = [("a", 10, 1.0), ("a", 12, 2.0), ("b", 11, 0.5), ("a", 99, 7.0)]
    shown = grid({"a": "A", "b": None}, cells, range(10, 13), {10: 1.5, 11: 0.5, 12: 2.0}, 1)
    assert [row["id"] for row in shown["rows"]] == ["A", None]
    assert shown["rows"][0] == {"id": "A", "total": 3.0, "values": [1.0, 0.0, 2.0]}
    assert shown["others"] == [0.5, 0.0, 0.0] and shown["totals"] == [1.5, 0.5, 2.0]
    assert (shown["max"], shown["total"]) == (2.0, 4.0)
    assert shown["columns"] == [from_ns(minute * MINUTE_NS) for minute in (10, 11, 12)]


def test_a_burn_rate_is_the_average_of_its_minutes() -> None:
    """S239: the minute the span begins in counts by its share."""
    assert burn({10_000: 1.0, 9_999: 2.0, 9_996: 2.0}, NOW, 5) == 1.0
    assert burn({9_995: 10.0}, NOW, 5) == 1.0  # half of it
    assert burn({9_994: 10.0}, NOW, 5) == 0.0 and burn({}, NOW, 5) == 0.0


@pytest.mark.parametrize(
    ("cap", "spent", "per_min", "expected"),
    [
        (10.0, 4.0, 2.0, 180.0),
        (10.0, 10.0, 2.0, 0.0),
        (10.0, 11.0, 0.0, 0.0),
        (10.0, 4.0, 0.0, None),  # flat
        (None, 4.0, 2.0, None),
        (0.0, 0.0, 0.0, 0.0),
    ],
)
def test_the_time_to_a_cap_at_this_rate(
    cap: float | None, spent: float, per_min: float, expected: float | None
) -> None:
    """S240"""
    assert time_to(cap, spent, per_min) == expected


def budget(**more: Any) -> dict[str, Any]:
    return {
        "budget_id": "bud_1", "scope": "agent", "target": "a", "period": "none", "soft": 5.0, "hard": 10.0,
        "spender": None, "spent": 4.0, "remaining": 6.0, "share": 0.4, "resets_at": None,
    } | more  # fmt: skip


def test_an_outlook_tells_when_each_cap_is_reached_and_the_most_urgent_comes_first() -> None:
    """S240"""
    series = {10_000: 2.5, 9_999: 2.5}
    row = outlook(budget(), series, NOW)
    assert (row["per_min_5m"], row["soft_in_s"], row["hard_in_s"]) == (1.0, 60.0, 360.0)
    assert row["hard_at"] == from_ns(NOW + 360 * 1_000_000_000)
    flat = outlook(budget(share=0.9), {}, NOW)
    assert (flat["soft_in_s"], flat["hard_in_s"], flat["hard_at"]) == (None, None, None)
    slow = outlook(budget(soft=None, hard=1e12), {10_000: 0.000001}, NOW)
    assert slow["hard_in_s"] is not None and slow["hard_at"] is None
    each = outlook(budget(target="*", spender="b"), series, NOW)
    assert each["whose"] == "b"
    used = outlook(budget(share=0.1), {}, NOW)
    assert sorted([used, flat, row], key=urgency) == [row, flat, used]


def step(
    name: str, parent: str | None, cost: float, agent: str, depth: int, ago_s: int = 0
) -> dict[str, Any]:
    return {
        "id": name, "step_id": name, "kind": "step", "parent": parent, "cost": cost, "agent_id": agent,
        "depth": depth, "intent": None, "sequence_number": ord(name), "branch_cost": 0.0,
        "at": from_ns(NOW - ago_s * 1_000_000_000),
    }  # fmt: skip


def session() -> list[dict[str, Any]]:
    """a → (b → d → (e, f), c): d's line burns now, c's cost more long ago."""
    nodes = [
        step("a", None, 0.1, "planner", 0, 900),
        step("b", "a", 0.2, "reader", 1, 800),
        step("c", "a", 9.0, "writer", 1, 700),
        step("d", "b", 1.0, "reader", 2, 200),
        step("e", "d", 3.0, "runner", 3, 60),
        step("f", "d", 0.1, "reader", 3, 50),
    ]
    below = {"a": 13.4, "b": 4.3, "c": 9.0, "d": 4.1, "e": 3.0, "f": 0.1}
    return [node | {"branch_cost": below[node["id"]]} for node in nodes]


def test_branches_begin_at_roots_and_below_forks() -> None:
    """S238"""
    shown = branches([*session(), {"kind": "intervention", "id": "x"}], NOW)
    assert [branch["step"] for branch in shown["branches"]] == ["a", "c", "b", "e", "f"]
    root, dear, line = shown["branches"][:3]
    assert (root["share"], shown["cost"], shown["steps"]) == (1.0, 13.4, 6)
    assert (line["steps"], line["branch_cost"], line["cost_5m"]) == (4, 4.3, 4.1)
    assert line["agents"] == [{"agent_id": "runner", "cost": 3.0}, {"agent_id": "reader", "cost": 1.3}]
    assert dear["cost_5m"] == 0.0
    assert shown["hottest"] == ["a", "c"]


def test_the_branch_that_burns_is_the_narrowest_that_takes_most_of_it() -> None:
    """S238"""
    found = hottest_branch(branches(session(), NOW))
    assert found is not None and found["step"] == "e"
    assert hottest_branch(branches([node | {"cost": 0.0} for node in session()], NOW)) is None
    assert branches([], NOW) == {"branches": [], "hottest": [], "cost": 0.0, "steps": 0}

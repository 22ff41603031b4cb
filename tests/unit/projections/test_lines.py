"""Lines of work that do not overlap, and refused messages in groups."""

from __future__ import annotations

from typing import Any

from observatory.features.archive.violations import BUCKETS, ViolationRecord, summarize_violations
from observatory.features.costs.branch_periods import cost_lines
from observatory.protocol.clock import from_ns, to_ns

Row = dict[str, Any]
SECOND = 1_000_000_000
START = to_ns("2026-11-16T14:00:00Z")


def node(name: str, parent: str | None, depth: int, cost: float, second: int = 0, agent: str = "a") -> Row:
    return {
        "kind": "step",
        "id": name,
        "parent": parent,
        "depth": depth,
        "cost": cost,
        "tokens": 10,
        "agent_id": agent,
        "intent": f"do {name}",
        "sequence_number": ord(name[0]),
        "at": from_ns(START + second * SECOND),
    }


# r ─ s ─┬─ b ─ c
#        └─ d          x is a root of its own, o an orphan of a step that is not here
TREE = [
    node("r", None, 0, 1.0),
    node("s", "r", 1, 2.0),
    node("b", "s", 2, 4.0, agent="bo"),
    node("c", "b", 3, 8.0),
    node("d", "s", 2, 16.0, second=50),
    node("x", None, 0, 32.0, second=99),
    node("o", "gone", 4, 64.0),
    {"kind": "intervention", "id": "i", "parent": "r"},
]


def test_every_step_counts_in_the_narrowest_branch_and_in_no_other_s701() -> None:
    """S701: they add up to the whole; the dearest first, each with who spent it."""
    found = cost_lines(TREE, START, START + 100 * SECOND)
    assert [(row["step"], row["cost"], row["steps"]) for row in found] == [
        ("o", 64.0, 1),
        ("x", 32.0, 1),
        ("d", 16.0, 1),
        ("b", 12.0, 2),
        ("r", 3.0, 2),
    ]
    assert sum(row["cost"] for row in found) == 127.0
    assert found[3]["agents"] == [{"agent_id": "a", "cost": 8.0}, {"agent_id": "bo", "cost": 4.0}]
    assert (found[4]["intent"], found[4]["tokens"]) == ("do r", 20)


def test_only_steps_of_the_time_count_though_their_branch_began_before_s701() -> None:
    found = cost_lines(TREE, START + 50 * SECOND, START + 99 * SECOND)
    assert [(row["step"], row["cost"]) for row in found] == [("d", 16.0)]
    assert cost_lines(TREE, START - 9, START) == cost_lines([], START, START + 1) == []


def test_a_step_that_costs_nothing_is_no_line_s701() -> None:
    assert cost_lines([node("r", None, 0, 0.0)], START, START + SECOND) == []


def violation(
    number: int, agent: str | None, reason: str, second: int, version: str = "v1"
) -> ViolationRecord:
    at = from_ns(START + second * SECOND)
    return ViolationRecord(number, f"evt_{number}", at, agent, version, reason, "sha256:0")


def test_violations_are_grouped_by_agent_version_and_reason_with_counts_over_time_s706() -> None:
    """S706: the most first; a clock that is off counts in the nearest part and is not lost."""
    found = [
        violation(5, "a", "r", 700),
        violation(4, "a", "r", 59),
        violation(3, "a", "r", 0, version="v2"),
        violation(2, None, "r", 30),
        violation(1, "a", "r", -5),
    ]
    shown = summarize_violations(found, START, START + 60 * SECOND)
    assert [(row["agent_id"], row["capability_version"], row["count"]) for row in shown.groups] == [
        ("a", "v1", 3),
        (None, "v1", 1),
        ("a", "v2", 1),
    ]
    first = shown.groups[0]
    assert (first["first_at"], first["last_at"]) == (found[4].at, found[0].at)
    assert (first["counts"][0], first["counts"][59], sum(first["counts"])) == (1, 2, 3)
    assert (len(shown.counts), sum(shown.counts), shown.counts[30]) == (BUCKETS, 5, 1)
    assert summarize_violations([], START, START + SECOND).groups == []

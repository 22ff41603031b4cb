"""A session's cost by branch: what each line of work below a fork has cost, in total and recently (S238).

Pure, over the nodes of the causal graph, which have their cost, their parent and the cost of everything below
them. A branch starts at a root and at every child of a fork; nested branches are included in their parent, so
branch costs do not add up, except those of the children of one fork plus the fork's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from observatory.features.costs.heatmap import money
from observatory.protocol.clock import to_ns

Row = dict[str, Any]
LATELY_NS = 300 * 1_000_000_000
MAX_PATH = 200


def branches(nodes: Iterable[Mapping[str, Any]], now_ns: int) -> Row:
    steps = {node["id"]: node for node in nodes if node["kind"] == "step"}
    children: dict[str | None, list[str]] = {}
    for name, node in steps.items():
        parent = node["parent"] if node["parent"] in steps else None
        children.setdefault(parent, []).append(name)
    total = sum(node["cost"] for node in steps.values())
    below = _gathered(steps, children, now_ns)
    heads = [name for parent, names in children.items() for name in names if parent is None or len(names) > 1]
    result = [_branch(steps[name], below[name], total) for name in heads]
    result.sort(key=lambda branch: (-branch["branch_cost"], branch["sequence_number"]))
    return {
        "branches": result,
        "hottest": _hottest(steps, children),
        "cost": money(total),
        "steps": len(steps),
    }


class _Below:
    """Totals of a step and everything below it."""

    __slots__ = ("agents", "recent", "steps")

    def __init__(self, node: Mapping[str, Any], now_ns: int) -> None:
        self.steps, self.agents = 1, {node["agent_id"]: float(node["cost"])}
        self.recent = float(node["cost"]) if to_ns(node["at"]) > now_ns - LATELY_NS else 0.0


def _gathered(
    steps: Mapping[str, Mapping[str, Any]], children: Mapping[str | None, list[str]], now_ns: int
) -> dict[str, _Below]:
    """Children before parents: a child is always deeper."""
    found = {name: _Below(node, now_ns) for name, node in steps.items()}
    for name in sorted(steps, key=lambda one: -int(steps[one]["depth"])):
        parent = steps[name]["parent"]
        if parent in found:
            mine, above = found[name], found[parent]
            above.steps += mine.steps
            above.recent += mine.recent
            # Merging the smaller into the larger would be faster, but a session has few agents.
            for agent_id, cost in mine.agents.items():
                above.agents[agent_id] = above.agents.get(agent_id, 0.0) + cost
    return found


def _branch(node: Mapping[str, Any], below: _Below, total: float) -> Row:
    by_cost = sorted(below.agents.items(), key=lambda pair: (-pair[1], str(pair[0])))
    return {
        "step": node["id"],
        "step_id": node["step_id"],
        "sequence_number": node["sequence_number"],
        "parent": node["parent"],
        "agent_id": node["agent_id"],
        "intent": node["intent"],
        "depth": node["depth"],
        "steps": below.steps,
        "cost": money(node["cost"]),
        "branch_cost": money(node["branch_cost"]),
        "share": round(node["branch_cost"] / total, 6) if total > 0 else 0.0,
        "cost_5m": money(below.recent),
        "agents": [{"agent_id": agent_id, "cost": money(cost)} for agent_id, cost in by_cost[:10]],
    }


def _hottest(steps: Mapping[str, Mapping[str, Any]], children: Mapping[str | None, list[str]]) -> list[str]:
    """The path down along the most expensive branch, as far as it cost anything."""
    path: list[str] = []
    below = children.get(None, [])
    while below and len(path) < MAX_PATH:
        name = max(below, key=lambda one: (steps[one]["branch_cost"], -steps[one]["sequence_number"]))
        if steps[name]["branch_cost"] <= 0:
            break
        path.append(name)
        below = children.get(name, [])
    return path


def hottest_branch(shown: Mapping[str, Any]) -> Row | None:
    """The narrowest branch that currently costs most: below it no single branch takes most of it."""
    recent = [branch for branch in shown["branches"] if branch["cost_5m"] > 0]
    if not recent:
        return None
    most = max(branch["cost_5m"] for branch in recent)
    narrow = [branch for branch in recent if branch["cost_5m"] * 2 > most]
    found: Row = max(narrow, key=lambda branch: (branch["depth"], branch["cost_5m"]))
    return found

"""What each line of work cost in a time range: branches that do not overlap, so that they add up (S701).

A line starts at a root and at every child of a fork, like a branch (branches.py); but a step counts in only
one line, the narrowest. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from observatory.features.costs.heatmap import money
from observatory.protocol.clock import to_ns

Row = dict[str, Any]
MAX_AGENTS = 5


def cost_lines(nodes: Iterable[Mapping[str, Any]], since_ns: int, until_ns: int) -> list[Row]:
    """Lines that cost anything from `since_ns` until before `until_ns`, the most expensive first."""
    steps = {node["id"]: node for node in nodes if node["kind"] == "step"}
    children: dict[str | None, int] = {}
    for node in steps.values():
        parent = node["parent"] if node["parent"] in steps else None
        children[parent] = children.get(parent, 0) + 1
    heads: dict[str, str] = {}
    found: dict[str, Row] = {}
    # Parents before children: a child is always deeper.
    for name in sorted(steps, key=lambda one: int(steps[one]["depth"])):
        node = steps[name]
        parent = node["parent"] if node["parent"] in steps else None
        alone = parent is not None and children[parent] == 1
        heads[name] = head = heads.get(parent, name) if alone and parent is not None else name
        if not since_ns <= to_ns(node["at"]) < until_ns:
            continue
        row = found.setdefault(head, {"cost": 0.0, "tokens": 0, "steps": 0, "agents": {}})
        row["cost"] += node["cost"]
        row["tokens"] += node["tokens"] or 0
        row["steps"] += 1
        row["agents"][node["agent_id"]] = row["agents"].get(node["agent_id"], 0.0) + node["cost"]
    rows = [_row(steps[head], row) for head, row in found.items() if row["cost"] > 0]
    return sorted(rows, key=lambda row: (-row["cost"], row["sequence_number"]))


def _row(head: Mapping[str, Any], row: Row) -> Row:
    by_cost = sorted(row["agents"].items(), key=lambda pair: (-pair[1], str(pair[0])))
    return {
        "step": head["id"],
        "sequence_number": head["sequence_number"],
        "agent_id": head["agent_id"],
        "intent": head["intent"],
        "depth": head["depth"],
        "cost": money(row["cost"]),
        "tokens": row["tokens"],
        "steps": row["steps"],
        "agents": [{"agent_id": agent_id, "cost": money(cost)} for agent_id, cost in by_cost[:MAX_AGENTS]],
    }

"""The Yellow Pages: agents folded by what they can do (R210–R214). Pure, over what the registry shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec

Row = dict[str, Any]


def yellow_pages(agents: Iterable[Row], breakers: Iterable[Row], routes: Iterable[Row]) -> list[Row]:
    """One page for each agent type and registered capability, and for what only has a route or a circuit.

    `total` counts who is in the map; evicted agents are counted by themselves and appear in no share.
    """
    circuits = {row["capability"]: row["state"] for row in breakers}
    weights = {row["capability"]: msgspec.json.decode(row["weights"]) for row in routes}
    able: dict[str, list[Row]] = {name: [] for name in (*circuits, *weights)}
    for agent in agents:
        for capability in agent["capabilities"]:
            able.setdefault(capability, []).append(agent)
    return [
        _page(capability, theirs, circuits.get(capability), weights.get(capability))
        for capability, theirs in sorted(able.items())
    ]


def _page(capability: str, agents: list[Row], breaker: str | None, weights: Row | None) -> Row:
    alive = Counter(agent["liveness"] for agent in agents)
    there = [agent for agent in agents if agent["liveness"] != "evicted"]
    return {
        "capability": capability,
        "is_agent_type": any(agent["agent_type"] == capability for agent in agents),
        "healthy": alive["healthy"],
        "unknown": alive["unknown"],
        "zombie": alive["zombie"],
        "evicted": alive["evicted"],
        "total": len(there),
        "versions": _spread(there, "capability_version"),
        "models": _spread(there, "model"),
        "trust_levels": _spread(there, "trust_level"),
        "clusters": _spread(there, "cluster_id"),
        "breaker": breaker,
        "weights": weights,
    }


def _spread(agents: list[Row], column: str) -> dict[str, int]:
    """How many of each, the most frequent first; who did not say is left out."""
    return dict(Counter(agent[column] for agent in agents if agent[column] is not None).most_common())

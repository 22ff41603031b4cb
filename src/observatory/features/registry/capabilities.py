"""The Yellow Pages: agents grouped by capability (R210–R214). Pure, over the registry's items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec

Row = dict[str, Any]


def yellow_pages(agents: Iterable[Row], breakers: Iterable[Row], routes: Iterable[Row]) -> list[Row]:
    """One entry for each agent type and registered capability, and for those with only a route or a circuit.

    `total` counts registered agents; evicted agents are counted separately and appear in no distribution.
    """
    circuits = {row["capability"]: row["state"] for row in breakers}
    weights = {row["capability"]: msgspec.json.decode(row["weights"]) for row in routes}
    by_capability: dict[str, list[Row]] = {name: [] for name in (*circuits, *weights)}
    for agent in agents:
        for capability in agent["capabilities"]:
            by_capability.setdefault(capability, []).append(agent)
    return [
        _entry(capability, members, circuits.get(capability), weights.get(capability))
        for capability, members in sorted(by_capability.items())
    ]


def _entry(capability: str, agents: list[Row], breaker: str | None, weights: Row | None) -> Row:
    by_liveness = Counter(agent["liveness"] for agent in agents)
    present = [agent for agent in agents if agent["liveness"] != "evicted"]
    return {
        "capability": capability,
        "is_agent_type": any(agent["agent_type"] == capability for agent in agents),
        "healthy": by_liveness["healthy"],
        "unknown": by_liveness["unknown"],
        "zombie": by_liveness["zombie"],
        "evicted": by_liveness["evicted"],
        "total": len(present),
        "versions": _distribution(present, "capability_version"),
        "models": _distribution(present, "model"),
        "trust_levels": _distribution(present, "trust_level"),
        "clusters": _distribution(present, "cluster_id"),
        "breaker": breaker,
        "weights": weights,
    }


def _distribution(agents: list[Row], column: str) -> dict[str, int]:
    """How many agents have each value, the most frequent first; agents without a value are left out."""
    return dict(Counter(agent[column] for agent in agents if agent[column] is not None).most_common())

"""Node states: the colour rules of the map, once, in Python (ruling 40).

A pure fold over what the Capability Map knows of an agent. Red and amber join with the entropy stage,
dead with heartbeats; a schema violation marks its agent for a while or until it sends something valid.
"""

from __future__ import annotations

from typing import Literal

NodeState = Literal["idle", "active", "alert_entropy", "schema_violation", "dead", "blocked"]
COLOURS: dict[NodeState, str] = {
    "idle": "#6b7280",
    "active": "#3b82f6",
    "alert_entropy": "#ef4444",
    "schema_violation": "#f97316",
    "dead": "#374151",
    "blocked": "#f59e0b",
}
ACTIVE_NS = 30 * 1_000_000_000


def node_state(
    last_seen_ns: int, violation_ns: int | None, now_ns: int, violation_window_s: int
) -> NodeState:
    if violation_ns is not None and now_ns - violation_ns < violation_window_s * 1_000_000_000:
        return "schema_violation"
    return "active" if last_seen_ns and now_ns - last_seen_ns < ACTIVE_NS else "idle"

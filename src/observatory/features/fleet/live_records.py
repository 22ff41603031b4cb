"""Records of the topic `fleet`: figures are rounded, and compact nodes have only what is drawn (S288)."""

from __future__ import annotations

import math
from typing import Any

from observatory.runtime.feed_channel import Record

DRAWN = ("kind", "id", "agent_type", "cluster_id", "state", "rule", "liveness", "messages", "last_seen_at")
STEPS = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0)
Row = dict[str, Any]


def node_record(node: Row, compact: bool) -> Record:
    if not compact:
        return rounded(node)
    made = {name: node[name] for name in DRAWN} | {"rate_per_s": coarse(node["rate_per_s"])}
    if node["rule"] < 9:
        made |= {"reason": node["reason"], "alarms": node["alarms"]}
    return made


def rounded(record: Row) -> Record:
    """Without members that repeat another one, and with figures rounded so that they do not jitter."""
    made = {name: value for name, value in record.items() if name not in ("messages_60s", "level")}
    for name in ("rate_per_s", "internal_per_s", "failures_60s", "cost_per_min"):
        if name in made:
            made[name] = coarse(made[name])
    for name in ("latency_p50_ms", "latency_p95_ms", "latency_mean_ms"):
        if made.get(name) is not None:
            made[name] = coarse(made[name])
    return made


def coarse(value: float) -> float:
    """The nearest of 1, 1.5, 2, 3, 5, 7, 10, 15, …: a figure for the map, not for accounting."""
    if value <= 0 or not math.isfinite(value):
        return 0.0
    unit = 10.0 ** math.floor(math.log10(value))
    return round(min(STEPS, key=lambda step: abs(step - value / unit)) * unit, 9)

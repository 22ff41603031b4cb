"""Edges between agents: rate, latency and status, folded from deliveries (rules S142–S144).

Pure: counts and latencies come from the store, who is who from the registry. An edge is Blocked when its
work cannot reach anybody, Alert when it arrives late or its receiver is silent, else Healthy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from observatory.ports import EdgeCount

Status = Literal["Healthy", "Alert", "Blocked"]
SECOND = 1_000_000_000
RECENT_S = 60
SINCE_S = 3_600
# Alert beyond these: how long the oldest message may wait to be acknowledged, and the 95th percentile.
WAITS_S = 30
LATE_MS = 5_000


def edges(
    counts: Iterable[EdgeCount],
    latencies: Iterable[tuple[int, int, int]],
    agents: Mapping[int, Mapping[str, Any]],
    now_ns: int,
) -> list[dict[str, Any]]:
    """The busiest first. `agents` maps numbers to `agent_id`, `entity_id` and `liveness`."""
    taken: dict[tuple[int, int], list[int]] = {}
    for sender_no, agent_no, spent_ns in latencies:
        taken.setdefault((sender_no, agent_no), []).append(max(0, spent_ns))
    made = [
        _edge(count, sorted(taken.get((count.sender_no, count.agent_no), [])), agents, now_ns)
        for count in counts
    ]
    return sorted(made, key=lambda edge: (-edge["messages"], str(edge["from"]), str(edge["to"])))


def _edge(
    count: EdgeCount, spent: list[int], agents: Mapping[int, Mapping[str, Any]], now_ns: int
) -> dict[str, Any]:
    sender, receiver = agents.get(count.sender_no), agents.get(count.agent_no)
    late_ms = percentile(spent, 95)
    alive = None if receiver is None else receiver["liveness"]
    status, reason = status_of(count, alive, late_ms, now_ns)
    return {
        "from": None if sender is None else sender["agent_id"],
        "from_entity_id": None if sender is None else sender["entity_id"],
        "to": count.place if receiver is None else receiver["agent_id"],
        "to_entity_id": None if receiver is None else receiver["entity_id"],
        "messages": count.messages,
        "messages_60s": count.recent,
        "rate_per_s": round(count.recent / RECENT_S, 3),
        "latency_p50_ms": percentile(spent, 50),
        "latency_p95_ms": late_ms,
        "unacknowledged": count.unacknowledged,
        "status": status,
        "reason": reason,
    }


def status_of(
    count: EdgeCount, alive: str | None, late_ms: float | None, now_ns: int
) -> tuple[Status, str | None]:
    if count.unacknowledged and count.agent_no == 0:
        return "Blocked", f"{count.unacknowledged} parked: nobody can take them"
    if count.unacknowledged and alive == "evicted":
        return "Blocked", "the receiver was evicted with work it has not acknowledged"
    if count.oldest_ns is not None and now_ns - count.oldest_ns > WAITS_S * SECOND:
        return "Alert", f"the oldest message waits for longer than {WAITS_S} s"
    if late_ms is not None and late_ms > LATE_MS:
        return "Alert", f"one in twenty takes longer than {LATE_MS} ms"
    if alive == "zombie":
        return "Alert", "the receiver is silent"
    return "Healthy", None


def percentile(ordered: list[int], share: int) -> float | None:
    """Of nanoseconds in ascending order, in milliseconds (nearest rank); None without any."""
    if not ordered:
        return None
    rank = -(-len(ordered) * share // 100)
    return round(ordered[rank - 1] / 1_000_000, 3)

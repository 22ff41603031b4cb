"""Edges between agents: rate, latency and status (rules S142–S144, S232).

Pure: counts and latencies come from the store, agents from the registry. Addressed messages are counted by
their deliveries, causal edges by which agent's step followed which. An edge is Blocked when its work cannot
continue, Alert when it arrives late, fails, or its receiver is silent or looping, else Healthy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from observatory.features.fleet.types_traffic import EdgeSum
from observatory.pipeline.ports import TrafficEdge

Status = Literal["Healthy", "Alert", "Blocked"]
SECOND = 1_000_000_000
RECENT_S = 60
SINCE_S = 3_600
# Alert beyond these: age of the oldest unacknowledged message, and the 95th percentile of the latency.
WAITS_S = 30
LATE_MS = 5_000
# Causal edges, in the last two minutes: half of at least this many failed; mean time from parent to child.
FAILING = 4
SLOW_MS = 60_000
RANK: dict[str, int] = {"Healthy": 0, "Alert": 1, "Blocked": 2}
# Rules of the map (node_states.py) by which an agent's work is stopped, and by which it is in trouble.
STOPPED, TROUBLED = {1, 5, 6, 7}, {2, 3}


def edges(
    counts: Iterable[TrafficEdge],
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
    count: TrafficEdge, spent: list[int], agents: Mapping[int, Mapping[str, Any]], now_ns: int
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
    count: TrafficEdge, alive: str | None, late_ms: float | None, now_ns: int
) -> tuple[Status, str | None]:
    if count.unacknowledged and count.agent_no == 0:
        return "Blocked", f"{count.unacknowledged} parked: no agent can take them"
    if count.unacknowledged and alive == "evicted":
        return "Blocked", "the receiver was evicted with work it has not acknowledged"
    if count.oldest_ns is not None and now_ns - count.oldest_ns > WAITS_S * SECOND:
        return "Alert", f"the oldest message has been waiting for more than {WAITS_S} s"
    if late_ms is not None and late_ms > LATE_MS:
        return "Alert", f"the 95th percentile is above {LATE_MS} ms"
    if alive == "zombie":
        return "Alert", "the receiver is silent"
    return "Healthy", None


def percentile(ordered: list[int], share: int) -> float | None:
    """Of nanoseconds in ascending order, in milliseconds (nearest rank); None without any."""
    if not ordered:
        return None
    rank = -(-len(ordered) * share // 100)
    return round(ordered[rank - 1] / 1_000_000, 3)


def sliding(current: float, previous: float, now_ns: int) -> float:
    """The last 60 s, from counters of whole minutes: the earlier minute fades as the current one passes."""
    passed = now_ns % (RECENT_S * SECOND) / (RECENT_S * SECOND)
    return current + previous * (1 - passed)


def causal_status(edge: EdgeSum, receiver: Mapping[str, Any] | None) -> tuple[Status, str | None]:
    """S232: the receiver is the agent of the following step."""
    if receiver is not None and receiver["rule"] in STOPPED:
        return "Blocked", f"{receiver['agent_id']}: {receiver['reason']}"
    if receiver is not None and receiver["rule"] in TROUBLED:
        return "Alert", f"{receiver['agent_id']}: {receiver['reason']}"
    lately = edge.current + edge.previous
    if lately >= FAILING and 2 * edge.failed_lately >= lately:
        return "Alert", f"{edge.failed_lately} of the last {lately} steps failed"
    if lately and edge.latency_lately_ms / lately > SLOW_MS:
        return "Alert", f"a step follows after {edge.latency_lately_ms / lately / 1_000:.0f} s on average"
    return "Healthy", None


def flows(
    counts: Iterable[TrafficEdge],
    latencies: Iterable[tuple[int, int, int]],
    sums: Iterable[EdgeSum],
    nodes: Mapping[int, Mapping[str, Any]],
    now_ns: int,
) -> list[dict[str, Any]]:
    """Edges between agents of the map, addressed or causal, one for each pair; the busiest first."""
    taken: dict[tuple[int, int], list[int]] = {}
    for sender_no, agent_no, spent_ns in latencies:
        taken.setdefault((sender_no, agent_no), []).append(max(0, spent_ns))
    edges_by_pair: dict[tuple[int, int, str | None], dict[str, Any]] = {}
    for count in counts:
        if count.sender_no in nodes:
            edge = _edge_between(edges_by_pair, nodes, count.sender_no, count.agent_no, count.place)
            spent = sorted(taken.get((count.sender_no, count.agent_no), []))
            late_ms = percentile(spent, 95)
            receiver = nodes.get(count.agent_no)
            alive = None if receiver is None else receiver["liveness"]
            edge["latency_p50_ms"], edge["latency_p95_ms"] = percentile(spent, 50), late_ms
            edge["unacknowledged"] += count.unacknowledged
            _add_counts(edge, "message", count.messages, float(count.recent), 0)
            _worsen(edge, *status_of(count, alive, late_ms, now_ns))
    for one in sums:
        if one.from_no in nodes and one.to_no in nodes:
            edge = _edge_between(edges_by_pair, nodes, one.from_no, one.to_no, None)
            _add_counts(
                edge, one.kind, one.messages, sliding(one.current, one.previous, now_ns), one.failures
            )
            if one.kind == "causal":
                edge["latency_mean_ms"] = round(one.latency_ms / one.messages, 3) if one.messages else None
                _worsen(edge, *causal_status(one, nodes[one.to_no]))
    for edge in edges_by_pair.values():
        edge["messages_60s"] = round(edge["messages_60s"], 3)
        edge["rate_per_s"] = round(edge["messages_60s"] / RECENT_S, 4)
    return sorted(
        edges_by_pair.values(), key=lambda edge: (-edge["messages"], str(edge["from"]), str(edge["to"]))
    )


def _edge_between(
    edges_by_pair: dict[tuple[int, int, str | None], dict[str, Any]],
    nodes: Mapping[int, Mapping[str, Any]],
    from_no: int,
    to_no: int,
    place: str | None,
) -> dict[str, Any]:
    receiver = nodes.get(to_no)
    address = place if receiver is None else None
    key = (from_no, to_no, address)
    if key not in edges_by_pair:
        edges_by_pair[key] = {
            "from": nodes[from_no]["agent_id"],
            "to": None if receiver is None else receiver["agent_id"],
            "address": address,
            "kinds": [],
            "messages": 0,
            "messages_60s": 0.0,
            "rate_per_s": 0.0,
            "failures": 0,
            "latency_p50_ms": None,
            "latency_p95_ms": None,
            "latency_mean_ms": None,
            "unacknowledged": 0,
            "status": "Healthy",
            "reason": None,
        }
    return edges_by_pair[key]


def _add_counts(edge: dict[str, Any], kind: str, messages: int, recent: float, failures: int) -> None:
    if kind not in edge["kinds"]:
        edge["kinds"].append(kind)
    edge["messages"] += messages
    edge["messages_60s"] += recent
    edge["failures"] += failures


def _worsen(edge: dict[str, Any], status: Status, reason: str | None) -> None:
    if RANK[status] > RANK[edge["status"]]:
        edge["status"], edge["reason"] = status, reason

"""The map's rows: agents as nodes, grouped by type and cluster, laid out by type or by region (S229–S234).

Pure, over rows of the registry and minute counters. The drill-down is cluster → group (agent type) → agent,
the same in both layouts. Above `limit` nodes the answer is by group, then by cluster, and says so; a
group shows its worst state and the count of each state, and carries the alarms of its agents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from observatory.features.fleet.regions import ClusterPlace, Region, cluster_region
from observatory.features.fleet.types_edges import RANK, RECENT_S
from observatory.features.fleet.types_node_states import (
    COLOURS,
    FLASHING,
    MARKS,
    SHAPES,
    WORST,
    AgentFacts,
    JudgedState,
    NodeState,
    describe_halt,
    in_violation,
    worst_state,
)
from observatory.protocol.clock import from_ns

Level = Literal["cluster", "group", "agent"]
LEVELS: Final[tuple[Level, ...]] = ("agent", "group", "cluster")
Row = dict[str, Any]
SHOWN = 3  # alarms shown on the icon of a group


def node(
    agent: Mapping[str, Any], judged: JudgedState, liveness: str, flow: Mapping[str, float], alarms: list[Row]
) -> Row:
    """`agent` is a row of the registry, `flow` what it did in the last minute."""
    return {
        "id": agent["agent_id"],
        "agent_id": agent["agent_id"],
        "entity_id": agent["entity_id"],
        "name": agent["display_name"] or agent["agent_id"],
        "agent_type": agent["agent_type"],
        "cluster_id": agent["cluster_id"],
        **sign(judged.state),
        "rule": judged.rule,
        "reason": judged.reason,
        "liveness": liveness,
        "ghost": agent["messages"] == 0,
        "last_seen_at": from_ns(agent["last_seen_ns"]) if agent["last_seen_ns"] else None,
        "messages_60s": round(flow.get("messages", 0.0), 3),
        "rate_per_s": round(flow.get("messages", 0.0) / RECENT_S, 4),
        "failures_60s": round(flow.get("failures", 0.0), 3),
        "cost_per_min": round(flow.get("cost", 0.0), 6),
        "alarms": alarms,
    }


def sign(state: NodeState) -> Row:
    """Colour, mark and shape: no state is shown by its colour alone."""
    return {
        "state": state,
        "colour": COLOURS[state],
        "mark": MARKS[state],
        "shape": SHAPES[state],
        "flashing": state in FLASHING,
    }


def alarms_of(facts: AgentFacts, now_ns: int, violation_window_s: int) -> list[Row]:
    """Every alarm of an agent, not only the one that gave its state."""
    found: list[Row] = []
    if facts.liveness == "evicted":
        found.append(alarm("evicted", "critical", "evicted: it was silent for too long", facts.evicted_ns))
    elif facts.liveness == "zombie":
        found.append(alarm("silent", "critical", "its heartbeat is overdue", facts.heartbeat_ns))
    for one in facts.alarms:
        text = "is looping" if one.severity == "loop" else "its steps repeat"
        made = alarm(one.severity, "critical" if one.severity == "loop" else "warning", text, one.since_ns)
        found.append(
            made | {"session_id": one.session_id, "detector": one.detector, "entropy_score": one.entropy}
        )
    if in_violation(facts.violation_ns, now_ns, violation_window_s):
        found.append(
            alarm("schema_violation", "warning", "its last message broke the schema", facts.violation_ns)
        )
    for halt in facts.halts:
        made = alarm(
            {"hold": "held", "pause": "paused"}.get(halt.cause, halt.cause), "warning", describe_halt(halt)
        )
        made["since"] = from_ns(halt.since_ns) if halt.since_ns else None
        found.append(made | ({"session_id": halt.detail} if halt.cause == "pause" else {}))
    return found


def alarm(kind: str, severity: str, text: str, since_ns: int | None = None) -> Row:
    return {
        "kind": kind,
        "severity": severity,
        "text": text,
        "since": None if since_ns is None else from_ns(since_ns),
        "session_id": None,
        "detector": None,
        "entropy_score": None,
    }


def group_key(one: Mapping[str, Any], level: Level) -> str:
    if level == "agent":
        return str(one["id"])
    cluster = one["cluster_id"] or ""
    return f"cluster:{cluster}" if level == "cluster" else f"group:{cluster}/{one['agent_type'] or ''}"


def groups(nodes: Iterable[Row], level: Level, places: Mapping[str, ClusterPlace]) -> list[Row]:
    """The busiest first."""
    gathered: dict[str, list[Row]] = {}
    for one in nodes:
        gathered.setdefault(group_key(one, level), []).append(one)
    made = [_group(key, level, members, places) for key, members in gathered.items()]
    return sorted(made, key=lambda group: (-group["messages_60s"], group["id"]))


def _group(key: str, level: Level, members: Sequence[Row], places: Mapping[str, ClusterPlace]) -> Row:
    first = members[0]
    alarms = [alarm | {"agent_id": one["agent_id"]} for one in members for alarm in one["alarms"]]
    alarms.sort(key=lambda alarm: alarm["severity"] != "critical")
    return {
        "id": key,
        "level": level,
        "name": (first["cluster_id"] if level == "cluster" else first["agent_type"]) or "(none)",
        "cluster_id": first["cluster_id"],
        "agent_type": first["agent_type"] if level == "group" else None,
        **summed(members),
        "internal_per_s": 0.0,
        "region": region_row(cluster_region(first["cluster_id"], places)),
        "alarms": alarms[:SHOWN],
        "alarms_count": len(alarms),
    }


def summed(members: Sequence[Row]) -> Row:
    """Counts by state, the worst of them, and the members' summed activity."""
    states: dict[NodeState, int] = dict.fromkeys(WORST, 0)
    for one in members:
        states[one["state"]] += 1
    return {
        "agents": len(members),
        "ghosts": sum(1 for one in members if one["ghost"]),
        "states": states,
        **sign(worst_state(states)),
        "messages_60s": round(sum(one["messages_60s"] for one in members), 3),
        "rate_per_s": round(sum(one["messages_60s"] for one in members) / RECENT_S, 4),
        "failures_60s": round(sum(one["failures_60s"] for one in members), 3),
        "cost_per_min": round(sum(one["cost_per_min"] for one in members), 6),
    }


def region_row(region: Region | None) -> Row | None:
    return None if region is None else region._asdict()


def layers(
    nodes: Sequence[Row], layout: str, places: Mapping[str, ClusterPlace]
) -> tuple[list[Row], list[str]]:
    """The hulls of a layout, by type or by region, and the clusters without a place."""
    gathered: dict[str, list[Row]] = {}
    regions: dict[str, Region] = {}
    unplaced: set[str] = set()
    for one in nodes:
        if layout == "logical":
            gathered.setdefault(one["agent_type"] or "", []).append(one)
            continue
        region = cluster_region(one["cluster_id"], places)
        if region is None:
            unplaced.add(one["cluster_id"] or "")
        else:
            regions[region.region] = region
            gathered.setdefault(region.region, []).append(one)
    made = []
    for key, members in sorted(gathered.items()):
        shown: Row = {"id": f"type:{key}" if layout == "logical" else key, "name": key or "(none)"}
        if layout == "geographic":
            spot = regions[key]
            shown |= {"name": spot.name, "lat": spot.lat, "lon": spot.lon}
            shown["clusters"] = sorted({one["cluster_id"] for one in members})
        made.append(shown | summed(members))
    return made, sorted(unplaced)


def bundled(
    edges: Iterable[Row], shown: Sequence[Row], key_of: Callable[[str], tuple[str, bool]]
) -> list[Row]:
    """Edges between what is shown; traffic within a group is counted on the group.

    `key_of` an agent is what represents it, and whether that is part of what was asked for: an edge needs
    one such end, the other may be a cluster outside.
    """
    within = {group["id"]: group for group in shown}
    found: dict[tuple[str, str | None], Row] = {}
    for edge in edges:
        start, starts_here = key_of(edge["from"])
        end, ends_here = key_of(edge["to"]) if edge["to"] is not None else (None, False)
        if not (starts_here or ends_here):
            continue
        if start == end:
            group = within.get(start, {"internal_per_s": 0.0})
            group["internal_per_s"] = round(group.get("internal_per_s", 0.0) + edge["rate_per_s"], 4)
            continue
        known = found.get((start, end))
        if known is None:
            found[start, end] = edge | {"from": start, "to": end, "edges": 1, "kinds": list(edge["kinds"])}
            continue
        _bundle(known, edge)
    return sorted(found.values(), key=lambda edge: (-edge["messages"], str(edge["from"]), str(edge["to"])))


def _bundle(known: Row, edge: Row) -> None:
    known["edges"] += 1
    known["kinds"] = sorted({*known["kinds"], *edge["kinds"]})
    before, mean = known["messages"], known["latency_mean_ms"]
    for name in ("messages", "messages_60s", "failures", "unacknowledged"):
        known[name] = round(known[name] + edge[name], 3)
    known["rate_per_s"] = round(known["messages_60s"] / RECENT_S, 4)
    for name in ("latency_p50_ms", "latency_p95_ms"):  # the slowest: percentiles do not add up
        known[name] = max((ms for ms in (known[name], edge[name]) if ms is not None), default=None)
    if edge["latency_mean_ms"] is not None:
        other = edge["latency_mean_ms"]
        whole = before + edge["messages"]
        known["latency_mean_ms"] = (
            other if mean is None else round((mean * before + other * edge["messages"]) / max(1, whole), 3)
        )
    if RANK[edge["status"]] > RANK[known["status"]]:
        known["status"], known["reason"] = edge["status"], edge["reason"]


def level_for(nodes: Sequence[Row], asked: Level, limit: int) -> tuple[Level, str | None]:
    """The finest level not above `limit` items, no finer than asked for; and why it differs."""
    for level in LEVELS[LEVELS.index(asked) :]:
        count = len({group_key(one, level) for one in nodes}) if level != "agent" else len(nodes)
        if count <= limit or level == "cluster":
            if level == asked:
                return level, None
            note = f"{len(nodes)} agents are more than the limit of {limit}: answered by {level}"
            return level, f"{note}; ask for a cluster or a group, or for a higher limit"
    return "cluster", None

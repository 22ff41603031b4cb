"""Builds the map answer from everything it is made of.

Pure. Live, states come from facts of the record; in a replay from one minute's counters, and the note says
what those do not record.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from observatory.features.fleet import map as drawn
from observatory.features.fleet import types_edges as traffic
from observatory.features.fleet.regions import ClusterPlace, cluster_region
from observatory.features.fleet.types_node_states import AgentFacts, judge, judge_replay
from observatory.features.fleet.types_traffic import AgentMinute, EdgeSum, Fork
from observatory.pipeline.ports import TrafficEdge
from observatory.protocol.clock import from_ns

MINUTE = 60_000_000_000
MAX_EDGES, MAX_ALARMS = 5_000, 200
Row = dict[str, Any]
BEHIND = (
    "Partial history: states come from minute counters; paused, held and silent states, and alarms raised "
    "earlier, are not recorded"
)


class MapQuery(NamedTuple):
    layout: str
    level: drawn.Level
    cluster: str | None
    group: str | None
    limit: int


class MapData(NamedTuple):
    """Everything the map is built from."""

    agents: list[Row]
    facts: dict[int, AgentFacts] | None  # by agent number; None in a replay
    minutes: list[AgentMinute]
    counts: list[TrafficEdge]
    latencies: list[tuple[int, int, int]]
    sums: list[EdgeSum]
    now_ns: int  # the end of the minute, in a replay


def draw_map(
    scene: MapData,
    asked: MapQuery,
    places: dict[str, ClusterPlace],
    window_s: int,
    forks: list[Fork],
    sessions: dict[int, str],
) -> Row:
    """CPU work over thousands of agents: run it in a thread, so that it does not block the event loop."""
    nodes = _nodes(scene, window_s)
    every = traffic.flows(scene.counts, scene.latencies, scene.sums, nodes, scene.now_ns)
    selected = [
        one
        for one in nodes.values()
        if (asked.cluster is None or (one["cluster_id"] or "") == asked.cluster)
        and (asked.group is None or (one["agent_type"] or "") == asked.group)
    ]
    level, note = drawn.level_for(selected, asked.level, asked.limit)
    groups = drawn.groups(selected, "group" if level == "agent" else level, places)
    shown = selected if level == "agent" else groups
    # What represents each agent: itself or its group; for those not asked for, their cluster.
    keys = {one["id"]: (drawn.group_key(one, "cluster"), False) for one in nodes.values()}
    keys |= {one["id"]: (drawn.group_key(one, level), True) for one in selected}
    edges = drawn.bundled(every, shown, keys.__getitem__)
    hulls, unplaced = drawn.layers(selected, asked.layout, places)
    if asked.layout == "geographic" and level == "agent":
        for one in selected:
            one["region"] = drawn.region_row(cluster_region(one["cluster_id"], places))
    return {
        "layout": asked.layout,
        "level": level,
        "aggregated": level != asked.level,
        "note": note or (BEHIND if scene.facts is None else None),
        "agents": len(selected),
        "nodes": sorted(selected, key=lambda one: str(one["id"])) if level == "agent" else [],
        "groups": groups[: asked.limit],
        "groups_count": len(groups),
        "edges": edges[:MAX_EDGES],
        "edges_count": len(edges),
        "layers": hulls,
        "unplaced": unplaced,
        "alarms": _hud(selected, edges),
        "throughput": _throughput(scene, every),
        "forks": [_fork(fork, nodes, sessions) for fork in forks],
    }


def _nodes(scene: MapData, window_s: int) -> dict[int, Row]:
    """By agent number."""
    lately = _lately(scene)
    made: dict[int, Row] = {}
    for row in scene.agents:
        number = row["agent_no"]
        flow = lately.get(number, {})
        if scene.facts is None:
            judged = judge_replay(
                int(flow.get("violations", 0)),
                int(flow.get("alerts", 0)),
                int(flow.get("messages", 0)),
                row["evicted_ns"],
                scene.now_ns,
            )
            made[number] = drawn.node(row | {"last_seen_ns": 0}, judged, "unknown", flow, [])
            continue
        facts = scene.facts[number]
        judged = judge(facts, scene.now_ns, window_s)
        alarms = drawn.alarms_of(facts, scene.now_ns, window_s)
        made[number] = drawn.node(row, judged, facts.liveness, flow, alarms)
    return made


def _lately(scene: MapData) -> dict[int, dict[str, float]]:
    """What each agent did in the last 60 s, or in the minute replayed."""
    minute = scene.now_ns // MINUTE
    found: dict[int, dict[str, float]] = {}
    for one in scene.minutes:
        flow = found.setdefault(one.agent_no, {})
        for name in ("messages", "failures", "violations", "alerts", "cost"):
            value = float(getattr(one, name))
            if scene.facts is not None:
                now = (value, 0.0) if one.minute == minute else (0.0, value)
                value = traffic.sliding(*now, scene.now_ns)
            flow[name] = flow.get(name, 0.0) + value
    return found


def _hud(nodes: list[Row], edges: list[Row]) -> list[Row]:
    """Alarms shown on the map, of nodes and of edges, the worst first."""
    found = [
        alarm | {"on": "node", "id": one["id"], "cluster_id": one["cluster_id"], "from": None, "to": None}
        for one in nodes
        for alarm in one["alarms"]
    ]
    found += [
        drawn.alarm(
            edge["status"].lower(), "critical" if edge["status"] == "Blocked" else "warning", edge["reason"]
        )
        | {
            "on": "edge",
            "id": f"{edge['from']} → {edge['to'] or edge['address']}",
            "cluster_id": None,
            "from": edge["from"],
            "to": edge["to"],
        }
        for edge in edges
        if edge["status"] != "Healthy"
    ]
    return sorted(found, key=lambda alarm: alarm["severity"] != "critical")[:MAX_ALARMS]


def _throughput(scene: MapData, every: list[Row]) -> Row:
    lately = _lately(scene).values()
    messages = sum(flow.get("messages", 0.0) for flow in lately)
    return {
        "messages_60s": round(messages, 3),
        "rate_per_s": round(messages / traffic.RECENT_S, 4),
        "failures_60s": round(sum(flow.get("failures", 0.0) for flow in lately), 3),
        "violations_60s": round(sum(flow.get("violations", 0.0) for flow in lately), 3),
        "cost_per_min": round(sum(flow.get("cost", 0.0) for flow in lately), 6),
        "edges": len(every),
    }


def _fork(fork: Fork, nodes: dict[int, Row], sessions: dict[int, str]) -> Row:
    def name(number: int) -> str | None:
        return nodes[number]["agent_id"] if number in nodes else None

    return {
        "session_id": sessions.get(fork.session_no),
        "sequence_number": fork.seq,
        "agent_id": name(fork.agent_no),
        "at": from_ns(fork.at_ns),
        "children": fork.children,
        "to": [found for number in fork.child_agents if (found := name(number)) is not None],
    }

"""States of nodes, status of causal edges, groups: pure rules, each by its number."""

from __future__ import annotations

from typing import Any

import pytest

from observatory.features.fleet import map as fleet
from observatory.features.fleet.types_edges import causal_status, flows, sliding
from observatory.features.fleet.types_node_states import (
    COLOURS,
    MARKS,
    SECOND,
    SHAPES,
    WORST,
    AgentFacts,
    Halt,
    LoopAlarm,
    judge,
    judge_replay,
    worst_state,
)
from observatory.features.fleet.types_traffic import EdgeSum
from observatory.pipeline.ports import TrafficEdge

NOW = 1_000_000 * SECOND
LOOP, WARNING = LoopAlarm("loop", "ses-1", "ratio"), LoopAlarm("warning", "ses-1", "ratio")
KILL, PAUSE, HOLD = Halt("kill", "everything", 1), Halt("pause", "ses-1", 1), Halt("hold", "gate", 1, 2)
EVERYTHING = AgentFacts("evicted", NOW, NOW, (WARNING, LOOP), (HOLD, PAUSE, KILL), NOW - SECOND, NOW - SECOND)


def without(facts: AgentFacts, **less: Any) -> AgentFacts:
    return facts._replace(**less)


LADDER = [
    (EVERYTHING, "dead", 1),
    (without(EVERYTHING, liveness="zombie"), "dead", 2),
    (alive := without(EVERYTHING, liveness="healthy"), "alert_entropy", 3),
    (calm := without(alive, alarms=(WARNING,)), "schema_violation", 4),
    (valid := without(calm, violation_ns=None), "blocked", 5),
    (without(valid, halts=(HOLD, PAUSE)), "blocked", 6),
    (without(valid, halts=(HOLD,)), "blocked", 7),
    (free := without(valid, halts=()), "blocked", 8),
    (well := without(free, alarms=()), "active", 9),
    (without(well, last_seen_ns=NOW - 30 * SECOND), "idle", 10),
    (AgentFacts(), "idle", 10),
]


@pytest.mark.parametrize(("facts", "state", "rule"), LADDER)
def test_the_first_rule_that_holds_gives_the_state(facts: AgentFacts, state: str, rule: int) -> None:
    """S226: each rung lacks what the one above it had."""
    judged = judge(facts, NOW, 30)
    assert (judged.state, judged.rule) == (state, rule)
    assert judged.reason and "None" not in judged.reason


@pytest.mark.parametrize(
    ("facts", "word"),
    [
        (EVERYTHING, "evicted 1 s ago"),
        (alive, "is looping in session ses-1"),
        (without(valid, halts=(PAUSE,)), "paused in session ses-1"),
        (without(valid, halts=(HOLD,)), "2 messages are held (gate)"),
        (valid, "kill switch on everything"),
        (without(well, last_seen_ns=NOW - 7_300 * SECOND), "for 2 h"),
        (AgentFacts(), "nothing yet"),
    ],
)
def test_a_state_has_a_reason_in_words(facts: AgentFacts, word: str) -> None:
    """S226"""
    assert word in judge(facts, NOW, 30).reason


def test_liveness_never_comes_from_messages() -> None:
    """S226: silent for a year without ever a heartbeat is idle; a heartbeat alone makes nobody active."""
    assert judge(AgentFacts("unknown", NOW - 31_536_000 * SECOND), NOW, 30).state == "idle"
    assert judge(AgentFacts("healthy", NOW - 60 * SECOND, heartbeat_ns=NOW), NOW, 30).state == "idle"
    assert judge(AgentFacts("zombie", NOW, heartbeat_ns=NOW - 31 * SECOND), NOW, 30).state == "dead"


def test_a_violation_marks_for_its_window() -> None:
    """S226"""
    assert judge(AgentFacts(violation_ns=NOW - 29 * SECOND), NOW, 30).state == "schema_violation"
    assert judge(AgentFacts(violation_ns=NOW - 30 * SECOND), NOW, 30).state == "idle"


def test_every_state_has_a_colour_a_mark_and_a_shape_of_its_own() -> None:
    """S226: colour is never the only sign."""
    for signs in (COLOURS, MARKS, SHAPES):
        assert set(signs) == set(WORST) and len(set(signs.values())) == 6
    assert COLOURS == {
        "idle": "#6b7280", "active": "#3b82f6", "alert_entropy": "#ef4444", "schema_violation": "#f97316",
        "dead": "#374151", "blocked": "#f59e0b",
    }  # fmt: skip
    assert fleet.sign("alert_entropy")["flashing"] and not fleet.sign("dead")["flashing"]


def test_a_replay_tells_what_minute_counters_tell() -> None:
    """S233"""
    assert judge_replay(1, 1, 5, NOW - 1, NOW).state == "dead"
    assert judge_replay(1, 1, 5, NOW + 1, NOW).state == "alert_entropy"  # evicted later
    assert judge_replay(1, 0, 5, None, NOW).state == "schema_violation"
    assert judge_replay(0, 0, 5, None, NOW).state == "active"
    assert judge_replay(0, 0, 0, None, NOW).state == "idle"


def edge(**more: int) -> EdgeSum:
    values = {"messages": 10, "failures": 0, "latency_ms": 100, "current": 6, "previous": 4}
    values |= {"failed_lately": 0, "latency_lately_ms": 0} | more
    return EdgeSum(1, 2, "causal", **values)


@pytest.mark.parametrize(
    ("one", "rule", "expected"),
    [
        (edge(), 9, "Healthy"),
        (edge(), 8, "Healthy"),  # a warning stops nobody
        (edge(), 1, "Blocked"),
        (edge(), 5, "Blocked"),
        (edge(), 6, "Blocked"),
        (edge(), 7, "Blocked"),
        (edge(), 2, "Alert"),
        (edge(), 3, "Alert"),
        (edge(failed_lately=5), 9, "Alert"),
        (edge(failed_lately=4), 9, "Healthy"),
        (edge(current=3, previous=0, failed_lately=3), 9, "Healthy"),  # too few to tell
        (edge(latency_lately_ms=600_001), 9, "Alert"),
        (edge(latency_lately_ms=600_000), 9, "Healthy"),
        (edge(current=0, previous=0), 9, "Healthy"),
    ],
)
def test_the_status_of_a_causal_edge(one: EdgeSum, rule: int, expected: str) -> None:
    """S232"""
    receiver = {"agent_id": "b", "rule": rule, "reason": "because", "liveness": "healthy"}
    status, reason = causal_status(one, receiver)
    assert status == expected and (reason is None) == (status == "Healthy")


def people(**rules: int) -> dict[int, dict[str, Any]]:
    return {
        number: {"agent_id": name, "rule": rule, "reason": "because", "liveness": "healthy"}
        for number, (name, rule) in enumerate(rules.items(), 1)
    }


def test_a_pair_has_one_edge_with_what_was_addressed_and_what_followed() -> None:
    """S231, S232: the worse of both is its status; who is not on the map has no edge."""
    half = NOW - NOW % (60 * SECOND) + 30 * SECOND
    counts = [
        TrafficEdge(1, 2, None, 120, 60, 0, None),
        TrafficEdge(1, 0, "type:x", 3, 3, 3, half),
        TrafficEdge(0, 2, None, 9, 9, 0, None),  # a person wrote
    ]
    spent = [(1, 2, n * 1_000_000) for n in range(1, 101)]
    sums = [edge(failed_lately=6), EdgeSum(2, 9, "causal", 1, 0, 0, 1, 0, 0, 0)]
    first, parked = flows(counts, spent, sums, people(a=9, b=9), half)
    assert (first["from"], first["to"], first["kinds"]) == ("a", "b", ["message", "causal"])
    assert (first["messages"], first["messages_60s"]) == (130, 60 + 6 + 4 * 0.5)
    assert first["rate_per_s"] == round(68 / 60, 4)
    assert (first["latency_p50_ms"], first["latency_p95_ms"], first["latency_mean_ms"]) == (50.0, 95.0, 10.0)
    assert first["status"] == "Alert" and "failed" in first["reason"]
    assert (parked["to"], parked["address"], parked["status"]) == (None, "type:x", "Blocked")


def test_the_minute_before_fades_as_this_one_passes() -> None:
    """S231"""
    start = NOW - NOW % (60 * SECOND)
    assert sliding(10, 60, start) == 70
    assert sliding(10, 60, start + 30 * SECOND) == 40
    assert round(sliding(10, 60, start + 60 * SECOND - 1), 3) == 10


def member(name: str, kind: str, cluster: str | None, state: str = "active", rate: float = 6.0) -> Any:
    agent = {
        "agent_id": name, "entity_id": f"agt_{name}", "display_name": None, "agent_type": kind,
        "cluster_id": cluster, "messages": 1, "last_seen_ns": NOW,
    }  # fmt: skip
    from observatory.features.fleet.types_node_states import JudgedState

    judged = JudgedState(state, 9, "because")  # type: ignore[arg-type]
    alarms = [] if state != "alert_entropy" else [fleet.alarm("loop", "critical", "goes in circles")]
    return fleet.node(agent, judged, "unknown", {"messages": rate, "cost": 0.5}, alarms)


CREW = [
    member("a", "writer", "aws-eu-central-1"),
    member("b", "writer", "aws-eu-central-1", "alert_entropy"),
    member("c", "reader", "aws-eu-central-1", "dead", 0),
    member("d", "reader", "onprem", "idle", 0),
    member("e", "reader", None, "idle", 0),
]


def test_groups_count_states_and_show_the_worst() -> None:
    """S229"""
    clusters = {group["id"]: group for group in fleet.groups(CREW, "cluster", {})}
    assert set(clusters) == {"cluster:aws-eu-central-1", "cluster:onprem", "cluster:"}
    busy = clusters["cluster:aws-eu-central-1"]
    assert (busy["agents"], busy["state"], busy["mark"]) == (3, "alert_entropy", "⟲")
    assert (busy["states"]["active"], busy["states"]["dead"]) == (1, 1)
    assert (busy["rate_per_s"], busy["cost_per_min"], busy["alarms_count"]) == (0.2, 1.5, 1)
    assert busy["alarms"][0]["agent_id"] == "b" and busy["region"]["name"] == "Frankfurt"
    assert clusters["cluster:onprem"]["region"] is None
    kinds = {group["id"] for group in fleet.groups(CREW, "group", {})}
    assert "group:aws-eu-central-1/writer" in kinds and len(kinds) == 4
    assert worst_state({"idle": 5, "dead": 1, "blocked": 1}) == "blocked" and worst_state({}) == "idle"


def test_layers_are_types_or_regions_and_nobody_stands_on_a_wrong_spot() -> None:
    """S229, S230"""
    kinds, unplaced = fleet.layers(CREW, "logical", {})
    assert [(kind["id"], kind["agents"]) for kind in kinds] == [("type:reader", 3), ("type:writer", 2)]
    assert unplaced == []
    regions, unplaced = fleet.layers(CREW, "geographic", {})
    assert [(region["id"], region["clusters"]) for region in regions] == [
        ("aws:eu-central-1", ["aws-eu-central-1"])
    ]
    assert unplaced == ["", "onprem"]


@pytest.mark.parametrize(
    ("asked", "limit", "level"),
    [
        ("agent", 5, "agent"),
        ("agent", 4, "group"),
        ("agent", 3, "cluster"),
        ("group", 3, "cluster"),
        ("cluster", 1, "cluster"),
    ],
)
def test_above_the_limit_the_answer_is_by_group_and_says_so(
    asked: fleet.Level, limit: int, level: str
) -> None:
    """S229"""
    found, note = fleet.level_for(CREW, asked, limit)
    assert found == level and (note is None) == (found == asked)


def test_edges_between_groups_add_up_and_keep_the_worst() -> None:
    """S229, S231"""
    base = {
        "address": None, "kinds": ["causal"], "messages": 10, "messages_60s": 6.0, "rate_per_s": 0.1,
        "failures": 1, "latency_p50_ms": None, "latency_p95_ms": None, "latency_mean_ms": 10.0,
        "unacknowledged": 0, "status": "Healthy", "reason": None,
    }  # fmt: skip
    edges = [
        base | {"from": "a", "to": "d"},
        base | {"from": "b", "to": "d", "status": "Alert", "reason": "late", "latency_mean_ms": 30.0},
        base | {"from": "a", "to": "b"},
        base | {"from": "d", "to": "e"},
    ]
    by_name = {one["id"]: one for one in CREW}
    groups = fleet.groups(CREW, "cluster", {})

    def key_of(name: str) -> tuple[str, bool]:
        return fleet.group_key(by_name[name], "cluster"), name != "e" and name != "d"

    (found,) = fleet.bundled(edges, groups, key_of)
    assert (found["from"], found["to"], found["edges"]) == ("cluster:aws-eu-central-1", "cluster:onprem", 2)
    assert (found["messages"], found["status"], found["reason"]) == (20, "Alert", "late")
    assert found["latency_mean_ms"] == 20.0
    assert next(g for g in groups if g["id"] == "cluster:aws-eu-central-1")["internal_per_s"] == 0.1

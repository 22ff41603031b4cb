"""The map through its door: states, groups, edges, forks, alarms, regions, replay, and a thousand agents."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.flows.fleet import Json, ack, inbox, named, received, say
from tests.flows.graphs import ask, send_all
from tests.flows.insight import settled
from tests.flows.server import Server
from tests.flows.tenant import Tenant
from tests.flows.workers import ASIA, EU, OWN, did, work
from tests.samples import decision_log


def fleet(server: Server, **query: Any) -> Json:
    return ask(server, "/v1/fleet", "viewer" if not isinstance(server, Tenant) else "operator", **query)


def nodes(shown: Json) -> dict[str, Json]:
    return {node["id"]: node for node in shown["nodes"]}


def edge(shown: Json, start: str, end: str | None) -> Json:
    (found,) = [one for one in shown["edges"] if (one["from"], one["to"]) == (start, end)]
    return dict(found)


def at_work(server: Server, agent: str, kind: str, cluster: str, *parents: str, **more: Any) -> str:
    return did(server, agent, *parents, kind=kind, cluster=cluster, **more)


def going_round(server: Server, agent: str) -> None:
    for _ in range(5):
        did(
            server,
            agent,
            session="ses-loop",
            kind="researcher",
            intent="Find it",
            status="failure",
            tool="serp",
        )


@pytest.mark.req(152, 163, 166, 167, 168, 169, 170)
def test_every_state_is_shown_by_colour_mark_and_reason(either_tenant: Tenant) -> None:
    """S226: precedence by numbered rules; S229: groups count them."""
    server, door = either_tenant, either_tenant.http("operator")
    at_work(server, "busy", "writer", EU)
    going_round(server, "looper")
    at_work(server, "sloppy", "writer", EU)
    bad = decision_log(identity={"agent_id": "sloppy"}, action={"status": "nonsense"})
    assert server.send(bad).status_code == 422
    assert (
        server.send(decision_log(identity={"agent_id": "stranger"}, action={"status": 1})).status_code == 422
    )
    at_work(server, "stopped", "writer", ASIA, session="ses-stop")
    assert door.post("/v1/sessions/ses-stop/pause", json={"agent_id": "stopped"}).status_code == 202
    at_work(server, "asker", "publisher", ASIA, session="ses-ask")
    gate = work("asker", session="ses-ask", kind="publisher", cluster=ASIA, hitl=True)
    assert server.send(gate).json()["state"] == "held"
    at_work(server, "gone", "writer", ASIA)
    assert door.post("/v1/agents/gone/evict", json={}).status_code == 200
    assert door.post("/v1/agents", json={"agent_id": "quiet", "agent_type": "writer"}).status_code == 201
    settled(server)
    shown = fleet(server)
    found = nodes(shown)
    told_of = {name: (one["state"], one["rule"], one["colour"], one["mark"]) for name, one in found.items()}
    assert told_of == {
        "busy": ("active", 9, "#3b82f6", "▸"),
        "looper": ("alert_entropy", 3, "#ef4444", "⟲"),
        "sloppy": ("schema_violation", 4, "#f97316", "!"),
        "stranger": ("schema_violation", 4, "#f97316", "!"),
        "stopped": ("blocked", 6, "#f59e0b", "‖"),
        "asker": ("blocked", 7, "#f59e0b", "‖"),
        "gone": ("dead", 1, "#374151", "×"),
        "quiet": ("idle", 10, "#6b7280", "·"),
    }
    assert [name for name, one in found.items() if one["flashing"]] == ["looper"]
    assert {name for name, one in found.items() if one["ghost"]} == {"stranger", "quiet"}
    assert all(one["reason"] for one in found.values()) and "ses-loop" in found["looper"]["reason"]
    # The registry says the same.
    for agent in ask(server, "/v1/agents")["items"]:
        assert (agent["state"], agent["mark"]) == told_of[agent["agent_id"]][::3], agent["agent_id"]
    groups = {group["id"]: group for group in shown["groups"]}
    assert groups[f"group:{EU}/researcher"]["state"] == "alert_entropy"
    clusters = {group["id"]: group for group in fleet(server, level="cluster")["groups"]}
    asia = clusters[f"cluster:{ASIA}"]
    assert (asia["agents"], asia["state"], asia["states"]["dead"], asia["states"]["blocked"]) == (
        3,
        "blocked",
        1,
        2,
    )


@pytest.mark.req(165)
def test_alarms_stand_on_the_icons_of_nodes_and_edges(either_tenant: Tenant) -> None:
    """S234: with the session they are about, on the group's icon too."""
    server = either_tenant
    first = at_work(server, "planner", "planner", EU, session="ses-stop")
    at_work(server, "worker", "writer", EU, first, session="ses-stop")
    going_round(server, "looper")
    paused = server.http("operator").post("/v1/sessions/ses-stop/pause", json={"agent_id": "worker"})
    assert paused.status_code == 202
    settled(server)
    shown = fleet(server)
    (loop,) = [alarm for alarm in nodes(shown)["looper"]["alarms"] if alarm["detector"] == "ratio"]
    assert (loop["kind"], loop["severity"], loop["session_id"]) == ("loop", "critical", "ses-loop")
    (pause,) = nodes(shown)["worker"]["alarms"]
    assert (pause["kind"], pause["session_id"]) == ("paused", "ses-stop") and pause["since"]
    hud = {(alarm["on"], alarm["id"], alarm["kind"]) for alarm in shown["alarms"]}
    assert {("node", "looper", "loop"), ("node", "worker", "paused")} <= hud
    assert ("edge", "planner → worker", "blocked") in hud
    (cluster,) = fleet(server, level="cluster")["groups"]
    assert cluster["alarms_count"] >= 2 and cluster["alarms"][0]["agent_id"] == "looper"


@pytest.mark.req(158, 160, 161, 162)
def test_edges_tell_rate_latency_and_status_of_what_was_addressed_and_what_followed(
    either_tenant: Tenant,
) -> None:
    """S231, S232: and a fork shows at once."""
    server = either_tenant
    say(server, "writer", kind="writer", session="ses-map")
    root = at_work(server, "planner", "planner", EU)
    for number in range(4):
        at_work(server, f"reader-{number % 2}", "reader", ASIA, root)
    say(server, "planner", "writer", kind="planner", session="ses-map", cluster=EU)
    ack(server, "writer", *inbox(server, "writer"))
    for _ in range(4):
        at_work(server, "runner", "runner", EU, root, status="failure")
    settled(server)
    shown = fleet(server)
    causal = edge(shown, "planner", "reader-0")
    assert (causal["kinds"], causal["messages"], causal["status"]) == (["causal"], 2, "Healthy")
    assert causal["latency_mean_ms"] >= 0 and 0 < causal["messages_60s"] <= 2
    assert causal["rate_per_s"] == round(causal["messages_60s"] / 60, 4)
    addressed = edge(shown, "planner", "writer")
    assert (addressed["kinds"], addressed["messages_60s"], addressed["unacknowledged"]) == (["message"], 1, 0)
    assert addressed["latency_p50_ms"] >= 0 and addressed["status"] == "Healthy"
    failing = edge(shown, "planner", "runner")
    assert (failing["status"], failing["failures"]) == ("Alert", 4) and "failed" in failing["reason"]
    (fork,) = shown["forks"]
    assert (fork["agent_id"], fork["session_id"], fork["children"]) == ("planner", "ses-map", 8)
    assert set(fork["to"]) == {"reader-0", "reader-1", "runner"}
    throughput = shown["throughput"]
    assert 0 < throughput["messages_60s"] <= 11 and throughput["failures_60s"] <= 4
    between = fleet(server, level="cluster")
    across = edge(between, f"cluster:{EU}", f"cluster:{ASIA}")
    assert (across["messages"], across["edges"]) == (4, 2)


@pytest.mark.req(159, 163, 164)
def test_the_drill_down_is_the_same_in_both_layouts(either_tenant: Tenant) -> None:
    """S229: cluster, group, agent; S230: what has no known place is listed, not guessed."""
    server = either_tenant
    first = at_work(server, "a-1", "writer", EU)
    at_work(server, "a-2", "reader", EU, first)
    at_work(server, "b-1", "reader", ASIA, first)
    at_work(server, "c-1", "reader", OWN)
    settled(server)
    for layout in ("logical", "geographic"):
        clusters = fleet(server, layout=layout, level="cluster")
        assert {group["name"]: group["agents"] for group in clusters["groups"]} == {EU: 2, ASIA: 1, OWN: 1}
        groups = fleet(server, layout=layout, level="group", cluster=EU)
        assert {group["id"] for group in groups["groups"]} == {f"group:{EU}/writer", f"group:{EU}/reader"}
        agents = fleet(server, layout=layout, level="agent", cluster=EU, group="reader")
        assert [node["id"] for node in agents["nodes"]] == ["a-2"]
        # The way in and out of what was asked for: its other end is the cluster it lies in.
        assert edge(agents, f"cluster:{EU}", "a-2")["messages"] == 1
    logical, earth = fleet(server), fleet(server, layout="geographic")
    assert {layer["id"]: layer["agents"] for layer in logical["layers"]} == {
        "type:writer": 1,
        "type:reader": 3,
    }
    places = {layer["id"]: (layer["name"], layer["clusters"]) for layer in earth["layers"]}
    assert places == {
        "aws:eu-central-1": ("Frankfurt", [EU]),
        "gcp:asia-southeast1": ("Singapore", [ASIA]),
    }
    assert earth["unplaced"] == [OWN] and nodes(earth)["c-1"]["region"] is None
    assert nodes(earth)["a-1"]["region"]["lat"] == 50.1


@pytest.mark.req(159)
def test_operators_say_where_clusters_stand_and_it_is_audited(either_tenant: Tenant) -> None:
    """S230: all faults at once, nothing changed by a bad one; coordinates are text in the trail."""
    server, door = either_tenant, either_tenant.http("operator")
    at_work(server, "c-1", "reader", OWN)
    at_work(server, "a-1", "reader", EU)
    before = ask(server, "/v1/fleet/regions")
    assert before["unplaced"] == [OWN] and len(before["known"]) > 70
    assert [(one["cluster_id"], one["by"]) for one in before["placed"]] == [(EU, "name")]
    bad = door.put(
        "/v1/fleet/regions",
        json={"clusters": {"x": {"region": "mars"}, "y": {"lat": 91, "lon": 0}, "z": {"lat": 1}, "ok": {}}},
    )
    assert bad.status_code == 422
    paths = [fault["path"] for fault in bad.json()["faults"]]
    assert paths == ["clusters[0]", "clusters[1].lat", "clusters[2]"]
    assert ask(server, "/v1/fleet/regions") == before
    said = {OWN: {"name": "Zürich", "lat": 47.4, "lon": 8.5}, "aws-*": {"region": "eu-west-1"}}
    good = door.put("/v1/fleet/regions", json={"clusters": said})
    assert good.status_code == 200 and good.json()["unplaced"] == []
    spots = {one["cluster_id"]: (one["name"], one["by"]) for one in good.json()["placed"]}
    assert spots == {OWN: ("Zürich", "operator"), EU: ("Ireland", "operator")}
    assert nodes(fleet(server, layout="geographic"))["c-1"]["region"]["lon"] == 8.5
    (event,) = received(server, "setting_changed", setting="regions")
    assert event["body"]["changed"] == ["aws-*", OWN]
    assert event["body"]["after"][OWN] == {"name": "Zürich", "lat": "47.4", "lon": "8.5"}
    assert door.put("/v1/fleet/regions", json={"clusters": said}).status_code == 200
    assert len(received(server, "setting_changed", setting="regions")) == 1  # nothing changed
    assert door.put("/v1/fleet/regions", json={"clusters": {}}).json()["unplaced"] == [OWN]


def test_the_map_of_any_minute_can_be_seen_again(either_tenant: Tenant) -> None:
    """S233: who was there, who spoke, what went between them, and what cannot be told is said."""
    server = either_tenant
    first = at_work(server, "planner", "planner", EU)
    at_work(server, "worker", "writer", ASIA, first)
    say(server, "planner", "worker", kind="planner", session="ses-map", cluster=EU)
    settled(server)
    before = "2020-01-01T00:00:00Z"
    empty = fleet(server, at=before)
    assert (empty["replayed"], empty["nodes"], empty["edges"]) == (True, [], [])
    assert (empty["minute"]["from"][:19], empty["minute"]["to"][:19]) == (
        "2020-01-01T00:00:00",
        "2020-01-01T00:01:00",
    )
    # The steps may lie in two minutes: both together are what happened.
    sent = [
        ask(server, "/v1/audit/trace/ses-map")["items"][0],
        ask(server, "/v1/audit/trace/ses-map")["items"][-1],
    ]
    minutes = {event["observed_timestamp"][:17]: event["observed_timestamp"] for event in sent}
    shown = [fleet(server, at=moment) for moment in minutes.values()]
    spoke = {node["id"] for one in shown for node in one["nodes"] if node["state"] == "active"}
    assert spoke == {"planner", "worker"}
    carried = [
        one for each in shown for one in each["edges"] if (one["from"], one["to"]) == ("planner", "worker")
    ]
    assert sum(one["messages"] for one in carried) == 2
    assert {kind for one in carried for kind in one["kinds"]} == {"causal", "message"}
    assert all("Partial history" in one["note"] for one in shown)


@pytest.mark.parametrize(
    "query",
    [
        {"at": "yesterday"},
        {"at": "2200-01-01T00:00:00Z"},
        {"limit": 0},
        {"limit": 9_999},
        {"layout": "x"},
        {"level": "y"},
    ],
)
def test_what_cannot_be_meant_is_refused_in_a_sentence(server: Server, query: Json) -> None:
    """S229"""
    answer = server.http("operator").get("/v1/fleet", params=query)
    assert answer.status_code == 400 and answer.json()["detail"], answer.text


@pytest.mark.req(157)
def test_a_thousand_agents_are_answered_by_group(either_tenant: Tenant) -> None:
    """S229: above the limit the answer is by group, with counts, and says so; asking for more gives all."""
    server = either_tenant
    clusters = [f"aws-eu-west-{number % 3 + 1}" for number in range(1_000)]
    lines = [
        work(f"agent-{number}", session=f"ses-{number % 50}", kind=f"type-{number % 7}", cluster=cluster)
        for number, cluster in enumerate(clusters)
    ]
    send_all(server, lines)
    settled(server)
    shown = fleet(server)
    assert (shown["level"], shown["aggregated"], shown["agents"], shown["nodes"]) == (
        "group",
        True,
        1_000,
        [],
    )
    assert "1000 agents are more than the limit of 500" in shown["note"]
    assert shown["groups_count"] == 21 and sum(group["agents"] for group in shown["groups"]) == 1_000
    assert sum(group["states"]["active"] for group in shown["groups"]) == 1_000
    by_cluster = fleet(server, limit=20)
    assert by_cluster["level"] == "cluster" and len(by_cluster["groups"]) == 3
    one = fleet(server, cluster="aws-eu-west-1")
    assert one["level"] == "agent" and len(one["nodes"]) == 334
    assert len(fleet(server, limit=1_000)["nodes"]) == 1_000
    assert len(json.dumps(shown)) < 100_000


def test_nobody_sees_another_tenants_map(either_tenant: Tenant, either_server: Server) -> None:
    """S229"""
    name = named("mine")
    at_work(either_tenant, name, "writer", EU)
    settled(either_tenant)
    assert name in nodes(fleet(either_tenant))
    theirs = either_server.http("admin").get("/v1/fleet", params={"limit": 2_000}).json()
    assert name not in {node["id"] for node in theirs["nodes"]}

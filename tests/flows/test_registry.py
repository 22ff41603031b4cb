"""The Registry through its doors: who the agents are, what they can do, and in which rooms they speak."""

from __future__ import annotations

from typing import Any

import pytest

from tests.flows.fleet import Json, agent_of, beat, named, received, say
from tests.flows.server import Server
from tests.samples import envelope


def register(server: Server, agent: str, role: str = "agent", **more: Any) -> tuple[int, Json]:
    answer = server.http(role).post("/v1/agents", json={"agent_id": agent, **more})
    return answer.status_code, answer.json()


def page_of(server: Server, capability: str) -> Json:
    items = server.http("viewer").get("/v1/capabilities").json()["items"]
    found: Json = next(item for item in items if item["capability"] == capability)
    return found


@pytest.mark.req(111, 526)
def test_an_agent_registers_itself_and_says_more_later(either_server: Server) -> None:
    """S128: 201 then 200; what is left out stays; trust is not taken from it."""
    server, name = either_server, named()
    code, made = register(
        server,
        name,
        agent_type="writer",
        capabilities=["edit", "proof"],
        cluster_id="west",
        display_name="W",
        team_id="t1",
        workspace_id="w1",
        trust_level="tenant_verified",
    )
    assert code == 201
    assert (made["agent_id"], made["display_name"], made["tenant_id"]) == (name, "W", "tnt_default")
    assert made["capabilities"] == ["writer", "edit", "proof"] and made["trust_level"] == "unverified"
    assert made["liveness"] == "unknown" and made["ghost"]
    code, again = register(server, name, model="m-1")
    assert (code, again["model"], again["cluster_id"]) == (200, "m-1", "west")
    events = received(server, "agent_registered", agent_id=name)
    assert events[0]["body"]["set"] == ["model"] and len(events) == 2
    code, _ = register(server, name, model="m-1")
    assert code == 200 and len(received(server, "agent_registered", agent_id=name)) == 2


def test_who_may_speak_for_an_agent(server: Server) -> None:
    """S129: a bound key only for its own, operators for any, readers for none."""
    mine, other = named(), named()
    made = server.http("admin").post("/v1/keys", json={"role": "agent", "label": "bound", "agent_id": mine})
    key = {"Authorization": f"Bearer {made.json()['key']}"}
    for door in ("agents", "heartbeat"):
        for name, code in ((mine, (200, 201)), (other, (403,))):
            answer = server.http("nobody").post(f"/v1/{door}", json={"agent_id": name}, headers=key)
            assert answer.status_code in code, answer.text
    assert agent_of(server, mine)["trust_level"] == "tenant_verified"
    assert register(server, other, "operator")[0] == 201
    for role in ("viewer", "auditor", "approver"):
        assert register(server, named(), role)[0] == 403
        assert server.http(role).post("/v1/heartbeat", json={"agent_id": mine}).status_code == 403
    assert server.http("nobody").post("/v1/agents", json={"agent_id": mine}).status_code == 401


def test_an_owner_is_a_user_of_the_tenant_and_no_agent_changes_it(server: Server) -> None:
    """S129"""
    users = server.http("admin").get("/v1/users").json()["items"]
    first, second = (user["user_id"] for user in users[:2])
    name = named()
    code, refused = register(server, name, owner="usr_nobody")
    assert code == 422 and "user of this tenant" in refused["detail"]
    assert register(server, name, owner=first)[1]["owner"] == first
    assert register(server, name, owner=second)[0] == 403
    assert register(server, name, "operator", owner=second)[1]["owner"] == second


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"agent_id": ""},
        {"agent_id": "a\u0001b"},
        {"agent_id": "a" * 257},
        {"agent_id": "a", "capabilities": ["x"] * 51},
        {"agent_id": "a", "capabilities": "x"},
        {"agent_id": 7},
    ],
)
def test_a_registration_that_is_none_is_refused(server: Server, body: Json) -> None:
    """S128"""
    answer = server.http("agent").post("/v1/agents", json=body)
    assert answer.status_code == 422 and answer.json()["detail"]


@pytest.mark.req(210, 211, 212)
def test_the_yellow_pages_tell_who_can_do_what(either_server: Server) -> None:
    """S145"""
    server, kind = either_server, named("kind")
    names = [named() for _ in range(3)]
    for index, name in enumerate(names):
        version, model = ("v1.0.0", "m-a") if index < 2 else ("v1.1.0", "m-b")
        say(server, name, kind=kind, cluster=f"{kind}-c", capability_version=version, model=model)
    beat(server, names[0], status="idle")
    register(server, names[2], capabilities=[f"{kind}-extra"])
    page = page_of(server, kind)
    assert (page["healthy"], page["unknown"], page["total"], page["is_agent_type"]) == (1, 2, 3, True)
    assert page["versions"] == {"v1.0.0": 2, "v1.1.0": 1} and page["models"] == {"m-a": 2, "m-b": 1}
    assert page["clusters"] == {f"{kind}-c": 3} and page["trust_levels"] == {"unverified": 3}
    assert page["breaker"] is None and page["weights"] is None
    extra = page_of(server, f"{kind}-extra")
    assert (extra["total"], extra["is_agent_type"]) == (1, False)
    params = [{"capability": kind}, {"cluster": f"{kind}-c"}, {"capability": kind, "liveness": "healthy"}]
    for where, count in zip(params, (3, 3, 1), strict=True):
        items = server.http("viewer").get("/v1/agents", params=where).json()["items"]
        assert len(items) == count
    assert server.http("viewer").get("/v1/agents", params={"liveness": "asleep"}).status_code == 400


@pytest.mark.req(500, 501, 502, 503)
def test_a_room_is_one_trace_and_tells_who_came_and_went(either_server: Server) -> None:
    """S134: room id, trace and session are one; replies hang on what they answer; leaving is told too."""
    server = either_server
    host, guest = named("host"), named("guest")
    room = named("room")
    first = say(server, host, session=room)
    assert received(server, "agent_joined_room", session_id=room) == []  # alone it is no room
    say(server, guest, session=room)
    say(server, guest, session=room)
    (joined,) = received(server, "agent_joined_room", session_id=room)
    assert joined["body"]["agent_id"] == guest and joined["severity_number"] == 9
    trace = server.http("viewer").get(f"/v1/sessions/{room}").json()["trace_id"]
    items = server.http("viewer").get(f"/v1/audit/trace/{trace}").json()["items"]
    speakers = {item["attributes"].get("av.sender.agent_id") for item in items}
    assert {host, guest} <= speakers and {item["trace_id"] for item in items} == {trace}
    assert joined["trace_id"] == trace
    trigger = next(
        item for item in items if item["hash_chain"]["sequence_number"] == first["sequence_number"]
    )
    reply = envelope(
        "text",
        trace_id=trace,
        parent_span_id=trigger["span_id"],
        sender={"entity_id": agent_of(server, guest)["entity_id"], "entity_type": "agent"},
        recipient={"entity_id": agent_of(server, host)["entity_id"], "entity_type": "agent"},
        metadata={"session_id": room},
    )
    assert server.send(reply).status_code == 202
    answered = server.http("viewer").get(f"/v1/audit/trace/{trace}").json()["items"][-1]
    assert answered["parent_span_id"] == trigger["span_id"]
    for expected in ("left", "already_left"):
        left = server.http("agent").post(f"/v1/sessions/{room}/leave", json={"agent_id": guest})
        assert (left.status_code, left.json()["state"]) == (200, expected)
    assert len(received(server, "agent_left_room", session_id=room)) == 1
    say(server, guest, session=room)
    assert len(received(server, "agent_joined_room", session_id=room)) == 2
    unknown = server.http("agent").post(f"/v1/sessions/{named()}/leave", json={"agent_id": guest})
    assert unknown.status_code == 404

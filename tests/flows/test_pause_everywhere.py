"""An agent paused everywhere is paused: in sessions not begun yet, by every way in, until it is lifted."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import connect

from observatory.protocol.identity import agent_entity_id
from tests.flows.databases import ALONE, new_database
from tests.flows.hand import answer as asked_by_hand
from tests.flows.hand import done
from tests.flows.server import Server
from tests.flows.test_kill_switch import engage, log, open_doors, release, wait_released
from tests.samples import decision_log, envelope

Json = dict[str, Any]


@pytest.fixture
def server(either_server: Server) -> Server:
    return either_server


@pytest.fixture
def name() -> str:
    return f"clerk-{uuid.uuid4().hex[:8]}"


def say(server: Server, agent: str, session: str | None = None) -> Json:
    step = str(uuid.uuid4())
    answer = server.send(log(session or str(uuid.uuid4()), step, agent))
    assert answer.status_code == 202, answer.text
    found: Json = answer.json()
    return found


def order(server: Server, agent: str, command: str, code: int | None = None) -> Json:
    answer = server.http("operator").post(f"/v1/agents/{agent}/{command}", json={"note": "look into it"})
    assert answer.status_code == (code or {"pause": 202, "unpause": 200}[command]), answer.text
    found: Json = answer.json()
    return found


def state_of(server: Server, message: Json) -> str:
    found: str = server.http("admin").get(f"/v1/messages/{message['message_id']}").json()["state"]
    return found


def spans(agent: str) -> Json:
    attributes = {
        "gen_ai.agent.name": agent,
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "t",
    }
    span = {
        "traceId": uuid.uuid4().hex,
        "spanId": uuid.uuid4().hex[:16],
        "name": "work",
        "kind": 1,
        "startTimeUnixNano": "1700000000000000000",
        "endTimeUnixNano": "1700000001000000000",
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()],
    }
    return {"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [{"spans": [span]}]}]}


def test_a_message_in_a_new_session_is_held_by_every_way_in_s1124(server: Server, name: str) -> None:
    """S1124: under its entity id, as lines, on a socket and as spans; heartbeats pass; lifted, it flows."""
    tenant = server.http("admin").get("/v1/whoami").json()["tenant_id"]
    first = say(server, name)
    assert first["state"] == "forwarded"
    paused = order(server, agent_entity_id(tenant, name), "pause")
    assert (paused["agent_id"], paused["state"]) == (name, "paused") and paused["intervention_id"]
    with open_doors(server) as doors:
        states = [
            doors.send(door, log(str(uuid.uuid4()), str(uuid.uuid4()), name)) for door in ("post", "lines")
        ]
        states.append(doors.send("socket", log(str(uuid.uuid4()), str(uuid.uuid4()), name)))
    by_id = envelope("text", sender={"entity_id": agent_entity_id(tenant, name)})
    states.append(server.send(by_id).json()["state"])
    assert states == ["held"] * 4
    assert server.http("agent").post("/v1/traces", json=spans(name)).status_code == 200
    sent = server.http("admin").get("/v1/messages", params={"agent_id": name, "limit": 100}).json()["items"]
    assert {one["state"] for one in sent} == {"forwarded", "held"}
    assert [one["state"] for one in sent].count("forwarded") == 1 and len(sent) >= 6
    beat = server.http("agent").post("/v1/heartbeat", json={"agent_id": name})
    assert beat.status_code == 200
    assert say(server, f"{name}-other")["state"] == "forwarded"
    lifted = order(server, name, "unpause")
    assert lifted["state"] == "running" and lifted["done"] == len(lifted["sessions"])
    assert state_of(server, by_id) == "forwarded" and say(server, name)["state"] == "forwarded"
    assert order(server, name, "unpause", 409)["reason"] == "not_paused"


def listed(server: Server, name: str) -> Json:
    """Its line in the list, on whatever page: a shared gateway knows many agents."""
    http, where = server.http("operator"), {"limit": "1000"}
    while True:
        page = http.get("/v1/agents", params=where).json()
        found: list[Json] = [one for one in page["items"] if one["agent_id"] == name]
        if found:
            return found[0]
        assert page["next_cursor"], f"{name} is on no page"
        where["cursor"] = page["next_cursor"]


def test_an_agent_in_no_session_is_paused_and_shown_so_s1124(server: Server, name: str) -> None:
    """S1124: in the registry with since when and by whom, as its state, and in the sessions it begins."""
    operator = server.http("operator")
    assert operator.post("/v1/agents", json={"agent_id": name}).status_code == 201
    assert order(server, name, "pause")["sessions"] == []
    assert order(server, name, "pause")["state"] == "already_paused"
    me = operator.get("/v1/whoami").json()["user_id"]
    for shown in (
        operator.get(f"/v1/agents/{name}").json(),
        listed(server, name),
    ):
        assert (shown["paused_by"], shown["state"], shown["state_reason"]) == (
            me,
            "blocked",
            "paused everywhere",
        )
        assert shown["paused_at"].endswith("Z")
    held = say(server, name)
    (place,) = operator.get(f"/v1/agents/{name}/sessions").json()["items"]
    assert (place["paused"], place["paused_by"], place["held"]) == (True, me, 1)
    body = {"agent_id": name}
    alone = operator.post(f"/v1/sessions/{held['session_id']}/unpause", json=body)
    assert (alone.status_code, alone.json()["reason"]) == (409, "paused_everywhere")
    assert state_of(server, held) == "held"
    events = server.http("admin").get("/v1/audit/tenant", params={"limit": 100}).json()["items"]
    (received,) = [one for one in events if one["body"].get("everywhere") and one["body"]["agent_id"] == name]
    assert (received["body"]["command"], received["body"]["note"]) == ("pause", "look into it")
    undo = operator.post(f"/v1/interventions/{received['body']['intervention_id']}/undo")
    assert (undo.status_code, undo.json()["reason"]) == (409, "not_reversible")
    order(server, name, "unpause")
    assert state_of(server, held) == "forwarded"
    assert operator.get(f"/v1/agents/{name}").json()["paused_at"] is None
    assert server.http("admin").post("/v1/audit/verify", json={}).json()["valid"] is True


def test_an_agent_is_told_of_its_pause_when_it_connects_s1124(server: Server, name: str) -> None:
    """S1124: an agent started while it is paused knows it from the greeting, as well as by the order."""
    say(server, name)
    order(server, name, "pause")
    headers = {"Authorization": f"Bearer {server.key('agent')}"}
    with connect(f"{server.socket_url}/v1/agents/{name}/channel", additional_headers=headers) as channel:
        hello = json.loads(channel.recv(20))
        assert (hello["type"], hello["paused_everywhere"]) == ("hello", True)
        kinds = set()
        while None not in kinds:
            item = json.loads(channel.recv(20))
            if item.get("kind") == "hold":
                kinds.add(item["session_id"])
    order(server, name, "unpause")


def test_a_gate_answered_meanwhile_forwards_nothing_of_a_paused_agent_s1124(
    server: Server, name: str
) -> None:
    """S1124: it is approved, and goes when the pause is lifted."""
    gated = decision_log(identity={"agent_id": name}, control={"hitl_required": True})
    held = server.send(gated).json()
    operator = server.http("operator")
    order(server, name, "pause")
    assert (
        operator.post(f"/v1/sessions/{held['session_id']}/approve", json={"agent_id": name}).json()["state"]
        == "held"
    )
    assert state_of(server, held) == "held"
    order(server, name, "unpause")
    assert state_of(server, held) == "forwarded"


def test_a_pause_outlives_a_kill_nine_s1124(tmp_path: Path, name: str) -> None:
    """S1124."""
    with Server(tmp_path / "data", environment=ALONE) as running:
        say(running, name)
        order(running, name, "pause")
        running.restart(kill=True)
        assert say(running, name)["state"] == "held"
        assert order(running, name, "unpause")["done"] >= 1
        assert say(running, name)["state"] == "forwarded"


@pytest.fixture
def two_gateways(postgres_url: str, tmp_path: Path) -> Iterator[tuple[Server, Server]]:
    url = new_database(postgres_url)
    with (
        Server(tmp_path / "one", "--db", url, environment=ALONE) as first,
        Server(tmp_path / "two", "--db", url, environment=ALONE) as second,
    ):
        yield first, second


def test_a_second_gateway_holds_a_paused_agent_at_once_s1124(
    two_gateways: tuple[Server, Server], name: str
) -> None:
    """S1124: with its very next message, also of what the second had in its memory."""
    first, second = two_gateways
    assert say(second, name)["state"] == "forwarded"
    order(first, name, "pause")
    held = say(second, name)
    assert held["state"] == "held"
    order(first, name, "unpause")
    assert say(second, name)["state"] == "forwarded"
    assert state_of(second, held) == "forwarded"


@pytest.mark.parametrize("by", ["name", "entity id", "spelling"])
def test_a_kill_switch_stops_one_agent_s1125(server: Server, name: str, by: str) -> None:
    """S1125: by its name in any spelling or its entity id, known under either; nobody else."""
    tenant = server.http("admin").get("/v1/whoami").json()["tenant_id"]
    entity_id = agent_entity_id(tenant, name)
    target = {"name": name, "entity id": entity_id, "spelling": name.upper()}[by]
    if by != "spelling":  # known by its id alone
        assert server.send(envelope("text", sender={"entity_id": entity_id})).status_code == 202
    else:
        say(server, name)
    kill_id = engage(server, "agent", target)
    try:
        assert server.send(envelope("text", sender={"entity_id": entity_id})).json()["state"] == "held"
        assert say(server, name)["state"] == "held"
        assert say(server, f"{name}-other")["state"] == "forwarded"
        one = server.http("operator").get(f"/v1/kill-switch/{kill_id}").json()
        assert (one["scope"], one["target"], one["agents"], one["told"]) == ("agent", target, 1, 1)
        assert one["held"] == 2
        shown = server.http("operator").get(f"/v1/agents/{entity_id}").json()
        assert shown["state_reason"] == f"stopped by the kill switch on agent {target}"
    finally:
        release(server, kill_id)
    wait_released(server, kill_id)
    assert say(server, name)["state"] == "forwarded"


def test_a_kill_switch_on_an_agent_is_none_on_the_type_of_that_name_s1125(server: Server, name: str) -> None:
    """S1125: agents of a type that is called like the stopped agent still change what they register."""
    other = {"agent_id": f"{name}-other", "agent_type": name}
    assert server.http("agent").post("/v1/agents", json=other).status_code == 201
    kill_id = engage(server, "agent", name)
    try:
        moved = server.http("agent").post("/v1/agents", json=other | {"cluster_id": "yard"})
        assert moved.status_code == 200, moved.text
    finally:
        release(server, kill_id)


def test_the_terminal_pauses_an_agent_and_stops_it_s1124_s1125(server: Server, name: str) -> None:
    """S1124, S1125: `agents pause`, `list` and `unpause`; `kill agent`."""
    say(server, name)
    assert "paused everywhere" in done(server, "agents", "pause", name, "--note", "why")
    (row,) = [one for one in asked_by_hand(server, "agents", "list") if one["agent_id"] == name]
    assert row["state_reason"] == "paused everywhere"
    assert say(server, name)["state"] == "held"
    assert "held messages forwarded: 1" in done(server, "agents", "unpause", name)
    kill = asked_by_hand(server, "kill", "agent", name, "--reason", "drill", "--yes")
    assert (kill["scope"], kill["told"]) == ("agent", 1) and say(server, name)["state"] == "held"
    done(server, "kill", "release", kill["kill_id"], "--reason", "over", "--yes")
    wait_released(server, kill["kill_id"])

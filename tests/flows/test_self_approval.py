"""No agent, and nobody who made an agent's key, approves what that agent asks for."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.flows.deciding import Json, People, ask, decision, id_of, respond, soon
from tests.flows.server import Server
from tests.samples import decision_log, envelope
from tests.waiting import until

AUTO = {"option_id": "yes", "trigger": "deadline_expired"}


@pytest.fixture
def server(either_server: Server) -> Server:
    return either_server


@pytest.fixture
def people(server: Server) -> Iterator[People]:
    made = People(server)
    made.client("owner")
    yield made
    made.close()


def option(risk: str | None, is_default: bool = True) -> list[Json]:
    yes: Json = {"option_id": "yes", "label": "Wire the money", "is_default": is_default}
    if risk is not None:
        yes["risk_level"] = risk
    return [{"option_id": "no", "label": "No", "risk_level": "low"}, yes]


def request(**payload: Any) -> Json:
    return envelope("decision_request", payload={"auto_action": AUTO, "deadline": soon(3_600)} | payload)


def paths(answer: httpx2.Response) -> list[str]:
    assert answer.status_code == 422, answer.text
    return [fault["path"] for fault in answer.json()["faults"]]


def test_an_agent_names_only_a_default_of_low_risk_for_its_deadline_s1120(server: Server) -> None:
    """S1120: all else is refused with the path of what is wrong, and nothing is asked."""
    for risk in ("critical", "high", "medium", None):
        asked = request(options=option(risk))
        assert paths(server.send(asked)) == ["payload.options[1].risk_level"]
        assert server.http("operator").get(f"/v1/decisions/{id_of(asked)}").status_code == 404
    marked = server.send(request(options=option("low", is_default=False)))
    assert paths(marked) == ["payload.auto_action.option_id"]
    twice = [*option("critical"), {"option_id": "yes", "label": "Yes", "risk_level": "low"}]
    assert "payload.options" in paths(server.send(request(options=twice)))
    allowed = request(options=option("low"))
    assert server.send(allowed).status_code == 202
    assert decision(server, allowed)["auto_option_id"] == "yes"


def test_a_deadline_is_a_minute_ahead_or_over_s1121(server: Server, people: People) -> None:
    """S1121: too near is refused; one that is over ends the request without an answer."""
    for near in (1, 30, 50):
        assert paths(server.send(request(options=option("low"), deadline=soon(near)))) == ["payload.deadline"]
    late = ask(people, options=option("low"), auto_action=AUTO, deadline=soon(-1))
    until(lambda: decision(server, late)["state"] != "pending")
    item = decision(server, late)
    assert (item["state"], item["selected_option_id"], item["auto_option_id"]) == ("expired", None, None)


def test_a_request_held_past_its_deadline_is_not_answered_by_the_gateway_s1121(server: Server) -> None:
    """S1121: what an edit makes of a held request is judged when it is asked."""
    held = envelope("decision_request", payload={"auto_action": None, "deadline": None})
    agent, operator = held["sender"]["entity_id"], server.http("operator")
    session = str(uuid.UUID(held["trace_id"]))
    pause = {"agent_id": agent, "force": True}
    opening = envelope("text", sender=held["sender"], trace_id=held["trace_id"])
    assert server.send(opening).status_code == 202
    assert operator.post(f"/v1/sessions/{session}/pause", json=pause).status_code == 202
    assert server.send(held).json()["state"] == "held"
    bold = held["payload"] | {"options": option("critical"), "auto_action": AUTO, "deadline": soon(1)}
    rewriting = {
        "agent_id": agent,
        "original_message_id": held["message_id"],
        "new_content": held | {"payload": bold},
    }
    answer = operator.post(f"/v1/sessions/{session}/rewrite", json=rewriting)
    assert answer.status_code == 200, answer.text
    assert operator.post(f"/v1/sessions/{session}/unpause", json=pause).status_code == 200
    assert decision(server, held)["auto_option_id"] is None


def test_a_tenant_that_allows_more_says_so_on_record_s1122(server: Server) -> None:
    """S1122: who changed it, from what to what; an agent cannot."""
    operator, path = server.http("operator"), "/v1/settings/decisions"
    plain = {"auto_risk": "low", "auto_needs_default": True, "min_deadline_s": 60}
    shown = operator.get(path).json()
    assert {name: shown[name] for name in plain} == plain
    assert server.http("agent").put(path, json={"auto_risk": "critical"}).status_code == 403
    wrong = operator.put(path, json={"auto_risk": "any", "min_deadline_s": 0})
    assert {fault["path"] for fault in wrong.json()["faults"]} == {"auto_risk", "min_deadline_s"}
    more = {"auto_risk": "high", "auto_needs_default": False, "min_deadline_s": 1}
    try:
        assert operator.put(path, json=more).status_code == 200
        asked = request(options=option("high", is_default=False), deadline=soon(30))
        assert server.send(asked).status_code == 202
        assert decision(server, asked)["auto_option_id"] == "yes"
        assert paths(server.send(request(options=option("critical")))) == ["payload.options[1].risk_level"]
        assert operator.put(path, json={"auto_risk": "none"}).status_code == 200
        assert paths(server.send(request(options=option("low")))) == ["payload.auto_action"]
    finally:
        answer = operator.put(path, json=dict.fromkeys(plain))
        assert {name: answer.json()[name] for name in plain} == plain
    events = server.http("admin").get("/v1/audit/tenant", params={"limit": 200}).json()["items"]
    changes = [one["body"] for one in events if one["body"].get("setting") == "decisions"]
    assert {"before": {"auto_risk": "high"}, "after": {"auto_risk": "none"}}.items() <= next(
        change for change in changes if change["changed"] == ["auto_risk"]
    ).items()


def test_who_made_an_agents_key_does_not_approve_what_is_sent_with_it_s1123(
    server: Server, people: People
) -> None:
    """S1123: neither a decision nor a gate, whichever of their keys they use; anybody else may."""
    maker, other = people.client("maker", "admin"), people.client("owner")
    key = maker.post("/v1/keys", json={"role": "agent"}).json()["key"]
    with httpx2.Client(
        base_url=server.url, headers={"authorization": f"Bearer {key}"}, trust_env=False
    ) as agent:
        asked = envelope("decision_request", payload={"deadline": None, "auto_action": None})
        assert agent.post("/v1/messages", json=asked).status_code == 202
        gated = decision_log()
        gated["identity"]["agent_id"] = f"wire-{uuid.uuid4().hex}"
        gated["control"] = {"hitl_required": True, "interrupt_signal": None, "is_terminal": False}
        held = agent.post("/v1/messages", json=gated).json()
    assert held["state"] == "held"
    second = maker.post("/v1/keys", json={"role": "operator", "user_id": people.ids["maker"]}).json()["key"]
    gate = f"/v1/sessions/{held['session_id']}/approve"
    body = {"agent_id": gated["identity"]["agent_id"], "message_id": held["message_id"]}
    content = gated | {"control": {}}
    for headers in ({}, {"authorization": f"Bearer {second}"}):
        answers = [
            maker.post(
                f"/v1/decisions/{id_of(asked)}/respond", json={"selected_option_id": "deny"}, headers=headers
            ),
            maker.post(gate, json=body, headers=headers),
            maker.post(
                gate.replace("approve", "edit"), json=body | {"new_content": content}, headers=headers
            ),
        ]
        assert [(one.status_code, one.json()["reason"]) for one in answers] == [(403, "own_request")] * 3
    waiting = {one["id"]: one for one in maker.get("/v1/waiting?limit=500").json()["items"]}
    for name, verb in ((id_of(asked), "respond"), (held["message_id"], "approve")):
        (can,) = [one for one in waiting[name]["can"] if one["verb"] == verb]
        assert not can["allowed"] and waiting[name]["key_maker"] == people.ids["maker"]
    assert respond(other, asked, "deny").status_code == 200
    assert other.post(gate, json=body).status_code == 200

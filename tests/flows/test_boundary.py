"""The gateway is the one boundary: nothing passes between agents, or from outside, but through it.

Validator, router and keeper of lifecycles, and no proxy: it answers once a message is durable, whatever its
recipient does, and never calls the address an agent gives as its own.
"""

from __future__ import annotations

import json
import socket
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from websockets.sync.client import connect

from tests.flows.server import Server
from tests.samples import decision_log, envelope

Json = dict[str, Any]


def inbox(server: Server, agent: str) -> list[str]:
    answer = server.http("agent").get(f"/v1/agents/{agent}/inbox")
    assert answer.status_code == 200, answer.text
    return [item["message"]["meta"]["step_id"] for item in answer.json()["items"] if item["message"]]


def says(server: Server, sender: str, to: str, **more: Any) -> Json:
    sent = decision_log(
        meta={"step_id": str(uuid.uuid4()), "session_id": str(uuid.uuid4()), "parent_step_id": None},
        identity={"agent_id": sender, "recipient": to},
        **more,
    )
    answer = server.send(sent)
    return sent | {"answer": answer.json(), "code": answer.status_code}


@pytest.mark.req(121)
def test_what_the_gateway_does_not_forward_never_reaches_another_agent(server: Server) -> None:
    """Refused, held and forwarded messages to one agent: its inbox has the forwarded one, and the held one
    from the moment a person lets it pass."""
    sender, other, reader = (f"{name}-{uuid.uuid4().hex[:8]}" for name in ("sender", "other", "reader"))
    assert inbox(server, reader) == []
    operator = server.http("operator")
    rule = {"effect": "deny", "match": {"sender": [other], "recipient": [reader]}}
    made = operator.post("/v1/policies", json=rule)
    assert made.status_code == 201, made.text
    assert says(server, other, reader)["code"] == 403
    assert says(server, sender, reader, action={"status": "no such status"})["code"] == 422
    held = says(server, sender, reader, control={"hitl_required": True})
    assert held["answer"]["state"] == "held" and inbox(server, reader) == []
    passed = says(server, sender, reader)
    assert inbox(server, reader) == [passed["meta"]["step_id"]]
    where = f"/v1/sessions/{held['answer']['session_id']}/approve"
    body = {"agent_id": sender, "message_id": held["answer"]["message_id"]}
    assert operator.post(where, json=body).status_code == 200
    assert set(inbox(server, reader)) == {passed["meta"]["step_id"], held["meta"]["step_id"]}
    operator.delete(f"/v1/policies/{made.json()['rule_id']}")


@pytest.mark.req(122)
def test_it_answers_for_itself_and_never_calls_the_agents_address(server: Server) -> None:
    """No proxy: an absent recipient delays nothing, and its `hub_address` gets no connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.3)
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        absent = f"absent-{uuid.uuid4().hex[:8]}"
        registered = {"agent_id": absent, "agent_type": "t", "hub_address": address}
        assert server.http("agent").post("/v1/agents", json=registered).status_code == 201
        sent = says(server, f"sender-{absent}", absent)
        assert (sent["code"], sent["answer"]["state"]) == (202, "forwarded")
        assert inbox(server, absent) == [sent["meta"]["step_id"]], "it waits until the agent asks"
        with pytest.raises(TimeoutError):
            listener.accept()
    lifecycle = server.http("operator").get(f"/v1/agents/{absent}").json()
    assert lifecycle["hub_address"] == address and lifecycle["liveness"] == "unknown"
    assert says(server, absent, "x", action={"status": "no such status"})["code"] == 422


SHAPELESS: list[Any] = [{}, [], "text", 7, None, {"text": "hello"}, {"role": "user", "content": "hi"}]


@pytest.mark.req(142)
@pytest.mark.parametrize("body", SHAPELESS, ids=json.dumps)
def test_what_is_in_neither_envelope_passes_no_endpoint(server: Server, body: Any) -> None:
    """POST, a line of NDJSON and a WebSocket frame: each refuses it and nothing of it is archived."""
    raw = json.dumps(body).encode()
    assert server.send(raw).status_code in (400, 422)
    (line,) = server.send_lines([raw])
    assert line["code"] in (400, 422)
    headers = {"Authorization": f"Bearer {server.key('agent')}"}
    url = f"{server.socket_url}/v1/ingest"
    with connect(url, additional_headers=headers, proxy=None) as ws:
        ws.send(json.dumps({"id": "1", "message": body}))
        assert json.loads(ws.recv(timeout=10))["code"] in (400, 422)


@pytest.mark.req(142)
def test_whatever_enters_is_read_back_in_one_of_the_two_envelopes(server: Server) -> None:
    log, text = decision_log(), envelope("text")
    for sent, members in ((log, {"meta", "identity", "action"}), (text, {"envelope_version", "payload"})):
        answer = server.send(sent).json()
        archived = server.http("admin").get(f"/v1/messages/{answer['message_id']}").json()["message"]
        assert members <= archived.keys()


@pytest.mark.req(31)
def test_a_session_ends_with_a_terminal_step_and_control_is_not_terminal_by_default(server: Server) -> None:
    session = str(uuid.uuid4())
    admin = server.http("admin")

    def terminal_after(step: str, **sections: Any) -> list[str]:
        meta = {"session_id": session, "step_id": step, "parent_step_id": None}
        answer = server.send(decision_log(meta=meta, **sections))
        assert answer.status_code == 202, answer.text
        nodes = admin.get(f"/v1/sessions/{session}/dag").json()["nodes"]
        return [node["step_id"] for node in nodes if node.get("is_terminal")]

    for step, control in (("1", None), ("2", {"hitl_required": False})):
        assert terminal_after(step, control=control) == []
    assert terminal_after("3", control={"is_terminal": False}) == []
    assert terminal_after("4", control={"is_terminal": True}) == ["4"]


@pytest.mark.req(106)
def test_hundreds_of_agents_speak_at_once_and_every_step_is_on_record(server: Server) -> None:
    """Three hundred agents over sixteen connections, two steps each: none lost, doubled or mixed up."""
    session = str(uuid.uuid4())
    server.http("agent")

    def speak(number: int) -> list[int]:
        agent = f"many-{number}-{session[:8]}"
        return [
            server.send(
                decision_log(
                    meta={"session_id": session, "step_id": f"{number}-{step}", "parent_step_id": None},
                    identity={"agent_id": agent},
                )
            ).status_code
            for step in range(2)
        ]

    with ThreadPoolExecutor(16) as pool:
        codes = [code for both in pool.map(speak, range(300)) for code in both]
    assert codes == [202] * 600
    page = server.http("admin").get("/v1/messages", params={"session_id": session, "limit": 1000}).json()
    steps = [(item["step_id"], item["message"]["identity"]["agent_id"]) for item in page["items"]]
    assert sorted(steps) == sorted(
        (f"{n}-{s}", f"many-{n}-{session[:8]}") for n in range(300) for s in range(2)
    )
    assert server.http("admin").post("/v1/audit/verify", json={}).json()["valid"]

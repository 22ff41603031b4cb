"""The decision trail from outside: at the terminal, in an export through the gateway, and by strangers."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import httpx2

from tests.flows import hand as terminal
from tests.flows.answered_thoughts import CONTENT, thought_of
from tests.flows.server import Server, observatory
from tests.flows.tenant import Tenant
from tests.flows.test_thoughts import Hand, canonical
from tests.samples import decision_log, envelope
from tests.waiting import until


def test_the_trail_is_read_at_the_terminal_s345(server: Server) -> None:
    """S345: record by record with its seal; --json is the gateway's answer, --verify recomputes first."""
    hand = Hand(server)
    root = hand.sealed()["root"]
    lines = [line.split("\t") for line in terminal.done(server, "thoughts", hand.session_id).splitlines()]
    assert [line[2] for line in lines[1:]] == ["plan", "analysis", "decision", "reflection"]
    assert lines[3][4] == "ship; nothing speaks against it"
    found = terminal.answer(server, "thoughts", hand.session_id, "--verify")
    assert found["verified"]["valid"] and found["session"]["root"] == root and len(found["items"]) == 4
    assert "no thought session" in terminal.refused(server, "thoughts", str(uuid.uuid4()))


def test_an_export_through_the_gateway_has_the_words_too_s346(server: Server, tmp_path: Path) -> None:
    """S346: a thought byte for byte and a session's intent, each beside its event."""
    own, out = Tenant(server, tmp_path / "own"), tmp_path / "trail.jsonl"
    Hand(own).sealed()
    run = observatory("export", "--url", own.url, "--key", own.key("admin"), "--out", str(out))
    assert run.returncode == 0, run.stderr
    words = {}
    for line in map(json.loads, out.read_text("utf-8").splitlines()):
        body = json.loads(line["record"])["body"]
        if "words" in line:
            words[body.get("type", body["event_type"])] = line["words"].encode()
    assert words.pop("thought_session_started") == b"Ship it"
    assert words == {kind: canonical(content) for kind, content in CONTENT.items()}
    own.stop()


def test_nobody_from_outside_thinks_about_a_session_of_the_mesh_s348(server: Server, tmp_path: Path) -> None:
    """S348: a bound key that never spoke there neither starts nor opens one of that name."""
    own = Tenant(server, tmp_path / "own")
    key = own.http("admin").post("/v1/keys", json={"role": "agent", "agent_id": "stranger"}).json()["key"]
    session = str(uuid.uuid4())
    assert own.send(decision_log(meta={"session_id": session, "step_id": "one"})).status_code == 202
    with httpx2.Client(
        base_url=own.url, headers={"authorization": f"Bearer {key}"}, trust_env=False
    ) as stranger:
        for answer in (
            stranger.post("/v1/thought-sessions", json={"intent": "x", "session_id": session.upper()}),
            stranger.post(f"/v1/sessions/{session}/thoughts", json=thought_of("plan")),
            stranger.post("/v1/thoughts", json=thought_of("plan", session_id=session)),
        ):
            assert answer.status_code == 403 and answer.json()["reason"] == "not_yours", answer.text
    assert own.http("viewer").get(f"/v1/sessions/{session}/thoughts").status_code == 404
    own.stop()


def test_what_an_agent_brings_about_itself_is_no_invitation_s1401(server: Server, tmp_path: Path) -> None:
    """S1401: neither its own reminder in another's session nor a person's answer to its question there; a
    person who writes to it, and a job that a person made, are."""
    own = Tenant(server, tmp_path / "own")
    admin, operator, session = own.http("admin"), own.http("operator"), str(uuid.uuid4())
    headers = {}
    for name in ("alpha", "eve"):
        key = admin.post("/v1/keys", json={"role": "agent", "agent_id": name}).json()["key"]
        headers[name] = {"authorization": f"Bearer {key}"}

    def send(name: str, message: dict[str, Any]) -> None:
        answer = admin.post("/v1/messages", json=message, headers=headers[name])
        assert answer.status_code == 202, answer.text

    def step(name: str, **action: Any) -> dict[str, Any]:
        meta = {"session_id": session, "step_id": str(uuid.uuid4())}
        return decision_log(meta=meta, identity={"agent_id": name}, action=action)

    def heard(kind: str, count: int = 1) -> None:
        until(lambda: [one["kind"] for one in inbox()].count(kind) >= count)

    def inbox() -> list[dict[str, Any]]:
        answer = admin.get("/v1/agents/eve/inbox", headers=headers["eve"]).json()
        found: list[dict[str, Any]] = answer["items"]
        return found

    def thinks() -> int:
        body = thought_of("analysis", task_id="tsk_eve")
        return admin.post(f"/v1/sessions/{session}/thoughts", json=body, headers=headers["eve"]).status_code

    send("alpha", step("alpha"))
    asked = json.dumps({"delay_ms": 0, "payload": {}})
    send("eve", step("eve", tool_call="schedule_reminder", tool_input=asked))
    heard("message")
    assert thinks() == 403
    eve = admin.get("/v1/agents/eve").json()["entity_id"]
    question = envelope(
        "decision_request",
        sender={"entity_id": eve, "entity_type": "agent"},
        payload={"deadline": None, "auto_action": None},
        metadata={"session_id": session},
    )
    send("eve", question)
    option = question["payload"]["options"][0]["option_id"]
    where = f"/v1/decisions/{question['payload']['decision_id']}/respond"
    assert operator.post(where, json={"selected_option_id": option}).status_code == 200
    heard("decision")
    assert thinks() == 403
    job = {"name": "go on", "at": "2020-01-01T00:00:00Z", "intent": "go on", "session_id": session}
    made = operator.post("/v1/jobs", json=job | {"target": {"kind": "agent", "name": "eve"}})
    assert made.status_code == 201, made.text
    heard("message", 2)
    assert thinks() == 201
    own.stop()


def test_to_act_once_in_anothers_session_gives_no_right_to_continue_it_s1146(
    server: Server, tmp_path: Path
) -> None:
    """S1146: neither to start a proof of it, nor to write into one, nor to name it as a predecessor; whom
    those who took part wrote to may. What is said to the room invites nobody."""
    own = Tenant(server, tmp_path / "own")
    admin, session = own.http("admin"), str(uuid.uuid4())
    clients = {}
    for name in ("alpha", "beta", "eve", "mallory"):
        key = admin.post("/v1/keys", json={"role": "agent", "agent_id": name}).json()["key"]
        headers = {"authorization": f"Bearer {key}"}
        clients[name] = httpx2.Client(base_url=own.url, headers=headers, trust_env=False)

    def say(name: str, recipient: str | None = None) -> None:
        meta = {"session_id": session, "step_id": str(uuid.uuid4())}
        log = decision_log(meta=meta, identity={"agent_id": name, "recipient": recipient})
        assert clients[name].post("/v1/messages", json=log).status_code == 202

    def tries(name: str) -> list[int]:
        asks = [
            ("/v1/thought-sessions", {"intent": "x", "session_id": session}),
            (f"/v1/sessions/{session}/thoughts", thought_of("analysis", task_id=f"tsk_{name}")),
            ("/v1/thought-sessions", {"intent": "x", "predecessor_session_id": session}),
        ]
        return [clients[name].post(path, json=body).status_code for path, body in asks]

    say("alpha")
    for name in ("eve", "mallory"):
        say(name)
    say("mallory", "eve")  # who was not asked in asks nobody in
    say("eve", "mallory")
    say("alpha", f"session:{session}")
    for item in clients["eve"].get("/v1/agents/eve/inbox").json()["items"]:
        assert clients["eve"].post("/v1/agents/eve/inbox/ack", json={"ids": [item["delivery_id"]]}).is_success
    assert tries("eve")[:2] == [403, 403]
    assert tries("alpha") == [201, 201, 201]
    assert tries("eve") == [409, 403, 403]
    assert clients["beta"].get("/v1/agents/beta/inbox").status_code == 200
    say("alpha", "beta")
    say("beta")
    assert tries("beta")[1:] == [201, 201]
    for client in clients.values():
        client.close()
    own.stop()

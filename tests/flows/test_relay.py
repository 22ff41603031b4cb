"""Intervening through the public doors: pause, rewrite, inject, gates, undo. On SQLite and on PostgreSQL."""

from __future__ import annotations

import threading
import uuid
from typing import Any

import pytest

from tests.flows.server import Server
from tests.samples import decision_log

Json = dict[str, Any]


class Mesh:
    """One session with one agent of its own on a shared gateway, spoken to over HTTP only."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.session = str(uuid.uuid4())
        self.agent = f"worker-{uuid.uuid4().hex[:8]}"
        self.people = server.http("operator")

    def log(self, step: str, **control: Any) -> Json:
        return decision_log(
            meta={
                "trace_id": self.session,
                "session_id": self.session,
                "step_id": step,
                "parent_step_id": None,
            },
            identity={"agent_id": self.agent},
            control=control or {"hitl_required": False},
        )

    def say(self, step: str, **control: Any) -> str:
        answer = self.server.send(self.log(step, **control))
        assert answer.status_code == 202, answer.text
        return str(answer.json()["state"])

    def do(self, command: str, expect: int | None = None, role: str = "operator", **body: Any) -> Json:
        answer = self.server.http(role).post(
            f"/v1/sessions/{self.session}/{command}", json={"agent_id": self.agent, **body}
        )
        if expect is not None:
            assert answer.status_code == expect, answer.text
        return dict(answer.json()) | {"code": answer.status_code}

    def events(self, *kinds: str) -> list[Json]:
        trail = self.people.get(f"/v1/audit/trace/{self.session.replace('-', '')}").json()["items"]
        return [event for event in trail if event["body"]["event_type"] in kinds]

    def delivered(self) -> list[str]:
        return [event["attributes"]["av.step.id"] for event in self.events("message_delivered")]

    def message(self, step: str) -> Json:
        return dict(self.people.get(f"/v1/messages/{self.session}/{step}").json())

    def inbox(self) -> list[Json]:
        found = self.server.http("agent").get(f"/v1/agents/{self.agent}/inbox")
        assert found.status_code == 200, found.text
        return list(found.json()["items"])


@pytest.fixture
def mesh(either_server: Server) -> Mesh:
    return Mesh(either_server)


@pytest.mark.req(99, 114, 133, 186, 187, 188, 193, 194, 195)
def test_a_paused_agent_is_held_told_and_let_go_in_order_s83_s90(mesh: Mesh) -> None:
    assert mesh.say("1") == "forwarded"
    paused = mesh.do("pause", 202)
    assert (paused["state"], paused["confirmation"]) == ("paused", "requested")
    assert [mesh.say(step) for step in "23"] == ["held", "held"]
    assert mesh.do("pause", 200)["status"] == "already_paused"
    (hold,) = [item for item in mesh.inbox() if item["kind"] == "hold"]
    assert hold["body"]["intervention_id"] == paused["intervention_id"]
    held = mesh.people.get("/v1/holds", params={"session_id": mesh.session}).json()["items"]
    assert [(one["step_id"], one["cause"]) for one in held] == [("2", "pause"), ("3", "pause")]
    assert mesh.message("2")["state"] == "held"
    done = mesh.do("unpause", 200)
    assert (done["state"], done["released"], done["remaining"]) == ("running", 2, 0)
    assert mesh.delivered() == ["1", "2", "3"]
    did = mesh.people.get(f"/v1/sessions/{mesh.session}/interventions").json()["items"]
    assert [one["command"] for one in did] == ["pause", "unpause"]
    assert did[0]["reversed_at"] is not None and did[1]["reversed_at"] is None
    operator = mesh.people.get("/v1/whoami").json()["user_id"]
    for event in mesh.events("hitl_intervention"):
        assert event["body"]["operator_id"] == operator
        assert event["body"]["before_hash"] != event["body"]["after_hash"]


@pytest.mark.req(181, 189, 190)
def test_a_rewrite_is_what_is_delivered_and_shows_nothing_of_the_original_s86(mesh: Mesh) -> None:
    mesh.say("1")
    mesh.do("pause", 202)
    mesh.say("2")
    new = mesh.log("2")
    new["cognition"]["intent"] = "The mended intent"
    bad = mesh.do("rewrite", 422, original_message_id="2", new_content={"meta": {}})
    assert bad["reason"] == "schema_violation" and bad["faults"]
    done = mesh.do("rewrite", 200, original_message_id="2", new_content=new)
    assert mesh.do("rewrite", 404, original_message_id="9", new_content=new)["reason"] == "not_found"
    assert mesh.do("rewrite", 409, original_message_id="1", new_content=new)["reason"] == "not_held"
    mesh.do("unpause", 200)
    shown = mesh.message("2")
    assert (shown["state"], shown["rewritten"], shown["interrupt_signal"]) == ("forwarded", True, "rewrite")
    assert shown["message"]["cognition"]["intent"] == "The mended intent"
    last = mesh.events("message_delivered")[-1]
    assert last["attributes"]["av.message.digest"] == done["after_hash"]
    undone = mesh.people.post(f"/v1/interventions/{done['intervention_id']}/undo")
    assert (undone.status_code, undone.json()["reason"]) == (409, "too_late")


def test_a_rewrite_is_undone_by_one_call_s86(mesh: Mesh) -> None:
    mesh.say("1")
    mesh.do("pause", 202)
    mesh.say("2")
    new = mesh.log("2")
    new["cognition"]["intent"] = "Other"
    done = mesh.do("rewrite", 200, original_message_id="2", new_content=new)
    undone = mesh.people.post(f"/v1/interventions/{done['intervention_id']}/undo").json()
    assert undone["after_hash"] == done["before_hash"]
    mesh.do("unpause", 200)
    assert mesh.message("2")["rewritten"] is False
    (event,) = mesh.events("hitl_reversed")
    assert event["body"]["reversed_at"]


@pytest.mark.req(155, 180, 182, 183, 242)
def test_gates_are_approved_or_rejected_once_and_siblings_pass_s84_s85_s88(mesh: Mesh) -> None:
    assert [mesh.say(step, hitl_required=True) for step in ("a", "b")] == ["held", "held"]
    assert mesh.say("c") == "forwarded"
    gates = mesh.people.get("/v1/holds", params={"session_id": mesh.session, "gates_only": True}).json()[
        "items"
    ]
    assert [gate["step_id"] for gate in gates] == ["a", "b"]
    assert mesh.do("approve", 409)["reason"] == "ambiguous", "two gates are open"
    stale = mesh.do("approve", 409, message_id="a", digest="0" * 64)
    assert stale["reason"] == "stale_digest"
    assert mesh.do("approve", 403, role="agent", message_id="a")["reason"] == "not_allowed"
    done = mesh.do("approve", 200, message_id="a", digest=gates[0]["action_digest"])
    assert done["state"] == "forwarded"
    assert mesh.do("approve", 409, message_id="a")["reason"] == "already_decided"
    assert mesh.do("reject", 200, note="not now")["state"] == "rejected", "one gate is left: it is meant"
    assert mesh.do("approve", 409, message_id="b")["reason"] == "already_decided"
    assert mesh.delivered() == ["c", "a"]
    assert mesh.message("b")["state"] == "rejected"
    verdicts = {item["body"]["step_id"]: item["body"] for item in mesh.inbox() if item["kind"] == "verdict"}
    assert verdicts["a"]["verdict"] == "approved"
    assert (verdicts["b"]["verdict"], verdicts["b"]["note"]) == ("rejected", "not now")


@pytest.mark.req(181)
def test_an_edit_at_a_gate_forwards_the_new_content_s86(mesh: Mesh) -> None:
    mesh.say("ask", hitl_required=True)
    new = mesh.log("ask")
    new["action"]["tool_call"] = "something_harmless"
    assert mesh.do("edit", 200, message_id="ask", new_content=new)["state"] == "forwarded"
    assert mesh.message("ask")["message"]["action"]["tool_call"] == "something_harmless"
    (item,) = [item for item in mesh.inbox() if item["kind"] == "verdict"]
    assert item["body"]["verdict"] == "edited"
    assert item["body"]["content"]["action"]["tool_call"] == "something_harmless"


def test_nobody_approves_what_they_sent_themselves_s88(mesh: Mesh) -> None:
    answer = mesh.server.send(mesh.log("ask", hitl_required=True), role="admin")
    assert answer.json()["state"] == "held"
    assert mesh.do("approve", 403, role="admin", message_id="ask")["reason"] == "own_request"
    assert mesh.do("approve", 200, message_id="ask")["state"] == "forwarded"


def test_two_operators_at_once_and_one_wins_s88(mesh: Mesh) -> None:
    mesh.say("ask", hitl_required=True)
    codes: list[int] = []

    def answer(command: str, role: str) -> None:
        codes.append(mesh.do(command, role=role, message_id="ask")["code"])

    threads = [
        threading.Thread(target=answer, args=pair)
        for pair in [("approve", "operator"), ("reject", "admin")] * 3
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(codes) == [200, 409, 409, 409, 409, 409]
    assert len(mesh.events("message_delivered", "message_rejected")) == 1


@pytest.mark.req(191, 192)
def test_an_inject_waits_in_the_inbox_and_can_be_withdrawn_s87(mesh: Mesh) -> None:
    mesh.say("1")
    first = mesh.do("inject", 202, prompt="Look again")
    withdrawn = mesh.people.post(f"/v1/interventions/{first['intervention_id']}/undo")
    assert withdrawn.json()["state"] == "withdrawn"
    second = mesh.do("inject", 202, prompt="Mind the fiscal year")
    (item,) = [item for item in mesh.inbox() if item["kind"] == "inject"]
    assert item["body"]["prompt"] == "Mind the fiscal year"
    assert (item["delivery_id"], item["body"]["interrupt_signal"]) == (second["delivery_id"], "inject")
    late = mesh.people.post(f"/v1/interventions/{second['intervention_id']}/undo")
    assert (late.status_code, late.json()["reason"]) == (409, "too_late")


@pytest.mark.parametrize(
    ("command", "body", "code"),
    [
        ("inject", {"prompt": "x" * (1 << 20)}, 413),
        ("inject", {"prompt": "x" * 300_000}, 422),
        ("inject", {"prompt": ""}, 422),
        ("pause", {"agent_id": "nobody-of-that-name"}, 404),
        ("rewrite", {"original_message_id": "1"}, 422),
        ("approve", {"message_id": "1"}, 409),
        ("approve", {"message_id": "1", "digest": "short"}, 422),
    ],
)
def test_commands_that_cannot_be_done_are_refused_with_a_sentence(
    mesh: Mesh, command: str, body: Json, code: int
) -> None:
    mesh.say("1")
    answer = mesh.do(command, **body)
    assert answer["code"] == code and (answer.get("detail") or answer.get("faults")), answer
    assert mesh.events("hitl_intervention") == []


def test_an_unknown_session_is_answered_404(mesh: Mesh) -> None:
    mesh.say("1")
    mesh.session = str(uuid.uuid4())
    commands: list[tuple[str, Json]] = [
        ("pause", {}),
        ("unpause", {}),
        ("inject", {"prompt": "x"}),
        ("cancel", {}),
    ]
    for command, body in commands:
        assert mesh.do(command, **body)["code"] == 404


@pytest.mark.parametrize(("role", "command", "code"), [("viewer", "pause", 403), ("approver", "pause", 403)])
def test_only_who_may_operate_commands(mesh: Mesh, role: str, command: str, code: int) -> None:
    mesh.say("1")
    assert mesh.do(command, code, role=role)["reason"] == "not_allowed"


def test_the_live_feed_shows_a_released_message_as_what_it_has_become(mesh: Mesh) -> None:
    mesh.say("1")
    mesh.do("pause", 202)
    mesh.say("2")
    mesh.do("unpause", 200)
    items = mesh.people.get("/v1/messages", params={"session_id": mesh.session}).json()["items"]
    assert {item["step_id"]: item["state"] for item in items} == {"1": "forwarded", "2": "forwarded"}
    found = mesh.people.get("/v1/messages", params={"session_id": mesh.session, "state": "held"}).json()
    assert found["items"] == []

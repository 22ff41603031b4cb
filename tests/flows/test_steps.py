"""Which session and which step a message belongs to, by both readings of `trace_id` (ruling 2)."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from observatory.protocol.otel import conversation_to_trace_id, span_id_of
from tests.flows.server import Server
from tests.samples import decision_log, envelope

Json = dict[str, Any]


def new() -> str:
    return str(uuid.uuid4())


def send(server: Server, message: Json) -> Json:
    answer = server.send(message)
    assert answer.status_code == 202, answer.text
    found: Json = answer.json()
    return found


def item(server: Server, answer: Json) -> Json:
    found: Json = server.http("admin").get(f"/v1/messages/{answer['message_id']}").json()
    return found


def root(**meta: Any) -> Json:
    return decision_log(meta={"parent_step_id": None} | meta)


def test_a_step_id_names_the_step_and_the_trace_its_session_s10(server: Server) -> None:
    """S10: without a session_id the session is the trace."""
    trace, step = new(), new()
    answer = send(server, root(trace_id=trace, step_id=step))
    assert (answer["session_id"], answer["step_id"]) == (trace, step)
    assert server.http("admin").get(f"/v1/messages/{step}").json()["message_id"] == answer["message_id"]


def test_a_session_id_names_the_session_s10(server: Server) -> None:
    """S10: any text can; its trace id is then the seed's hash of it."""
    session = f"chat-{new()}"
    answer = send(server, root(session_id=session, step_id=new()))
    assert answer["session_id"] == session
    found = server.http("admin").get(f"/v1/sessions/{session}").json()
    assert found["trace_id"] == conversation_to_trace_id(session)
    assert (found["messages"], found["cost"], found["tokens"]) == (1, 0.084, 1250)


def test_a_step_id_that_is_no_uuid_is_unique_only_within_its_session_s10(server: Server) -> None:
    """S10: its name is `<session_id>/<step_id>`; parents refer to it bare or by that name."""
    one, two = new(), new()
    answers = [send(server, root(session_id=session, step_id="step-1")) for session in (one, two)]
    assert answers[0]["message_id"] != answers[1]["message_id"]
    near = send(server, decision_log(meta={"session_id": one, "step_id": "2", "parent_step_id": "step-1"}))
    far = send(
        server, decision_log(meta={"session_id": one, "step_id": "3", "parent_step_id": f"{two}/step-1"})
    )
    assert item(server, near)["parents"] == [f"{one}/step-1"]
    assert item(server, far)["parents"] == [f"{two}/step-1"]


def test_without_step_id_the_trace_names_the_step_s11(server: Server) -> None:
    """S11: a first message is its own session; a child joins its parent's."""
    trace = new()
    first = send(server, root(trace_id=trace))
    assert (first["session_id"], first["step_id"]) == (trace, trace)
    child = send(server, decision_log(meta={"parent_step_id": trace}))
    assert child["session_id"] == trace
    grandchild = send(server, decision_log(meta={"parent_step_id": child["step_id"]}))
    assert grandchild["session_id"] == trace
    assert item(server, grandchild)["parents"] == [child["step_id"]]
    orphan = send(server, decision_log(meta={"parent_step_id": new()}))
    assert orphan["session_id"] == orphan["step_id"]


def test_a_child_finds_its_parents_session_within_one_batch_s11(server: Server) -> None:
    """S11: the batch's own earlier lines count."""
    trace = new()
    lines = [root(trace_id=trace), decision_log(meta={"parent_step_id": trace})]
    answers = server.send_lines([json.dumps(line).encode() for line in lines])
    assert [answer["session_id"] for answer in answers] == [trace, trace]


def test_other_content_under_a_named_trace_is_a_new_step_of_that_session_s12(server: Server) -> None:
    """S12: its parent is that agent's last step there, marked as inferred; a repeat finds the same."""
    trace = new()
    first = send(server, root(trace_id=trace))
    sent = decision_log(meta={"trace_id": trace, "parent_step_id": None}, action={"status": "failure"})
    second = send(server, sent)
    assert second["session_id"] == trace and second["step_id"] not in (trace, first["step_id"])
    assert item(server, second)["parents"] == [trace]
    assert item(server, second)["parent_inferred"] is True
    assert send(server, sent) == second
    stranger = decision_log(
        meta={"trace_id": trace, "parent_step_id": None}, identity={"agent_id": "another"}
    )
    assert item(server, send(server, stranger))["parents"] == []
    declared = decision_log(
        meta={"trace_id": trace, "parent_step_id": first["step_id"]}, action={"status": "skipped"}
    )
    found = item(server, send(server, declared))
    assert (found["parents"], found["parent_inferred"]) == ([trace], False)


@pytest.mark.parametrize("spell", [str.upper, lambda text: text.replace("-", ""), lambda text: text])
def test_ids_compare_without_hyphens_and_case_s13(server: Server, spell: Any) -> None:
    """S13: session, step and parent alike; answers have the one spelling."""
    trace, step = new(), new()
    send(server, root(trace_id=trace, step_id=step))
    child = send(
        server,
        decision_log(meta={"session_id": spell(trace), "step_id": new(), "parent_step_id": spell(step)}),
    )
    assert child["session_id"] == trace
    assert item(server, child)["parents"] == [step]
    again = server.send(root(trace_id=trace, step_id=spell(step), cluster_id="elsewhere"))
    assert again.status_code == 409
    http = server.http("admin")
    assert http.get(f"/v1/messages/{spell(step)}").json()["step_id"] == step
    assert http.get(f"/v1/sessions/{spell(trace)}").json()["messages"] == 2
    assert len(http.get("/v1/messages", params={"session_id": spell(trace)}).json()["items"]) == 2
    assert len(http.get(f"/v1/audit/trace/{spell(trace)}").json()["items"]) == 2


def test_an_envelopes_step_is_its_message_id_s14(server: Server) -> None:
    """S14: its session is metadata.session_id, else its trace."""
    plain = envelope("text")
    answer = send(server, plain)
    assert answer["step_id"] == plain["message_id"]
    assert answer["session_id"] == str(uuid.UUID(plain["trace_id"]))
    session = new()
    joined = send(server, envelope("text", metadata={"session_id": session}))
    assert joined["session_id"] == session
    send(server, root(session_id=session, step_id=new()))
    assert server.http("admin").get(f"/v1/sessions/{session}").json()["messages"] == 2


@pytest.mark.req(323, 356, 496, 497, 498)
def test_an_exchange_is_a_span_of_its_conversation(server: Server) -> None:
    """S10: one trace for the conversation, one span per step, one chain for the tenant."""
    session = new()
    steps = [send(server, root(session_id=session, step_id=new()))["step_id"] for _ in range(3)]
    trail = server.http("admin").get(f"/v1/audit/trace/{session}").json()["items"]
    assert {event["trace_id"] for event in trail} == {session.replace("-", "")}
    assert [event["span_id"] for event in trail] == [span_id_of(step) for step in steps]
    assert {event["resource"]["av.tenant.id"] for event in trail} == {"tnt_default"}


@pytest.mark.req(237)
def test_every_step_of_the_sdks_form_names_its_parent_and_one_that_does_not_is_warned(
    server: Server,
) -> None:
    """S10: null says root; leaving the key out is accepted with a warning."""
    sent = root(step_id=new())
    assert not [text for text in send(server, sent)["warnings"] if "parent_step_id" in text]
    del sent["meta"]["parent_step_id"]
    sent["meta"]["step_id"] = new()
    assert [text for text in send(server, sent)["warnings"] if "parent_step_id" in text]
    several = decision_log(meta={"step_id": new(), "parent_step_ids": ["a", "", "b"], "parent_step_id": ""})
    answer = send(server, several)
    assert item(server, answer)["parents"] == [f"{answer['session_id']}/a", f"{answer['session_id']}/b"]

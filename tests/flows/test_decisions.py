"""Decisions through the doors: an agent asks, people are shown it, one of them decides, the agent acts."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

import httpx2
import pytest

from tests.flows.deciding import People, ask, decision, id_of, pending, respond, soon, trail
from tests.flows.server import Server
from tests.samples import envelope, just_now
from tests.waiting import until

Json = dict[str, Any]


@pytest.fixture
def server(either_server: Server) -> Server:
    """On both databases; the people of a test are nobody else's."""
    return either_server


@pytest.fixture
def people(server: Server) -> Iterator[People]:
    made = People(server)
    made.client("owner")
    yield made
    made.close()


@pytest.mark.req(365, *range(373, 382), 494, 525)
def test_a_request_is_shown_to_its_user_with_all_they_need_s120_s121(server: Server, people: People) -> None:
    """S120, S121."""
    auto = {"option_id": "defer", "trigger": "deadline_expired"}
    sent = ask(people, auto_action=auto)
    (item,) = pending(server, user_id=people.ids["owner"])
    asked = sent["payload"]
    assert item["decision_id"] == asked["decision_id"] and item["state"] == "pending"
    assert (item["title"], item["description"]) == (asked["title"], asked["description"])
    shown = [
        {name: option[name] for name in option if option[name] is not None} for option in item["options"]
    ]
    assert shown == [{"is_default": False} | option for option in asked["options"]]
    assert item["context_refs"] == asked["context_refs"]
    assert datetime.fromisoformat(item["deadline"][:26] + "Z") == datetime.fromisoformat(asked["deadline"])
    assert (item["risk"], item["auto_option_id"]) == ("medium", "defer")
    assert item["entity_id"] == sent["sender"]["entity_id"]
    assert item["session_id"] == str(uuid.UUID(sent["trace_id"]))
    assert item["message_id"] == sent["message_id"] and item["requested_at"].endswith("Z")
    assert item == decision(server, sent)
    assert item in pending(server), "without a user: all of the tenant"
    assert pending(server, user_id="usr_nobody") == []


@pytest.mark.req(366, *range(382, 387), 494)
def test_an_answer_is_a_message_under_its_request_s124(server: Server, people: People) -> None:
    """S124: archived in the session of the request, chained, told of; and no longer pending."""
    sent = ask(people, session_id=f"chat-{uuid.uuid4()}")
    answer = respond(
        people.client("owner"), sent, "deny", respondent_note="not today", response_method="phone"
    )
    assert answer.status_code == 200, answer.text
    item = answer.json()
    assert item == decision(server, sent)
    assert (item["state"], item["selected_option_id"]) == ("answered", "deny")
    assert item["answered_by"] == people.ids["owner"] and item["answered_at"]
    where = {"session_id": sent["metadata"]["session_id"], "type": "decision_response"}
    listed = server.http("admin").get("/v1/messages", params=where).json()["items"]
    (stored,) = [one for one in listed if one["message_type"] == "decision_response"]
    assert stored["sequence_number"] == item["response_sequence_number"]
    message = stored["message"]
    assert message["parent_span_id"] == sent["span_id"] and message["span_id"] != sent["span_id"]
    assert message["trace_id"] == sent["trace_id"]
    assert message["sender"] == {"entity_id": people.ids["owner"], "entity_type": "user"}
    assert message["recipient"] == {"entity_id": sent["sender"]["entity_id"], "entity_type": "agent"}
    payload = message["payload"]
    assert payload.pop("responded_at")
    assert payload == {
        "decision_id": id_of(sent),
        "selected_option_id": "deny",
        "respondent_note": "not today",
        "response_method": "phone",
    }
    assert pending(server, user_id=people.ids["owner"]) == []
    answered = server.http("operator").get("/v1/decisions", params={"state": "answered", "limit": 1_000})
    assert item in answered.json()["items"]
    assert server.http("admin").post("/v1/audit/verify", json={}).json()["valid"] is True


def test_a_decision_is_told_of_in_its_session_s124(server: Server, people: People) -> None:
    """S124: `decision_made` beside the answer, without its words."""
    sent = ask(people)
    respond(people.client("owner"), sent, respondent_note="a secret reason")
    events = trail(server, sent)
    assert [event["body"]["event_type"] for event in events] == [
        "message_delivered",
        "message_delivered",
        "decision_made",
    ]
    made = events[-1]
    assert (made["severity_number"], made["body"]["selected_option_id"]) == (10, "approve")
    assert made["attributes"]["av.sender.entity_id"] == people.ids["owner"]
    assert "a secret reason" not in str(events)


@pytest.mark.req(366)
def test_the_agent_that_asked_is_told_and_acts_s124(server: Server, people: People) -> None:
    """S124: the answer waits in its inbox, once, with the message; acknowledged, it is being carried out."""
    sent, agent = ask(people), server.http("agent")
    path = f"/v1/agents/{sent['sender']['entity_id']}/inbox"
    respond(people.client("owner"), sent, "deny", respondent_note="not today")
    items = agent.get(path, params={"wait": 5}).json()["items"]
    (received,) = [item for item in items if item["message_type"] == "decision_response"]
    assert received["kind"] == "decision"
    assert received["body"] == {
        "decision_id": id_of(sent),
        "selected_option_id": "deny",
        "respondent_note": "not today",
    }
    assert received["message"]["payload"]["respondent_note"] == "not today"
    assert agent.post(f"{path}/ack", json={"ids": [received["delivery_id"]]}).status_code == 200
    assert decision(server, sent)["state"] == "executing"
    confirmed = envelope(
        "action_confirmation",
        sender=sent["sender"],
        payload={"status": "failure", "triggered_by": {"decision_id": id_of(sent)}},
        timestamp=just_now(),
    )
    assert server.send(confirmed).json()["warnings"] == []
    assert decision(server, sent)["state"] == "failed"


@pytest.mark.parametrize(("how", "word"), [("cancel", "cancelled"), ("deadline", "expired")])
def test_the_agent_is_told_when_nobody_decides_s125_s126(
    server: Server, people: People, how: str, word: str
) -> None:
    """S125, S126."""
    sent = ask(people, deadline=soon(-1) if how == "deadline" else None)
    if how == "cancel":
        assert server.http("operator").post(f"/v1/decisions/{id_of(sent)}/cancel").status_code == 200
    path = f"/v1/agents/{sent['sender']['entity_id']}/inbox"
    items: list[Json] = until(lambda: server.http("agent").get(path, params={"wait": 5}).json()["items"])
    assert [(item["kind"], item["message"]) for item in items] == [("decision", None)]
    body = items[0]["body"]
    assert (body["decision_id"], body["selected_option_id"], body[word]) == (id_of(sent), None, True)


def test_of_two_people_at_once_exactly_one_decides_s123(server: Server, people: People) -> None:
    """S123: the other one is told who was first: in which state it is and since when."""
    clients = [people.client("left", "operator"), people.client("right", "operator")]
    for _ in range(5):
        sent, start = ask(people), threading.Barrier(2)

        def decide(number: int, sent: Json = sent, start: threading.Barrier = start) -> httpx2.Response:
            start.wait()
            return respond(clients[number], sent, ("approve", "deny")[number])

        with ThreadPoolExecutor(2) as pool:
            answers = list(pool.map(decide, (0, 1)))
        assert sorted(answer.status_code for answer in answers) == [200, 409]
        won, lost = sorted(answers, key=lambda answer: answer.status_code)
        item = decision(server, sent)
        assert item == won.json()
        assert lost.json()["reason"] == "already_decided"
        assert "answered" in lost.json()["detail"] and item["answered_at"] in lost.json()["detail"]
        names = [event["body"]["event_type"] for event in trail(server, sent)]
        assert names.count("decision_made") == 1


def test_who_may_not_decide_is_refused_s122(server: Server, people: People) -> None:
    """S122: by role, by scope, as an agent, in another's name, and what one requested oneself."""
    sent = ask(people)
    assert respond(server.http("agent"), sent).status_code == 403
    assert respond(people.client("viewer", "viewer"), sent).status_code == 403
    assert respond(people.client("auditor", "auditor"), sent).status_code == 403
    assert respond(people.client("narrow", "operator", scopes=["read", "send"]), sent).status_code == 403
    assert respond(server.http("nobody"), sent).status_code == 401
    forged = envelope(
        "decision_response",
        sender={"entity_id": people.ids["owner"], "entity_type": "user"},
        payload={"decision_id": id_of(sent)},
    )
    for role, reason in (
        ("admin", "sender_mismatch"),
        ("operator", "sender_mismatch"),
        ("agent", "sender_mismatch"),
    ):
        answer = server.send(forged, role)
        assert (answer.status_code, answer.json()["reason"]) == (403, reason)
    own = envelope("decision_request", payload={"deadline": None})
    assert server.send(own, "admin").status_code == 202
    answer = respond(server.http("admin"), own)
    assert (answer.status_code, answer.json()["reason"]) == (403, "own_request")
    assert {decision(server, one)["state"] for one in (sent, own)} == {"pending"}


def test_an_answer_must_fit_the_decision_s123(server: Server, people: People) -> None:
    """S123: unknown, not offered, past its deadline; each says what is wrong and changes nothing."""
    owner, sent = people.client("owner"), ask(people)
    unknown = respond(owner, envelope("decision_request"))
    assert (unknown.status_code, unknown.json()["reason"]) == (404, "no_such_decision")
    wrong = respond(owner, sent, "explode")
    assert wrong.status_code == 422
    assert [fault["path"] for fault in wrong.json()["faults"]] == ["payload.selected_option_id"]
    assert "explode" not in wrong.text
    bodies: list[Any] = [{}, {"selected_option_id": 1}, {"selected_option_id": ""}, []]
    for body in bodies:
        assert owner.post(f"/v1/decisions/{id_of(sent)}/respond", json=body).status_code == 422
    late = ask(people, deadline="2020-01-01T00:00:00Z")
    expired = respond(owner, late)
    assert (expired.status_code, expired.json()["reason"]) == (409, "expired")
    assert decision(server, sent)["state"] == "pending"
    assert server.http("operator").get("/v1/decisions/dec_none").status_code == 404
    assert server.http("operator").get("/v1/decisions", params={"state": "maybe"}).status_code == 400


def test_an_answer_may_also_be_sent_as_a_message_s123(server: Server, people: People) -> None:
    """S123: the same rules at the front door; a repeat is answered as the first was."""
    owner, sent = people.client("owner"), ask(people)
    message = envelope(
        "decision_response",
        trace_id=sent["trace_id"],
        parent_span_id=sent["span_id"],
        sender={"entity_id": people.ids["owner"], "entity_type": "user"},
        recipient=sent["sender"],
        payload={"decision_id": id_of(sent), "selected_option_id": "defer"},
    )
    first = owner.post("/v1/messages", json=message)
    assert first.status_code == 202, first.text
    assert owner.post("/v1/messages", json=message).json() == first.json()
    assert decision(server, sent)["selected_option_id"] == "defer"
    again = owner.post("/v1/messages", json=message | {"message_id": f"msg_{uuid.uuid4()}"})
    assert (again.status_code, again.json()["reason"]) == (409, "already_decided")
    stray = message | {
        "message_id": f"msg_{uuid.uuid4()}",
        "payload": envelope("decision_response")["payload"],
    }
    assert owner.post("/v1/messages", json=stray).status_code == 404


def test_an_id_in_use_cannot_be_asked_again_s120(server: Server, people: People) -> None:
    """S120: nothing of the second request is kept."""
    sent = ask(people)
    other = envelope("decision_request", payload={"decision_id": id_of(sent), "title": "Other?"})
    answer = server.send(other)
    assert (answer.status_code, answer.json()["reason"]) == (409, "decision_exists")
    assert server.http("admin").get(f"/v1/messages/{other['message_id']}").status_code == 404
    assert decision(server, sent)["title"] == sent["payload"]["title"]


def test_an_operator_takes_a_pending_decision_back_s126(server: Server, people: People) -> None:
    """S126."""
    sent, operator = ask(people), server.http("operator")
    path = f"/v1/decisions/{id_of(sent)}/cancel"
    assert people.client("owner").post(path).status_code == 403, "an approver only answers"
    answer = operator.post(path)
    assert (answer.status_code, answer.json()["state"]) == (200, "cancelled")
    for later in (operator.post(path), respond(operator, sent)):
        assert (later.status_code, later.json()["reason"]) == (409, "already_decided")
    assert trail(server, sent)[-1]["body"]["event_type"] == "decision_cancelled"
    assert operator.post("/v1/decisions/dec_none/cancel").status_code == 404


@pytest.mark.req(*range(397, 407))
@pytest.mark.parametrize(("status", "state"), [("success", "succeeded"), ("rollback", "failed")])
def test_what_came_of_it_is_confirmed_by_the_agent_s127(
    server: Server, people: People, status: str, state: str
) -> None:
    """S127."""
    sent = ask(people)
    respond(people.client("owner"), sent)
    payload = {"status": status, "triggered_by": {"decision_id": id_of(sent)}}
    trace = {"trace_id": sent["trace_id"], "sender": sent["sender"]}
    confirmed = envelope("action_confirmation", payload=payload, timestamp=just_now(), **trace)
    answer = server.send(confirmed)
    assert (answer.status_code, answer.json()["warnings"]) == (202, [])
    item = decision(server, sent)
    assert (item["state"], item["action_id"]) == (state, confirmed["payload"]["action_id"])
    received = trail(server, sent)[-1]
    assert (received["body"]["event_type"], received["body"]["status"]) == ("action_executed", status)
    assert (received["severity_number"], received["body"]["decision_id"]) == (10, id_of(sent))
    stray = server.send(envelope("action_confirmation", **trace))
    assert stray.status_code == 202 and "unknown decision" in stray.json()["warnings"][0]


def test_many_decisions_come_page_by_page_newest_first_s45(server: Server, people: People) -> None:
    """S45."""
    asked = [id_of(ask(people)) for _ in range(5)]
    found = pending(server, user_id=people.ids["owner"], limit=2)
    assert [item["decision_id"] for item in found] == asked[::-1]


@pytest.mark.req(380, 381)
def test_a_deadline_is_kept_by_the_house_s125(server: Server, people: People) -> None:
    """S125: with an option named for it, as an answer of the house; without one it expires."""
    auto = {"option_id": "defer", "trigger": "deadline_expired"}
    rules = "/v1/settings/decisions"
    assert server.http("operator").put(rules, json={"min_deadline_s": 1}).status_code == 200
    try:
        taken, ended = ask(people, deadline=soon(1.5), auto_action=auto), ask(people, deadline=soon(1.5))
    finally:
        server.http("operator").put(rules, json={"min_deadline_s": None})
    until(lambda: {decision(server, one)["state"] for one in (taken, ended)} == {"answered", "expired"})
    item = decision(server, taken)
    assert (item["selected_option_id"], item["answered_by"]) == ("defer", "auto")
    assert decision(server, ended)["selected_option_id"] is None
    assert trail(server, taken)[-1]["body"]["event_type"] == "decision_made"
    assert trail(server, ended)[-1]["body"]["event_type"] == "decision_expired"
    assert respond(people.client("owner"), taken).json()["reason"] == "already_decided"
    assert respond(people.client("owner"), ended).json()["reason"] == "expired"

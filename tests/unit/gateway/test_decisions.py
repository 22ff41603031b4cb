"""What follows from a decision asked, answered, overdue, cancelled and carried out."""

from __future__ import annotations

import json
import uuid

import pytest

from observatory.features.decisions import commands as decisions
from observatory.features.decisions.responses import StoredDecisionRequest, by_deadline, by_person
from observatory.pipeline.interceptor import intercept
from observatory.pipeline.state import IncomingMessage, ReadSet
from observatory.protocol.clock import from_ns
from observatory.protocol.message import Message
from tests.samples import decision_log, envelope
from tests.unit.gateway.deciding import (
    AGENT,
    GATEWAY_PRINCIPAL,
    HOUR,
    KEY,
    NOW,
    OTHER,
    SECOND,
    TENANT,
    USER,
    Json,
    Room,
    answer,
    ask,
    asked,
    confirm,
    person,
    refusal,
)


def test_an_answer_settles_the_decision_and_is_told_s124() -> None:
    """S124: the row, `decision_made` in the session, one delivery that carries the message."""
    room = asked().at(NOW + SECOND)
    ctx = room.send(answer("deny"), person())
    row = room.row
    assert (row["state"], row["option_id"], row["answered_by"]) == ("answered", "deny", USER)
    assert (row["answered_ns"], row["response_seq"]) == (NOW + SECOND, 2)
    assert room.changes.writes[-1].where == {"tenant_id": TENANT, "decision_id": "dec_1", "state": "pending"}
    event = room.events()[-1]
    assert (event["body"]["event_type"], event["severity_number"]) == ("decision_made", 10)
    assert (event["trace_id"], event["parent_span_id"]) == ("1" * 32, ctx.message.span_id)
    assert event["body"]["selected_option_id"] == "deny" and event["body"]["decision_id"] == "dec_1"
    assert event["attributes"]["av.sender.entity_id"] == USER
    assert "ship it" not in json.dumps(room.events())
    (received,) = room.received
    assert (received.agent_no, received.kind, received.session_no, received.message_seq) == (
        3,
        "decision",
        7,
        2,
    )
    assert received.body is not None and json.loads(received.body) == {
        "decision_id": "dec_1",
        "selected_option_id": "deny",
        "respondent_note": "Looks good, ship it.",
    }


# --- deadline, cancelling ---


def arrival_of(room: Room, auto: bool = True) -> IncomingMessage:
    request = StoredDecisionRequest(
        message_id="msg_1",
        session_id="s",
        trace_id="2" * 32,
        span_id="3" * 16,
        conversation_id="c",
        words=None,
    )
    made = (
        by_deadline(GATEWAY_PRINCIPAL, room.row, request, AGENT, NOW + 2 * SECOND)
        if auto
        else by_person(person(), "dec_1", request, AGENT, "deny", "no", "terminal", NOW)
    )
    assert isinstance(made, IncomingMessage)
    return made


def test_at_the_deadline_the_house_takes_the_agents_own_option_s125() -> None:
    """S125: once due, as a message that is the same bytes each time it is made."""
    auto = {"option_id": "defer", "trigger": "deadline_expired"}
    room = asked(deadline=from_ns(NOW + HOUR), auto_action=auto)
    one = arrival_of(room)
    assert one.message.raw == arrival_of(room).message.raw
    sent = json.loads(one.message.raw)
    assert refusal(room.judge(sent, GATEWAY_PRINCIPAL)) == (403, "not_allowed"), "not before it is due"
    other = sent | {"payload": sent["payload"] | {"selected_option_id": "approve"}}
    room.at(NOW + HOUR)
    assert refusal(room.judge(other, GATEWAY_PRINCIPAL)) == (403, "not_allowed"), "and no other option"
    assert refusal(room.judge(sent, person(role="admin"))) == (403, "sender_mismatch"), "nor by anyone else"
    room.send(sent, GATEWAY_PRINCIPAL)
    assert (room.row["state"], room.row["option_id"], room.row["answered_by"]) == (
        "answered",
        "defer",
        "auto",
    )
    assert room.names()[-1] == "decision_made" and len(room.received) == 1


def test_without_such_an_option_it_expires_once_s125() -> None:
    """S125: looked at again under the lock."""
    room = asked(deadline=from_ns(NOW + HOUR))
    act = decisions.expire(GATEWAY_PRINCIPAL, "dec_1", "s", NOW)
    assert act.read_set.rows == {"decisions": {"dec_1"}} and act.read_set.sessions == {"s"}
    act.decide(room.event_writer)
    assert room.row["state"] == "pending", "not before it is due"
    room.at(NOW + HOUR)
    for _ in range(2):
        assert act.decide(room.event_writer).code == 200
    assert room.row["state"] == "expired" and room.names()[1:] == ["decision_expired"]
    assert room.events()[-1]["trace_id"] == "1" * 32
    (received,) = room.received
    assert (received.agent_no, received.kind, received.session_no) == (3, "decision", 7)
    assert received.body is not None and json.loads(received.body)["expired"] is True
    assert refusal(room.judge(answer(), person())) == (409, "expired")


def test_a_pending_decision_can_be_cancelled_and_no_other_s126() -> None:
    """S126: the agent is told."""
    room, who = asked(), person(OTHER, "operator")
    act = decisions.cancel(who, "dec_1", "s", NOW)
    assert act.decide(room.event_writer).code == 200
    assert room.row["state"] == "cancelled" and room.names()[-1] == "decision_cancelled"
    (received,) = room.received
    assert received.body is not None and json.loads(received.body)["cancelled"] is True
    again = act.decide(room.event_writer)
    assert (again.code, again.answer.reason) == (409, "already_decided")
    assert refusal(room.judge(answer(), person())) == (409, "already_decided")
    gone = decisions.cancel(who, "dec_2", "s", NOW).decide(room.event_writer)
    assert (gone.code, gone.answer.reason) == (404, "no_such_decision")


# --- what came of it ---


@pytest.mark.parametrize(
    ("status", "state"), [("success", "succeeded"), ("failure", "failed"), ("rollback", "failed")]
)
@pytest.mark.parametrize("before", ["answered", "executing"])
def test_a_confirmation_ends_the_decision_it_names_s127(status: str, state: str, before: str) -> None:
    """S127."""
    room = asked()
    room.send(answer(), person())
    room.row["state"] = before
    ctx = room.send(confirm(status), KEY)
    assert ctx.warnings == []
    assert room.row["state"] == state and room.row["action_id"].startswith("act_")
    event = room.events()[-1]["body"]
    assert (event["event_type"], event["status"], event["decision_id"]) == (
        "action_executed",
        status,
        "dec_1",
    )


@pytest.mark.parametrize(
    ("sent", "moved", "says"),
    [
        (confirm(decision_id="dec_2"), True, "unknown decision"),
        (confirm(agent="agt_other"), True, "another agent"),
        (confirm(), False, "is pending"),
        (confirm(decision_id=None), True, ""),
    ],
)
def test_a_confirmation_that_fits_no_decision_moves_nothing_s127(sent: Json, moved: bool, says: str) -> None:
    """S127: it is true all the same, so it is accepted, warned about and told of."""
    room = asked()
    if moved:
        room.send(answer(), person())
    before = dict(room.row)
    ctx = room.send(sent, KEY)
    assert room.row == before
    assert [says in warning for warning in ctx.warnings] == ([True] if says else [])
    assert room.names()[-1] == "action_executed"


# --- rows and messages ---


@pytest.mark.parametrize(
    ("sent", "rows"),
    [
        (ask(), {"decisions": {"dec_1"}, "users": {USER}}),
        (answer(), {"decisions": {"dec_1"}}),
        (confirm(), {"decisions": {"dec_1"}}),
        (confirm(decision_id=None), {}),
        (envelope("text"), {}),
        (decision_log(), {}),
    ],
)
def test_a_message_names_the_rows_it_needs(sent: Json, rows: dict[str, set[str]]) -> None:
    read_set, message = ReadSet(), intercept(json.dumps(sent).encode())
    assert isinstance(message, Message)
    decisions.add_reads(message, TENANT, read_set)
    assert read_set.rows == rows


def test_an_answer_given_at_the_door_is_a_message_under_its_request_s124() -> None:
    """S124: session, trace, conversation and parent are the request's; the sender is the person."""
    arrival = arrival_of(asked(), auto=False)
    message = arrival.message
    assert (message.session_id, message.trace_id, message.parent_span_id) == ("s", "2" * 32, "3" * 16)
    assert (message.sender_type, message.sender_id, message.recipient) == ("user", USER, AGENT)
    assert (message.conversation_id, message.message_type) == ("c", "decision_response")
    assert uuid.UUID((message.message_id or "").removeprefix("msg_")).version == 7
    payload = json.loads(message.raw)["payload"]
    assert payload == {
        "decision_id": "dec_1",
        "selected_option_id": "deny",
        "respondent_note": "no",
        "responded_at": from_ns(NOW),
        "response_method": "terminal",
    }


def test_a_rewrite_that_offers_or_chooses_nothing_real_spoils_no_decision_s123() -> None:
    """S123: what is released was not looked at by the stage again."""
    room = Room()
    gone = {"option_id": "gone", "trigger": "deadline_expired"}
    room.forward(room.ctx(ask(auto_action=gone), KEY))
    assert (room.row["state"], room.row["auto_option"]) == ("pending", None)
    room.forward(room.ctx(answer("gone"), person()))
    assert (room.row["state"], room.received, room.names()[-1]) == ("pending", [], "message_undeliverable")

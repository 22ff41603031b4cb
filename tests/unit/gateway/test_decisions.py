"""What follows from a decision asked, answered, overdue, cancelled and carried out."""

from __future__ import annotations

import json
import uuid

import pytest

from observatory.features.decisions import commands as decisions
from observatory.features.inbox.responses import Request, by_deadline, by_person
from observatory.pipeline.interceptor import intercept
from observatory.pipeline.state import Arrival, Wants
from observatory.protocol.clock import from_ns
from observatory.protocol.message import Message
from tests.samples import decision_log, envelope
from tests.unit.gateway.deciding import (
    AGENT,
    HOUR,
    HOUSE,
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
    passage = room.send(answer("deny"), person())
    row = room.row
    assert (row["state"], row["option_id"], row["answered_by"]) == ("answered", "deny", USER)
    assert (row["answered_ns"], row["response_seq"]) == (NOW + SECOND, 2)
    assert room.changes.writes[-1].where == {"tenant_id": TENANT, "decision_id": "dec_1", "state": "pending"}
    event = room.events()[-1]
    assert (event["body"]["event_type"], event["severity_number"]) == ("decision_made", 10)
    assert (event["trace_id"], event["parent_span_id"]) == ("1" * 32, passage.message.span_id)
    assert event["body"]["selected_option_id"] == "deny" and event["body"]["decision_id"] == "dec_1"
    assert event["attributes"]["av.sender.entity_id"] == USER
    assert "ship it" not in json.dumps(room.events())
    (told,) = room.told
    assert (told.agent_no, told.kind, told.session_no, told.message_seq) == (3, "decision", 7, 2)
    assert told.body is not None and json.loads(told.body) == {
        "decision_id": "dec_1",
        "selected_option_id": "deny",
        "respondent_note": "Looks good, ship it.",
    }


# --- deadline, cancelling ---


def arrival_of(room: Room, auto: bool = True) -> Arrival:
    request = Request(
        message_id="msg_1",
        session_id="s",
        trace_id="2" * 32,
        span_id="3" * 16,
        conversation_id="c",
        words=None,
    )
    made = (
        by_deadline(HOUSE, room.row, request, AGENT, NOW + 2 * SECOND)
        if auto
        else by_person(person(), "dec_1", request, AGENT, "deny", "no", "terminal", NOW)
    )
    assert isinstance(made, Arrival)
    return made


def test_at_the_deadline_the_house_takes_the_agents_own_option_s125() -> None:
    """S125: once due, as a message that is the same bytes each time it is made."""
    auto = {"option_id": "defer", "trigger": "deadline_expired"}
    room = asked(deadline=from_ns(NOW + HOUR), auto_action=auto)
    one = arrival_of(room)
    assert one.message.raw == arrival_of(room).message.raw
    sent = json.loads(one.message.raw)
    assert refusal(room.judge(sent, HOUSE)) == (403, "not_allowed"), "not before it is due"
    other = sent | {"payload": sent["payload"] | {"selected_option_id": "approve"}}
    room.at(NOW + HOUR)
    assert refusal(room.judge(other, HOUSE)) == (403, "not_allowed"), "and no other option"
    assert refusal(room.judge(sent, person(role="admin"))) == (403, "sender_mismatch"), "nor by anyone else"
    room.send(sent, HOUSE)
    assert (room.row["state"], room.row["option_id"], room.row["answered_by"]) == (
        "answered",
        "defer",
        "auto",
    )
    assert room.names()[-1] == "decision_made" and len(room.told) == 1


def test_without_such_an_option_it_expires_once_s125() -> None:
    """S125: looked at again under the lock."""
    room = asked(deadline=from_ns(NOW + HOUR))
    act = decisions.expire(HOUSE, "dec_1", "s", NOW)
    assert act.wants.rows == {"decisions": {"dec_1"}} and act.wants.sessions == {"s"}
    act.decide(room.desk)
    assert room.row["state"] == "pending", "not before it is due"
    room.at(NOW + HOUR)
    for _ in range(2):
        assert act.decide(room.desk).code == 200
    assert room.row["state"] == "expired" and room.names()[1:] == ["decision_expired"]
    assert room.events()[-1]["trace_id"] == "1" * 32
    (told,) = room.told
    assert (told.agent_no, told.kind, told.session_no) == (3, "decision", 7)
    assert told.body is not None and json.loads(told.body)["expired"] is True
    assert refusal(room.judge(answer(), person())) == (409, "expired")


def test_a_pending_decision_can_be_cancelled_and_no_other_s126() -> None:
    """S126: the agent is told."""
    room, who = asked(), person(OTHER, "operator")
    act = decisions.cancel(who, "dec_1", "s", NOW)
    assert act.decide(room.desk).code == 200
    assert room.row["state"] == "cancelled" and room.names()[-1] == "decision_cancelled"
    (told,) = room.told
    assert told.body is not None and json.loads(told.body)["cancelled"] is True
    again = act.decide(room.desk)
    assert (again.code, again.answer.reason) == (409, "already_decided")
    assert refusal(room.judge(answer(), person())) == (409, "already_decided")
    gone = decisions.cancel(who, "dec_2", "s", NOW).decide(room.desk)
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
    passage = room.send(confirm(status), KEY)
    assert passage.warnings == []
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
        (confirm(decision_id="dec_2"), True, "no decision known"),
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
    passage = room.send(sent, KEY)
    assert room.row == before
    assert [says in warning for warning in passage.warnings] == ([True] if says else [])
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
    wants, message = Wants(), intercept(json.dumps(sent).encode())
    assert isinstance(message, Message)
    decisions.want(message, TENANT, wants)
    assert wants.rows == rows


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
    room.forward(room.passage(ask(auto_action=gone), KEY))
    assert (room.row["state"], room.row["auto_option"]) == ("pending", None)
    room.forward(room.passage(answer("gone"), person()))
    assert (room.row["state"], room.told, room.names()[-1]) == ("pending", [], "message_undeliverable")

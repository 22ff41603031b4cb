"""Decisions over a real database: rows, deliveries and deadlines on SQLite and PostgreSQL alike."""

from __future__ import annotations

import json
import uuid
from typing import Any

import msgspec
import pytest

from observatory.features.access import commands as access
from observatory.features.decisions.responses import request_of
from observatory.features.decisions.worker import overdue
from observatory.features.relay import commands as interventions
from observatory.pipeline.state import HOME_TENANT, IncomingMessage, Principal, Submission, SubmissionResult
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import mint
from tests.contract.conftest import OTHER_TENANT, Harness
from tests.samples import envelope, just_now

Json = dict[str, Any]
AGENT = "agt_asker"
HOUR = 3_600_000_000_000


def person(harness: Harness, user_id: str, tenant_id: str = HOME_TENANT) -> Principal:
    keeper = harness.admin(tenant_id)
    return msgspec.structs.replace(keeper, role="approver", key_id=f"sys_{user_id}", user_id=user_id)


def by(harness: Harness, sent: Json, who: Principal) -> IncomingMessage:
    return msgspec.structs.replace(harness.arrival(sent, who.tenant_id), principal=who)


def ask(harness: Harness, **payload: Any) -> Json:
    plain = {"deadline": from_ns(harness.now() + HOUR), "auto_action": None}
    return envelope("decision_request", sender={"entity_id": AGENT}, payload=plain | payload)


def answer(asked: Json, user_id: str, option_id: str = "approve") -> Json:
    return envelope(
        "decision_response",
        trace_id=asked["trace_id"],
        parent_span_id=asked["span_id"],
        sender={"entity_id": user_id, "entity_type": "user"},
        recipient={"entity_id": AGENT, "entity_type": "agent"},
        payload={"decision_id": asked["payload"]["decision_id"], "selected_option_id": option_id},
    )


def respond(harness: Harness, asked: Json, user_id: str, option_id: str = "approve") -> SubmissionResult:
    (verdict,) = harness.submit(by(harness, answer(asked, user_id, option_id), person(harness, user_id)))
    return verdict


def rows(harness: Harness, table: str = "decisions", **where: Any) -> list[Json]:
    return harness.read(harness.store.rows(HOME_TENANT, table, **where))


def row_of(harness: Harness, asked: Json) -> Json:
    (row,) = rows(harness, decision_id=asked["payload"]["decision_id"])
    return row


def received(harness: Harness) -> list[Json]:
    return [row for row in rows(harness, "deliveries") if row["kind"] == "decision"]


def names(harness: Harness) -> list[str]:
    return [json.loads(event.record)["body"]["event_type"] for event in harness.trail_of()]


def add_user(harness: Harness) -> str:
    user_id = mint("usr_", harness.now())
    user = {
        "tenant_id": HOME_TENANT,
        "user_id": user_id,
        "name": user_id,
        "display_name": "Owner",
        "role": "approver",
        "created_ns": harness.now(),
    }
    (verdict,) = harness.submit(access.create_user(harness.admin(), user, harness.now()))
    assert verdict.code == 201
    return user_id


@pytest.mark.req(365, 373, 376, 380, 381, 525)
def test_a_request_waits_for_its_owner_s120(harness: Harness) -> None:
    """S120: one row, found again by its id and by its user; the id cannot be used twice."""
    user_id = add_user(harness)
    asked = ask(harness, auto_action={"option_id": "defer", "trigger": "deadline_expired"})
    asked["recipient"] = {"entity_id": user_id, "entity_type": "user"}
    assert harness.send(asked)[0].code == 202
    (row,) = rows(harness, user_id=user_id, state="pending")
    assert (row["decision_id"], row["auto_option"]) == (asked["payload"]["decision_id"], "defer")
    assert json.loads(row["options"])["option_ids"] == ["approve", "deny", "defer"]
    head = harness.read(harness.store.head(HOME_TENANT))[0]
    assert harness.send(asked)[0].code == 202, "a repeat is answered as the first was"
    assert harness.read(harness.store.head(HOME_TENANT))[0] == head
    (verdict,) = harness.send(ask(harness, decision_id=row["decision_id"]))
    assert (verdict.code, verdict.answer.reason) == (409, "decision_exists")


@pytest.mark.req(366, *range(382, 387))
def test_the_first_of_two_answers_in_one_batch_wins_s123_s124(harness: Harness) -> None:
    """S123, S124: one transaction, two people; and the same in two."""
    asked = ask(harness)
    harness.send(asked)
    pair = [by(harness, answer(asked, user, "deny"), person(harness, user)) for user in ("usr_a", "usr_b")]
    first, second = harness.submit(*pair)
    assert (first.code, second.code) == (202, 409)
    assert respond(harness, asked, "usr_c").answer.reason == "already_decided"
    row = row_of(harness, asked)
    assert (row["state"], row["option_id"], row["answered_by"]) == ("answered", "deny", "usr_a")
    assert row["response_seq"] == first.answer.sequence_number
    (delivery,) = received(harness)
    assert (delivery["state"], delivery["message_seq"]) == ("pending", row["response_seq"])
    assert (delivery["agent_no"], delivery["session_no"]) == (row["agent_no"], row["session_no"])
    assert names(harness).count("decision_made") == 1
    refused = harness.read(harness.store.message(HOME_TENANT, pair[1].message.message_id or ""))
    assert refused is None, "what came too late is not archived"


def test_asked_and_answered_in_one_batch_s124(harness: Harness) -> None:
    """S124: later items of a batch see what earlier ones wrote."""
    asked = ask(harness)
    confirmed = envelope(
        "action_confirmation",
        sender={"entity_id": AGENT},
        payload={"triggered_by": {"decision_id": asked["payload"]["decision_id"]}},
    )
    items = [
        harness.arrival(asked),
        by(harness, answer(asked, "usr_a"), person(harness, "usr_a")),
        harness.arrival(confirmed),
    ]
    assert [verdict.code for verdict in harness.submit(*items)] == [202, 202, 202]
    row = row_of(harness, asked)
    assert (row["state"], row["action_id"]) == ("succeeded", confirmed["payload"]["action_id"])


@pytest.mark.req(*range(397, 407))
@pytest.mark.parametrize(
    ("status", "state"), [("success", "succeeded"), ("failure", "failed"), ("rollback", "failed")]
)
def test_a_confirmation_ends_the_decision_s127(harness: Harness, status: str, state: str) -> None:
    """S127: of its own agent; another's is accepted with a warning."""
    asked = ask(harness)
    harness.send(asked)
    respond(harness, asked, "usr_a")
    payload = {"status": status, "triggered_by": {"decision_id": asked["payload"]["decision_id"]}}
    (foreign,) = harness.send(envelope("action_confirmation", payload=payload))
    assert foreign.code == 202 and "another agent" in foreign.answer.warnings[0]
    assert row_of(harness, asked)["state"] == "answered"
    done = {"sender": {"entity_id": AGENT}, "payload": payload}
    (own,) = harness.send(envelope("action_confirmation", timestamp=just_now(), **done))
    assert (own.code, own.answer.warnings) == (202, ())
    assert row_of(harness, asked)["state"] == state
    (later,) = harness.send(envelope("action_confirmation", sender={"entity_id": AGENT}, payload=payload))
    assert f"is {state}" in later.answer.warnings[0]
    assert names(harness).count("action_executed") == 3


def late(harness: Harness, now_ns: int) -> list[Submission]:
    pending = harness.read(harness.store.rows(HOME_TENANT, "decisions", state="pending"))
    return harness.read(overdue(harness.store, HOME_TENANT, pending, now_ns))


@pytest.mark.req(380, 381)
def test_a_deadline_takes_the_named_option_or_ends_it_s125(harness: Harness) -> None:
    """S125: handed in twice, as two gateways would; each ends once."""
    auto = ask(harness, auto_action={"option_id": "defer", "trigger": "deadline_expired"})
    plain, open_ended, later = ask(harness), ask(harness, deadline=None), ask(harness)
    harness.send(auto, plain, open_ended, later)
    for sent in (auto, plain):  # an hour goes by
        decision_id = sent["payload"]["decision_id"]
        harness.sql(f"UPDATE decisions SET deadline_ns = 1 WHERE decision_id = '{decision_id}'")
    now = harness.now()
    items = late(harness, now)
    again = late(harness, now)
    assert len(items) == len(again) == 2
    assert {verdict.code for verdict in harness.submit(*items)} == {202, 200}
    head = harness.read(harness.store.head(HOME_TENANT))[0]
    assert {verdict.code for verdict in harness.submit(*again)} == {202, 200}
    assert harness.read(harness.store.head(HOME_TENANT))[0] == head, "the second gateway wrote nothing"
    assert late(harness, now) == []
    taken, ended = row_of(harness, auto), row_of(harness, plain)
    assert (taken["state"], taken["option_id"], taken["answered_by"]) == ("answered", "defer", "auto")
    assert (ended["state"], ended["option_id"]) == ("expired", None)
    assert {row_of(harness, one)["state"] for one in (open_ended, later)} == {"pending"}
    assert len(received(harness)) == 2
    assert {"decision_made", "decision_expired"} <= set(names(harness))


def test_what_is_refused_leaves_later_sessions_their_own_numbers_s123(harness: Harness) -> None:
    """S123: a refusal after placement, then new sessions with the same memory kept."""
    asked = ask(harness)
    harness.send(asked)
    for _ in range(2):
        stray = answer(asked, "usr_a", "other") | {"trace_id": envelope("text")["trace_id"]}
        (verdict,) = harness.submit(by(harness, stray, person(harness, "usr_a")))
        assert verdict.code == 422
    harness.send(envelope("text"), envelope("text"))
    numbers = [row["session_no"] for row in rows(harness, "sessions")]
    assert len(set(numbers)) == len(numbers)


def test_a_decision_belongs_to_its_tenant_s54(harness: Harness) -> None:
    """S54: the same id is free in another tenant, and unknown there."""
    asked = ask(harness)
    harness.send(asked)
    harness.create_tenant(OTHER_TENANT)
    stranger = person(harness, "usr_a", OTHER_TENANT)
    (verdict,) = harness.submit(by(harness, answer(asked, "usr_a"), stranger), tenant_id=OTHER_TENANT)
    assert (verdict.code, verdict.answer.reason) == (404, "no_such_decision")
    assert harness.send(asked, tenant_id=OTHER_TENANT)[0].code == 202
    assert row_of(harness, asked)["state"] == "pending"


def test_what_was_held_counts_when_it_is_released_s120_s127(harness: Harness) -> None:
    """S120, S127: a paused agent's request and its confirmation take effect with the release, in order."""
    first, second = ask(harness), ask(harness)
    second["trace_id"] = first["trace_id"]
    session_id = str(uuid.UUID(first["trace_id"]))
    harness.send(first)
    respond(harness, first, "usr_a")
    harness.submit(interventions.pause(person(harness, "usr_a"), session_id, AGENT, None, harness.now()))
    payload = {"triggered_by": {"decision_id": first["payload"]["decision_id"]}}
    confirmed = envelope(
        "action_confirmation", trace_id=first["trace_id"], sender={"entity_id": AGENT}, payload=payload
    )
    held = harness.send(confirmed, second)
    assert [verdict.answer.state for verdict in held] == ["held", "held"]
    assert row_of(harness, first)["state"] == "answered" and len(rows(harness)) == 1
    harness.submit(interventions.unpause(person(harness, "usr_a"), session_id, AGENT, None, harness.now()))
    assert row_of(harness, first)["state"] == "succeeded"
    row = row_of(harness, second)
    assert (row["state"], row["request_seq"]) == ("pending", held[1].answer.sequence_number)
    request = harness.read(request_of(harness.store, HOME_TENANT, row))
    assert request.words is not None and request.words.title == second["payload"]["title"]
    assert respond(harness, second, "usr_a").code == 202

"""Who may ask for a decision, who may answer it, and when it is too late."""

from __future__ import annotations

import json

import pytest

from observatory.features.decisions.stage import options_of
from observatory.pipeline.state import Principal, Role
from observatory.protocol.clock import from_ns, to_ns
from tests.unit.gateway.deciding import (
    HOUR,
    KEY,
    NOW,
    OTHER,
    USER,
    Json,
    Room,
    answer,
    ask,
    asked,
    person,
    refusal,
)

# --- asking ---


def test_a_request_becomes_a_pending_row_without_its_words_s120_s121() -> None:
    """S120, S121."""
    deadline = from_ns(NOW + HOUR)
    room = asked(deadline=deadline, auto_action={"option_id": "defer", "trigger": "deadline_expired"})
    row = room.row
    assert (row["state"], row["decision_id"], row["agent_no"], row["session_no"]) == (
        "pending",
        "dec_1",
        3,
        7,
    )
    assert (row["request_seq"], row["deadline_ns"], row["auto_option"]) == (1, to_ns(deadline), "defer")
    assert options_of(row).option_ids == ("approve", "deny", "defer")
    (write,) = room.changes.writes
    assert (write.table, write.where, write.values["state"]) == ("decisions", None, "pending")
    text = json.dumps(write.values)
    for word in ("Deploy", "passing", "Approve Deploy", "github", "PR #142"):
        assert word not in text


@pytest.mark.parametrize(
    ("recipient", "users", "owner", "meant"),
    [
        ("usr_owner", {"usr_owner": None}, "usr_boss", "usr_owner"),
        ("usr_owner", {}, "usr_boss", "usr_boss"),
        ("usr_owner", {"usr_owner": 5}, "usr_boss", "usr_boss"),
        ("usr_owner", {}, None, "usr_owner"),
        ("agt_2", {}, "usr_boss", "usr_boss"),
        ("agt_2", {}, None, "agt_2"),
    ],
)
def test_a_decision_goes_to_the_user_named_else_to_the_owner_s120(
    recipient: str, users: dict[str, int | None], owner: str | None, meant: str
) -> None:
    """S120: a user of this tenant who is not disabled; else the agent's owner; else whoever it names."""
    room = Room(owner)
    room.memory.rows["users"] = {
        name: {"user_id": name, "disabled_ns": disabled} for name, disabled in users.items()
    }
    kind = "user" if recipient.startswith("usr_") else "agent"
    room.send(ask() | {"recipient": {"entity_id": recipient, "entity_type": kind}}, KEY)
    assert room.row["user_id"] == meant


def test_a_decision_id_names_one_decision_s120() -> None:
    """S120."""
    room = asked()
    assert refusal(room.judge(ask(), KEY)) == (409, "decision_exists")


def test_a_request_released_after_another_took_its_id_changes_nothing_s120() -> None:
    """S120: it passed the stage while it was free, was held, and comes too late."""
    room = Room()
    late = room.ctx(ask(title="late"), KEY)
    room.send(ask(), KEY)
    before = dict(room.row)
    room.forward(late)
    assert room.row == before and len(room.changes.writes) == 1
    assert room.names()[-1] == "message_undeliverable"


OPTIONS = [{"option_id": "a", "label": "A"}, {"option_id": "a", "label": "B"}]
AUTO = {"option_id": "gone", "trigger": "deadline_expired"}


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"sender": {"entity_id": USER, "entity_type": "user"}}, "sender.entity_type"),
        ({"payload": ask()["payload"] | {"options": OPTIONS}}, "payload.options"),
        ({"payload": ask()["payload"] | {"auto_action": AUTO}}, "payload.auto_action.option_id"),
    ],
)
def test_a_request_that_cannot_be_decided_is_a_violation_s2(change: Json, path: str) -> None:
    """S2, S120: not asked by an agent, options alike, an automatic option that is none."""
    verdict = Room().judge(ask() | change, person(role="admin"))
    assert refusal(verdict) == (422, "schema_violation")
    assert verdict is not None and [fault.path for fault in verdict.answer.faults] == [path]


# --- answering ---


WHO: list[tuple[str, Principal, Json, str]] = [
    ("a key without a user", person(None, "admin"), answer(), "no_user"),
    ("an agent's key", KEY, answer(), "no_user"),
    ("another's name", person(OTHER, "admin"), answer(), "sender_mismatch"),
    ("as an agent", person(role="admin"), answer() | {"sender": ask()["sender"]}, "sender_mismatch"),
    ("a viewer", person(role="viewer"), answer(), "not_allowed"),
    ("an auditor", person(role="auditor"), answer(), "not_allowed"),
    ("a key that may only send", person(USER, "admin", "send"), answer(), "not_allowed"),
]


@pytest.mark.parametrize(("who", "sent", "reason"), [case[1:] for case in WHO], ids=[case[0] for case in WHO])
def test_only_a_person_who_may_approve_decides_s122(who: Principal, sent: Json, reason: str) -> None:
    """S122: whether there is such a decision or not."""
    for room in (asked(), Room()):
        verdict = room.judge(sent, who)
        assert refusal(verdict) == (403, reason)
        assert verdict is not None and verdict.events[0].event_type == "security_violation"


@pytest.mark.parametrize("role", ["approver", "operator", "admin"])
def test_whoever_may_approve_may_decide_s122(role: Role) -> None:
    """S122."""
    assert asked().judge(answer(), person(role=role)) is None
    assert asked().judge(answer(), person(USER, role, "approve", "send")) is None


def test_nobody_decides_what_they_requested_s122() -> None:
    """S122: an admin's key can send in an agent's name; its owner cannot answer then."""
    room = Room()
    room.send(ask(), person(role="admin"))
    assert refusal(room.judge(answer(), person(role="admin"))) == (403, "own_request")
    assert room.judge(answer(user_id=OTHER), person(OTHER)) is None


def test_the_first_valid_answer_wins_s123() -> None:
    """S123: a later one in the same batch already hears what and when."""
    room = asked()
    assert refusal(room.judge(answer("other"), person())) == (422, "schema_violation")
    room.send(answer("deny"), person())
    verdict = room.judge(answer("approve", OTHER), person(OTHER))
    assert refusal(verdict) == (409, "already_decided")
    assert verdict is not None
    assert "answered" in verdict.answer.detail and from_ns(NOW) in verdict.answer.detail
    assert room.row["option_id"] == "deny"


def test_an_unknown_decision_is_not_found_s123() -> None:
    """S123."""
    assert refusal(asked().judge(answer(decision_id="dec_2"), person())) == (404, "no_such_decision")


def test_a_deadline_ends_the_time_to_answer_s123() -> None:
    """S123: at the very moment, and also when the clock's keeper has not looked yet."""
    room = asked(deadline=from_ns(NOW + HOUR))
    assert room.at(NOW + HOUR - 1).judge(answer(), person()) is None
    assert refusal(room.at(NOW + HOUR).judge(answer(), person())) == (409, "expired")


def test_an_answer_released_too_late_changes_nothing_s123() -> None:
    """S123: it was held, and another one or the deadline came first."""
    room = asked()
    late = room.ctx(answer("approve", OTHER), person(OTHER))
    room.send(answer("deny"), person())
    room.forward(late)
    assert (room.row["option_id"], len(room.received)) == ("deny", 1)
    assert room.names()[-1] == "message_undeliverable"
    room = asked(deadline=from_ns(NOW + HOUR))
    late = room.ctx(answer(), person())
    room.at(NOW + HOUR).forward(late)
    assert (room.row["state"], room.received) == ("pending", [])

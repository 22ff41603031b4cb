"""A session read whole, steps found by name, doubts and notes: the same over both databases."""

from __future__ import annotations

import uuid
from typing import Any

import msgspec
import pytest

from observatory.features.annotations import commands as annotating
from observatory.features.annotations.commands import Note, Subject
from observatory.features.search import commands as viewing
from observatory.features.sessions.types import Played, seen_of
from observatory.pipeline.state import HOME_TENANT, Act, Desk, Verdict, Wants
from observatory.protocol.clock import to_ns
from tests.contract.conftest import OTHER_TENANT, House
from tests.samples import decision_log, envelope


def log(session: str, step: str, *parents: str, **sections: Any) -> dict[str, Any]:
    meta = {"step_id": step, "session_id": session, "parent_step_id": None, "parent_step_ids": list(parents)}
    return decision_log(meta=meta, **sections)


def session_of(house: House, session: str, tenant_id: str = HOME_TENANT) -> dict[str, Any]:
    (row,) = house.read(house.store.rows(tenant_id, "sessions", session_id=session))
    return row


def played(house: House, session: str, limit: int = 1_000, tenant_id: str = HOME_TENANT) -> list[Played]:
    return house.read(house.store.play(tenant_id, session_of(house, session, tenant_id), limit))


def test_a_session_is_read_whole_and_in_order_s204(house: House) -> None:
    """S204: its messages only, with the gateway's exact time and their content."""
    told = envelope("text", metadata={"session_id": "ses-1"}, parent_span_id="AB" * 8)
    house.send(log("ses-1", "a"), log("ses-2", "a"), log("ses-1", "b", "a"), told)
    rows = played(house, "ses-1")
    assert [row.step_id for row in rows] == ["a", "b", told["message_id"]]
    by_number = {event.sequence_number: msgspec.json.decode(event.record) for event in house.trail_of()}
    assert [row.at for row in rows] == [by_number[row.seq]["observed_timestamp"] for row in rows]
    session = session_of(house, "ses-1")
    agents = house.read(house.store.rows(HOME_TENANT, "agents"))
    first, second, third = (
        seen_of(row, HOME_TENANT, session, {agent["entity_id"]: agent for agent in agents}) for row in rows
    )
    assert (first.name, second.parents, second.agent_id) == ("ses-1/a", ("ses-1/a",), "researcher-alpha-9")
    assert second.agent_no > 0 and second.at_ns == to_ns(rows[1].at) and second.log is not None
    assert (third.parent_span_id, third.span_id) == ("ab" * 8, told["span_id"])
    assert [row.step_id for row in played(house, "ses-1", limit=2)] == ["b", told["message_id"]]


def test_what_became_of_a_held_message_is_read_with_it_s209(house: House) -> None:
    """S209: its gate and reason while it waits."""
    house.send(log("ses-1", "a", control={"hitl_required": True}))
    (row,) = played(house, "ses-1")
    assert (row.state, row.gate, row.released_seq, row.rewrite_seq) == ("held", 1, None, None)
    assert row.reason


def test_steps_are_found_by_name_in_their_tenant_only_s205(house: House) -> None:
    """S205: bare ids, UUIDs and message ids; what another tenant has is not there."""
    house.create_tenant(OTHER_TENANT)
    step, told = str(uuid.uuid4()), envelope("text", metadata={"session_id": "ses-2"})
    house.send(log("ses-1", "a"), log("ses-1", step), told)
    house.send(log("ses-9", "b"), tenant_id=OTHER_TENANT)
    names = [
        "ses-1/a",
        step,
        told["message_id"],
        "ses-9/b",
        "ses-1/none",
        *(f"ses-1/x{n}" for n in range(900)),
    ]
    found = house.read(house.store.steps_named(HOME_TENANT, names))
    assert found == {"ses-1/a": "ses-1", step: "ses-1", told["message_id"]: "ses-2"}
    assert house.read(house.store.steps_named(HOME_TENANT, [])) == {}
    whole = house.read(house.store.steps_recorded(HOME_TENANT, names))
    assert {name: session for name, (session, _) in whole.items()} == found
    raw = whole[step][1]
    assert raw is not None and msgspec.json.decode(raw)["meta"]["step_id"] == step


def test_messages_are_found_by_number_s222(house: House) -> None:
    """S222: those asked for, each with its session."""
    verdicts = house.send(log("ses-1", "a"), log("ses-2", "b"), log("ses-2", "c"))
    numbers = [verdict.answer.sequence_number for verdict in verdicts]
    found = house.read(house.store.played(HOME_TENANT, [numbers[0], numbers[2], 1, 99_999]))
    assert {number: row.step_id for number, (_, row) in found.items()} == {numbers[0]: "a", numbers[2]: "c"}
    assert found[numbers[2]][0] == session_of(house, "ses-2")["session_no"]


def test_doubts_are_found_until_they_are_reviewed_s222(house: House) -> None:
    """S222: below the threshold, forwarded, not reviewed, newest first, between two numbers."""
    house.create_tenant(OTHER_TENANT)
    scores = (0.1, 0.5, None, 0.49)
    verdicts = house.send(
        *(log("s", f"n{n}", cognition={"confidence_score": score}) for n, score in enumerate(scores)),
        log("s", "bare", cognition=None),
        log("s", "held", cognition={"confidence_score": 0.0}, control={"hitl_required": True}),
        envelope("text"),
    )
    house.send(log("s", "n0", cognition={"confidence_score": 0.1}), tenant_id=OTHER_TENANT)
    numbers = [verdict.answer.sequence_number for verdict in verdicts]

    def doubts(after: int = 0, before: int | None = None) -> list[int]:
        return house.read(house.store.low_confidence(HOME_TENANT, 0.5, after, before, 10))

    assert doubts() == [numbers[3], numbers[0]]
    assert doubts(before=numbers[3]) == [numbers[0]]
    assert doubts(after=numbers[0]) == [numbers[3]]
    about = Subject(numbers[3], "msg", "s", 1)
    (done,) = house.submit(annotating.review(house.admin(), about, "ok", None, house.now()))
    assert done.code == 200 and doubts() == [numbers[0]]


def test_a_note_is_written_listed_and_taken_back_once_s220(house: House) -> None:
    """S220: under the lock: the second time it is not there."""
    (sent,) = house.send(log("s", "a"))
    about = Subject(sent.answer.sequence_number, sent.answer.message_id, "s", 1)
    house.submit(annotating.annotate(house.admin(), about, Note("l", None, "text"), house.now()))
    (row,) = house.read(house.store.annotations_page(HOME_TENANT, {"label": "l"}, None, 5))
    assert house.read(house.store.annotations_page(HOME_TENANT, {}, row["annotation_id"], 5)) == []
    acts = [annotating.take_back(house.admin(), row["annotation_id"], house.now()) for _ in range(2)]
    assert [verdict.code for verdict in house.submit(*acts)] == [200, 404]
    assert house.read(house.store.annotations_page(HOME_TENANT, {}, None, 5)) == []


def test_removed_views_are_not_loaded_and_live_ones_are_capped_s280(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S280: what is read under the lock is bounded by the cap; a name that was freed can be had again."""
    monkeypatch.setattr(viewing, "MOST_VIEWS", 2)
    who = house.admin()
    for _ in range(3):
        (made,) = house.submit(viewing.save(who, "same", "q", False, house.now()))
        assert made.code == 201
        (gone,) = house.submit(viewing.remove(who, who.entity_id, made.answer["view_id"], house.now()))
        assert gone.code == 200
    wants = Wants()
    wants.row("saved_views", who.entity_id)
    seen: list[int] = []

    def decide(desk: Desk) -> Verdict:
        seen.append(len(desk.memory.rows["saved_views"]))
        return Verdict(200, None)

    house.submit(Act(who, house.now(), decide, wants))
    assert seen == [0]
    codes = [house.submit(viewing.save(who, name, "q", False, house.now()))[0].code for name in "abc"]
    assert codes == [201, 201, 409]

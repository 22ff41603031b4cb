"""A session read whole, steps found by name, doubts and notes: the same over both databases."""

from __future__ import annotations

import uuid
from typing import Any

import msgspec
import pytest

from observatory.features.annotations import commands as annotating
from observatory.features.annotations.commands import AnnotatedMessage, AnnotationText
from observatory.features.graph.types_session import SessionMessage, seen_of
from observatory.features.search import commands as viewing
from observatory.pipeline.state import HOME_TENANT, Command, ReadSet, SubmissionResult, UnitOfWork
from observatory.protocol.clock import to_ns
from tests.contract.conftest import OTHER_TENANT, Harness
from tests.samples import decision_log, envelope


def log(session: str, step: str, *parents: str, **sections: Any) -> dict[str, Any]:
    meta = {"step_id": step, "session_id": session, "parent_step_id": None, "parent_step_ids": list(parents)}
    return decision_log(meta=meta, **sections)


def session_of(harness: Harness, session: str, tenant_id: str = HOME_TENANT) -> dict[str, Any]:
    (row,) = harness.read(harness.store.rows(tenant_id, "sessions", session_id=session))
    return row


def played(
    harness: Harness, session: str, limit: int = 1_000, tenant_id: str = HOME_TENANT
) -> list[SessionMessage]:
    return harness.read(harness.store.play(tenant_id, session_of(harness, session, tenant_id), limit))


def test_a_session_is_read_whole_and_in_order_s204(harness: Harness) -> None:
    """S204: its messages only, with the gateway's exact time and their content."""
    received = envelope("text", metadata={"session_id": "ses-1"}, parent_span_id="AB" * 8)
    harness.send(log("ses-1", "a"), log("ses-2", "a"), log("ses-1", "b", "a"), received)
    rows = played(harness, "ses-1")
    assert [row.step_id for row in rows] == ["a", "b", received["message_id"]]
    by_number = {event.sequence_number: msgspec.json.decode(event.record) for event in harness.trail_of()}
    assert [row.at for row in rows] == [by_number[row.seq]["observed_timestamp"] for row in rows]
    session = session_of(harness, "ses-1")
    agents = harness.read(harness.store.rows(HOME_TENANT, "agents"))
    first, second, third = (
        seen_of(row, HOME_TENANT, session, {agent["entity_id"]: agent for agent in agents}) for row in rows
    )
    assert (first.name, second.parents, second.agent_id) == ("ses-1/a", ("ses-1/a",), "researcher-alpha-9")
    assert second.agent_no > 0 and second.at_ns == to_ns(rows[1].at) and second.log is not None
    assert (third.parent_span_id, third.span_id) == ("ab" * 8, received["span_id"])
    assert [row.step_id for row in played(harness, "ses-1", limit=2)] == ["b", received["message_id"]]


def test_what_became_of_a_held_message_is_read_with_it_s209(harness: Harness) -> None:
    """S209: its gate and reason while it waits."""
    harness.send(log("ses-1", "a", control={"hitl_required": True}))
    (row,) = played(harness, "ses-1")
    assert (row.state, row.gate, row.released_seq, row.rewrite_seq) == ("held", 1, None, None)
    assert row.reason


def test_steps_are_found_by_name_in_their_tenant_only_s205(harness: Harness) -> None:
    """S205: bare ids, UUIDs and message ids; what another tenant has is not there."""
    harness.create_tenant(OTHER_TENANT)
    step, received = str(uuid.uuid4()), envelope("text", metadata={"session_id": "ses-2"})
    harness.send(log("ses-1", "a"), log("ses-1", step), received)
    harness.send(log("ses-9", "b"), tenant_id=OTHER_TENANT)
    names = [
        "ses-1/a",
        step,
        received["message_id"],
        "ses-9/b",
        "ses-1/none",
        *(f"ses-1/x{n}" for n in range(900)),
    ]
    found = harness.read(harness.store.steps_named(HOME_TENANT, names))
    assert found == {"ses-1/a": "ses-1", step: "ses-1", received["message_id"]: "ses-2"}
    assert harness.read(harness.store.steps_named(HOME_TENANT, [])) == {}
    whole = harness.read(harness.store.steps_recorded(HOME_TENANT, names))
    assert {name: session for name, (session, _) in whole.items()} == found
    raw = whole[step][1]
    assert raw is not None and msgspec.json.decode(raw)["meta"]["step_id"] == step


def test_messages_are_found_by_number_s222(harness: Harness) -> None:
    """S222: those asked for, each with its session."""
    verdicts = harness.send(log("ses-1", "a"), log("ses-2", "b"), log("ses-2", "c"))
    numbers = [verdict.answer.sequence_number for verdict in verdicts]
    found = harness.read(harness.store.played(HOME_TENANT, [numbers[0], numbers[2], 1, 99_999]))
    assert {number: row.step_id for number, (_, row) in found.items()} == {numbers[0]: "a", numbers[2]: "c"}
    assert found[numbers[2]][0] == session_of(harness, "ses-2")["session_no"]


def test_doubts_are_found_until_they_are_reviewed_s222(harness: Harness) -> None:
    """S222: below the threshold, forwarded, not reviewed, newest first, between two numbers."""
    harness.create_tenant(OTHER_TENANT)
    scores = (0.1, 0.5, None, 0.49)
    verdicts = harness.send(
        *(log("s", f"n{n}", cognition={"confidence_score": score}) for n, score in enumerate(scores)),
        log("s", "bare", cognition=None),
        log("s", "held", cognition={"confidence_score": 0.0}, control={"hitl_required": True}),
        envelope("text"),
    )
    harness.send(log("s", "n0", cognition={"confidence_score": 0.1}), tenant_id=OTHER_TENANT)
    numbers = [verdict.answer.sequence_number for verdict in verdicts]

    def doubts(after: int = 0, before: int | None = None) -> list[int]:
        return harness.read(harness.store.low_confidence(HOME_TENANT, 0.5, after, before, 10))

    assert doubts() == [numbers[3], numbers[0]]
    assert doubts(before=numbers[3]) == [numbers[0]]
    assert doubts(after=numbers[0]) == [numbers[3]]
    about = AnnotatedMessage(numbers[3], "msg", "s", 1)
    (done,) = harness.submit(annotating.review(harness.admin(), about, "ok", None, harness.now()))
    assert done.code == 200 and doubts() == [numbers[0]]


def test_a_note_is_written_listed_and_taken_back_once_s220(harness: Harness) -> None:
    """S220: under the lock: the second time it is not there."""
    (sent,) = harness.send(log("s", "a"))
    about = AnnotatedMessage(sent.answer.sequence_number, sent.answer.message_id, "s", 1)
    harness.submit(
        annotating.annotate(harness.admin(), about, AnnotationText("l", None, "text"), harness.now())
    )
    (row,) = harness.read(harness.store.annotations_page(HOME_TENANT, {"label": "l"}, None, 5))
    assert harness.read(harness.store.annotations_page(HOME_TENANT, {}, row["annotation_id"], 5)) == []
    acts = [annotating.withdraw(harness.admin(), row["annotation_id"], harness.now()) for _ in range(2)]
    assert [verdict.code for verdict in harness.submit(*acts)] == [200, 404]
    assert harness.read(harness.store.annotations_page(HOME_TENANT, {}, None, 5)) == []


def test_removed_views_are_not_loaded_and_live_ones_are_capped_s280(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S280: what is read under the lock is bounded by the cap; a name that was freed can be had again."""
    monkeypatch.setattr(viewing, "MAX_VIEWS", 2)
    who = harness.admin()
    for _ in range(3):
        (made,) = harness.submit(viewing.save(who, "same", "q", False, harness.now()))
        assert made.code == 201
        (gone,) = harness.submit(viewing.remove(who, who.entity_id, made.answer["view_id"], harness.now()))
        assert gone.code == 200
    read_set = ReadSet()
    read_set.row("saved_views", who.entity_id)
    seen: list[int] = []

    def decide(uow: UnitOfWork) -> SubmissionResult:
        seen.append(len(uow.memory.rows["saved_views"]))
        return SubmissionResult(200, None)

    harness.submit(Command(who, harness.now(), decide, read_set))
    assert seen == [0]
    codes = [harness.submit(viewing.save(who, name, "q", False, harness.now()))[0].code for name in "abc"]
    assert codes == [201, 201, 409]

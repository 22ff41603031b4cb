"""The score of a session over both databases: kept over restarts, counted once, told of once."""

from __future__ import annotations

import json
import uuid
from typing import Any

import msgspec
import pytest

from observatory.derived.ports import StoredFinding
from observatory.features.loops import commands as detectors
from observatory.features.loops import commands_findings as loop_alarms
from observatory.features.loops.queries import open_loops
from observatory.features.loops.types import Loop
from observatory.features.policies import commands as rulemaking
from observatory.pipeline.rows import SessionRow
from observatory.pipeline.state import HOME_TENANT, SubmissionResult
from observatory.protocol.tenant_config import Match, PolicyRule
from observatory.runtime.publisher import item_of
from tests.contract.conftest import Harness
from tests.samples import decision_log, envelope


def step(intent: str = "Fetch it", session: str = "ses-1", **sections: Any) -> dict[str, Any]:
    given = {"cognition": {"intent": intent, "entropy_score": None}} | sections
    return decision_log(
        meta={"step_id": str(uuid.uuid4()), "session_id": session},
        identity={"agent_id": "a"},
        action={"tool_call": "fetch", "status": "failure"},
        **given,
    )


def row_of(harness: Harness, session: str = "ses-1") -> dict[str, Any]:
    return harness.read(harness.store.rows(HOME_TENANT, "sessions", session_id=session))[0]


def received(harness: Harness, *names: str) -> list[dict[str, Any]]:
    bodies = [json.loads(event.record)["body"] for event in harness.trail_of()]
    return [body for body in bodies if body["event_type"] in names]


ALARMS = ("entropy_alert", "entropy_recovered", "entropy_discrepancy", "loop_detected", "loop_ended")


@pytest.mark.req(60, 61, 63, 64, 66, 72, 73, 74, 75, 76, 77, 78, 87)
def test_a_restart_in_the_middle_of_a_window_keeps_it_s180_s183(harness: Harness) -> None:
    harness.send(*(step() for _ in range(3)))
    harness.reopen()
    row = row_of(harness)
    assert (row["entropy"], row["severity"], row["alert_seq"]) == (pytest.approx(1 / 3), "warning", None)
    harness.send(step(), step())
    row, (alert,) = row_of(harness), received(harness, *ALARMS)
    assert (row["entropy"], row["severity"], row["alert_count"]) == (0.2, "loop", 5)
    assert (alert["event_type"], alert["entropy_score"], alert["window_size"]) == ("entropy_alert", "0.2", 5)
    assert (alert["occurrence_count"], alert["detector"], alert["agent_id"]) == (5, "ratio", "a")
    assert alert["repeated_pattern"]["tool_call"] == "fetch"
    assert alert["repeated_pattern"]["action_status"] == "failure"
    assert "Fetch it" not in "".join(event.record.decode() for event in harness.trail_of())
    trail = [json.loads(event.record) for event in harness.trail_of()]
    number = row["alert_seq"]
    assert trail[number - 1]["body"] == alert and trail[number - 1]["severity_number"] == 17
    assert trail[number - 2]["body"]["event_type"] == "message_delivered"  # behind the message's own event
    assert alert["message_sequence_number"] == number - 1
    harness.reopen()
    harness.send(step("Another way"))
    assert [body["event_type"] for body in received(harness, *ALARMS)] == [
        "entropy_alert",
        "entropy_recovered",
    ]
    row = row_of(harness)
    assert (row["severity"], row["alert_seq"], row["alert_count"]) == ("warning", None, 0)


def test_a_repeat_counts_once_s182(harness: Harness) -> None:
    body = step()
    for _ in range(6):
        (verdict,) = harness.send(body)
        assert verdict.code == 202
    assert (row_of(harness)["entropy"], row_of(harness)["severity"]) == (1.0, "normal")


def test_held_and_refused_steps_count_and_what_is_not_archived_does_not_s182(harness: Harness) -> None:
    harness.send(step(control={"hitl_required": True}), step(control={"hitl_required": True}))
    rule = PolicyRule(rule_id="pol_1", position=1, effect="deny", match=Match(tool=("fetch",)))
    harness.submit(rulemaking.create_rule(harness.admin(), rule, False, harness.now()))
    codes = [verdict.code for verdict in harness.send(step(), step())]
    assert codes == [403, 403]
    row = row_of(harness)
    assert (row["messages"], row["entropy"], row["severity"]) == (4, 0.25, "warning")
    harness.send(step(cognition=None))
    assert row_of(harness)["entropy"] == 0.25
    harness.send(step())
    assert (row_of(harness)["severity"], len(received(harness, "entropy_alert"))) == ("loop", 1)


@pytest.mark.req(81, 82, 83)
def test_the_score_travels_beside_the_bytes_s186(harness: Harness) -> None:
    sent = step(cognition={"intent": "Fetch it", "entropy_score": 0.9})
    sent["extra"] = {"big": 1.0, "keep": [1e3]}
    bare = step(cognition=None)
    other = envelope("text")
    harness.send(sent, bare, other)
    found = harness.read(harness.store.message(HOME_TENANT, sent["meta"]["step_id"]))
    assert found is not None and found.entropy == 1.0
    assert json.loads(found.raw or b"") == sent
    shown = json.loads(msgspec.json.encode(item_of(found)))["message"]
    assert shown["cognition"].pop("reported_entropy_score") == 0.9
    assert shown["cognition"].pop("entropy_score") == 1.0
    del sent["cognition"]["entropy_score"]
    assert shown == sent
    assert json.dumps(sent["extra"]).encode() in msgspec.json.encode(item_of(found))
    for unscored in (bare["meta"]["step_id"], other["message_id"]):
        plain = harness.read(harness.store.message(HOME_TENANT, unscored))
        assert plain is not None and plain.entropy is None
        assert msgspec.json.encode(item_of(plain)["message"]) == plain.raw


def change(harness: Harness, **asked: Any) -> SubmissionResult:
    return harness.submit(detectors.change(harness.admin(), asked, harness.now()))[0]


@pytest.mark.req(93, 94)
def test_settings_count_for_the_next_message_even_in_their_own_batch_s187(harness: Harness) -> None:
    act = detectors.change(harness.admin(), {"window": 3, "loop_below": 0.4}, harness.now())
    harness.submit(harness.arrival(step()), harness.arrival(step()), act, harness.arrival(step()))
    assert (row_of(harness)["severity"], received(harness, "entropy_alert")[0]["window_size"]) == ("loop", 3)
    harness.reopen()
    harness.send(step(), step("Another way"))
    assert len((row_of(harness)["entropy_window"] or "").split("\n")) == 4
    (event,) = received(harness, "setting_changed")
    assert event["changed"] == ["window", "loop_below"]
    assert (event["before"], event["after"]) == (
        {"window": 5, "loop_below": "0.25"},
        {"window": 3, "loop_below": "0.4"},
    )
    bad = change(harness, window=1, loop_below=0.9)
    assert bad.code == 422 and len(bad.answer.faults) == 2
    assert change(harness, window=3).answer == {"changed": []}
    assert len(received(harness, "setting_changed")) == 1


def finding(number: int, kind: str, agent: str = "a", seq: int = 3, **body: Any) -> StoredFinding:
    return StoredFinding(number, kind, seq, "ses-1", agent, 12_345, body)


def tell(harness: Harness, *findings: StoredFinding) -> list[Any]:
    acts = [loop_alarms.record_finding(harness.admin(), one, harness.now()) for one in findings]
    return [verdict.answer for verdict in harness.submit(*acts)]


def test_a_finding_is_told_of_once_whoever_hands_it_in_again_s189(harness: Harness) -> None:
    harness.send(step())
    found = finding(1, "loop_detected", detector="fingerprint", period=2, likeness=0.91)
    assert tell(harness, found, found) == [1, 0]
    harness.reopen()
    assert tell(harness, found) == [0]
    (event,) = received(harness, *ALARMS)
    assert (event["event_type"], event["detector"], event["likeness"]) == (
        "loop_detected",
        "fingerprint",
        "0.91",
    )
    row = row_of(harness)
    assert (row["loop_ns"], row["loop_detector"]) == (12_345, "fingerprint")
    assert row["loop_agent_no"] and row["loop_seq"]
    assert [one["session_id"] for one in harness.read(harness.store.alarmed(HOME_TENANT, 10))] == ["ses-1"]
    assert tell(harness, finding(2, "loop_ended")) == [1]
    row = row_of(harness)
    assert row["loop_ns"] is row["loop_seq"] is row["loop_detector"] is row["loop_agent_no"] is None
    harness.reopen()
    # The derived store was made anew and begins with its first finding.
    assert tell(harness, found, finding(2, "loop_ended")) == [0, 0]
    assert len(received(harness, *ALARMS)) == 2
    assert harness.read(harness.store.alarmed(HOME_TENANT, 10)) == []


def test_each_agents_loop_stays_open_until_its_own_end_s189(harness: Harness) -> None:
    other = step()
    other["identity"]["agent_id"] = "b"
    harness.send(step(), other)
    assert tell(harness, finding(1, "loop_detected"), finding(2, "loop_detected", "b", detector="rut")) == [
        1,
        1,
    ]
    first, second = open_loops(row_of(harness)["loops"])
    row = row_of(harness)
    shown = ("loop_agent_no", "loop_ns", "loop_seq", "loop_detector")
    assert tuple(row[name] for name in shown) == (second.agent_no, 12_345, second.seq, "rut")
    assert tell(harness, finding(3, "loop_detected", "b"), finding(4, "loop_detected")) == [0, 0]
    harness.reopen()
    assert tell(harness, finding(5, "loop_ended", "b")) == [1]
    row = row_of(harness)
    assert tuple(row[name] for name in shown) == (first.agent_no, 12_345, first.seq, "fingerprint")
    assert open_loops(row["loops"]) == [first] and first.agent_no != second.agent_no
    assert tell(harness, finding(6, "loop_ended", "a")) == [1]
    assert (row_of(harness)["loop_ns"], row_of(harness)["loops"]) == (None, None)


def test_open_loops_of_a_session_are_bounded_s189() -> None:
    session = SessionRow(session_no=1, session_id="s", trace_id="0" * 32)
    for number in range(1, loop_alarms.MAX_LOOPS + 3):
        loop_alarms.opened(session, Loop(number, number, number, "rut"))
    found = open_loops(session.loops)
    assert (len(found), found[0].agent_no, session.loop_agent_no) == (64, 3, 66)
    assert not loop_alarms.closed(session, 1) and loop_alarms.closed(session, 66)
    assert session.loop_seq == 65


def test_other_findings_become_events_and_strangers_are_passed_over_s189(harness: Harness) -> None:
    harness.send(step())
    stranger = StoredFinding(3, "loop_detected", 1, "no-such-session", "a", 5, {})
    assert tell(harness, finding(1, "cycle"), finding(2, "orphan"), stranger, finding(4, "unheard")) == [
        1,
        1,
        0,
        0,
    ]
    assert len(received(harness, "causal_cycle_refused", "parent_unknown")) == 2


def test_last_words_are_read_by_number_s294(harness: Harness) -> None:
    first, second = step(), envelope("text")
    verdicts = harness.send(first, second)
    numbers = [verdict.answer.sequence_number for verdict in verdicts]
    found = harness.read(harness.store.contents(HOME_TENANT, [*numbers, 1, 999_999]))
    assert {number: kind for number, (kind, _) in found.items()} == dict(
        zip(numbers, ("decision_log", "text"), strict=True)
    )
    assert json.loads(found[numbers[0]][1] or b"") == first


def test_sessions_are_found_by_severity_s188(harness: Harness) -> None:
    harness.send(
        *(step(session="loops") for _ in range(5)), *(step(session="warns") for _ in range(3)), step()
    )
    for severity, names in (("loop", ["loops"]), ("warning", ["warns"]), (None, ["ses-1", "warns", "loops"])):
        rows = harness.read(harness.store.sessions_page(HOME_TENANT, None, 10, severity))
        assert [row["session_id"] for row in rows] == names
    assert {row["session_id"] for row in harness.read(harness.store.alarmed(HOME_TENANT, 10))} == {
        "loops",
        "warns",
    }

"""Which sessions stand still, and what colour their agents have."""

from __future__ import annotations

import json
from typing import Any

from observatory.features.fleet.types_node_states import node_state
from observatory.features.sessions.stuck import StuckSession, needed_messages, stuck_of
from tests.samples import decision_log

LATE = 1_000


def session(last_ns: int, last_seq: int = 9) -> dict[str, Any]:
    return {"last_ns": last_ns, "last_seq": last_seq}


def member(arrived_ns: int, last_seq: int, agent_no: int = 1) -> dict[str, Any]:
    return {"arrived_ns": arrived_ns, "last_seq": last_seq, "agent_no": agent_no}


def new_message(**sections: Any) -> tuple[str, bytes]:
    return "decision_log", json.dumps(decision_log(**sections)).encode()


def test_silence_after_work_is_stuck_s294() -> None:
    alone = [member(10, 9)]
    assert needed_messages(session(10), alone, LATE) == {9}
    assert stuck_of(session(10), alone, {9: new_message()}, LATE) == StuckSession("silent", 10, None)
    assert needed_messages(session(LATE), [member(LATE, 9)], LATE) == set()


def test_an_ended_session_is_not_s294() -> None:
    assert (
        stuck_of(session(10), [member(10, 9)], {9: new_message(control={"is_terminal": True})}, LATE) is None
    )


def test_an_action_pending_for_too_long_is_stuck_though_others_speak_s295() -> None:
    rows = [member(10, 4, 1), member(LATE + 5, 9, 2)]
    contents = {4: new_message(action={"status": "pending"}), 9: new_message()}
    assert needed_messages(session(LATE + 5), rows, LATE) == {4, 9}
    assert stuck_of(session(LATE + 5), rows, contents, LATE) == StuckSession("pending", 10, 1)
    contents[4] = new_message(action={"status": "success"})
    assert stuck_of(session(LATE + 5), rows, contents, LATE) is None
    contents[4], contents[9] = (
        new_message(action={"status": "pending"}),
        new_message(control={"is_terminal": True}),
    )
    assert stuck_of(session(LATE + 5), rows, contents, LATE) is None


def test_words_that_ask_for_nothing_or_are_shredded_s294() -> None:
    alone = [member(10, 9)]
    assert stuck_of(session(10), alone, {9: ("heartbeat", b"{}")}, LATE) is None
    assert stuck_of(session(10), alone, {9: ("decision_log", None)}, LATE) == StuckSession("silent", 10, None)
    assert stuck_of(session(10), alone, {9: ("decision_log", b"no json")}, LATE) == StuckSession(
        "silent", 10, None
    )


def test_red_goes_before_orange_and_orange_before_amber_s188() -> None:
    second = 1_000_000_000
    assert node_state(second, second, second, 30, "loop") == "alert_entropy"
    assert node_state(second, second, second, 30, "warning") == "schema_violation"
    assert node_state(second, None, second, 30, "warning") == "blocked"
    assert node_state(second, None, second, 30) == "active"

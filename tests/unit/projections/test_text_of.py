"""The text of a message: every part of a log, every kind of payload, and never too much of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from observatory.features.graph.types_session import SessionMessage, seen_of
from observatory.features.search.document import MAX_CHARACTERS, document, parts_of
from observatory.protocol.envelope import BY_TYPE
from tests.samples import decision_log, envelope

PAYLOADS: dict[str, dict[str, Any]] = {
    "text": {"content": "quokka"},
    "status_alert": {"summary": "quokka"},
    "decision_request": {"description": "quokka"},
    "decision_response": {"respondent_note": "quokka"},
    "artifact_share": {"title": "quokka"},
    "action_confirmation": {"summary": "quokka"},
    "heartbeat": {"current_task": {"task_id": "tsk_1", "description": "quokka"}},
    "system_event": {"reason": "quokka"},
}


def seen(kind: str, body: dict[str, Any] | None) -> Any:
    raw = None if body is None else json.dumps(body).encode()
    row = SessionMessage(
        1, "m", "s", kind, "forwarded", None, 0, None, "2026-11-16T00:00:00.000000000Z", raw,
        False, None, None, None,
    )  # fmt: skip
    return seen_of(row, "tnt_x", {"session_no": 1, "session_id": "ses"}, {})


@pytest.mark.parametrize("kind", sorted(BY_TYPE))
def test_what_a_payload_says_is_what_it_is_about_s270(kind: str) -> None:
    """S270: all eight."""
    made = document(seen(kind, envelope(kind, payload=PAYLOADS[kind])))
    assert "quokka" in made.body[: made.meant].split()


def test_a_log_is_found_by_all_it_holds_s270() -> None:
    """S270: what it thought, did and remembered; its names are found, and no part of what it is about."""
    sections = {
        "cognition": {
            "intent": "aa",
            "reasoning_chain": ["bb"],
            "alternatives": [{"option": "cc", "why_not": "dd"}],
            "citations": ["https://ee", {"uri": "ff", "label": "gg"}],
            "strategy_used": "hh",
        },
        "action": {
            "status": "success",
            "tool_call": "ii",
            "tool_input": '{"q": "jj"}',
            "tool_output_summary": "kk",
        },
        "state_delta": {"added_to_memory": ["ll"], "read_from_memory": ["mm"]},
    }
    made = document(seen("decision_log", decision_log(identity={"agent_id": "nn-1"}, **sections)))
    about, rest = made.body[: made.meant].split(), made.body[made.meant :].split()
    assert about == ["aa", "bb", "kk", "ll", "cc", "dd"]
    assert {"ee", "ff", "gg", "hh", "ii", "jj", "mm", "nn", "1"} <= set(rest)


def test_a_long_text_is_cut_and_a_shredded_one_is_gone_s270() -> None:
    """S270: so many characters in all; nothing but the sender of what is no more."""
    long = seen("decision_log", decision_log(cognition={"intent": "word " * 10_000}))
    assert sum(len(text) for _, text in parts_of(long.log, None, "a")) <= MAX_CHARACTERS
    assert "researcher" in document(long).body
    assert parts_of(None, None, "ada") == [("agent", "ada")]

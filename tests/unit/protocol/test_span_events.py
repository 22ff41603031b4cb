"""Events of agents' tools as steps: Claude Code's spans beside its log records."""

from __future__ import annotations

import json

from observatory.features.otlp.span_events import steps_of_logs
from tests.unit.protocol.telling import CLAUDE, TRACE, log, span, steps_of


def test_claude_codes_spans_and_events_do_not_count_twice_s806() -> None:
    """S806: the cache's tokens count; with tracing on, an event adds only what it cost."""
    call = CLAUDE | {
        "model": "claude-opus-5",
        "input_tokens": 2,
        "output_tokens": 1_200,
        "cache_read_tokens": 80,
        "cache_creation_tokens": 18,
        "success": True,
    }
    tool = CLAUDE | {"tool_name": "Bash", "tool_use_id": "toolu_1", "duration_ms": 31, "success": False}
    resource = {"service.name": "claude-code", "service.version": "2.1.224"}
    spans = [
        span("claude_code.llm_request", 2, 1, attributes=call, resource=resource),
        span("claude_code.tool", 3, 1, attributes=tool, resource=resource),
        span("claude_code.tool.execution", 4, 3, attributes=tool, resource=resource),
        span("claude_code.interaction", 1, attributes=CLAUDE | {"user_prompt": "fix it"}, resource=resource),
    ]
    steps, _ = steps_of(spans)
    assert steps[2] is None
    asked, bash, whole = [json.loads(one.body) for one in steps if one]
    assert asked["state_delta"] == {"tokens_consumed": 1_300}
    assert (bash["action"]["tool_call"], bash["action"]["status"]) == ("Bash", "failure")
    assert whole["cognition"]["intent"] == "claude_code.interaction: fix it"
    assert {one["meta"]["session_id"] for one in (asked, bash, whole)} == {CLAUDE["session.id"]}

    request = call | {"cost_usd": "0.031", "event.sequence": 4}
    own, hung, result = (
        log("api_request", request),
        log("api_request", request, trace_id=TRACE, span_id=f"{2:016x}"),
        log("tool_result", tool | {"tool_parameters": '{"command":"ls"}', "success": "true"}),
    )
    steps, tally = steps_of_logs([own, hung, result, log("hook_started", CLAUDE)], None)
    assert steps[3] is None
    first, second, third = [json.loads(one.body) for one in steps if one]
    assert first["state_delta"] == {"tokens_consumed": 1_300, "cost": 0.031}
    assert second["state_delta"] == {"cost": 0.031}
    assert second["meta"]["parent_step_id"] == asked["meta"]["step_id"]
    assert third["action"] == {
        "status": "success",
        "duration_ms": 31,
        "tool_call": "Bash",
        "tool_input": '{"command":"ls"}',
    }
    assert first["identity"]["agent_id"] == "claude-code"
    assert first["identity"]["capability_version"] == "2.1.224"
    assert tally.not_agents == 1


def test_records_of_one_moment_are_told_apart_by_what_they_say_s933() -> None:
    """S933: without time and number two events are two steps, and the same one sent again is the same."""
    events = [log("api_request", {"session.id": "s", "input_tokens": n}, at_ns=0) for n in (1, 2, 1)]
    ids = [json.loads(one.body)["meta"]["step_id"] for one in steps_of_logs(events, None)[0] if one]
    assert ids[0] != ids[1] and ids[0] == ids[2]
    numbered = [log("api_request", {"session.id": "s", "event.sequence": n}, at_ns=0) for n in (1, 2)]
    ids = [json.loads(one.body)["meta"]["step_id"] for one in steps_of_logs(numbered, None)[0] if one]
    assert ids[0] != ids[1]

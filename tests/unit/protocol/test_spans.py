"""Others' spans and events as steps: every convention, nothing counted twice, nothing raised."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from observatory.gateway.interceptor import Limits, intercept
from observatory.protocol.conventions import READ
from observatory.protocol.message import Message
from observatory.protocol.otlp_records import CLIENT, Log, Span
from observatory.protocol.span_events import steps_of_logs
from observatory.protocol.spans import Recorded, asks, step_id, steps_of_spans

Json = dict[str, Any]
TRACE, AT = "0af7651916cd43dd8448eb211c80319c", 1_700_000_000_000_000_000
LIMITS = Limits(message_bytes=1 << 20)


def span(name: str = "chat m", /, number: int = 1, parent: int = 0, kind: int = 1, **more: Any) -> Span:
    attributes = more.pop("attributes", {})
    told: Json = {
        "trace_id": TRACE,
        "span_id": f"{number:016x}",
        "parent_id": f"{parent:016x}" if parent else "",
        "name": name,
        "kind": kind,
        "start_ns": AT,
        "end_ns": AT + 1_500_000_000,
        "attributes": attributes,
        "failed": False,
        "trouble": "",
        "flags": 1,
        "state": "",
        "resource": {"service.name": "research", "service.version": "1.4.0"},
        "scope": "test",
        "size": 100,
    }
    return Span(**(told | more))


def log(name: str, attributes: Json, **more: Any) -> Log:
    told: Json = {
        "trace_id": "",
        "span_id": "",
        "name": name,
        "at_ns": AT,
        "attributes": attributes,
        "body": f"claude_code.{name}",
        "severity": 9,
        "resource": {"service.name": "claude-code", "service.version": "2.1.224"},
        "scope": "com.anthropic.claude_code.events",
        "size": 100,
    }
    return Log(**(told | more))


def bodies(*spans: Span, bound: str | None = None) -> list[Json]:
    return [json.loads(one.body) for one in steps_of_spans(spans, bound)[0] if one]


def body(**attributes: Any) -> Json:
    found = bodies(span(attributes={key.replace("__", "."): value for key, value in attributes.items()}))
    return found[0]


@pytest.mark.parametrize(
    ("attributes", "tokens", "model", "provider"),
    [
        (
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": "anthropic",
                "gen_ai.request.model": "claude-opus-5",
                "gen_ai.usage.input_tokens": 7,
                "gen_ai.usage.output_tokens": 5,
            },
            12,
            "claude-opus-5",
            "anthropic",
        ),
        (
            {
                "gen_ai.system": "openai",
                "gen_ai.request.model": "gpt-4o",
                "gen_ai.response.model": "gpt-4o-2024",
                "gen_ai.usage.prompt_tokens": 7,
                "gen_ai.usage.completion_tokens": 5,
            },
            12,
            "gpt-4o-2024",
            "openai",
        ),
        (
            {
                "openinference.span.kind": "LLM",
                "llm.model_name": "m",
                "llm.provider": "p",
                "llm.token_count.prompt": 7,
                "llm.token_count.completion": 5,
                "llm.token_count.total": 12,
            },
            12,
            "m",
            "p",
        ),
        ({"openinference.span.kind": "EMBEDDING", "llm.token_count.total": "12"}, 12, None, None),
        ({"llm.request.type": "chat", "llm.usage.total_tokens": 12.0}, 12, None, None),
    ],
)
def test_a_models_call_tells_its_tokens_by_every_convention_s801(
    attributes: Json, tokens: int, model: str | None, provider: str | None
) -> None:
    """S801: GenAI's names of today and of before, OpenInference, OpenLLMetry."""
    (found,) = bodies(span(attributes=attributes))
    assert found["state_delta"]["tokens_consumed"] == tokens
    assert found["identity"].get("model") == model
    assert found["identity"].get("provider") == provider


def test_tokens_are_counted_once_and_never_as_zero_s802() -> None:
    """S802: an agent's sum over its own calls is left; a remote agent's counts; an untold one is absent."""
    usage = {"gen_ai.usage.input_tokens": 70, "gen_ai.usage.output_tokens": 50, "gen_ai.agent.name": "boss"}
    agent = {"gen_ai.operation.name": "invoke_agent", **usage}
    call = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    steps, tally = steps_of_spans(
        [
            span("invoke_agent boss", 1, attributes=agent),
            span("invoke_agent far", 2, 1, CLIENT, attributes=agent),
            span("chat m", 3, 1, attributes=call),
        ],
        None,
    )
    home, far, silent = [json.loads(one.body) for one in steps if one]
    assert "state_delta" not in home
    assert far["state_delta"] == {"tokens_consumed": 120}
    assert "state_delta" not in silent
    assert (tally.sums_left, tally.without_tokens) == (1, 1)
    assert tally.without_cost == 1, "unknown, and said so"
    assert body(gen_ai__operation__name="chat", llm__cost__total=0.25)["state_delta"] == {"cost": 0.25}


def test_a_step_knows_agent_session_parent_and_place_s803() -> None:
    """S803: told by the span, else by its ancestors in the request, else by the service."""
    resource = {"service.name": "research", "cloud.provider": "aws", "cloud.region": "eu-central-1"}
    spans = [
        span("POST", 3, 2, CLIENT),
        span("chat", 4, 3, attributes={"gen_ai.operation.name": "chat"}),
        span(
            "invoke_agent",
            2,
            attributes={
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": "planner\n",
                "gen_ai.conversation.id": "case/7",
            },
        ),
        span("lone", 5, 9, attributes={"openinference.span.kind": "CHAIN"}, resource=resource),
    ]
    steps, tally = steps_of_spans(spans, None)
    assert steps[0] is None
    assert tally.not_agents == 1
    chat, agent, lone = [json.loads(one.body) for one in steps if one]
    assert chat["identity"]["agent_id"] == agent["identity"]["agent_id"] == "planner"
    assert chat["meta"]["session_id"] == agent["meta"]["session_id"] == "case_7"
    # Hung on the agent: what lies between is no step.
    assert chat["meta"]["parent_step_id"] == agent["meta"]["step_id"] == step_id(TRACE, f"{2:016x}")
    assert lone["identity"]["agent_id"] == lone["identity"]["agent_type"] == "research"
    assert lone["identity"]["capability_version"] == "0.0.0"
    assert lone["meta"]["parent_step_id"] == step_id(TRACE, f"{9:016x}")
    assert lone["meta"]["cluster_id"] == "aws-eu-central-1"
    assert lone["meta"]["session_id"].replace("-", "") == TRACE
    assert bodies(spans[1], bound="bob")[0]["identity"]["agent_id"] == "bob"
    assert steps[1] is not None and steps[1].context is not None
    assert steps[1].context.span_id == f"{4:016x}"


def test_a_tool_says_what_it_was_given_and_gave_s804() -> None:
    """S804: arguments as JSON, the result, or why it failed."""
    said = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "search",
        "gen_ai.tool.call.arguments": '{"q": "x"}',
        "gen_ai.tool.call.result": "nothing",
    }
    (found,) = bodies(span("execute_tool search", attributes=said))
    assert found["action"] == {
        "status": "success",
        "duration_ms": 1500,
        "tool_call": "search",
        "tool_input": '{"q": "x"}',
        "tool_output_summary": "nothing",
    }
    (found,) = bodies(span("execute_tool search", attributes=said, failed=True, trouble="refused"))
    assert found["action"]["status"] == "failure"
    assert found["action"]["tool_output_summary"] == "refused"
    (plain,) = bodies(
        span(attributes={"openinference.span.kind": "TOOL", "tool.name": "t", "input.value": "no JSON"})
    )
    assert plain["action"]["tool_input"] == '"no JSON"'


def test_what_a_model_thought_and_was_asked_is_the_steps_why_s805() -> None:
    """S805: reasoning is the reasoning chain, the question the intent, the answer the outcome."""
    said = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps(
            [
                {"role": "user", "parts": [{"type": "text", "content": "first"}]},
                {"role": "user", "parts": [{"type": "text", "content": "what  grew?"}]},
            ]
        ),
        "gen_ai.output.messages": json.dumps(
            [
                {
                    "role": "assistant",
                    "parts": [
                        {"type": "reasoning", "content": "look at sales"},
                        {"type": "text", "content": "sales"},
                    ],
                }
            ]
        ),
    }
    (found,) = bodies(span(attributes=said))
    assert found["cognition"] == {"intent": "chat m: what grew?", "reasoning_chain": ["look at sales"]}
    assert found["action"]["tool_output_summary"] == "sales"
    flat = {"openinference.span.kind": "LLM", "llm.output_messages.0.message.content": "flat"}
    assert bodies(span(attributes=flat))[0]["action"]["tool_output_summary"] == "flat"


CLAUDE = {"session.id": "6e0f1c52-8d7e-4a55-9d0c-111111111111", "prompt.id": "p1"}


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
    steps, _ = steps_of_spans(spans, None)
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


def test_what_no_step_holds_is_counted_by_name_s807() -> None:
    """S807: indexes are one name; what was cut is counted too."""
    said = {
        "openinference.span.kind": "LLM",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.1.message.role": "user",
        "customer.tier": "gold",
        "output.value": "x" * 100_000,
    }
    _, tally = steps_of_spans([span(attributes=said)], None)
    assert tally.unmapped == {"llm.input_messages.N.message.role": 2, "customer.tier": 1}
    assert tally.cut == 1


TEXT = st.text(st.characters(codec="utf-8"), max_size=400)
LEAF = (
    TEXT
    | st.integers()
    | st.booleans()
    | st.none()
    | st.floats()
    | st.sampled_from(["[", "{", '[{"role":3}]'])
)
VALUE = st.recursive(
    LEAF, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=6
)
NAMES = sorted(READ)
SAID = st.dictionaries(st.sampled_from(NAMES) | TEXT, VALUE, max_size=12)
KINDS = st.sampled_from(
    [
        {"gen_ai.operation.name": "chat"},
        {"gen_ai.operation.name": "execute_tool"},
        {"openinference.span.kind": "AGENT"},
        {"traceloop.span.kind": "tool"},
    ]
)


@settings(max_examples=150, deadline=None)
@example({}, {"gen_ai.operation.name": "chat"}, {}, "x", "", 2**64 - 1, -1)
@example({"input.value": "a\0b"}, {"gen_ai.operation.name": "chat"}, {}, "x", "", 1, 2)
@given(SAID, KINDS, SAID, TEXT, TEXT, st.integers(-(2**64), 2**64), st.integers(-(2**64), 2**64))
def test_whatever_a_span_says_the_step_is_one_the_gateway_takes_s808(
    said: Json, kind: Json, resource: Json, name: str, trouble_: str, start: int, end: int
) -> None:
    """S808: hostile or senseless, it becomes a valid DecisionLog, and twice the same one."""
    one = span(
        name,
        attributes=said | kind,
        resource=resource,
        trouble=trouble_,
        failed=bool(trouble_),
        start_ns=start,
        end_ns=end,
    )
    (step,) = steps_of_spans([one], None)[0]
    assert step is not None
    found = intercept(step.body, LIMITS)
    assert isinstance(found, Message), found
    assert steps_of_spans([one], None)[0] == [step]
    event = log("tool_result", said | CLAUDE, resource=resource | {"service.name": "claude-code"})
    event.at_ns = start
    (step,) = steps_of_logs([event], None)[0]
    assert step is not None
    assert isinstance(intercept(step.body, LIMITS), Message)


def test_of_many_unread_names_only_so_many_are_counted_apart_s807() -> None:
    """S807: names are the sender's; what they may take of memory is not."""
    said = {"gen_ai.operation.name": "chat"} | {f"made.up{n}x": n for n in range(3_000)}
    _, tally = steps_of_spans([span("chat", attributes=said)], None)
    assert len(tally.unmapped) == 1_000


def on_record(*spans: Span, record: dict[str, Recorded] | None = None) -> dict[str, Recorded]:
    """What is on record once these have come in one request."""
    found, _ = steps_of_spans(spans, None, record)
    told = [(one.body, json.loads(one.body)["meta"]) for one in found if one is not None]
    return (record or {}) | {meta["step_id"]: Recorded(meta["session_id"], raw) for raw, meta in told}


FAMILY = [
    span(
        "invoke_agent planner", 1, attributes={"gen_ai.operation.name": "invoke_agent", "session.id": "c-7"}
    ),
    span("GET", 2, 1),  # no step
    span("chat", 3, 2, attributes={"gen_ai.operation.name": "chat"}),
    span("execute_tool", 4, 3, attributes={"gen_ai.operation.name": "execute_tool"}),
]


@given(
    st.permutations(range(4)),
    st.sets(st.integers(0, 3)),
    st.permutations(range(4)),
    st.sets(st.integers(0, 3)),
)
@settings(max_examples=60, deadline=None)
def test_whatever_the_grouping_a_span_is_recorded_once_s931(
    first: list[int], cuts: set[int], again: list[int], others: set[int]
) -> None:
    """S931: all four spans in some grouping, then all again in another: not one byte is new."""
    record: dict[str, Recorded] = {}
    for order, borders in ((first, cuts), (again, others)):
        before = dict(record) if order is again and record else {}
        group: list[Span] = []
        for place, number in enumerate(order):
            group.append(FAMILY[number])
            if place in borders or place == 3:
                named = {name: one for name, one in record.items() if name in asks(group)}
                record |= on_record(*group, record=named)
                group = []
        assert not before or record == before


def test_a_span_that_comes_late_goes_where_its_parent_is_s932() -> None:
    """S932: agent and session of the step on record; one named by its service alone names nobody else."""
    root, _, chat, tool = FAMILY
    late = span("chat", 5, 1, attributes={"gen_ai.operation.name": "chat"})
    assert asks([late]) == {step_id(TRACE, f"{5:016x}"), step_id(TRACE, f"{1:016x}")}
    (found,), tally = steps_of_spans([late], None, on_record(root))
    assert tally.early == 0 and steps_of_spans([late], None)[1].early == 1, "counted when nobody knows"
    assert found is not None
    body = json.loads(found.body)
    assert body["meta"]["session_id"] == "c-7" and body["identity"]["agent_id"] == "planner"
    (found,), _ = steps_of_spans([tool], None, on_record(chat))
    assert found is not None
    body = json.loads(found.body)
    assert body["meta"]["session_id"].replace("-", "") == TRACE and body["identity"]["agent_id"] == "research"
    elsewhere = span(
        "chat", 6, 5, attributes={"gen_ai.operation.name": "chat"}, resource={"service.name": "other"}
    )
    (found,), _ = steps_of_spans([elsewhere], None, on_record(span("chat", 5, attributes=chat.attributes)))
    assert found is not None and json.loads(found.body)["identity"]["agent_id"] == "other"
    # Shredded, or not to be read: its session is known all the same.
    for raw in (None, b"{", b"[]", b'{"identity":3}'):
        gone = {
            step_id(TRACE, f"{1:016x}"): Recorded("c-7", raw),
            step_id(TRACE, f"{5:016x}"): Recorded("x", raw),
        }
        (found,), _ = steps_of_spans([late], None, gone)
        assert found is not None and json.loads(found.body)["meta"]["session_id"] == "c-7"


def test_records_of_one_moment_are_told_apart_by_what_they_say_s933() -> None:
    """S933: without time and number two events are two steps, and the same one sent again is the same."""
    events = [log("api_request", {"session.id": "s", "input_tokens": n}, at_ns=0) for n in (1, 2, 1)]
    ids = [json.loads(one.body)["meta"]["step_id"] for one in steps_of_logs(events, None)[0] if one]
    assert ids[0] != ids[1] and ids[0] == ids[2]
    numbered = [log("api_request", {"session.id": "s", "event.sequence": n}, at_ns=0) for n in (1, 2)]
    ids = [json.loads(one.body)["meta"]["step_id"] for one in steps_of_logs(numbered, None)[0] if one]
    assert ids[0] != ids[1]

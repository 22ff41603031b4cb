"""Others' spans as steps: every convention, nothing counted twice."""

from __future__ import annotations

import json

import pytest

from observatory.features.otlp.records import CLIENT
from tests.unit.protocol.telling import Json, bodies, body, span, steps_of


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
    steps, tally = steps_of(
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

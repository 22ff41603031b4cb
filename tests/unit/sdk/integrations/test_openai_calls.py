"""The OpenAI Agents SDK's runner with a gate that answers at once: which call an approval is of."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agents")

from agents import Agent, ShellTool, Usage, function_tool, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call
from openai.types.responses import ResponseFunctionShellToolCall

from observatory import Agent as Speaker
from observatory.sdk import Approval, NotSupported, gate
from observatory.sdk.gate import StepRequest
from observatory.sdk.integrations.course import Usage as Used
from observatory.sdk.integrations.openai_agents import ObservatoryRunner
from observatory.sdk.waiting import Waits


@pytest.fixture
def speaker(tmp_path: Path) -> Iterator[Speaker]:
    set_tracing_disabled(True)
    one = Speaker("alone", url="http://127.0.0.1:9", key="k", data=tmp_path, control=False)
    yield one
    one.close(0)


@pytest.fixture
def edits(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a person puts in the place of a tool's input; every other call is allowed as it is."""
    received: dict[str, Any] = {}

    def permit(said: StepRequest, needs_approval: bool = False) -> Waits[Approval]:
        tool = str(said.fields["tool_call"])
        edited = {"content": {}, "tool_input": received[tool]} if tool in received else {}
        return Approval(True, "edited" if edited else "approved", tool_call=tool, **edited)
        yield

    monkeypatch.setattr(gate, "permit", permit)
    return received


def script(*turns: list[Any], usage: Usage | None = None) -> ScriptedModel:
    used = usage or Usage(requests=1, input_tokens=5, output_tokens=3, total_tokens=8)
    return ScriptedModel([{"output": turn, "usage": used} for turn in turns])


def run(watch: ObservatoryRunner, agent: Agent[Any]) -> Any:
    return asyncio.run(watch.run(agent, "Go")).final_output


done: list[tuple[str, Any]] = []


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


@function_tool
def pay(amount: int) -> str:
    """Pay."""
    done.append(("pay", amount))
    return "paid"


def test_commands_edited_into_one_text_are_one_command_s905(speaker: Speaker, edits: dict[str, Any]) -> None:
    edits["shell"] = {"commands": "ls -l"}
    ran: list[list[str]] = []

    def execute(request: Any) -> str:
        ran.append(request.data.action.commands)
        return "ok"

    wanted = ResponseFunctionShellToolCall.model_validate(
        {
            "id": "s1", "call_id": "s1", "type": "shell_call", "status": "completed",
            "action": {"commands": ["rm -r ."], "timeout_ms": 1000, "max_output_length": 100},
        }
    )  # fmt: skip
    agent = Agent(
        name="Clerk", model=script([wanted], [assistant_message("done")]), tools=[ShellTool(execute)]
    )
    assert run(ObservatoryRunner(speaker), agent) == "done"
    assert ran == [["ls -l"]]


def test_an_agent_as_a_tool_whose_own_tools_would_ask_nobody_is_refused_s906(
    speaker: Speaker, edits: dict[str, Any]
) -> None:
    call = [function_call("refund", {"input": "7"}, call_id="c")]
    inner = Agent(
        name="Billing",
        model=script([function_call("pay", {"amount": 7}, call_id="p")], [assistant_message("paid")]),
        tools=[pay],
    )
    outer = Agent(
        name="Boss",
        model=script(call, [assistant_message("done")]),
        tools=[inner.as_tool("refund", "Refund")],
    )
    with pytest.raises(NotSupported, match=r"'Billing' runs as the tool 'refund'.*watch\.watched"):
        run(ObservatoryRunner(speaker, needs_approval=["pay"]), outer)
    assert not done
    talker = Agent(name="Poet", model=script([assistant_message("a verse")])).as_tool("refund", "Write")
    outer = Agent(name="Boss", model=script(call, [assistant_message("done")]), tools=[talker])
    assert run(ObservatoryRunner(speaker), outer) == "done", "one without tools of its own can only talk"


def test_a_call_of_no_tokens_was_not_counted_and_is_priced_by_its_model_s900(
    speaker: Speaker, edits: dict[str, Any]
) -> None:
    asked: list[Used] = []

    def cost(used: Used) -> None:
        asked.append(used)

    model = script([assistant_message("done")], usage=Usage(requests=1))
    model.model = "m-1"  # type: ignore[attr-defined]
    assert run(ObservatoryRunner(speaker, cost=cost), Agent(name="Clerk", model=model)) == "done"
    assert asked == [Used("m-1", None, None, None)]

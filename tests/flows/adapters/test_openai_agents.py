"""The OpenAI Agents SDK's own runner and its scripted model, commanded through the gateway (S904–S906)."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from agents import (
    Agent,
    AgentHooks,
    ApplyPatchTool,
    CustomTool,
    RunConfig,
    Runner,
    ShellTool,
    SQLiteSession,
    Usage,
    function_tool,
    handoff,
    set_tracing_disabled,
)
from agents.testing import ModelScriptError, ScriptedModel, assistant_message, function_call
from openai.types.responses import (
    ResponseApplyPatchToolCall,
    ResponseCustomToolCall,
    ResponseFunctionShellToolCall,
)

from observatory import Agent as Speaker
from observatory.sdk import Cancelled, Delivery, Denied, NotSupported, gate
from observatory.sdk.integrations import openai_agents as adapter
from observatory.sdk.integrations.openai_agents import ObservatoryRunner
from tests.flows.sdk_harness import PATIENCE_S, Json, aside, until
from tests.flows.tool_harness import ToolHarness

USED = Usage(requests=1, input_tokens=5, output_tokens=3, total_tokens=8)


@pytest.fixture(scope="module", autouse=True)
def _no_tracing() -> None:
    set_tracing_disabled(True)


class Shop:
    """What the tools really did."""

    def __init__(self) -> None:
        self.done: list[tuple[str, str]] = []
        done = self.done

        @function_tool
        def read(path: str) -> str:
            """Read a file."""
            done.append(("read", path))
            return f"content of {path}"

        @function_tool(timeout=0.2)
        async def deploy(to: str) -> str:
            """Deploy: quickly, or not at all."""
            done.append(("deploy", to))
            return f"deployed to {to}"

        @function_tool
        def drop_table(name: str) -> str:
            """Drop a table."""
            done.append(("drop_table", name))
            return "dropped"

        @function_tool
        def divide(by: int) -> str:
            """Divide."""
            return str(1 // by)

        self.tools: list[Any] = [read, deploy, drop_table, divide]


def script(*turns: str | list[tuple[str, Json]]) -> ScriptedModel:
    """Each turn: a text, or calls of tools."""
    steps: list[Any] = []
    for turn in turns:
        made = (
            [assistant_message(turn)]
            if isinstance(turn, str)
            else [
                function_call(name, args, call_id=f"call_{len(steps)}_{n}")
                for n, (name, args) in enumerate(turn)
            ]
        )
        steps.append({"output": made, "usage": USED})
    return ScriptedModel(steps)


def heard(model: ScriptedModel, turn: int) -> str:
    return str(model.calls[turn].input)


def ask(watch: ObservatoryRunner, agent: Agent[Any], **options: Any) -> Any:
    return asyncio.run(watch.run(agent, "Go", **options)).final_output


def stream(watch: ObservatoryRunner, agent: Agent[Any], **options: Any) -> Any:
    async def follow() -> Any:
        result = watch.run_streamed(agent, "Go", **options)
        async for _ in result.stream_events():
            pass
        return result.final_output

    return asyncio.run(follow())


@contextmanager
def loop_at_hand() -> Iterator[None]:
    """`run_sync` takes the thread's loop and leaves it open."""
    asyncio.set_event_loop(loop := asyncio.new_event_loop())
    yield
    asyncio.set_event_loop(None)
    loop.close()


WAYS = pytest.mark.parametrize("way", [ask, stream], ids=["run", "streamed"])


@pytest.mark.req(186, 191)
@WAYS
def test_a_paused_agent_runs_no_tool_and_then_reads_what_was_injected_s904(
    harness: ToolHarness, way: Callable[..., Any]
) -> None:
    speaker, shop = harness.agent(), Shop()
    model = script([("read", {"path": "a"})], "done")
    agent = Agent(name="Clerk", model=model, tools=shop.tools)
    group = f"group-{harness.name}"
    speaker.session(session_id=group).step("works").answer(PATIENCE_S)
    harness.do("pause", group)
    until(lambda: speaker.orders.is_held(group))
    config = RunConfig(group_id=group)
    running = aside(lambda: way(ObservatoryRunner(speaker), agent, run_config=config))
    with pytest.raises(TimeoutError):
        running.result(0.2)
    assert not model.calls and not shop.done
    harness.do("inject", group, prompt="Use euros")
    until(lambda: speaker.orders._prompts)
    harness.do("unpause", group)
    assert running.result(PATIENCE_S) == "done"
    assert shop.done == [("read", "a")]
    assert "Use euros" in heard(model, 0) and heard(model, 1).count("Use euros") == 1
    assert speaker.flush(PATIENCE_S)
    assert harness.received()[1:] == [
        ("Decided to call read", "success", None),
        ("Call read", "pending", None),
        ("Called read", "success", "content of a"),
        ("Answered", "success", "done"),
    ]
    items = harness.archived()
    assert {item["session_id"] for item in items} == {group}
    assert items[1]["message"]["state_delta"]["tokens_consumed"] == 8
    assert harness.parents()["Answered"] == ["Called read"]
    assert agent.tools == shop.tools and agent.hooks is None, "the agent given is as it was"


@pytest.mark.req(99, 181, 183)
@WAYS
def test_rules_hold_edit_and_refuse_tools_and_no_gate_holds_up_its_siblings_s905(
    harness: ToolHarness, way: Callable[..., Any]
) -> None:
    speaker, shop = harness.agent(), Shop()
    wanted = [("deploy", {"to": "production"}), ("read", {"path": "b"}), ("drop_table", {"name": "users"})]
    model = script(wanted, [("deploy", {"to": "moon"}), ("divide", {"by": 0})], "done")
    agent = Agent(name="Clerk", model=model, tools=shop.tools)
    running = aside(lambda: way(ObservatoryRunner(speaker), agent))
    held = harness.held()
    until(lambda: shop.done == [("read", "b")])
    with pytest.raises(TimeoutError):
        running.result(0.3)  # longer than the tool may take: a person's time is not the tool's
    harness.edit({"to": "staging"}, held)
    until(lambda: len(model.calls) == 2)
    assert ("deploy", "staging") in shop.done
    assert "deployed to staging" in heard(model, 1) and "A person changed the input" in heard(model, 1)
    assert "drop_table was not run: a rule forbids it" in heard(model, 1)
    harness.answer("reject", note="not there")
    assert running.result(PATIENCE_S) == "done"
    assert "a person rejected it" in heard(model, 2) and "not there" in heard(model, 2)
    assert [name for name, _ in shop.done] == ["read", "deploy"]
    assert speaker.flush(PATIENCE_S)
    assert any(one[:2] == ("Failed to call divide", "failure") for one in harness.received())
    assert len({item["session_id"] for item in harness.archived()}) == 1, "a run without a name is a session"
    assert harness.parents()["Decided to call deploy, divide"] == ["Called deploy", "Called read"]


@pytest.mark.req(504)
def test_a_handoff_is_a_message_and_the_other_agent_goes_on_from_it_s906(harness: ToolHarness) -> None:
    first, second = harness.agent(), harness.agent(f"{harness.name}-billing")
    started: list[str] = []

    class Noted(AgentHooks[Any]):
        async def on_start(self, context: Any, agent: Any) -> None:
            started.append(agent.name)

    billing = Agent(name="Billing", model=script("paid"), hooks=Noted())
    triage = Agent(
        name="Triage", model=script([("transfer_to_billing", {})]), handoffs=[handoff(billing)], hooks=Noted()
    )
    billing.handoffs.append(triage)  # round and round
    watch = ObservatoryRunner(first, team={"Billing": second})
    assert ask(watch, triage) == "paid"
    assert started == ["Triage", "Billing"], "the agents' own hooks are called too"
    assert first.flush(PATIENCE_S) and second.flush(PATIENCE_S)
    mine = harness.archived()
    assert [item["message"]["cognition"]["intent"] for item in mine] == [
        "Decided to call transfer_to_billing",
        "Hand over to Billing",
        "Handed over to Billing",
    ]
    assert mine[1]["message"]["identity"]["recipient"] == second.agent_id
    until(lambda: not second.orders.has_messages)
    harness.name = second.agent_id
    until(lambda: not harness.inbox())  # what went on in this process waits in no inbox
    (theirs,) = harness.archived()
    assert theirs["parents"] == [mine[2]["step_id"]] and theirs["session_id"] == mine[0]["session_id"]
    rule = {"effect": "deny", "match": {"recipient": [second.agent_id]}}
    assert (made := harness.server.http("admin").post("/v1/policies", json=rule)).status_code < 300, made.text
    triage.model = script([("transfer_to_billing", {})])
    with pytest.raises(Denied, match="policy_denied"):
        ask(watch, triage)


@WAYS
def test_cancel_ends_the_run_s904(harness: ToolHarness, way: Callable[..., Any]) -> None:
    speaker, shop = harness.agent(), Shop()
    model = script([("deploy", {"to": "x"})], "never")
    agent = Agent(name="Clerk", model=model, tools=shop.tools)
    running = aside(lambda: way(ObservatoryRunner(speaker), agent))
    held = harness.held()
    harness.do("cancel", held["session_id"], note="wrong client")
    with pytest.raises(Cancelled, match="wrong client"):
        running.result(PATIENCE_S)
    assert not shop.done and len(model.calls) == 1
    again = RunConfig(group_id=held["session_id"])
    with pytest.raises(Cancelled, match="wrong client"):
        way(ObservatoryRunner(speaker), agent, run_config=again)
    assert len(model.calls) == 1, "a cancelled session asks no model"


def test_a_session_remembers_what_was_injected_s904(harness: ToolHarness) -> None:
    speaker = harness.agent()
    agent, watch = Agent(name="Clerk"), ObservatoryRunner(speaker)
    memory = SQLiteSession(f"memory-{harness.name}")
    speaker.session(session_id=memory.session_id).step("works").answer(PATIENCE_S)
    harness.do("inject", memory.session_id, prompt="Use euros")
    until(lambda: speaker.orders._prompts)
    agent.model = model = script("one", "two")
    assert ask(watch, agent, session=memory) == "one"
    assert ask(watch, agent, session=memory) == "two"
    assert heard(model, 0).count("Use euros") == heard(model, 1).count("Use euros") == 1
    with loop_at_hand(), pytest.raises(ModelScriptError):
        watch.run_sync(agent, "Go", session=memory)  # the script is at its end: the model fails
    memory.close()
    assert speaker.flush(PATIENCE_S)
    assert harness.received()[-1][:2] == ("Failed to ask the model", "failure")
    assert harness.archived()[-1]["session_id"] == memory.session_id


def test_shell_custom_and_patching_tools_ask_too_s905(harness: ToolHarness) -> None:
    """What cannot be told no (a patch) ends the run; the others tell the model why."""
    ran: list[Any] = []

    def keep(what: Any) -> str:
        ran.append(what)
        return "kept"

    class Editor:
        def update_file(self, operation: Any) -> None:
            ran.append(operation)

        create_file = delete_file = update_file

    shell = ShellTool(executor=lambda request: keep(request.data.action.commands))
    note = CustomTool(name="note", description="Note", on_invoke_tool=lambda _, received: keep(received))
    patch = ApplyPatchTool(editor=Editor())
    asked: Json = {"type": "shell_call", "status": "completed", "action": {"commands": ["rm -rf /"]}}
    noted: Json = {"type": "custom_tool_call", "id": "n1", "call_id": "n1", "name": "note", "input": "a"}
    patched: Json = {
        "type": "apply_patch_call",
        "id": "p1",
        "call_id": "p1",
        "status": "completed",
        "operation": {"type": "delete_file", "path": "a"},
    }
    model = ScriptedModel(
        [
            [ResponseFunctionShellToolCall(**asked, id="s1", call_id="s1"), ResponseCustomToolCall(**noted)],
            [ResponseFunctionShellToolCall(**asked, id="s2", call_id="s2")],
            [ResponseApplyPatchToolCall(**patched)],
        ]
    )
    agent = Agent(name="Clerk", model=model, tools=[shell, note, patch])
    watch = ObservatoryRunner(harness.agent(), needs_approval=["shell", "apply_patch"])
    running = aside(lambda: ask(watch, agent))
    harness.edit({"commands": ["ls"]})
    until(lambda: len(model.calls) == 2)
    assert sorted(map(str, ran)) == ["['ls']", "a"]
    harness.answer("reject", note="never")
    until(lambda: len(model.calls) == 3)
    assert "shell was not run: a person rejected it" in heard(model, 2)
    harness.answer("reject")
    with pytest.raises(Denied, match="apply_patch was not run"):
        running.result(PATIENCE_S)
    assert len(ran) == 2


@pytest.mark.req(504)
def test_an_agent_as_a_tool_is_a_child_of_that_call_s906(harness: ToolHarness) -> None:
    speaker, shop = harness.agent(), Shop()
    watch = ObservatoryRunner(speaker)
    inner = Agent(name="Helper", model=script([("read", {"path": "c"})], "it says c"), tools=shop.tools)
    tools: list[Any] = [watch.watched(inner).as_tool("research", "Look")]
    outer = Agent(name="Boss", model=script([("research", {"input": "c"})], "done"), tools=tools)
    assert ask(watch, outer) == "done"
    assert speaker.flush(PATIENCE_S)
    parents = harness.parents()
    assert parents["Decided to call read"] == ["Call research"]
    assert parents["Call read"] == ["Decided to call read"]
    assert parents["Called research"] == ["Answered"], "its own last word is what the call ends with"


def test_the_sdks_own_approvals_pass_through_s906(harness: ToolHarness) -> None:
    paid: list[int] = []

    @function_tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pay."""
        paid.append(amount)
        return "paid"

    agent = Agent(name="Clerk", model=script([("pay", {"amount": 3})], "done"), tools=[pay])
    speaker = harness.agent()
    watch = ObservatoryRunner(speaker)

    async def twice() -> Any:
        config = RunConfig(group_id=f"own-{harness.name}")
        first = await watch.run(agent, "Go", run_config=config)
        (waiting,) = first.interruptions
        assert paid == []
        state = first.to_state()
        state.approve(waiting)
        return (await watch.run(agent, state, run_config=config)).final_output

    assert asyncio.run(twice()) == "done" and paid == [3]
    assert speaker.flush(PATIENCE_S)
    assert harness.parents()["Called pay"] == ["Call pay"]


def test_without_a_gateway_tools_run_but_those_that_need_approval_s897(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "ANSWER_S", 0.2)
    door: Json = {"url": "http://127.0.0.1:9", "key": "k", "data": tmp_path}
    shop = Shop()
    with Speaker("alone", **door, delivery=Delivery(close_timeout_s=0.1)) as speaker:
        model = script([("read", {"path": "a"}), ("deploy", {"to": "x"})], "done")
        watch = ObservatoryRunner(speaker, needs_approval=["deploy"])
        assert ask(watch, Agent(name="Clerk", model=model, tools=shop.tools)) == "done"
    assert shop.done == [("read", "a")]
    assert "deploy was not run: no verdict was received" in heard(model, 1)


def test_an_agents_sdk_without_the_hooks_is_refused_s900(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Runner, "run_streamed")
    with pytest.raises(NotSupported, match=r"openai-agents 0\.\S+ has no agents.Runner.run_streamed"):
        importlib.reload(adapter)

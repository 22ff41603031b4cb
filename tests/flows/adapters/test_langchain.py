"""LangChain's own `create_agent` and a scripted model, commanded through the gateway (S901–S903)."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware.types import AgentMiddleware
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from observatory import Agent
from observatory.sdk import Cancelled, Delivery, NotSupported, gate
from observatory.sdk.integrations import langchain as adapter
from observatory.sdk.integrations.langchain import ObservatoryMiddleware
from tests.flows.scripted import Script, calls
from tests.flows.sdk_harness import PATIENCE_S, Json, aside, until
from tests.flows.tool_harness import ToolHarness


class Shop:
    """What the tools really did."""

    def __init__(self) -> None:
        self.done: list[tuple[str, str]] = []
        done = self.done

        @tool
        def read(path: str) -> str:
            """Read a file."""
            done.append(("read", path))
            return f"content of {path}"

        @tool
        def deploy(to: str) -> str:
            """Deploy."""
            done.append(("deploy", to))
            return f"deployed to {to}"

        @tool
        def drop_table(name: str) -> str:
            """Drop a table."""
            done.append(("drop_table", name))
            return "dropped"

        @tool
        def consult(question: str) -> str:
            """Ask whoever the graph asks."""
            said = interrupt(question)
            done.append(("consult", said))
            return f"they say {said}"

        self.tools = [read, deploy, drop_table, consult]


def ask(agent: Any, thread: str | None, text: Any = "Go") -> Any:
    config = {"configurable": {"thread_id": thread}} if thread is not None else {}
    given = text if isinstance(text, Command) else {"messages": [("user", text)]}
    return agent.invoke(given, config)


def aask(agent: Any, thread: str | None, text: Any = "Go") -> Any:
    """The same by asyncio, and streamed."""

    async def run() -> Any:
        config = {"configurable": {"thread_id": thread}} if thread is not None else {}
        last = None
        async for state in agent.astream({"messages": [("user", text)]}, config, stream_mode="values"):
            last = state
        return last

    return asyncio.run(run())


WAYS = pytest.mark.parametrize("way", [ask, aask], ids=["sync", "async"])


@pytest.mark.req(186, 191)
@WAYS
def test_a_paused_agent_runs_no_tool_and_then_reads_what_was_injected_s901(
    harness: ToolHarness, way: Callable[..., Any]
) -> None:
    speaker, shop = harness.agent(), Shop()
    script = Script(lines=[calls(("read", {"path": "a"})), AIMessage("done")])
    agent = create_agent(script, shop.tools, middleware=[ObservatoryMiddleware(speaker)])
    thread = f"thread-{harness.name}"
    speaker.session(session_id=thread).step("works").answer(PATIENCE_S)
    harness.do("pause", thread)
    until(lambda: speaker.orders.is_held(thread))
    running: Future[Any] = aside(lambda: way(agent, thread))
    with pytest.raises(TimeoutError):
        running.result(0.2)
    assert script.asked == [] and shop.done == []
    harness.do("inject", thread, prompt="Use euros")
    until(lambda: speaker.orders._prompts)
    harness.do("unpause", thread)
    state = running.result(PATIENCE_S)
    assert shop.done == [("read", "a")]
    assert script.asked[0] == ["Go", "Use euros"]
    assert state["messages"][-1].content == "done"
    assert speaker.flush(PATIENCE_S)
    assert harness.received()[1:] == [
        ("Decided to call read", "success", None),
        ("Call read", "pending", None),
        ("Called read", "success", "content of a"),
        ("Answered", "success", "done"),
    ]
    items = harness.archived()
    assert {item["session_id"] for item in items} == {thread}
    assert items[1]["message"]["state_delta"]["tokens_consumed"] == 8
    assert items[4]["message"]["state_delta"].get("tokens_consumed") is None, "what is not told is absent"
    assert harness.parents()["Answered"] == ["Called read"]


@pytest.mark.req(99, 181, 183)
@WAYS
def test_rules_hold_edit_and_refuse_tools_and_no_gate_holds_up_its_siblings_s902(
    harness: ToolHarness, way: Callable[..., Any]
) -> None:
    speaker, shop = harness.agent(), Shop()
    wanted = [("deploy", {"to": "production"}), ("read", {"path": "b"}), ("drop_table", {"name": "users"})]
    script = Script(lines=[calls(*wanted), calls(("deploy", {"to": "moon"})), AIMessage("done")])
    agent = create_agent(script, shop.tools, middleware=[ObservatoryMiddleware(speaker)])
    running = aside(lambda: way(agent, None))
    held = harness.held()
    until(lambda: shop.done == [("read", "b")])
    assert not running.done()
    harness.edit({"to": "staging"}, held)
    until(lambda: len(script.asked) == 2)
    assert ("deploy", "staging") in shop.done
    heard = script.asked[1][-3:]
    assert any("deployed to staging" in text and "A person changed the input" in text for text in heard)
    assert any("drop_table was not run: a rule forbids it" in text for text in heard)
    harness.answer("reject", note="not there")
    running.result(PATIENCE_S)
    assert "a person rejected it" in script.asked[2][-1] and "not there" in script.asked[2][-1]
    assert [name for name, _ in shop.done] == ["read", "deploy"]
    assert speaker.flush(PATIENCE_S)
    assert len({item["session_id"] for item in harness.archived()}) == 1, (
        "a run without a thread is a session"
    )
    second = [
        item for item in harness.archived() if item["message"]["cognition"]["intent"].startswith("Decided")
    ]
    assert len(second[1]["parents"]) == 2, "the turn joins the calls that were run"


def test_cancel_ends_the_run_and_a_failing_tool_is_a_failed_step_s901(harness: ToolHarness) -> None:
    speaker, shop = harness.agent(), Shop()
    script = Script(lines=[calls(("deploy", {"to": "x"})), AIMessage("never")])
    agent = create_agent(script, shop.tools, middleware=[ObservatoryMiddleware(speaker)])
    running = aside(lambda: ask(agent, None))
    held = harness.held()
    harness.do("cancel", held["session_id"], note="wrong client")
    with pytest.raises(Cancelled, match="wrong client"):
        running.result(PATIENCE_S)
    assert shop.done == [] and len(script.asked) == 1

    @tool
    def divide(by: int) -> str:
        """Divide."""
        return str(1 // by)

    script = Script(lines=[calls(("divide", {"by": 0}))])
    agent = create_agent(script, [divide], middleware=[ObservatoryMiddleware(speaker)])
    with pytest.raises(ZeroDivisionError):
        ask(agent, None)
    with pytest.raises(IndexError):
        ask(agent, None)  # the script is at its end: the model fails
    assert speaker.flush(PATIENCE_S)
    received = harness.received()
    assert any(one[:2] == ("Failed to call divide", "failure") for one in received)
    assert received[-1][:2] == ("Failed to ask the model", "failure")


def test_the_graphs_own_interrupt_passes_through_and_is_not_asked_for_twice_s903(
    harness: ToolHarness,
) -> None:
    speaker, shop = harness.agent(), Shop()
    script = Script(lines=[calls(("consult", {"question": "Which?"})), AIMessage("done")])
    watch = ObservatoryMiddleware(speaker, needs_approval=["cons*"])
    agent = create_agent(script, shop.tools, middleware=[watch], checkpointer=InMemorySaver())
    thread = f"interrupted-{harness.name}"
    running = aside(lambda: ask(agent, thread))
    harness.answer("approve")
    state = running.result(PATIENCE_S)
    assert [one.value for one in state["__interrupt__"]] == ["Which?"] and shop.done == []
    state = ask(agent, thread, Command(resume="the blue one"))
    assert shop.done == [("consult", "the blue one")]
    assert speaker.flush(PATIENCE_S)
    assert [one[0] for one in harness.received()].count("Call consult") == 1
    assert harness.parents()["Called consult"] == ["Call consult"]


@pytest.mark.req(504)
def test_an_agent_called_as_a_tool_is_a_child_of_that_call_s901(harness: ToolHarness) -> None:
    boss, helper, shop = harness.agent(), harness.agent(f"{harness.name}-helper"), Shop()
    inner = create_agent(
        Script(lines=[calls(("read", {"path": "c"})), AIMessage("it says c")]),
        shop.tools,
        middleware=[ObservatoryMiddleware(helper)],
    )

    @tool
    def research(topic: str) -> str:
        """Let the helper look."""
        return str(ask(inner, None, topic)["messages"][-1].content)

    script = Script(lines=[calls(("research", {"topic": "c"})), AIMessage("done")])
    ask(create_agent(script, [research], middleware=[ObservatoryMiddleware(boss)]), f"boss-{harness.name}")
    assert boss.flush(PATIENCE_S) and helper.flush(PATIENCE_S)
    outer = harness.archived()
    harness.name = f"{harness.name}-helper"
    nested = harness.archived()
    assert {item["session_id"] for item in [*outer, *nested]} == {outer[0]["session_id"]}
    assert nested[0]["parents"] == [outer[1]["step_id"]], "its first step follows from the call"
    assert outer[2]["parents"] == [nested[-1]["step_id"]], "what came of the call follows from its last"


def test_without_a_gateway_tools_run_but_those_that_need_approval_s897(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "ANSWER_S", 0.2)
    door: Json = {"url": "http://127.0.0.1:9", "key": "k", "data": tmp_path}
    shop = Shop()
    with Agent("alone", **door, delivery=Delivery(close_timeout_s=0.1)) as speaker:
        script = Script(lines=[calls(("read", {"path": "a"}), ("deploy", {"to": "x"})), AIMessage("done")])
        watch = ObservatoryMiddleware(speaker, needs_approval=["deploy"])
        ask(create_agent(script, shop.tools, middleware=[watch]), None)
    assert shop.done == [("read", "a")]
    assert any("deploy was not run: no verdict was received" in text for text in script.asked[1])


def test_a_langchain_without_the_hooks_is_refused_s900(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(AgentMiddleware, "awrap_tool_call")
    with pytest.raises(NotSupported, match=r"langchain 1\.\S+ has no .*AgentMiddleware.awrap_tool_call"):
        importlib.reload(adapter)

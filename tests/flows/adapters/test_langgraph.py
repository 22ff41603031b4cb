"""Graphs of LangGraph: their nodes as steps, and a person's hand on them (S907–S909)."""

from __future__ import annotations

import asyncio
import importlib
import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, Send, interrupt

from observatory.sdk import Cancelled, NotSupported
from observatory.sdk.integrations import langgraph as adapter
from observatory.sdk.integrations.langgraph import ObservatoryCallback
from tests.flows.scripted import Script, calls
from tests.flows.sdk_harness import PATIENCE_S, aside, until
from tests.flows.tool_harness import ToolHarness


class Trail(TypedDict, total=False):
    seen: Annotated[list[str], operator.add]


class Chat(TypedDict):
    messages: Annotated[list[BaseMessage], add_messages]


def noting(name: str) -> Any:
    return lambda state: {"seen": [name]}


def builder(*nodes: str) -> Any:
    made = StateGraph(Trail)
    for name in nodes:
        made.add_node(name, noting(name))
    return made


def invoke(graph: Any, watch: ObservatoryCallback, given: Any, thread: str) -> Any:
    return graph.invoke(given, {"callbacks": [watch], "configurable": {"thread_id": thread}})


def stream(graph: Any, watch: ObservatoryCallback, given: Any, thread: str) -> Any:
    """The same by asyncio, and streamed."""

    async def run() -> Any:
        last = None
        config = {"callbacks": [watch], "configurable": {"thread_id": thread}}
        async for state in graph.astream(given, config, stream_mode="values"):
            last = state
        return last

    return asyncio.run(run())


WAYS = pytest.mark.parametrize("way", [invoke, stream], ids=["sync", "async"])


@pytest.mark.req(504)
@WAYS
def test_nodes_are_steps_whose_forks_and_joins_are_the_graphs_s907(
    harness: ToolHarness, way: Callable[..., Any]
) -> None:
    inner = builder("x", "y").add_edge(START, "x").add_edge("x", "y").compile()
    made = builder("a", "b", "b2", "c", "d", "work", "sum").add_node("sub", inner)
    made.add_edge(START, "a").add_edge("a", "b").add_edge("a", "c").add_edge("b", "b2")
    made.add_edge(["b2", "c"], "d")  # a join of two ways of different length
    made.add_edge("d", "sub")
    made.add_conditional_edges("sub", lambda _: [Send("work", {}), Send("work", {})], ["work"])
    made.add_edge("work", "sum")
    graph, speaker = made.compile(), harness.agent()
    thread = f"graph-{harness.name}"
    state = way(graph, ObservatoryCallback(speaker, graph), {"seen": []}, thread)
    assert set(state["seen"]) == {"a", "b", "b2", "c", "d", "sum", "work", "x", "y"}
    assert speaker.flush(PATIENCE_S)
    received = harness.parents()
    assert {
        name.removeprefix("Ran "): [one.removeprefix("Ran ") for one in received[name]] for name in received
    } == {
        "a": [],
        "b": ["a"],
        "c": ["a"],
        "b2": ["b"],
        "d": ["b2", "c"],
        "x": ["d"],
        "y": ["x"],
        "sub": ["y"],
        "work": ["sub"],
        "sum": ["work", "work"],
    }
    assert {item["session_id"] for item in harness.archived()} == {thread}
    assert ("Ran b", "success", '{"seen":["b"]}') in harness.received()


@pytest.mark.req(186, 191, 99)
@WAYS
def test_a_paused_graph_runs_no_node_and_its_tools_ask_first_s908(
    harness: ToolHarness, way: Callable[..., Any]
) -> None:
    done: list[str] = []

    @tool
    def deploy(to: str) -> str:
        """Deploy."""
        done.append(to)
        return f"deployed to {to}"

    script, speaker = (
        Script(lines=[calls(("deploy", {"to": "production"})), AIMessage("done")]),
        harness.agent(),
    )
    made = StateGraph(Chat)

    def ask(state: Chat) -> Any:
        return {"messages": [script.invoke([*state["messages"], *watch.injected()])]}

    watch = ObservatoryCallback(speaker)
    hooks: Any = {"wrap_tool_call": watch.wrap_tool_call, "awrap_tool_call": watch.awrap_tool_call}
    made.add_node("ask", ask).add_node("tools", ToolNode([deploy], **hooks))
    made.add_edge(START, "ask").add_conditional_edges("ask", tools_condition).add_edge("tools", "ask")
    graph = made.compile()
    thread = f"chat-{harness.name}"
    speaker.session(session_id=thread).step("works").answer(PATIENCE_S)
    harness.do("pause", thread)
    until(lambda: speaker.orders.is_held(thread))
    running = aside(lambda: way(graph, watch, {"messages": [("user", "Go")]}, thread))
    with pytest.raises(TimeoutError):
        running.result(0.2)
    assert script.asked == []
    harness.do("inject", thread, prompt="Use euros")
    until(lambda: speaker.orders._prompts)
    harness.do("unpause", thread)
    harness.edit({"to": "staging"})
    assert running.result(PATIENCE_S)["messages"][-1].content == "done"
    assert done == ["staging"] and script.asked[0] == ["Go", "Use euros"]
    assert speaker.flush(PATIENCE_S)
    assert [one[0] for one in harness.received()[1:]] == [
        "Decided to call deploy",
        "Ran ask",
        "Call deploy",
        "Called deploy",
        "Ran tools",
        "Answered",
        "Ran ask",
    ]
    parents = [item["parents"] for item in harness.archived()[1:]]
    steps = [item["step_id"] for item in harness.archived()[1:]]
    assert parents[1:] == [[step] for step in steps[:-1]], "one thing after the other"


def test_interrupts_pass_failures_are_said_and_cancel_ends_the_run_s909(harness: ToolHarness) -> None:
    speaker = harness.agent()
    broken = [True]

    def consult(state: Trail) -> Trail:
        return {"seen": [str(interrupt("Which?"))]}

    def work(state: Trail) -> Trail:
        if broken.pop():
            raise ZeroDivisionError("by nothing")
        return {"seen": ["worked"]}

    made = builder("a").add_node("consult", consult).add_node("work", work)
    made.add_edge(START, "a").add_edge("a", "consult").add_edge("consult", "work").add_edge("work", END)
    graph = made.compile(checkpointer=InMemorySaver())
    watch, thread = ObservatoryCallback(speaker, graph), f"consult-{harness.name}"
    state = invoke(graph, watch, {"seen": []}, thread)
    assert [one.value for one in state["__interrupt__"]] == ["Which?"]
    with pytest.raises(ZeroDivisionError):
        invoke(graph, watch, Command(resume="blue"), thread)
    assert speaker.flush(PATIENCE_S)
    assert harness.received() == [
        ("Ran a", "success", '{"seen":["a"]}'),
        ("Ran consult", "success", '{"seen":["blue"]}'),
        ("Failed in work", "failure", "ZeroDivisionError: by nothing"),
    ]
    assert harness.parents()["Ran consult"] == ["Ran a"], "a run goes on from where the thread was"
    harness.do("cancel", thread, note="enough")
    until(lambda: speaker.orders.is_cancelled(thread))
    with pytest.raises(Cancelled, match="enough"):
        invoke(graph, watch, None, thread)
    assert not watch._nodes and not watch._levels and not watch._running, (
        "nothing is kept of a run that ended"
    )


def test_a_langgraph_without_the_hooks_is_refused_s900(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(BaseCallbackHandler, "raise_error")
    with pytest.raises(NotSupported, match=r"langgraph 1\.\S+ has no .*BaseCallbackHandler.raise_error"):
        importlib.reload(adapter)

"""LangGraph's callback where its telemetry fails: the graph goes on."""

from pathlib import Path
from typing import Any, TypedDict

import pytest

pytest.importorskip("langgraph")

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, RetryPolicy, interrupt

from observatory import Agent
from observatory.sdk import Received
from observatory.sdk.integrations import langgraph as adapter
from observatory.sdk.integrations.langgraph import ObservatoryCallback


class State(TypedDict):
    row: Any


class Sealed:
    def __str__(self) -> str:
        raise LookupError("the database is closed")

    __repr__ = __str__


def test_what_cannot_be_told_of_a_node_does_not_end_the_run_s909(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = StateGraph(State)
    builder.add_node("load", lambda _: {"row": Sealed()})
    builder.add_edge(START, "load")
    builder.add_edge("load", END)
    graph = builder.compile()
    with Agent("alone", url="http://127.0.0.1:9", key="k", data=tmp_path, control=False) as agent:
        watch = ObservatoryCallback(agent, graph)
        assert isinstance(graph.invoke({"row": 0}, {"callbacks": [watch]})["row"], Sealed)
        monkeypatch.setattr(adapter, "_plain", lambda _: 1 / 0)
        assert isinstance(graph.invoke({"row": 0}, {"callbacks": [watch]})["row"], Sealed)
        assert not watch._running and not watch._levels and not watch._nodes
        agent.close(0)


def test_a_node_that_runs_again_is_told_again_what_was_injected_s908(tmp_path: Path) -> None:
    heard: list[list[str]] = []
    watches: list[ObservatoryCallback] = []

    def ask(state: State) -> State:
        heard.append([str(one.content) for one in watches[0].injected()])
        if len(heard) == 1:
            raise ConnectionError("the model is busy")
        return {"row": interrupt("sure?")}

    builder = StateGraph(State)
    builder.add_node("ask", ask, retry_policy=RetryPolicy(initial_interval=0.001, jitter=False))
    builder.add_edge(START, "ask")
    graph = builder.compile(checkpointer=InMemorySaver())
    with Agent("alone", url="http://127.0.0.1:9", key="k", data=tmp_path, control=False) as agent:
        watches.append(ObservatoryCallback(agent, graph))
        agent.orders.take(Received("dlv_1", "inject", session_id="t", body={"prompt": "be brief"}))
        config: Any = {"callbacks": watches, "configurable": {"thread_id": "t"}}
        graph.invoke({"row": 0}, config)
        assert graph.invoke(Command(resume="yes"), config) == {"row": "yes"}
        assert heard == [["be brief"]] * 3 and not watches[0]._undelivered
        graph.invoke({"row": 0}, config)
        assert heard[3] == [], "one that ended has heard it"
        agent.close(0)

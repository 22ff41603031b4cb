"""LangGraph's callback where its telemetry fails: the graph goes on."""

from pathlib import Path
from typing import Any, TypedDict

import pytest

pytest.importorskip("langgraph")

from langgraph.graph import END, START, StateGraph

from observatory import Agent
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
        monkeypatch.setattr(adapter, "_shown", lambda _: 1 / 0)
        assert isinstance(graph.invoke({"row": 0}, {"callbacks": [watch]})["row"], Sealed)
        assert not watch._running and not watch._levels and not watch._nodes
        agent.close(0)

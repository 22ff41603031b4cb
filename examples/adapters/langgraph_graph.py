"""A graph of LangGraph under control: every node is a step, with the graph's forks and joins.

Start a gateway with `observatory serve`, `pip install 'langgraph>=1.2'`, then run
`python examples/adapters/langgraph_graph.py`. While it works: `observatory pause report-3 analyst-1`.
"""

import operator
from typing import Annotated, TypedDict

from langgraph.graph import START, StateGraph

from observatory import Agent
from observatory.sdk.integrations.langgraph import ObservatoryCallback


class Report(TypedDict):
    notes: Annotated[list[str], operator.add]


def plan(state: Report) -> Report:
    print("plans", flush=True)
    return {"notes": ["look at revenue and at costs"]}


def revenue(state: Report) -> Report:
    return {"notes": ["revenue is up"]}


def costs(state: Report) -> Report:
    return {"notes": ["costs are down"]}


def write(state: Report) -> Report:
    print(f"writes: {'; '.join(state['notes'])}", flush=True)
    return {"notes": []}


builder = StateGraph(Report)
for node in (plan, revenue, costs, write):
    builder.add_node(node)
builder.add_edge(START, "plan")
builder.add_edge("plan", "revenue")  # a fork …
builder.add_edge("plan", "costs")
builder.add_edge(["revenue", "costs"], "write")  # … and its join
graph = builder.compile()

with Agent("analyst-1", agent_type="analyst") as analyst:
    analyst.listen(timeout=5)  # so that a pause in force holds from the start
    watch = ObservatoryCallback(analyst, graph)
    graph.invoke({"notes": []}, {"callbacks": [watch], "configurable": {"thread_id": "report-3"}})

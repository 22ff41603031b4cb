"""The graph is a function of what was added: any order, any batches, replayed or followed live."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from observatory.derived.seen import FoldMessage
from observatory.features.graph.badge import AgentActivity, badge_of, badge_of_step
from observatory.features.graph.causal_graph import CausalGraph, NamedStep
from observatory.features.graph.graph import WAIT_S, SessionGraph, branch_costs
from observatory.features.graph.types_session import SessionMessage, seen_of
from observatory.protocol.decision_log import DecisionLog
from observatory.protocol.otel import span_id_of
from tests.samples import decision_log, full_decision_log

SECOND = 1_000_000_000
LATER = 1_000 * SECOND
Row = dict[str, Any]


def seen(seq: int, name: str, *parents: str, agent: str = "ada", **more: Any) -> FoldMessage:
    delta = {"cumulative_session_cost": more.pop("cost", float(seq))}
    log = msgspec.convert(decision_log(state_delta=delta), DecisionLog)
    known: Row = {
        "seq": seq, "session_no": 1, "session_id": "s", "agent_no": 1, "agent_id": agent, "agent_type": "t",
        "cluster_id": None, "message_id": f"m{seq}", "step_id": name, "name": name, "state": "forwarded",
        "message_type": "decision_log", "parents": parents, "parent_inferred": False,
        "span": f"{seq:016x}", "parent_span_id": None, "at_ns": seq * SECOND, "entropy": None,
        "log": log, "envelope": None,
    }  # fmt: skip
    return FoldMessage(**known | more)


# Parents before and after, unknown ones, oneself: whatever a mesh can send.
shapes = st.lists(
    st.lists(st.integers(0, 14).map("n{}".format) | st.just("lost"), max_size=3, unique=True),
    min_size=1,
    max_size=12,
)


def steps_of(shape: list[list[str]]) -> list[FoldMessage]:
    return [
        seen(number + 1, f"n{number}", *parents, agent=f"a{number % 3}")
        for number, parents in enumerate(shape)
    ]


def grown(steps: list[FoldMessage]) -> SessionGraph:
    graph = SessionGraph()
    for step in steps:
        graph.add(step)
    return graph


@settings(max_examples=200)
@given(shapes, st.randoms(use_true_random=False), st.integers(0, 60))
def test_any_order_gives_the_same_graph_s208(shape: list[list[str]], order: Any, now: int) -> None:
    """S208: nodes and edges depend on what was added and on the moment, not on the way there."""
    steps = steps_of(shape)
    mixed = list(steps)
    order.shuffle(mixed)
    one, other = grown(steps), SessionGraph()
    for number, step in enumerate(mixed):
        other.add(step)
        if number % 3 == 0:  # looked at in between, as a live reader does
            other.nodes(now * SECOND)
    assert one.nodes(now * SECOND) == other.nodes(now * SECOND)
    assert one.edges(now * SECOND) == other.edges(now * SECOND)
    assert one.refused() == other.refused()


@settings(max_examples=200)
@given(shapes)
def test_it_has_no_circle_and_every_step_is_there_s207(shape: list[list[str]]) -> None:
    """S207: parents come before children in some order, whatever was declared; no step is dropped."""
    graph = grown(steps_of(shape))
    nodes, edges = graph.nodes(LATER), graph.edges(LATER)
    assert [node["sequence_number"] for node in nodes] == list(range(1, len(shape) + 1))
    depth = {node["id"]: node["depth"] for node in nodes}
    assert all(depth[edge["from"]] < depth[edge["to"]] for edge in edges)
    assert len({(edge["from"], edge["to"]) for edge in edges}) == len(edges)
    asked = {(parent, f"n{number}") for number, parents in enumerate(shape) for parent in parents}
    kept = {(edge["from"], edge["to"]) for edge in edges if edge["kind"] != "attached"}
    refused = {(edge["from"], edge["to"]) for edge in graph.refused()}
    assert kept | refused == {edge for edge in asked if edge[0] in depth}
    assert sum(node["cost"] for node in nodes) == pytest.approx(
        sum(node["branch_cost"] for node in nodes if node["parent"] is None)
    )


@settings(max_examples=200)
@given(shapes, st.lists(st.integers(1, 4), max_size=12), st.integers(0, 40))
def test_deltas_lead_to_the_same_graph_as_a_replay_s215(
    shape: list[list[str]], batches: list[int], pace: int
) -> None:
    """S215: whoever takes every delta in any batches has what a fresh reader has, branch costs folded."""
    steps, live = steps_of(shape), SessionGraph()
    nodes: dict[str, Row] = {}
    edges: dict[str, list[Row]] = {}
    version = now = looked = 0
    sizes = [*batches, len(steps)]
    while steps or sizes:
        some, steps = steps[: sizes[0]], steps[sizes[0] :]
        sizes = sizes[1:]
        for step in some:
            live.add(step)
        now += (len(some) + pace) * SECOND
        delta = live.changed(version, now, looked)
        for node in delta["nodes"]:
            nodes[node["id"]], edges[node["id"]] = node, []
        for edge in delta["edges"]:
            edges[edge["to"]].append(edge)
        version, looked = live.version, now
    fresh = grown(steps_of(shape))
    costs = branch_costs(nodes.values())
    assert {name: node | {"branch_cost": costs[name]} for name, node in nodes.items()} == {
        node["id"]: node for node in fresh.nodes(now)
    }
    mine = [edge for some in edges.values() for edge in some]
    assert sorted(mine, key=str) == sorted(fresh.edges(now), key=str)


def test_an_orphan_hangs_at_the_first_root_once_its_wait_is_over_s205() -> None:
    """S205: until then it hangs nowhere; the moment is the gateway's, not the sender's."""
    graph = grown([seen(1, "root"), seen(2, "orphan", "lost"), seen(3, "root-2")])
    due = (2 + WAIT_S) * SECOND
    assert graph.edges(due - 1) == []
    assert graph.edges(due) == [{"from": "root", "to": "orphan", "kind": "attached"}]
    node = graph.nodes(due)[1]
    assert (node["orphan"], node["flags"], node["parent"], node["depth"]) == (
        True, ["attached", "parent_unknown"], "root", 1,
    )  # fmt: skip
    assert [one["id"] for one in graph.changed(3, due, due - 1)["nodes"]] == ["orphan"]
    assert graph.changed(3, due + 1, due)["nodes"] == []
    graph.add(seen(4, "lost", "root-2"))
    assert graph.edges(due) == [
        {"from": "lost", "to": "orphan", "kind": "late"},
        {"from": "root-2", "to": "lost", "kind": "declared"},
    ]


def test_a_session_of_orphans_hangs_at_its_first_step_s205() -> None:
    """S205: without any root the first step stands for one."""
    graph = grown([seen(1, "a", "x"), seen(2, "b", "y")])
    assert graph.roots(LATER) == ["a"]
    assert graph.edges(LATER) == [{"from": "a", "to": "b", "kind": "attached"}]


def test_a_step_with_one_parent_there_and_one_missing_is_no_orphan_s205() -> None:
    """S205: it hangs at the one that is there, flagged."""
    graph = grown([seen(1, "a"), seen(2, "b", "gone", "a")])
    node = graph.nodes(LATER)[1]
    assert (node["orphan"], node["parent"], node["flags"]) == (False, "a", ["parent_unknown"])


def test_ten_thousand_steps_back_to_front_need_no_recursion_s213() -> None:
    """S213: a chain whose every parent comes after its child."""
    linked_steps = [
        NamedStep(f"n{n}", (f"n{n + 1}",) if n < 9_999 else (), False, f"s{n}", None) for n in range(10_000)
    ]
    causal_graph = CausalGraph(linked_steps)
    depth, moved, order = causal_graph.levels({}, (), 0)
    assert (depth[0], moved[0], order[0], causal_graph.refused) == (9_999, 9_999, 9_999, [])
    closed = CausalGraph([*linked_steps[:-1], linked_steps[-1]._replace(parents=("n0",))])
    assert closed.refused == [(9_999, 9_998)]


def test_of_steps_with_one_span_the_last_before_counts_s208() -> None:
    """S208: a span used twice is the later one of those already there."""
    steps = [seen(1, "a", span="f" * 16), seen(2, "b", span="f" * 16)]
    reply = seen(3, "c", parent_span_id="f" * 16)
    assert grown([*steps, reply]).edges(LATER) == [{"from": "b", "to": "c", "kind": "span"}]


def test_the_newest_state_of_a_step_stays_whatever_comes_after_s208() -> None:
    """S208: an older state added again changes nothing; a newer one is a new version."""
    graph = grown([seen(1, "a", state="held")])
    graph.add(seen(1, "a", state="forwarded", revised=True), version=5)
    graph.add(seen(1, "a", state="held"))
    (node,) = graph.nodes(LATER)
    assert (node["state"], node["version"], node["flags"]) == ("forwarded", 5, ["rewritten"])


def test_new_content_changes_the_cost_of_the_step_after_it_s215() -> None:
    """S215: a delta names that one too."""
    graph = grown([seen(1, "a", cost=1.0), seen(2, "b", "a", cost=3.0)])
    graph.add(seen(1, "a", cost=2.0, revised=True), version=7)
    assert {node["id"]: node["cost"] for node in graph.changed(2, LATER)["nodes"]} == {"a": 2.0, "b": 1.0}


IDLE = AgentActivity(False, "success", "search", "forwarded", 0)


@pytest.mark.parametrize(
    ("doing", "now_s", "badge", "rule"),
    [
        (IDLE._replace(is_terminal=True), 999, "Terminal", 1),
        (IDLE._replace(is_terminal=True, state="held"), 0, "Waiting", 3),
        (IDLE._replace(paused=True, status="pending"), 0, "Waiting", 2),
        (IDLE._replace(held=1), 0, "Waiting", 3),
        (IDLE._replace(undecided=1), 0, "Waiting", 4),
        (IDLE._replace(state="rejected"), 0, "Waiting", 5),
        (IDLE._replace(status="pending"), 999, "Tool Executing", 6),
        (IDLE._replace(status="pending", tool=None), 0, "Waiting", 7),
        (IDLE, 61, "Waiting", 8),
        (IDLE, 60, "Thinking", 9),
        (IDLE._replace(status=None, tool=None), 0, "Thinking", 9),
    ],
)
def test_the_first_rule_that_applies_gives_the_badge_s211(
    doing: AgentActivity, now_s: int, badge: str, rule: int
) -> None:
    """S211: and its number is told."""
    assert badge_of(doing, now_s * SECOND) == (badge, rule)


def test_a_step_that_called_a_tool_was_executing_it_s211() -> None:
    """S211: a node's badge does not depend on the clock."""
    assert badge_of_step(IDLE) == "Tool Executing"
    assert badge_of_step(IDLE._replace(tool=None)) == "Thinking"


def test_tokens_nobody_told_are_not_zero_s214() -> None:
    """Of a step: null; of a sum: what is known."""
    steps = [
        seen(
            n + 1,
            f"n{n}",
            log=msgspec.convert(decision_log(state_delta={"tokens_consumed": received}), DecisionLog),
        )
        for n, received in enumerate((None, 7, 0))
    ]
    graph = grown(steps)
    assert [node["tokens"] for node in graph.nodes(LATER)] == [None, 7, 0]
    assert graph.summary(LATER)["tokens"] == graph.agents(LATER)[0]["tokens"] == 7


@pytest.mark.parametrize("sent", [decision_log(), full_decision_log(), full_decision_log(later="a field")])
def test_a_glance_at_a_log_shows_the_same_node_s204(sent: Row) -> None:
    """S204: doors that show nodes read of a log what those are made of; whoever tells a step reads it all."""
    at = "2026-01-01T00:00:00.000000001Z"
    raw = msgspec.json.encode(sent)
    row = SessionMessage(
        1, "msg_1", "n", "decision_log", "forwarded", None, 0, 0.5, at, raw, None, None, None, None
    )
    session = {"session_no": 1, "session_id": "s"}
    whole, glance = (seen_of(row, "t", session, {}, is_glance=few) for few in (False, True))
    received = [
        (one.nodes(LATER), one.agents(LATER), one.summary(LATER)) for one in map(grown, ([whole], [glance]))
    ]
    assert received[0] == received[1]
    assert whole.log is not None and whole.log.action.tool_input == sent["action"]["tool_input"] is not None
    assert isinstance(glance.log, DecisionLog) and glance.log.action.tool_input is None
    assert (glance.cluster_id, glance.span_id) == (whole.cluster_id, span_id_of("n"))

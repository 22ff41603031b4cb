"""The causal graph of a session and the whole of one step, through the doors, on both databases."""

from __future__ import annotations

import hashlib
import json

import pytest

from observatory.protocol.otel import span_id_of
from tests.flows.graphs import Json, ask, dag, edges, new, nodes, send, send_all, step
from tests.flows.server import Server
from tests.samples import envelope, full_decision_log
from tests.waiting import until


@pytest.mark.req(150, 175, 237)
def test_declared_parents_make_forks_and_joins_s204(either_server: Server) -> None:
    """S204: a step is a node, a declared parent an edge; several parents join."""
    session = new()
    logs = [
        step(session, "root"),
        step(session, "left", "root", agent="bob"),
        step(session, "right", "root", agent="cleo"),
        step(session, "join", "left", "right"),
        step(session, "second-root", agent="dan"),
    ]
    send_all(either_server, logs)
    graph = dag(either_server, session)
    assert edges(graph) == {
        ("root", "left", "declared"),
        ("root", "right", "declared"),
        ("left", "join", "declared"),
        ("right", "join", "declared"),
    }
    assert [node.rpartition("/")[2] for node in graph["roots"]] == ["root", "second-root"]
    found = nodes(graph)
    assert [found[name]["depth"] for name in ("root", "left", "right", "join")] == [0, 1, 1, 2]
    assert found["join"]["parent"] == f"{session}/left"
    summary = graph["summary"]
    assert (summary["steps"], summary["forks"], summary["joins"], summary["roots"]) == (5, 1, 1, 2)


def test_a_parent_the_gateway_inferred_is_told_apart_s204(either_server: Server) -> None:
    """S204: without step ids, other content under one trace hangs at its agent's last step, as inferred."""
    trace = new()
    for intent in ("first", "second"):
        log = step(trace, "", cognition={"intent": intent})
        del log["meta"]["step_id"], log["meta"]["session_id"]
        send(either_server, log)
    graph = dag(either_server, trace)
    assert [edge["kind"] for edge in graph["edges"]] == ["inferred"]


def test_an_unknown_parent_is_waited_for_and_a_late_one_is_the_true_edge_s205_s206(
    either_server: Server,
) -> None:
    """S205, S206: a step whose parent is unknown waits, flagged; when the parent comes the edge is `late`."""
    session = new()
    send(either_server, step(session, "root"))
    send(either_server, step(session, "child", "middle"))
    waiting = dag(either_server, session)
    found = nodes(waiting)["child"]
    assert (found["orphan"], found["is_root"], found["parent"]) == (True, False, None)
    assert found["flags"] == ["waiting_for_parent", "parent_unknown"]
    assert edges(waiting) == set()
    send(either_server, step(session, "middle", "root"))
    delta = dag(either_server, session, after=waiting["version"], since=waiting["as_of"])
    assert set(nodes(delta)) == {"child", "middle"}
    assert edges(delta) == {("middle", "child", "late"), ("root", "middle", "declared")}
    assert edges(dag(either_server, session)) == edges(delta)
    found = nodes(dag(either_server, session))["child"]
    assert (found["orphan"], found["flags"], found["depth"]) == (False, [], 2)


def test_a_parent_in_another_session_is_no_orphan_s205(either_server: Server) -> None:
    """S205: what is a step elsewhere is known; its child is a root here and says so."""
    one, two = new(), new()
    send(either_server, step(one, "origin"))
    send(either_server, step(two, "next", f"{one}/origin"))
    found = nodes(dag(either_server, two))["next"]
    assert (found["orphan"], found["is_root"], found["flags"]) == (False, True, ["parent_elsewhere"])


def test_a_circle_refuses_the_edge_and_keeps_the_step_s207(either_server: Server) -> None:
    """S207: of a circle the edge against time is refused, the messages stay; a step is not its own parent."""
    session = new()
    send(either_server, step(session, "a", "c"))
    send(either_server, step(session, "b", "a"))
    send(either_server, step(session, "c", "b"))
    send(either_server, step(session, "own", "own"))
    graph = dag(either_server, session)
    assert edges(graph) == {("a", "b", "declared"), ("b", "c", "declared")}
    refused = {
        (edge["from"].rpartition("/")[2], edge["to"].rpartition("/")[2]) for edge in graph["refused_edges"]
    }
    assert refused == {("c", "a"), ("own", "own")}
    assert graph["summary"]["cycles_refused"] == 2
    assert nodes(graph)["a"]["flags"] == ["cycle_refused"] and nodes(graph)["a"]["is_root"]


def test_a_refused_edge_is_an_event_s207(either_server: Server) -> None:
    """S207: `causal_cycle_refused` names both messages, once."""
    session = new()
    first = send(either_server, step(session, "a", "b"))
    second = send(either_server, step(session, "b", "a"))

    def received() -> list[Json]:
        trail = ask(either_server, f"/v1/audit/trace/{session}")["items"]
        return [event for event in trail if event["body"]["event_type"] == "causal_cycle_refused"]

    (event,) = until(received)
    assert event["body"]["message_sequence_number"] == first["sequence_number"]
    assert event["body"]["refused_parent"] == second["message_id"]


@pytest.mark.req(501, 502)
def test_an_envelope_hangs_at_the_step_with_its_parent_span_s208(either_server: Server) -> None:
    """S208: messages of several agents are spans of one trace; parent_span_id links reply and trigger."""
    session = new()
    send(either_server, step(session, new()))
    first = step(session, new(), agent="bob")
    send(either_server, first)
    trigger = span_id_of(first["meta"]["step_id"])
    asked = envelope("decision_request", trace_id=session.replace("-", ""), parent_span_id=trigger)
    asked["payload"]["deadline"] = "2099-01-01T00:00:00Z"  # else nobody waits for an answer for long
    reply = envelope("text", trace_id=session.replace("-", ""), parent_span_id=asked["span_id"])
    for message in (asked, reply):
        send(either_server, message)
    graph = dag(either_server, session)
    assert edges(graph) == {
        (first["meta"]["step_id"], asked["message_id"], "span"),
        (asked["message_id"], reply["message_id"], "span"),
    }
    found = nodes(graph)[asked["message_id"]]
    assert (found["message_type"], found["intent"]) == ("decision_request", "Deploy v2.3.1 to production?")
    agents = {agent["agent_id"]: agent for agent in graph["agents"]}
    waits = agents[asked["sender"]["entity_id"]]
    assert (waits["badge"], waits["badge_rule"]) == ("Waiting", 4)


@pytest.mark.req(155)
def test_a_command_is_a_diamond_at_the_step_it_concerned_s209(either_server: Server) -> None:
    """S209: a gate shows on its node; what people do are nodes of their own, at the step concerned."""
    session = new()
    send(either_server, step(session, "before", agent="gated"))
    held = send(
        either_server, step(session, "gate", "before", agent="gated", control={"hitl_required": True})
    )
    graph = dag(either_server, session)
    node = nodes(graph)["gate"]
    assert (node["state"], node["gate"], node["hitl_required"], node["badge"]) == (
        "held", "open", True, "Waiting",
    )  # fmt: skip
    path = f"/v1/sessions/{session}"
    approved = either_server.http("operator").post(f"{path}/approve", json={"agent_id": "gated"})
    assert approved.status_code == 200, approved.text
    paused = either_server.http("operator").post(f"{path}/pause", json={"agent_id": "gated"})
    after = dag(either_server, session, after=graph["version"])
    assert nodes(after)["gate"]["state"] == "forwarded"
    diamonds = {node["command"]: node for node in after["nodes"] if node["kind"] == "intervention"}
    assert diamonds["approve"]["id"] == approved.json()["intervention_id"]
    assert diamonds["approve"]["before_hash"] is not None
    kinds = {
        (edge["from"].rpartition("/")[2], edge["to"])
        for edge in after["edges"]
        if edge["kind"] == "intervention"
    }
    assert kinds == {("gate", node["id"]) for node in diamonds.values()}
    assert paused.json()["intervention_id"] == diamonds["pause"]["id"]
    agents = {agent["agent_id"]: agent for agent in after["agents"]}
    assert (agents["gated"]["badge"], agents["gated"]["badge_rule"]) == ("Waiting", 2)
    received = ask(either_server, f"{path}/steps/{held['message_id']}")
    assert received["hold"]["state"] == "released" and received["hold"]["ended_by"]
    assert [one["command"] for one in received["interventions"]] == ["approve", "pause"]


@pytest.mark.req(135)
def test_a_branch_costs_what_its_steps_added_s210(either_server: Server) -> None:
    """S210: a step costs the growth of its agent's figure, a branch the sum along first parents."""
    session = new()

    def cost(total: float) -> Json:
        return {"cumulative_session_cost": total}

    logs = [
        step(session, "root", state_delta=cost(1.0)),
        step(session, "left", "root", agent="bob", state_delta=cost(0.5)),
        step(session, "left-2", "left", agent="bob", state_delta=cost(0.75)),
        step(session, "right", "root", state_delta=cost(1.25)),
        step(session, "join", "right", "left-2", state_delta={"cost": 2.0, "cumulative_session_cost": 3.25}),
        step(session, "falls", "join", state_delta=cost(3.0)),
    ]
    send_all(either_server, logs)
    graph = dag(either_server, session)
    found = nodes(graph)
    assert {name: node["cost"] for name, node in found.items()} == {
        "root": 1.0, "left": 0.5, "left-2": 0.25, "right": 0.25, "join": 2.0, "falls": 0.0,
    }  # fmt: skip
    assert {name: node["branch_cost"] for name, node in found.items()} == {
        "root": 4.0, "left": 0.75, "left-2": 0.25, "right": 2.25, "join": 2.0, "falls": 0.0,
    }  # fmt: skip
    assert found["falls"]["flags"] == ["cost_decreased"]
    whole = ask(either_server, f"/v1/sessions/{session}")
    assert (graph["summary"]["cost"], whole["cost"]) == (4.0, 3.75)  # the figure that fell is kept there


@pytest.mark.req(156, 173)
def test_badges_and_terminal_steps_s211(either_server: Server) -> None:
    """S211: Thinking, Tool Executing, Waiting or Terminal by numbered rules."""
    session = new()
    logs = [
        step(session, "1", agent="thinker", action={"tool_call": None}),
        step(session, "2", agent="caller", action={"status": "pending", "tool_call": "search"}),
        step(session, "3", agent="asker", action={"status": "pending", "tool_call": None}),
        step(session, "4", agent="ender", control={"is_terminal": True}),
    ]
    send_all(either_server, logs)
    graph = dag(either_server, session)
    badges = {agent["agent_id"]: (agent["badge"], agent["badge_rule"]) for agent in graph["agents"]}
    assert badges == {
        "thinker": ("Thinking", 9),
        "caller": ("Tool Executing", 6),
        "asker": ("Waiting", 7),
        "ender": ("Terminal", 1),
    }
    assert [node["is_terminal"] for node in graph["nodes"]] == [False, False, False, True]
    assert graph["summary"]["terminal"] == 1


@pytest.mark.req(98, 151, 174, 176, 177, 178, 184)
def test_a_step_tells_everything_s212(either_server: Server) -> None:
    """S212: why this and not that, from what, with which memory, to what end; and where its bytes are."""
    session = new()
    send(either_server, step(session, "first", state_delta={"added_to_memory": ["Rates fell"]}))
    log = full_decision_log(
        meta={"trace_id": session, "session_id": session, "step_id": "told", "parent_step_id": "first",
              "parent_step_ids": None},
        identity={"agent_id": "ada"},
    )  # fmt: skip
    body = json.dumps(log).encode()
    assert either_server.send(body).status_code == 202
    send(either_server, step(session, "after", "told", agent="bob"))
    received = ask(either_server, f"/v1/sessions/{session}/steps/told")
    thought = log["cognition"]
    assert received["reasoning"]["chain"] == thought["reasoning_chain"]
    assert received["reasoning"]["alternatives"] == thought["alternatives"]
    assert received["reasoning"]["chosen"] == "serp_search"
    assert [one["uri"] for one in received["reasoning"]["citations"]] == [
        "https://www.sec.gov/edgar", "https://www.sec.gov/10-K", "https://example.org",
    ]  # fmt: skip
    assert received["confidence"] == 0.94
    given = received["input"]
    assert given["read_from_memory"] == ["NVDA reports in USD"]
    assert given["memory_before"] == [{"text": "Rates fell", "step": f"{session}/first"}]
    assert given["parents"][0]["id"] == f"{session}/first"
    assert given["parents"][0]["output"] == "Retrieved 10-K; Revenue confirmed at $26.97B"
    assert received["output"]["added_to_memory"] == ["NVDA Fiscal Year ends Jan 28"]
    assert received["output"]["duration_ms"] == 812
    assert [child["id"] for child in received["children"]] == [f"{session}/after"]
    assert (received["hold"], received["rewrites"], received["annotations"], received["review"]) == (
        None,
        [],
        [],
        None,
    )
    raw = either_server.http("operator").get(received["links"]["exact_bytes"])
    assert hashlib.sha256(raw.content).digest() == hashlib.sha256(body).digest()


def test_a_rewritten_step_shows_what_was_forwarded_s212(either_server: Server) -> None:
    """S212: the new content, flagged, with the digests of every rewrite; the original is its exact bytes."""
    session = new()
    log = step(session, "held", agent="rewritten", control={"hitl_required": True})
    send(either_server, log)
    content = step(session, "held", agent="rewritten", cognition={"intent": "Something milder"})
    edited = either_server.http("operator").post(
        f"/v1/sessions/{session}/edit", json={"agent_id": "rewritten", "new_content": content}
    )
    assert edited.status_code == 200, edited.text
    received = ask(either_server, f"/v1/sessions/{session}/steps/held")
    assert received["reasoning"]["intent"] == "Something milder"
    assert received["flags"] == ["rewritten"] and received["state"] == "forwarded"
    assert [one["digest"] for one in received["rewrites"]] == [received["interventions"][0]["after_hash"]]
    raw = either_server.http("operator").get(received["links"]["exact_bytes"]).json()
    assert raw["cognition"]["intent"] == log["cognition"]["intent"]


def test_what_is_not_there_is_told_in_a_sentence_s212(either_server: Server) -> None:
    """S212: unknown sessions and steps are 404, a version or a time that is none 400."""
    session = new()
    send(either_server, step(session, "only"))
    http = either_server.http("operator")
    for path in (f"/v1/sessions/{new()}/dag", f"/v1/sessions/{session}/steps/none", "/v1/sessions/x/steps/y"):
        answer = http.get(path)
        assert answer.status_code == 404 and answer.json()["detail"], path
    for query in ({"after": "-1"}, {"after": "x"}, {"since": "yesterday"}):
        answer = http.get(f"/v1/sessions/{session}/dag", params=query)
        assert answer.status_code == 400, answer.text


def test_ten_thousand_steps_are_one_graph_s213(either_server: Server) -> None:
    """S213: a chain of 8,000 and 2,000 children of one step, sent with clocks that run backwards."""
    session = new()
    times = [
        f"2026-02-16T{23 - n // 3600:02}:{59 - n // 60 % 60:02}:{59 - n % 60:02}Z" for n in range(10_000)
    ]
    logs = []
    for n in range(8_000):
        parents = [f"c{n - 1}"] if n else []
        logs.append(step(session, f"c{n}", *parents, meta={"timestamp": times[n]}))
    logs += [step(session, f"f{n}", "c7", agent="fan", meta={"timestamp": times[n]}) for n in range(2_000)]
    for at in range(0, 10_000, 2_500):
        send_all(either_server, logs[at : at + 2_500])
    graph = dag(either_server, session)
    assert len(graph["nodes"]) == 10_000 and len(graph["edges"]) == 9_999
    assert not graph["truncated"]
    assert graph["summary"]["depth"] == 7_999 and graph["roots"] == [f"{session}/c0"]
    received = ask(either_server, f"/v1/sessions/{session}/steps/c7")
    assert received["children_count"] == 2_001 and len(received["children"]) == 1_000
    delta = dag(either_server, session, after=graph["version"], since=graph["as_of"])
    assert (delta["nodes"], delta["edges"]) == ([], [])

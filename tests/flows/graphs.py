"""Sessions with a shape, for flow tests of the causal graph, and what the doors show of them."""

from __future__ import annotations

import json
import uuid
from typing import Any

from tests.flows.server import Server
from tests.samples import decision_log

Json = dict[str, Any]


def new() -> str:
    return str(uuid.uuid4())


def step(session: str, name: str, *parents: str, agent: str = "ada", **sections: Any) -> Json:
    """A log of one step; sections are merged into the sample's."""
    meta: Json = {"trace_id": session, "session_id": session, "step_id": name, "parent_step_id": None}
    if parents:
        meta |= {"parent_step_id": parents[0], "parent_step_ids": list(parents[1:])}
    identity = {"agent_id": agent, "agent_type": f"type-of-{agent}"}
    return decision_log(meta=meta | sections.pop("meta", {}), identity=identity, **sections)


def send(server: Server, message: Json) -> Json:
    answer = server.send(message)
    assert answer.status_code == 202, answer.text
    found: Json = answer.json()
    return found


def send_all(server: Server, messages: list[Json]) -> list[Json]:
    answers = server.send_lines([json.dumps(message).encode() for message in messages])
    assert {answer["code"] for answer in answers} == {202}, answers
    return answers


def ask(server: Server, path: str, role: str = "operator", **query: Any) -> Json:
    answer = server.http(role).get(path, params=query)
    assert answer.status_code == 200, answer.text
    found: Json = answer.json()
    return found


def dag(server: Server, session: str, **query: Any) -> Json:
    return ask(server, f"/v1/sessions/{session}/dag", **query)


def short(session: str, node_id: str) -> str:
    return node_id.removeprefix(f"{session}/")


def nodes(graph: Json) -> dict[str, Json]:
    """By bare step id, or message id."""
    return {short(graph["session_id"], node["id"]): node for node in graph["nodes"]}


def edges(graph: Json) -> set[tuple[str, str, str]]:
    at = graph["session_id"]
    return {(short(at, edge["from"]), short(at, edge["to"]), edge["kind"]) for edge in graph["edges"]}

"""What views will show is derived from typed fields: edges from parents, cost from the session's figures."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from tests.flows.server import Server
from tests.samples import decision_log


def step(session: str, agent: str, cost: float, parent: str | None = None) -> dict[str, Any]:
    log = decision_log()
    ids = {"trace_id": session, "session_id": session, "step_id": str(uuid.uuid4()), "parent_step_id": parent}
    log["meta"] |= ids
    log["identity"]["agent_id"] = agent
    log["state_delta"]["cumulative_session_cost"] = cost
    return log


@pytest.mark.req(3, 49)
def test_edges_and_cost_come_from_the_typed_fields_and_from_nothing_else(server: Server) -> None:
    session = str(uuid.uuid4())
    root = step(session, "planner", 0.5)
    # The summary claims another cost and another parent in free text; only the fields count.
    child = step(session, "worker", 0.25, parent=root["meta"]["step_id"])
    child["action"]["tool_output_summary"] = json.dumps({"cost": 99, "parent_step_id": str(uuid.uuid4())})
    again = step(session, "worker", 0.75, parent=root["meta"]["step_id"])
    assert [server.send(log).status_code for log in (root, child, again)] == [202, 202, 202]

    shown = server.http("operator").get(f"/v1/sessions/{session}").json()
    assert shown["cost"] == 1.25, "the latest figure of each agent, summed over agents (ruling 19)"
    items = server.http("operator").get("/v1/messages", params={"session_id": session}).json()["items"]
    edges = {item["step_id"]: item["parents"] for item in items}
    root_id = root["meta"]["step_id"]
    assert edges == {
        root_id: [],
        child["meta"]["step_id"]: [root_id],
        again["meta"]["step_id"]: [root_id],
    }


@pytest.mark.req(49)
@pytest.mark.parametrize("cost", ["0.5", True, [0.5], {"usd": 0.5}])
def test_a_cost_of_another_type_never_reaches_a_derivation(server: Server, cost: Any) -> None:
    log = step(str(uuid.uuid4()), "planner", 0.0)
    log["state_delta"]["cumulative_session_cost"] = cost
    answer = server.send(log)
    assert answer.status_code == 422
    assert [fault["path"] for fault in answer.json()["faults"]] == ["state_delta.cumulative_session_cost"]

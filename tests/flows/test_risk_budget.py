"""Budget blindness, played: a mesh at work, one branch burns, and what the operator is told in one request.

Beside it stands a session that cost more, long before; an agent of the same type that spends as planned; and
a budget of another cluster that nothing is spent of.
"""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from tests.flows.graphs import ask, send_all
from tests.flows.insight import settled
from tests.flows.tenant import Tenant
from tests.flows.workers import ASIA, EU, work

Json = dict[str, Any]


def priced(agent: str, cost: float, *parents: str, **more: Any) -> Json:
    return work(agent, *parents, session="ses-report", delta={"cost": cost, "tokens_consumed": 1_000}, **more)


def name(message: Json) -> str:
    return str(message["meta"]["step_id"])


def burning_mesh() -> tuple[list[Json], str]:
    """Seven agents in one session: three branches below one plan, one of which rewrites again and again."""
    plan = priced("planner-1", 0.02, kind="planner", intent="Write the NVDA report")
    lines, heads = [plan], []
    for number, (agent, kind) in enumerate(
        (("reader-1", "reader"), ("analyst-1", "analyst"), ("writer-1", "writer"))
    ):
        head = priced(agent, 0.05, name(plan), kind=kind, intent=f"Part {number} of the report")
        lines.append(head)
        heads.append(head)
        lines += [priced(f"{agent}-helper", 0.02, name(head), kind=kind) for _ in range(3)]
    burner = heads[2]
    before = name(burner)
    for draft in range(12):
        step = priced("writer-2", 0.4, before, kind="writer", intent=f"Draft {draft} {uuid.uuid4()}")
        lines.append(step)
        before = name(step)
    return lines, name(burner)


@pytest.mark.req(105, 153, 243)
def test_a_burning_branch_is_told_with_its_rate_its_agent_and_the_time_to_its_cap(
    either_tenant: Tenant,
) -> None:
    """S238, S239, S240: and nothing is told of who spends as planned."""
    server, door = either_tenant, either_tenant.http("operator")
    # A look-alike: dearer than all that follows, but its cost is reported as none of this mesh's budgets.
    send_all(server, [work("archivist", session="ses-archive", cluster=ASIA, delta={"cost": 9.0})])
    for cap in (
        {"scope": "session", "target": "ses-report", "soft": 6, "hard": 10},
        {"scope": "agent", "target": "writer-1", "hard": 5},
        {"scope": "cluster", "target": "azure-westeurope", "hard": 1},
    ):
        assert door.put("/v1/budgets", json=cap).status_code == 200
    lines, burner = burning_mesh()
    send_all(server, lines)
    settled(server)

    received = ask(server, "/v1/costs/burn")
    first = received["budgets"][0]
    # Which budget: the session's, and when its caps are reached at this rate.
    assert (first["scope"], first["target"]) == ("session", "ses-report")
    total = round(0.02 + 3 * (0.05 + 3 * 0.02) + 12 * 0.4, 6)
    assert first["spent"] == total == 5.15
    assert 0.9 * total / 5 < first["per_min_5m"] <= round(total / 5, 6)
    assert first["soft_in_s"] == pytest.approx((6 - total) / first["per_min_5m"] * 60, rel=1e-3)
    assert first["hard_in_s"] == pytest.approx((10 - total) / first["per_min_5m"] * 60, rel=1e-3)
    # Which agent, and which branch.
    hottest = first["hottest"]
    assert (hottest["session_id"], hottest["agent_id"]) == ("ses-report", "writer-2")
    assert hottest["cost_5m"] == 4.8
    branch = hottest["branch"]
    assert branch["agents"][0] == {"agent_id": "writer-2", "cost": 4.8}
    assert branch["agent_id"] == "writer-2" and branch["intent"].startswith("Draft 0 ")
    assert (branch["steps"], branch["cost_5m"], branch["parent"]) == (12, 4.8, burner)
    # Nobody else is accused: the sibling of its type burns little, the other budget nothing at all.
    others = {row["target"]: row for row in received["budgets"][1:]}
    assert others["writer-1"]["per_min_5m"] <= 0.01 and others["writer-1"]["hard_in_s"] > 3_600
    assert (others["azure-westeurope"]["hard_in_s"], others["azure-westeurope"]["hottest"]) == (None, None)

    # The same from the session's page: the heat lies below the writer, the other branches are cold.
    costs = ask(server, hottest["costs"])
    heat = {one["step_id"]: one["branch_cost"] for one in costs["branches"]}
    siblings = sorted(
        (one for one in costs["branches"] if one["depth"] == 1), key=lambda one: one["branch_cost"]
    )
    assert [round(one["branch_cost"], 6) for one in siblings] == [0.11, 0.11, 4.91]
    assert siblings[-1]["step_id"] == burner and heat[burner] == 4.91
    assert costs["hottest"][1] == burner and len(costs["hottest"]) == 14
    # And by agent, and in the grid.
    agents = ask(server, "/v1/costs", by="agent")["items"]
    assert [one["id"] for one in agents[:2]] == ["archivist", "writer-2"]
    grid = ask(server, "/v1/costs/heatmap", by="session")
    assert {row["id"]: row["total"] for row in grid["rows"]} == {"ses-archive": 9.0, "ses-report": 5.15}

    # The cap holds when it is reached, and the operator is told that it is.
    assert server.send(priced("writer-2", 4.9, burner, kind="writer", cluster=EU)).status_code == 402
    held = server.send(priced("writer-2", 4.0, burner, kind="writer", cluster=EU))
    assert (held.status_code, held.json()["state"]) == (202, "held")  # beyond the soft cap
    settled(server)
    again = ask(server, "/v1/costs/burn")["budgets"][0]
    assert (again["spent"], again["soft_in_s"]) == (9.15, 0.0) and again["hard_in_s"] > 0

"""Budgets, from the operator's door to the agent's answer, with a real gateway."""

from __future__ import annotations

import json
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from tests.flows.fleet import named
from tests.flows.server import Server
from tests.flows.tenant import Tenant
from tests.samples import decision_log, envelope
from tests.samples import shown as shown_as

Json = dict[str, Any]


@pytest.fixture
def server(either_tenant: Tenant) -> Tenant:
    """On both databases; the budgets of a test are nobody else's."""
    return either_tenant


def log(agent: str, session: str = "", **state_delta: Any) -> Json:
    return decision_log(
        meta={"step_id": str(uuid.uuid4()), "session_id": session or f"ses-{agent}"},
        identity={"agent_id": agent},
        state_delta={"cumulative_session_cost": None, **state_delta},
    )


def put(server: Server, scope: str, target: str | None = None, **caps: Any) -> Json:
    answer = server.http("operator").put("/v1/budgets", json={"scope": scope, "target": target, **caps})
    assert answer.status_code == 200, answer.text
    made: Json = answer.json()
    return made


def shown(server: Server, budget_id: str) -> Json:
    items = server.http("viewer").get("/v1/budgets").json()["items"]
    found: Json = next(item for item in items if item["budget_id"] == budget_id)
    return found


def received(server: Server, event_type: str) -> list[Json]:
    items = server.http("operator").get("/v1/audit/tenant", params={"limit": 200}).json()["items"]
    return [item["body"] for item in items if item["body"]["event_type"] == event_type]


@pytest.mark.req(134)
def test_beyond_the_hard_cap_the_refusal_names_it_and_an_operator_can_raise_it_s154(server: Server) -> None:
    agent = named()
    budget = put(server, "agent", agent, hard=1.0)
    assert server.send(log(agent, cumulative_session_cost=0.75)).status_code == 202
    body = log(agent, cumulative_session_cost=1.25)
    answer = server.send(body)
    assert answer.status_code == 402
    refused = answer.json()
    assert (refused["status"], refused["reason"]) == ("refused", "budget_exceeded")
    assert refused["cap"] == f"agent:{agent} hard 1"
    assert "PUT /v1/budgets" in refused["detail"] and agent in refused["detail"]
    assert server.send(body).json() == refused
    archived = server.http("operator").get(f"/v1/messages/{body['meta']['step_id']}").json()
    assert (archived["state"], archived["message"]) == ("refused", shown_as(body, 0.5))
    event = received(server, "budget_exceeded")[0]
    assert (event["spent"], event["cost"], event["hard"]) == ("0.75", "0.5", "1")
    before = shown(server, budget["budget_id"])
    assert (before["spent"], before["remaining"], before["share"]) == (0.75, 0.25, 0.75)
    raised = put(server, "agent", agent, hard=2.0)
    assert raised["budget_id"] == budget["budget_id"]
    assert (raised["spent"], raised["remaining"]) == (0.75, 1.25)
    assert server.send(log(agent, cumulative_session_cost=1.25)).status_code == 202
    assert shown(server, budget["budget_id"])["spent"] == 1.25
    sides = [
        (body["before"] and body["before"]["hard"], body["after"]["hard"])
        for body in received(server, "budget_set")
    ]
    assert sides[:2] == [("1", "2"), (None, "1")]


def test_two_senders_at_once_never_pass_a_hard_cap_s154(server: Server) -> None:
    budget = put(server, "tenant", hard=10.0)
    agents = [named() for _ in range(2)]
    headers = {"Authorization": f"Bearer {server.key('agent')}", "content-type": "application/json"}

    def run(agent: str) -> list[int]:
        with httpx2.Client(base_url=server.url, headers=headers, timeout=30, trust_env=False) as http:
            bodies = [json.dumps(log(agent, cost=0.3)).encode() for _ in range(40)]
            return [http.post("/v1/messages", content=body).status_code for body in bodies]

    with ThreadPoolExecutor(2) as pool:
        codes = [code for answers in pool.map(run, agents) for code in answers]
    assert (codes.count(202), codes.count(402)) == (33, 47)
    assert shown(server, budget["budget_id"])["spent"] == 9.9


def test_what_is_spent_outlives_a_kill_s154(either_fresh_server: Server) -> None:
    server, agent = either_fresh_server, named()
    budget = put(server, "agent", agent, hard=1.0)
    assert server.send(log(agent, cost=0.9)).status_code == 202
    server.restart(kill=True)
    assert server.send(log(agent, cost=0.2)).status_code == 402
    assert server.send(log(agent, cost=0.1)).status_code == 202
    assert shown(server, budget["budget_id"])["remaining"] == 0


def test_beyond_the_soft_cap_one_message_waits_for_a_person_s155(server: Server) -> None:
    agent = named()
    budget = put(server, "agent", agent, soft=1.0, hard=9.0, period="daily")
    states = [server.send(log(agent, cost=0.6)).json()["state"] for _ in range(3)]
    assert states == ["forwarded", "held", "forwarded"]
    found = shown(server, budget["budget_id"])
    assert found["warned_by"] is not None and found["spent"] == 1.8
    (warning,) = [body for body in received(server, "budget_warning") if body["agent_id"] == agent]
    assert (warning["soft"], warning["spent"], warning["cost"]) == ("1", "0.6", "0.6")
    (gate,) = [body for body in received(server, "gate_opened") if body["agent_id"] == agent]
    assert [reason["reason"] for reason in gate["reasons"]] == ["budget"]
    again = put(server, "agent", agent, soft=2.0, hard=9.0, period="daily")
    assert again["warned_by"] is None
    assert server.send(log(agent, cost=0.6)).json()["state"] == "held"


@pytest.mark.req(134)
def test_sessions_agents_clusters_and_the_tenant_have_caps_s157(server: Tenant) -> None:
    session, alice, bob = named("ses"), named("alice"), named("bob")
    put(server, "session", "*", hard=1.0)
    assert server.send(log(alice, session, cumulative_session_cost=0.6)).status_code == 202
    assert server.send(log(bob, session, cumulative_session_cost=0.6)).json()["cap"] == "session:* hard 1"
    assert server.send(log(bob, cumulative_session_cost=0.6)).status_code == 202
    (item,) = server.http("viewer").get("/v1/budgets").json()["items"]
    assert item["spent"] >= 0.6 and item["spender"] is not None
    put(server, "agent", alice, hard=0.7)  # it has spent 0.6 already
    assert server.send(log(alice, cumulative_session_cost=0.2)).json()["cap"] == f"agent:{alice} hard 0.7"
    put(server, "cluster", "aws-eu-central-1-mesh-04", hard=0.05)
    answer = server.send(log(bob, named("ses"), cost=0.1)).json()
    assert answer["cap"] == "cluster:aws-eu-central-1-mesh-04 hard 0.05"
    elsewhere = log(bob, named("ses"), cost=0.1)
    elsewhere["meta"]["cluster_id"] = "elsewhere"
    assert server.send(elsewhere).status_code == 402, "another name for where it runs evades no cap"
    elsewhere = log(named("cyd"), named("ses"), cost=0.1)
    elsewhere["meta"]["cluster_id"] = "elsewhere"
    assert server.send(elsewhere).status_code == 202
    put(server, "tenant", hard=0.0)
    assert server.send(log(named(), cost=0.01)).json()["cap"] == f"tenant:{server.tenant_id} hard 0"
    assert server.send(log(named())).status_code == 202  # it reports no cost
    assert server.send(envelope("heartbeat")).status_code == 202


def test_a_budget_with_a_period_tells_when_it_begins_anew_s157(server: Server) -> None:
    daily = put(server, "tenant", hard=5.0, period="daily")
    monthly = put(server, "tenant", hard=50.0, period="monthly")
    assert daily["budget_id"] != monthly["budget_id"]
    assert daily["resets_at"].endswith("T00:00:00.000000000Z")
    assert monthly["resets_at"].endswith("-01T00:00:00.000000000Z")
    assert monthly["resets_at"] > monthly["period_started_at"]
    server.send(log(named(), cost=1.0))
    assert [shown(server, one["budget_id"])["spent"] for one in (daily, monthly)] == [1.0, 1.0]


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ({"scope": "planet", "hard": 1}, "scope: must be one of agent, cluster, session, tenant"),
        ({"scope": "tenant", "hard": 1, "period": "weekly"}, "period: must be one of daily, monthly, none"),
        ({"scope": "tenant"}, "soft cap, a hard cap or both"),
        ({"scope": "tenant", "soft": None, "hard": None}, "soft cap, a hard cap or both"),
        ({"scope": "tenant", "hard": -1}, "hard: must be a number from 0 to 1000000000000"),
        ({"scope": "tenant", "soft": -0.01, "hard": 1}, "soft: must be a number from 0"),
        ({"scope": "tenant", "hard": "NaN"}, "hard"),
        ({"scope": "tenant", "hard": "Infinity"}, "hard"),
        ({"scope": "tenant", "hard": 1e300}, "hard: must be a number from 0"),
        ({"scope": "tenant", "soft": 2, "hard": 1}, "must not exceed the hard cap"),
        ({"scope": "tenant", "target": "tnt_other", "hard": 1}, "has no target"),
        ({"scope": "agent", "hard": 1}, "target must name the agent"),
        ({"scope": "agent", "target": "", "hard": 1}, "target"),
        ({"scope": "cluster", "target": "*", "hard": 1}, "name a cluster"),
        ({"scope": "session", "target": "*", "hard": 1, "period": "daily"}, "its period must be none"),
        ({"scope": "tenant", "hrad": 1}, "not valid"),
        ({"hard": 1}, "not valid"),
    ],
)
def test_a_budget_that_is_none_is_refused_with_a_sentence_s159(server: Server, body: Json, word: str) -> None:
    answer = server.http("operator").put("/v1/budgets", json=body)
    assert answer.status_code == 422, answer.text
    assert word in answer.json()["detail"]
    assert server.http("operator").get("/v1/budgets").json()["items"] == []


def test_a_number_that_is_none_is_not_json_s159(server: Server) -> None:
    for text in ("NaN", "Infinity", "1e999"):
        body = f'{{"scope": "tenant", "hard": {text}}}'
        answer = server.http("operator").put(
            "/v1/budgets", content=body, headers={"content-type": "application/json"}
        )
        assert answer.status_code in (400, 422), answer.text
    assert server.http("operator").get("/v1/budgets").json()["items"] == []


def test_only_operators_set_budgets_and_whoever_reads_sees_them_s158(server: Server) -> None:
    budget = put(server, "tenant", soft=1.0)
    assert (budget["remaining"], budget["share"]) == (None, 0.0)
    for role in ("viewer", "auditor", "approver"):
        http = server.http(role)
        assert shown(server, budget["budget_id"])["soft"] == 1.0
        assert http.put("/v1/budgets", json={"scope": "tenant", "hard": 1}).status_code == 403
        assert http.delete(f"/v1/budgets/{budget['budget_id']}").status_code == 403
    assert server.http("agent").get("/v1/budgets").status_code == 403
    http = server.http("operator")
    assert http.delete(f"/v1/budgets/{budget['budget_id']}").json() == {
        "budget_id": budget["budget_id"],
        "removed": True,
    }
    assert http.delete(f"/v1/budgets/{budget['budget_id']}").status_code == 404
    assert received(server, "budget_set")[0]["after"] is None


@pytest.mark.parametrize("target", ["its name", "*"])
@pytest.mark.parametrize("zero", ["cost", "cumulative_session_cost"])
def test_of_two_reports_of_one_cost_the_larger_counts_s156(server: Server, zero: str, target: str) -> None:
    """S156: neither a cost of nothing beside a rising total nor a total that stays hides the other."""
    agent = named()
    put(server, "agent", agent if target == "its name" else "*", hard=1.0)
    sent: list[Json] = [
        {"cost": 0, "cumulative_session_cost": total} if zero == "cost" else
        {"cost": 0.4, "cumulative_session_cost": 0}
        for total in (0.4, 0.8, 1.2)
    ]  # fmt: skip
    codes = [server.send(log(agent, **delta)).status_code for delta in sent]
    assert codes == [202, 202, 402]

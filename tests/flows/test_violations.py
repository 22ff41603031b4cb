"""Schema violations by group, a time's cost by branch and within one agent, and facts marked false."""

from __future__ import annotations

import uuid

import pytest

from tests.flows.graphs import ask
from tests.flows.insight import settled
from tests.flows.tenant import Tenant
from tests.flows.test_costs import mesh, spend
from tests.flows.test_risk_hallucination import Story
from tests.samples import decision_log


def breaks(server: Tenant, agent: str, version: str, secret: str) -> None:
    log = decision_log(identity={"agent_id": agent, "capability_version": version})
    del log["cognition"]["intent"]
    log["cognition"]["reasoning_chain"] = [secret]
    assert server.send(log).status_code == 422


@pytest.mark.req(123)
def test_violations_are_told_by_agent_version_and_reason_and_never_what_was_said_s706_s707(
    either_tenant: Tenant,
) -> None:
    """S706, S707: counts over time, the newest with its hash; a filter counts only what fits."""
    server, secret = either_tenant, f"secret-{uuid.uuid4().hex}"
    for agent, version in (("bad-1", "v3.0.0"), ("bad-1", "v3.0.0"), ("bad-2", "v2.0.0")):
        breaks(server, agent, version, secret)
    server.send(b"{}")
    server.send(decision_log())
    text = server.http("operator").get("/v1/violations").text
    assert secret not in text
    received = ask(server, "/v1/violations")
    assert (received["total"], sum(received["counts"]), received["truncated"]) == (4, 4, False)
    first = received["groups"][0]
    assert (first["agent_id"], first["capability_version"], first["count"]) == ("bad-1", "v3.0.0", 2)
    assert "cognition.intent" in first["reason"]
    assert {row["agent_id"] for row in received["groups"]} == {"bad-1", "bad-2", None}
    assert received["newest"][0]["raw_payload_hash"].startswith("sha256:")
    assert [row["sequence_number"] for row in received["newest"]] == sorted(
        (row["sequence_number"] for row in received["newest"]), reverse=True
    )
    assert ask(server, "/v1/violations", agent="bad-2")["total"] == 1
    assert ask(server, "/v1/violations", version="v3.0.0")["total"] == 2
    assert ask(server, "/v1/violations", version="none")["total"] == 1
    assert ask(server, "/v1/violations", reason="COGNITION.intent")["total"] == 3
    assert ask(server, "/v1/violations", until="2020-01-01T00:00:00Z")["groups"] == []
    for query in (
        {"since": "2026-01-01T00:00:00Z", "until": "2025-01-01T00:00:00Z"},
        {"since": "2020-01-01T00:00:00Z"},
    ):
        assert server.http("operator").get("/v1/violations", params=query).status_code == 400


@pytest.mark.req(222)
def test_a_time_is_told_by_branch_and_adds_up_s701(either_tenant: Tenant) -> None:
    """S701: forks and roots of several sessions; what is not listed is told as one sum."""
    server = either_tenant
    root = spend(server, "planner", 1.0, session="ses-f")
    left = spend(server, "left", 2.0, root, session="ses-f")
    spend(server, "left", 4.0, left, session="ses-f")
    spend(server, "right", 8.0, root, session="ses-f")
    spend(server, "other", 0.5, session="ses-g")
    settled(server)
    received = ask(server, "/v1/costs/branches")
    assert [(row["agent_id"], row["cost"], row["steps"]) for row in received["items"]] == [
        ("right", 8.0, 1),
        ("left", 6.0, 2),
        ("planner", 1.0, 1),
        ("other", 0.5, 1),
    ]
    assert (received["total"], received["elsewhere"], received["sessions_read"]) == (15.5, 0.0, 2)
    assert received["items"][0]["share"] == round(8 / 15.5, 6)
    some = ask(server, "/v1/costs/branches", limit=1)
    assert (some["items_count"], some["elsewhere"]) == (4, 7.5)
    assert ask(server, "/v1/costs/branches", session="ses-g")["total"] == 0.5
    assert ask(server, "/v1/costs/branches", until="2020-01-01T00:00:00Z")["items"] == []


@pytest.mark.req(222)
def test_an_agents_costs_are_told_by_session_and_a_sessions_by_agent_s708(either_tenant: Tenant) -> None:
    """S708: a drill-down adds up to the line it came from; any other pair is refused in words."""
    server = either_tenant
    mesh(server)
    mine = ask(server, "/v1/costs", by="session", agent="writer")
    assert [(row["id"], row["cost"], row["messages"]) for row in mine["items"]] == [
        ("ses-a", 4.0, 1),
        ("ses-b", 2.0, 1),
    ]
    assert (mine["total"]["cost"], mine["items"][0]["tokens"], mine["next_cursor"]) == (6.0, 100, None)
    within = ask(server, "/v1/costs", by="agent", session="ses-b")
    assert {row["id"]: row["share"] for row in within["items"]} == {
        "reader": round(3.5 / 5.5, 6),
        "writer": round(2 / 5.5, 6),
    }
    assert ask(server, "/v1/costs", by="session", agent="nobody")["items"] == []
    for query in (
        {"by": "tool", "agent": "writer"},
        {"by": "agent", "agent": "a"},
        {"by": "agent", "agent": "a", "session": "s"},
    ):
        assert server.http("operator").get("/v1/costs", params=query).status_code == 400


def test_facts_marked_false_are_listed_by_themselves_the_last_first_s709(either_tenant: Tenant) -> None:
    """S709: whatever else was said since; who takes a mark back takes it from the list."""
    story, people = Story(either_tenant), either_tenant.http("operator")
    story.say("a", "alpha", added_to_memory=["The limit is 5 EUR", "The fee is 7 EUR", "The tax is 9 EUR"])
    settled(either_tenant)
    facts = {row["text"]: row["fact_id"] for row in ask(either_tenant, "/v1/facts")["items"]}
    for text in ("The limit is 5 EUR", "The tax is 9 EUR"):
        assert people.post(f"/v1/facts/{facts[text]}/false", json={}).status_code == 201
    marked = ask(either_tenant, "/v1/facts", marked=True)["items"]
    assert [row["text"] for row in marked] == ["The tax is 9 EUR", "The limit is 5 EUR"]
    assert all(row["marked_false"] for row in marked)
    people.delete(f"/v1/facts/{facts['The tax is 9 EUR']}/false")
    assert [row["text"] for row in ask(either_tenant, "/v1/facts", marked=True)["items"]] == [
        "The limit is 5 EUR"
    ]

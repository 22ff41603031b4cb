"""The risk of drift: two agents disagree on a value; the operator sees both sides and picks the true one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.flows.insight import settled
from tests.flows.server import Server
from tests.flows.tenant import Tenant
from tests.flows.test_risk_hallucination import Story, inbox
from tests.samples import decision_log

Json = dict[str, Any]


def drift(server: Server, **params: Any) -> Json:
    answer = server.http("operator").get("/v1/drift", params=params)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


@pytest.mark.req(102)
def test_two_agents_that_disagree_are_shown_with_both_sides_and_reconciled_by_a_person(
    either_tenant: Tenant,
) -> None:
    """S257, S258, S261: nothing resolves itself; the value is injected, and stating it ends the conflict."""
    story = Story(either_tenant)
    people = either_tenant.http("operator")
    story.say("a", "alpha", added_to_memory=["The refund limit is 500 EUR", "NVDA fiscal year ends Jan 28"])
    story.say(
        "b", "beta", added_to_memory=["The refund limit is 800 EUR", "NVDA's fiscal year ends January 28"]
    )
    # Not in conflict: other subjects, the same value, another session and no cluster, an opinion, a hedge.
    story.say("c", "gamma", added_to_memory=["The refund limit is 500 eur", "The order limit is 900 EUR"])
    story.say("d", "delta", "far", added_to_memory=["The refund limit is 700 EUR"])
    story.say("e", "epsilon", added_to_memory=["The refund limit is probably 100 EUR", "Refunds are hard"])
    settled(either_tenant)
    (conflict,) = drift(either_tenant)["conflicts"]
    scope = f"session:{story.sessions['desk']}"
    assert (conflict["subject"], conflict["scope"], conflict["reconciled"]) == (
        "the refund limit",
        scope,
        None,
    )
    sides = {side["value"]: [one["agent_id"] for one in side["holders"]] for side in conflict["sides"]}
    assert sides == {"500 EUR": ["alpha", "gamma"], "800 EUR": ["beta"]}
    steps = {one["agent_id"]: one["step"] for side in conflict["sides"] for one in side["holders"]}
    assert steps["beta"] == f"{story.sessions['desk']}/b"
    ruling = {"subject": conflict["subject"], "scope": scope, "value": "500 EUR"}
    assert people.post("/v1/drift/reconcile", json=ruling).json()["reason"] == "confirm"
    assert inbox(story, "beta") == []
    done = people.post("/v1/drift/reconcile", json=ruling | {"confirm": True})
    assert (done.status_code, done.json()["status"]) == (202, "reconciled"), done.text
    assert [one["agent_id"] for one in done.json()["agents"]] == ["beta"]
    (received,) = inbox(story, "beta")
    assert received["kind"] == "inject" and "500 EUR" in received["body"]["prompt"]
    assert inbox(story, "alpha") == inbox(story, "delta") == []
    # It still holds the other value, and it was told: nothing more is sent.
    (still,) = drift(either_tenant)["conflicts"]
    assert still["reconciled"]["value"] == "500 EUR"
    again = people.post("/v1/drift/reconcile", json=ruling | {"confirm": True})
    assert (again.status_code, again.json()["status"]) == (200, "already_reconciled")
    assert len(inbox(story, "beta")) == 1
    story.say("f", "beta", added_to_memory=["The refund limit is 500 EUR"])
    settled(either_tenant)
    assert drift(either_tenant)["conflicts"] == []
    # It changes its mind, and back: what was said last counts, also in words it has used before.
    story.say("g", "beta", added_to_memory=["The refund limit is 800 EUR"])
    settled(either_tenant)
    assert len(drift(either_tenant)["conflicts"]) == 1
    events = either_tenant.http("admin").get("/v1/audit/tenant", params={"limit": 1_000})
    kinds = [event["body"]["event_type"] for event in events.json()["items"]]
    assert kinds.count("drift_reconciled") == 1
    assert "refund limit" not in events.text


@pytest.mark.req(102)
def test_agents_of_one_cluster_conflict_across_sessions(either_tenant: Tenant) -> None:
    """S258"""
    story = Story(either_tenant)
    story.say("a", "alpha", "desk", cluster="eu-1", added_to_memory=["max retries: 3"])
    story.say("b", "beta", "plan", cluster="eu-1", added_to_memory=['{"max_retries": 5}'])
    story.say("c", "gamma", "far", cluster="us-1", added_to_memory=["max retries = 7"])
    settled(either_tenant)
    (conflict,) = drift(either_tenant)["conflicts"]
    assert conflict["scope"] == "cluster:eu-1"
    assert {side["value"] for side in conflict["sides"]} == {"3", "5"}
    assert drift(either_tenant, cluster="us-1")["conflicts"] == []
    people = either_tenant.http("operator")
    for body, code in (
        ({"subject": "max retries", "scope": "cluster:us-1", "value": "3", "confirm": True}, 409),
        ({"subject": "max retries", "scope": "cluster:eu-1", "value": "maybe 3", "confirm": True}, 422),
        ({"subject": "max retries", "scope": "everywhere", "value": "3", "confirm": True}, 422),
        ({"subject": "", "scope": "cluster:eu-1", "value": "3", "confirm": True}, 422),
    ):
        answer = people.post("/v1/drift/reconcile", json=body)
        assert answer.status_code == code, answer.text


def test_an_agent_unlike_its_kind_is_shown_with_its_distance(either_tenant: Tenant) -> None:
    """S259, S260: enough calls, enough peers, a distance beyond the threshold."""
    lines = []
    tools = {
        "one": ["search"] * 25,
        "two": ["search"] * 24 + ["fetch"],
        "odd": ["shell"] * 22,
        "few": ["shell"],
    }
    for agent, calls in tools.items():
        for number, tool in enumerate(calls):
            log = decision_log(
                meta={"session_id": f"s-{agent}", "step_id": str(number), "parent_step_id": None},
                identity={"agent_id": agent, "agent_type": "crawler"},
                action={"tool_call": tool, "status": "success"},
            )
            lines.append(log)
    for log in lines:
        assert either_tenant.send(log).status_code == 202
    settled(either_tenant)
    (odd,) = drift(either_tenant)["divergences"]
    assert (odd["agent_id"], odd["peers"], odd["calls"]) == ("odd", 2, 22)
    assert odd["distance"] > odd["threshold"]
    assert odd["tools"] == {"shell": 1.0}

"""Work goes to those who were given it: an operator's grants, and what an agent only claims (A4)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.flows.fleet import ack, agent_of, beat, inbox, named, received, say, until
from tests.flows.server import Server, observatory
from tests.flows.tenant import Tenant

Json = dict[str, Any]


@pytest.fixture
def strict(either_tenant: Tenant) -> Tenant:
    """A tenant where only what was granted counts."""
    answer = either_tenant.http("operator").put("/v1/settings/routing", json={"capabilities": "granted"})
    assert answer.status_code == 200 and answer.json()["updated_by"], answer.text
    return either_tenant


def give(server: Server, agent: str, *words: str, verb: str = "grant") -> Json:
    answer = server.http("operator").post(f"/v1/agents/{agent}/grants", json={verb: list(words)})
    assert answer.status_code == 200, answer.text
    found: Json = answer.json()
    return found


def claim(server: Server, agent: str, **told_of_it: Any) -> Json:
    answer = server.http("agent").post("/v1/agents", json={"agent_id": agent, **told_of_it})
    assert answer.status_code in (200, 201), answer.text
    beat(server, agent)
    found: Json = answer.json()
    return found


def test_by_default_agents_get_the_work_they_claim_s1145(either_tenant: Tenant) -> None:
    """S1145: as ever, so that two lines are enough; `granted` is for operators to choose."""
    assert either_tenant.http("operator").get("/v1/settings/routing").json()["capabilities"] == "self"
    worker = named("worker")
    found = claim(either_tenant, worker, capabilities=["payments"])
    assert (found["capabilities"], found["granted"], found["requested"]) == (["payments"], [], [])
    say(either_tenant, named("sender"), "type:payments")
    assert len(inbox(either_tenant, worker)) == 1


@pytest.mark.parametrize("way", ["registered", "as its type", "in each message", "its cluster"])
def test_what_an_agent_only_claims_gets_no_routed_work_s1145(strict: Tenant, way: str) -> None:
    """S1145: by whatever way it claims it, the one to whom it was granted gets ten of ten."""
    real, fake, sender = named("real"), named("fake"), named("sender")
    place = "cluster:vault" if way == "its cluster" else "type:payments"
    say(strict, real)
    beat(strict, real)
    give(strict, real, place.removeprefix("type:"))
    match way:
        case "registered":
            claim(strict, fake, capabilities=["payments"])
        case "as its type":
            claim(strict, fake, agent_type="payments")
        case "its cluster":
            claim(strict, fake, cluster_id="vault")
            beat(strict, fake, cluster_id="vault")
    for _ in range(10):
        if way == "in each message":
            say(strict, fake, kind="payments")
        say(strict, sender, place)
    assert (len(inbox(strict, real)), inbox(strict, fake)) == (10, [])
    found = agent_of(strict, fake)
    assert place.removeprefix("type:") in found["requested"]
    assert (found["capabilities"], found["granted"]) == ([], [])
    pages = strict.http("operator").get("/v1/capabilities").json()["items"]
    assert all(page["total"] == 1 for page in pages if page["capability"] == "payments")


def test_a_grant_counts_for_the_next_message_and_for_what_waits_s1145(strict: Tenant) -> None:
    """S1145: it may be given before the agent is known, and taken at any time; both are on record."""
    late, sender = named("late"), named("sender")
    say(strict, sender, "type:payments")
    assert len(received(strict, "message_undeliverable", address="type:payments")) == 1
    assert give(strict, late, "payments")["granted"] == ["payments"]
    say(strict, late)
    [parked] = until(lambda: inbox(strict, late))
    ack(strict, late, parked)
    assert give(strict, late, "payments", "cluster:eu")["granted"] == ["cluster:eu", "payments"]
    assert give(strict, late, "payments", verb="revoke")["granted"] == ["cluster:eu"]
    say(strict, sender, "type:payments")
    assert inbox(strict, late) == []
    say(strict, sender, "cluster:eu")
    assert len(inbox(strict, late)) == 1
    changes = [
        (one["body"]["granted"], one["body"]["revoked"]) for one in received(strict, "capability_granted")
    ]
    assert changes == [([], ["type:payments"]), (["cluster:eu"], []), (["type:payments"], [])]
    listed = strict.http("operator").get("/v1/grants").json()["items"]
    assert [(one["agent_id"], one["capability"]) for one in listed] == [(late, "cluster:eu")]


def test_what_an_evicted_agent_leaves_goes_only_to_who_was_given_it_s1145(strict: Tenant) -> None:
    """S1145: re-routing asks the grants too."""
    real, fake, second = named("real"), named("fake"), named("second")
    say(strict, real, kind="payments")
    give(strict, real, "payments")
    claim(strict, fake, agent_type="payments", capabilities=["payments"])
    say(strict, named("sender"), "type:payments")
    say(strict, named("sender"), real)
    assert len(inbox(strict, real)) == 2
    assert strict.http("operator").post(f"/v1/agents/{real}/evict", json={}).status_code == 200
    until(lambda: received(strict, "message_undeliverable", address="type:payments"))
    assert inbox(strict, fake) == []
    say(strict, second)
    give(strict, second, "payments")
    until(lambda: len(inbox(strict, second)) == 2)
    assert inbox(strict, fake) == []


def test_weights_by_cluster_go_by_granted_clusters_s1145(strict: Tenant) -> None:
    """S1145: who was given the capability does not draw the share of a cluster it only claims."""
    here, there = named("here"), named("there")
    for agent, cluster in ((here, "blue"), (there, "green")):
        say(strict, agent, cluster=cluster)
        beat(strict, agent)
        give(strict, agent, "payments", f"cluster:{cluster}")
    weights = {"capability": "payments", "weights": {"cluster:blue": 1, "cluster:green": 0}}
    assert strict.http("operator").put("/v1/routes", json=weights).status_code == 200
    claim(strict, there, cluster_id="blue")
    for _ in range(5):
        say(strict, named("sender"), "type:payments")
    assert (len(inbox(strict, here)), inbox(strict, there)) == (5, [])


@pytest.mark.parametrize("claim_as", ["type:payments", "cluster:vault"])
def test_to_grant_what_an_agent_requests_grants_nothing_else_s1312(strict: Tenant, claim_as: str) -> None:
    """S1312: a capability may be named like another's address; what is shown is what is given."""
    fake = named("fake")
    claim(strict, fake, capabilities=[claim_as])
    [item] = [
        one for one in strict.http("operator").get("/v1/agents").json()["items"] if one["agent_id"] == fake
    ]
    [word] = item["requested"]
    assert give(strict, fake, word)["granted"] == [word]
    say(strict, named("sender"), claim_as)
    assert inbox(strict, fake) == []
    say(strict, named("sender"), f"type:{claim_as}")
    assert len(inbox(strict, fake)) == 1


def test_an_agents_key_grants_nothing_s1145(strict: Tenant) -> None:
    agent, mine = named("agent"), strict.http("agent")
    assert mine.post(f"/v1/agents/{agent}/grants", json={"grant": ["payments"]}).status_code == 403
    assert mine.put("/v1/settings/routing", json={"capabilities": "self"}).status_code == 403
    assert mine.get("/v1/grants").status_code == 403
    assert strict.http("operator").get("/v1/settings/routing").json()["capabilities"] == "granted"


def test_the_terminal_grants_lists_and_revokes_s1145(either_tenant: Tenant) -> None:
    worker = named("worker")
    claim(either_tenant, worker, capabilities=["payments", "refunds"])

    def terminal(*words: str) -> str:
        ran = observatory("capabilities", *words, "--data", str(either_tenant.folder))
        assert ran.returncode == 0, ran.stderr
        return ran.stdout + ran.stderr

    assert "that was" not in terminal("mode") and "they register" in terminal("mode")
    assert "granted to them" in terminal("mode", "granted")
    assert terminal("grant", worker, "payments", "cluster:eu").strip().endswith("cluster:eu, payments")
    [row] = json.loads(terminal("list", "--json"))
    assert (row["granted"], row["requested"]) == (["cluster:eu", "payments"], ["refunds"])
    assert terminal("revoke", worker, "payments").strip().endswith("cluster:eu")

"""The doors of God Mode's window: who obeyed a kill-switch, the trail of acts, and what one saw before."""

from __future__ import annotations

import pytest

from tests.flows.fleet import named, say
from tests.flows.tenant import Tenant
from tests.flows.test_kill_switch import engage, release, wait_released


@pytest.mark.req(226)
def test_a_kill_switch_tells_who_has_obeyed_it_s742_s757(either_tenant: Tenant) -> None:
    """S742, S757: told and acknowledged by name; the gateway that serves is there and in touch."""
    kind, deaf, good = named("kind"), named("deaf"), named("good")
    for agent in (deaf, good):
        say(either_tenant, agent, kind=kind)
    admin = either_tenant.http("admin")
    kill_id = engage(either_tenant, "class", kind)
    path = f"/v1/kill-switch/{kill_id}"
    before = admin.get(path).json()
    assert (before["agents"], before["told"], before["acknowledged"], before["later"]) == (2, 2, 0, 0)
    assert {one["agent_id"] for one in before["unheard"]} == {deaf, good}
    items = either_tenant.http("agent").get(f"/v1/agents/{good}/inbox").json()["items"]
    ids = [one["delivery_id"] for one in items if one["kind"] == "stop"]
    assert (
        either_tenant.http("agent").post(f"/v1/agents/{good}/inbox/ack", json={"ids": ids}).status_code == 200
    )
    say(either_tenant, named("late"), kind=kind)
    after = admin.get(path).json()
    assert (after["agents"], after["told"], after["acknowledged"], after["later"]) == (3, 2, 1, 1)
    assert [one["agent_id"] for one in after["unheard"]] == [deaf]
    assert after["held"] == 1
    # What the house's machines are called is not this tenant's to know.
    assert [(one["name"], one["is_live"]) for one in after["gateways"]] == [("gateway 1", True)]
    assert after["event_id"].startswith("evt_")
    assert either_tenant.http("operator").get(path).status_code == 200
    release(either_tenant, kill_id)
    wait_released(either_tenant, kill_id)
    assert admin.get("/v1/kill-switch/kil_none").status_code == 404


def test_the_trail_holds_what_people_did_with_the_levers_and_nothing_else_s756(either_tenant: Tenant) -> None:
    """S756: newest first, in pages, by lever; agents' messages are not in it, refused attempts are."""
    admin = either_tenant.http("admin")
    kind = named("kind")
    say(either_tenant, named(), kind=kind)
    for text in ("one", "two", "three"):
        assert admin.put(f"/v1/instructions/{kind}", json={"text": text}).status_code == 201
    assert admin.put("/v1/budgets", json={"scope": "cluster", "target": kind, "hard": 5}).status_code == 200
    body = {"scope": "class", "target": kind, "reason": "no"}
    assert either_tenant.http("operator").post("/v1/kill-switch", json=body).status_code == 403
    items = admin.get("/v1/audit/acts").json()["items"]
    kinds = [one["body"]["event_type"] for one in items]
    assert kinds[:5] == ["permission_denied", "budget_set", *["instruction_issued"] * 3]
    assert not {"message_delivered", "agent_registered"} & set(kinds)
    first = admin.get("/v1/audit/acts", params={"about": "instructions", "limit": 2}).json()
    assert [one["body"]["version"] for one in first["items"]] == [3, 2]
    rest = admin.get(
        "/v1/audit/acts", params={"about": "instructions", "cursor": first["next_cursor"]}
    ).json()
    assert ([one["body"]["version"] for one in rest["items"]], rest["next_cursor"]) == ([1], None)
    whole = admin.get("/v1/audit/tenant", params={"limit": 100}).json()["items"]
    assert first["items"][0] in whole


def test_nobody_changes_what_they_did_not_see_s747(either_tenant: Tenant) -> None:
    """S747: instructions, their roll back, budgets and roles; without `was` it is as before."""
    admin, kind = either_tenant.http("admin"), named("kind")
    path = f"/v1/instructions/{kind}"
    assert admin.put(path, json={"text": "one", "was": 0}).status_code == 201
    assert admin.put(path, json={"text": "two"}).status_code == 201
    for answer in (
        admin.put(path, json={"text": "three", "was": 1}),
        admin.post(f"{path}/rollback", json={"version": 1, "was": 1}),
    ):
        assert (answer.status_code, answer.json()["reason"]) == (409, "stale_instructions")
    assert admin.post(f"{path}/rollback", json={"version": 1, "was": 2}).status_code == 201
    budget = {"scope": "cluster", "target": kind, "soft": 1, "hard": 2}
    assert admin.put("/v1/budgets", json=budget | {"was": {}}).status_code == 200
    stale = admin.put("/v1/budgets", json=budget | {"hard": 3, "was": {}})
    assert (stale.status_code, stale.json()["reason"]) == (409, "stale_budget")
    assert (
        admin.put("/v1/budgets", json=budget | {"hard": 3, "was": {"soft": 1, "hard": 2}}).status_code == 200
    )
    user = admin.post("/v1/users", json={"name": named("ada"), "role": "viewer"}).json()["user_id"]
    stale = admin.put(f"/v1/users/{user}", json={"role": "operator", "was": "auditor"})
    assert (stale.status_code, stale.json()["reason"]) == (409, "stale_role")
    assert admin.put(f"/v1/users/{user}", json={"role": "operator", "was": "viewer"}).status_code == 200

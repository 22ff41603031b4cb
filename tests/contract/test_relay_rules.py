"""Where policy meets routing: no address and no delay is a way around a rule."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from observatory.features.registry import commands_eviction as reaping
from observatory.pipeline.rows import Write
from observatory.pipeline.state import HOME_TENANT, Act, Desk, Verdict
from observatory.protocol.rulebook import Effect, Match, PolicyRule
from tests.contract.conftest import House
from tests.contract.test_relay import AGENT, SESSION, act, said


def rule(house: House, effect: Effect = "deny", **match: Any) -> None:
    """A rule, straight into the rulebook."""

    def decide(desk: Desk) -> Verdict:
        desk.memory.tenant.rulebook_version += 1
        made = PolicyRule(rule_id="pol_1", position=1, effect=effect, match=Match(**match))
        row = {
            "tenant_id": HOME_TENANT, "rule_id": "pol_1", "position": 1, "effect": effect, "quorum": 1,
            "matches": msgspec.json.encode(made.match).decode(), "on_expiry": "deny", "note": "",
            "created_ns": 1, "updated_ns": 1, "updated_by": "usr_ann",
        }  # fmt: skip
        return Verdict(200, None, [], [Write("policies", row)])

    act(house, Act(house.admin(), house.now(), decide))


def test_an_address_that_means_many_is_no_way_around_a_deny_rule(house: House) -> None:
    house.send(said("0", agent="bob", agent_type="writer"), said("1", agent="cyd", agent_type="writer"))
    rule(house, sender=(AGENT,), recipient=("bob",))
    for number in range(12):
        house.send(said(f"work-{number}", agent_type="asker", recipient="type:writer"))
    house.send(said("all", agent_type="asker", recipient=f"session:{SESSION}"))
    agents = {row["agent_no"]: row["agent_id"] for row in house.read(house.store.rows(HOME_TENANT, "agents"))}
    told = house.read(house.store.rows(HOME_TENANT, "deliveries"))
    assert {agents[row["agent_no"]] for row in told if row["kind"] == "message"} == {"cyd"}
    assert len([row for row in told if row["kind"] == "message"]) == 13


@pytest.mark.parametrize("effect", ["deny", "hold"])
def test_work_handed_on_later_goes_to_nobody_a_rule_keeps_it_from_s943(house: House, effect: Effect) -> None:
    """S943: what was parked, too, is given only to who may have it; a hold asks for a person."""
    house.send(said("work", agent_type="asker", recipient="type:writer"))
    rule(house, effect, sender=(AGENT,), recipient=("bob",))
    house.send(said("0", agent="bob", agent_type="writer"))
    (work,) = house.read(house.store.stranded(HOME_TENANT, 0, "type:writer", 10))
    assert act(house, reaping.hand_on(house.admin(), work, None, "type:writer", house.now())).answer == 0
    house.send(said("1", agent="cyd", agent_type="writer"))
    assert act(house, reaping.hand_on(house.admin(), work, None, "type:writer", house.now())).answer == 1
    agents = {row["agent_no"]: row["agent_id"] for row in house.read(house.store.rows(HOME_TENANT, "agents"))}
    told = house.read(house.store.rows(HOME_TENANT, "deliveries", state="pending"))
    assert [agents[row["agent_no"]] for row in told] == ["cyd"]

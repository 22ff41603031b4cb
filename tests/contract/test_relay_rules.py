"""Where policy meets routing: no address and no delay is a way around a rule."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from observatory.features.registry import commands_eviction as reaping
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import HOME_TENANT, Command, SubmissionResult, UnitOfWork
from observatory.protocol.tenant_config import Effect, Match, PolicyRule
from tests.contract.conftest import Harness
from tests.contract.test_relay import AGENT, SESSION, act, new_message


def rule(harness: Harness, effect: Effect = "deny", **match: Any) -> None:
    """A rule, straight into the rulebook."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        uow.memory.tenant.rulebook_version += 1
        made = PolicyRule(rule_id="pol_1", position=1, effect=effect, match=Match(**match))
        row = {
            "tenant_id": HOME_TENANT, "rule_id": "pol_1", "position": 1, "effect": effect, "quorum": 1,
            "matches": msgspec.json.encode(made.match).decode(), "on_expiry": "deny", "note": "",
            "created_ns": 1, "updated_ns": 1, "updated_by": "usr_ann",
        }  # fmt: skip
        return SubmissionResult(200, None, [], [RowWrite("policies", row)])

    act(harness, Command(harness.admin(), harness.now(), decide))


def test_an_address_that_means_many_is_no_way_around_a_deny_rule(harness: Harness) -> None:
    harness.send(
        new_message("0", agent="bob", agent_type="writer"), new_message("1", agent="cyd", agent_type="writer")
    )
    rule(harness, sender=(AGENT,), recipient=("bob",))
    for number in range(12):
        harness.send(new_message(f"work-{number}", agent_type="asker", recipient="type:writer"))
    harness.send(new_message("all", agent_type="asker", recipient=f"session:{SESSION}"))
    agents = {
        row["agent_no"]: row["agent_id"] for row in harness.read(harness.store.rows(HOME_TENANT, "agents"))
    }
    received = harness.read(harness.store.rows(HOME_TENANT, "deliveries"))
    assert {agents[row["agent_no"]] for row in received if row["kind"] == "message"} == {"cyd"}
    assert len([row for row in received if row["kind"] == "message"]) == 13


@pytest.mark.parametrize("effect", ["deny", "hold"])
def test_work_handed_on_later_goes_to_nobody_a_rule_keeps_it_from_s943(
    harness: Harness, effect: Effect
) -> None:
    """S943: what was parked, too, is given only to who may have it; a hold asks for a person."""
    harness.send(new_message("work", agent_type="asker", recipient="type:writer"))
    rule(harness, effect, sender=(AGENT,), recipient=("bob",))
    harness.send(new_message("0", agent="bob", agent_type="writer"))
    (work,) = harness.read(harness.store.stranded(HOME_TENANT, 0, "type:writer", 10))
    assert (
        act(
            harness, reaping.reroute_delivery(harness.admin(), work, None, "type:writer", harness.now())
        ).answer
        == 0
    )
    harness.send(new_message("1", agent="cyd", agent_type="writer"))
    assert (
        act(
            harness, reaping.reroute_delivery(harness.admin(), work, None, "type:writer", harness.now())
        ).answer
        == 1
    )
    agents = {
        row["agent_no"]: row["agent_id"] for row in harness.read(harness.store.rows(HOME_TENANT, "agents"))
    }
    received = harness.read(harness.store.rows(HOME_TENANT, "deliveries", state="pending"))
    assert [agents[row["agent_no"]] for row in received] == ["cyd"]

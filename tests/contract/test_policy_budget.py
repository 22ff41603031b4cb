"""Rules and budgets through the corridor, over both databases: what was set holds for the next message."""

from __future__ import annotations

import json
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from observatory.features.budgets.commands import end_budget, set_budget
from observatory.features.policies import commands as rulemaking
from observatory.pipeline.state import HOME_TENANT, SubmissionResult
from observatory.protocol.tenant_config import Budget, Match, PolicyRule
from tests.contract.conftest import OTHER_TENANT, Harness, PostgresHarness
from tests.samples import decision_log, envelope


def log(agent: str = "a", session: str = "ses-1", **state_delta: Any) -> dict[str, Any]:
    return decision_log(
        meta={"step_id": str(uuid.uuid4()), "session_id": session},
        identity={"agent_id": agent},
        state_delta={"cumulative_session_cost": None, **state_delta},
    )


def rule(effect: Any, rule_id: str, position: int = 0, **match: tuple[str, ...]) -> PolicyRule:
    return PolicyRule(rule_id=rule_id, position=position, effect=effect, match=Match(**match))


def create(harness: Harness, *rules: PolicyRule, tenant_id: str = HOME_TENANT) -> list[SubmissionResult]:
    acts = [rulemaking.create_rule(harness.admin(tenant_id), one, False, harness.now()) for one in rules]
    return harness.submit(*acts, tenant_id=tenant_id)


def put(harness: Harness, scope: Any, target: str, **caps: Any) -> SubmissionResult:
    budget = Budget(
        budget_id=f"bud_{uuid.uuid4()}",
        scope=scope,
        target=target,
        soft=caps.pop("soft", None),
        hard=caps.pop("hard", None),
        **caps,
    )
    return harness.submit(set_budget(harness.admin(), budget, harness.now()))[0]


def received(harness: Harness, event_type: str) -> list[dict[str, Any]]:
    bodies = [json.loads(event.record)["body"] for event in harness.trail_of()]
    return [body for body in bodies if body["event_type"] == event_type]


def codes(verdicts: list[SubmissionResult]) -> list[int]:
    return [verdict.code for verdict in verdicts]


@pytest.mark.req(225, 446, 506)
def test_a_rule_denies_the_next_message_even_in_its_own_batch_s150(harness: Harness) -> None:
    act = rulemaking.create_rule(harness.admin(), rule("deny", "pol_1", sender=("a",)), False, harness.now())
    verdicts = harness.submit(harness.arrival(log()), act, harness.arrival(log()), harness.arrival(log("b")))
    assert codes(verdicts) == [202, 201, 403, 202]
    assert verdicts[2].answer.rule_id == "pol_1"
    harness.reopen()
    assert codes(harness.send(log(), log("b"), envelope("heartbeat"))) == [403, 202, 202]
    assert [body["rule_id"] for body in received(harness, "policy_evaluated")] == ["pol_1", "pol_1"]


def test_a_denied_message_is_archived_and_its_repeat_is_answered_alike_s148(harness: Harness) -> None:
    create(harness, rule("deny", "pol_1", sender=("a",)))
    body = log()
    (first,) = harness.send(body)
    length = len(harness.trail_of())
    harness.reopen()
    (again,) = harness.send(body)
    assert (first.code, first.answer) == (again.code, again.answer)
    assert len(harness.trail_of()) == length
    found = harness.read(harness.store.message(HOME_TENANT, body["meta"]["step_id"]))
    assert found is not None and found.state == "refused"


def test_a_held_message_is_a_hold_with_the_rules_quorum_and_deadline_s148(harness: Harness) -> None:
    held = PolicyRule(
        rule_id="pol_1", position=0, effect="hold", match=Match(tool=("serp_*",)), quorum=2, deadline_s=60
    )
    create(harness, held)
    (verdict,) = harness.send(log())
    assert verdict.answer.state == "held"
    rows = harness.sql("SELECT reason, quorum, on_expiry, deadline_ns - held_ns FROM holds")
    assert rows == [("policy", 2, "deny", 60_000_000_000)]
    assert [body["effect"] for body in received(harness, "policy_evaluated")] == ["hold"]


def test_rules_stand_in_the_order_they_were_given_s150(harness: Harness) -> None:
    create(harness, rule("hold", "pol_a"), rule("hold", "pol_b"), rule("hold", "pol_c", position=1))
    assert harness.send(log())[0].answer.state == "held"
    assert received(harness, "policy_evaluated")[-1]["rule_id"] == "pol_c"
    who = harness.admin()
    order = rulemaking.order_rules(who, ["pol_b", "pol_c", "pol_a"], harness.now())
    stale = rulemaking.order_rules(who, ["pol_b", "pol_a"], harness.now())
    doubled = rulemaking.order_rules(who, ["pol_b", "pol_b", "pol_a"], harness.now())
    assert codes(harness.submit(order, stale, doubled)) == [200, 409, 409]
    harness.reopen()
    harness.send(log())
    assert received(harness, "policy_evaluated")[-1]["rule_id"] == "pol_b"
    positions = dict(harness.sql("SELECT rule_id, position FROM policies"))
    assert positions == {"pol_b": 1, "pol_c": 2, "pol_a": 3}


def test_a_rule_is_replaced_and_removed_with_before_and_after_s150(harness: Harness) -> None:
    create(harness, rule("deny", "pol_1", sender=("a",)))
    who = harness.admin()
    changed = rulemaking.replace_rule(who, rule("deny", "pol_1", sender=("b",)), False, harness.now())
    assert codes(harness.submit(changed)) == [200]
    assert codes(harness.send(log("a"), log("b"))) == [202, 403]
    gone = rulemaking.remove_rule(who, "pol_1", False, harness.now())
    assert codes(harness.submit(gone, gone)) == [200, 404]
    absent = rulemaking.replace_rule(who, rule("deny", "pol_1", sender=("b",)), False, harness.now())
    assert codes(harness.submit(absent)) == [404]
    assert codes(harness.send(log("b"))) == [202]
    senders = [
        [side and side["match"].get("sender") for side in (body["before"], body["after"])]
        for body in received(harness, "policy_changed")
    ]
    assert senders == [[None, ["a"]], [["a"], ["b"]], [["b"], None]]
    ((removed_ns,),) = harness.sql("SELECT removed_ns FROM policies")
    assert removed_ns is not None


def test_locking_everyone_out_needs_a_second_word_s151(harness: Harness) -> None:
    (refused,) = create(harness, rule("deny", "pol_1"))
    assert (refused.code, refused.answer.reason) == (409, "locks_everyone_out")
    assert codes(harness.send(log())) == [202]
    meant = rulemaking.create_rule(harness.admin(), rule("deny", "pol_1"), True, harness.now())
    assert codes(harness.submit(meant)) == [201]
    assert codes(harness.send(log(), envelope("heartbeat"))) == [403, 202]


def test_rules_of_another_tenant_do_not_count_s150(harness: Harness) -> None:
    harness.create_tenant(OTHER_TENANT)
    create(harness, rule("deny", "pol_1", sender=("a",)), tenant_id=OTHER_TENANT)
    assert codes(harness.send(log())) == [202]
    assert codes(harness.send(log(), tenant_id=OTHER_TENANT)) == [403]


@pytest.mark.req(134)
def test_a_hard_cap_holds_within_a_batch_between_batches_and_after_a_restart_s154(harness: Harness) -> None:
    assert put(harness, "tenant", HOME_TENANT, hard=1.0).code == 200
    assert codes(harness.send(*(log(cost=0.3) for _ in range(5)))) == [202, 202, 202, 402, 402]
    harness.reopen()
    verdicts = harness.send(log(cost=0.2), log(cost=0.1), log(cost=0.1), log())
    assert codes(verdicts) == [402, 202, 402, 202]
    assert verdicts[0].answer.cap == f"tenant:{HOME_TENANT} hard 1"
    assert harness.sql("SELECT spent FROM spend") == [(1.0,)]
    assert len(received(harness, "budget_exceeded")) == 4
    states = [row[0] for row in harness.sql("SELECT state FROM messages")]
    assert states.count("refused") == 4


def test_a_raised_cap_lets_the_next_one_pass_and_keeps_what_is_spent_s158(harness: Harness) -> None:
    put(harness, "cluster", "aws-eu-central-1-mesh-04", hard=1.0)
    body = log(cost=0.8)
    assert codes(harness.send(log(cost=0.8), body)) == [202, 402]
    put(harness, "cluster", "aws-eu-central-1-mesh-04", hard=2.0)
    # What was refused stays refused under its id; sent anew it passes.
    assert codes(harness.send(body, log(cost=0.8), log(cost=0.8))) == [402, 202, 402]
    assert harness.sql("SELECT spent FROM spend") == [(1.6,)]
    changes = [
        [side and side["hard"] for side in (body["before"], body["after"])]
        for body in received(harness, "budget_set")
    ]
    assert changes == [[None, "1"], ["1", "2"]]


def test_beyond_the_soft_cap_one_message_waits_and_the_event_has_the_number_that_is_kept_s155(
    harness: Harness,
) -> None:
    put(harness, "agent", "a", soft=1.0, hard=9.0)
    states = [verdict.answer.state for verdict in harness.send(*(log(cost=0.6) for _ in range(4)))]
    assert states == ["forwarded", "held", "forwarded", "forwarded"]
    ((kept,),) = harness.sql("SELECT soft_seq FROM spend")
    record = json.loads(harness.trail_of()[kept - 1].record)
    assert record["body"]["event_type"] == "budget_warning"
    assert len(received(harness, "budget_warning")) == 1
    put(harness, "agent", "a", soft=3.0, hard=9.0)
    states = [verdict.answer.state for verdict in harness.send(log(cost=0.6), log(cost=0.6))]
    assert states == ["forwarded", "held"]  # 3.0 is not beyond 3
    assert len(received(harness, "budget_warning")) == 2


@pytest.mark.req(134)
def test_each_session_has_its_own_cap_by_its_cumulative_cost_s157(harness: Harness) -> None:
    put(harness, "session", "*", hard=1.0)
    sent = [
        log("a", "ses-1", cumulative_session_cost=0.6),
        log("b", "ses-1", cumulative_session_cost=0.5),  # summed over agents: 1.1
        log("b", "ses-1", cumulative_session_cost=0.4),
        log("a", "ses-2", cumulative_session_cost=0.9),
    ]
    assert codes(harness.send(*sent)) == [202, 402, 202, 202]
    harness.reopen()
    assert codes(harness.send(log("a", "ses-2", cumulative_session_cost=1.1))) == [402]


def test_a_named_session_counts_what_it_spent_before_it_had_a_budget_s157(harness: Harness) -> None:
    harness.send(log("a", "ses-1", cumulative_session_cost=0.9))
    put(harness, "session", "ses-1", hard=1.0)
    put(harness, "agent", "a", hard=5.0)
    assert codes(harness.send(log("b", "ses-1", cumulative_session_cost=0.2))) == [402]
    assert sorted(harness.sql("SELECT spent FROM spend")) == [(0.9,), (0.9,)]


def test_a_removed_budget_stops_nobody_s158(harness: Harness) -> None:
    budget_id = put(harness, "tenant", HOME_TENANT, hard=0.0).answer["budget_id"]
    assert codes(harness.send(log(cost=0.1))) == [402]
    gone = end_budget(harness.admin(), budget_id, harness.now())
    assert codes(harness.submit(gone, gone)) == [200, 404]
    assert codes(harness.send(log(cost=0.1))) == [202]
    assert received(harness, "budget_set")[-1]["after"] is None


def test_two_gateways_on_one_database_never_pass_a_hard_cap_s154(pg_url: str) -> None:
    """Each has a memory of its own; the row is read and added to under the head's lock."""
    first, second = PostgresHarness(pg_url), PostgresHarness(pg_url)
    first.open()
    first.create_tenant(HOME_TENANT)
    second.open()
    try:
        assert put(first, "tenant", HOME_TENANT, hard=5.0).code == 200

        def run(harness: Harness) -> list[int]:
            return [
                code for _ in range(10) for code in codes(harness.send(*(log(cost=0.5) for _ in range(2))))
            ]

        with ThreadPoolExecutor(2) as pool:
            answers = [code for found in pool.map(run, (first, second)) for code in found]
        assert (answers.count(202), answers.count(402)) == (10, 30)
        assert first.sql("SELECT spent FROM spend") == [(5.0,)]
    finally:
        first.end()
        second.end()

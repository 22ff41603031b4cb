"""Ways around the relay that were tried and must stay shut. Over both databases."""

from __future__ import annotations

from typing import Any

import pytest

from observatory.features.kill_switch import commands as kill_switch
from observatory.features.registry import commands as enrolment
from observatory.features.relay import commands as interventions
from observatory.features.relay import commands_gates as gates
from observatory.features.relay import commands_undo as reversal
from observatory.features.relay import release
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import HOME_TENANT, Command, SubmissionResult, UnitOfWork
from observatory.protocol.tenant_config import Match, PolicyRule
from tests.contract.conftest import Harness
from tests.contract.test_relay import (
    AGENT,
    SESSION,
    act,
    approve,
    delivered,
    events,
    new_message,
    pause,
    person,
    rewritten,
    states,
    unpause,
)
from tests.contract.test_relay_rules import rule
from tests.samples import envelope


def engage(harness: Harness, scope: str, target: str) -> None:
    """An engaged kill-switch, straight into the rulebook."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        uow.memory.tenant.rulebook_version += 1
        row = {
            "tenant_id": HOME_TENANT, "kill_id": "kil_1", "scope": scope, "target": target, "reason": "",
            "state": "engaged", "requested_by": "usr_ann", "created_ns": 1, "expires_ns": 1, "updated_ns": 1,
        }  # fmt: skip
        return SubmissionResult(200, None, [], [RowWrite(kill_switch.TABLE, row)])

    act(harness, Command(harness.admin(), harness.now(), decide))


def drain(harness: Harness) -> None:
    act(harness, release.drain(person(harness), SESSION, harness.now()))


def other(step: str, cluster: str, **more: Any) -> dict[str, Any]:
    body = new_message(step, **more)
    body["meta"]["cluster_id"] = cluster
    return body


def test_no_new_name_leads_out_of_a_kill_switch_s164(harness: Harness) -> None:
    harness.send(other("0", "south"))
    engage(harness, "cluster", "north")
    assert harness.send(other("1", "north"))[0].answer.state == "held", "by what the message says"
    drain(harness)
    assert delivered(harness) == ["0"], "what it said when it was held counts at release too"


def test_neither_registration_nor_heartbeat_nor_gate_moves_a_stopped_agent_s164(harness: Harness) -> None:
    harness.send(other("0", "north"))
    engage(harness, "cluster", "north")
    answer = act(harness, enrolment.register(harness.admin(), AGENT, {"cluster_id": "south"}, harness.now()))
    assert (answer.code, answer.answer.reason) == (409, "stopped")
    beat = {"cluster_id": "south", "status": "working"}
    act(harness, enrolment.record_heartbeat(harness.admin(), AGENT, None, beat, harness.now()))
    harness.send(other("gated", "south", hitl=True))
    assert harness.send(other("1", "south"))[0].answer.state == "held"
    (agent,) = harness.read(harness.store.rows(HOME_TENANT, "agents"))
    assert agent["cluster_id"] == "north"


@pytest.mark.parametrize("how", ["undo", "rewrite"])
def test_content_that_nobody_approved_is_never_forwarded_s88(harness: Harness, how: str) -> None:
    harness.send(new_message("0"))
    pause(harness)
    harness.send(new_message("ask", hitl=True))
    harmless, harmful = new_message("ask"), new_message("ask")
    harmless["action"]["tool_call"], harmful["action"]["tool_call"] = "look", "delete_all"
    done = act(
        harness,
        interventions.rewrite(
            person(harness), SESSION, AGENT, "ask", rewritten(harness, "ask", harmless), harness.now()
        ),
    )
    assert approve(harness, "ask").answer.state == "held", "still paused"
    if how == "undo":
        where = {"intervention_id": done.answer.intervention_id}
        (row,) = harness.read(harness.store.rows(HOME_TENANT, "interventions", **where))
        (agent,) = harness.read(harness.store.rows(HOME_TENANT, "agents"))
        undo = reversal.undo(person(harness), row, SESSION, agent, harness.now())
        assert isinstance(undo, Command) and act(harness, undo).code == 200
    else:
        new = rewritten(harness, "ask", harmful)
        act(harness, interventions.rewrite(person(harness), SESSION, AGENT, "ask", new, harness.now()))
    unpause(harness)
    assert delivered(harness) == ["0"]
    assert approve(harness, "ask").answer.state == "forwarded"


def test_undoing_the_second_rewrite_brings_back_the_first_s86(harness: Harness) -> None:
    harness.send(new_message("0"))
    pause(harness)
    harness.send(new_message("1"))
    first, second = new_message("1"), new_message("1")
    first["cognition"]["intent"], second["cognition"]["intent"] = "first", "second"
    hashes = [
        act(
            harness,
            interventions.rewrite(
                person(harness), SESSION, AGENT, "1", rewritten(harness, "1", body), harness.now()
            ),
        ).answer
        for body in (first, second)
    ]
    (agent,) = harness.read(harness.store.rows(HOME_TENANT, "agents"))
    for at, expected in ((1, hashes[0].after_hash), (0, hashes[0].before_hash)):
        where = {"intervention_id": hashes[at].intervention_id}
        (row,) = harness.read(harness.store.rows(HOME_TENANT, "interventions", **where))
        undo = reversal.undo(person(harness), row, SESSION, agent, harness.now())
        assert isinstance(undo, Command) and act(harness, undo).answer.after_hash == expected


def test_a_graph_of_descendants_is_rejected_once_each_s85(harness: Harness) -> None:
    harness.send(new_message("G", hitl=True), new_message("C", parent="G"))
    both = new_message("D", parent="G")
    both["meta"]["parent_step_ids"] = ["G", "C"]
    harness.send(both)
    deed = gates.reject_message(person(harness), SESSION, AGENT, "G", None, None, harness.now())
    assert act(harness, deed).answer.rejected == 3
    assert len(events(harness, "message_rejected")) == 3


def test_a_long_chain_of_descendants_can_be_rejected_s85(harness: Harness) -> None:
    chain = (new_message(str(number), parent=str(number - 1)) for number in range(1, 1_200))
    harness.send(new_message("0", hitl=True), *chain)
    deed = gates.reject_message(person(harness), SESSION, AGENT, "0", None, None, harness.now())
    assert act(harness, deed).answer.rejected == 1_200


def test_what_names_a_rejected_message_later_is_refused_s85(harness: Harness) -> None:
    harness.send(new_message("G", hitl=True))
    act(harness, gates.reject_message(person(harness), SESSION, AGENT, "G", None, None, harness.now()))
    late = harness.send(new_message("late", parent="G"))[0]
    assert (late.code, late.answer.reason) == (403, "ancestor_rejected")
    assert harness.send(new_message("later", parent="G", agent="worker-2"))[0].code == 403
    assert delivered(harness) == []


@pytest.mark.parametrize("name", ["plan/1", "msg_mine"])
def test_whatever_is_in_a_step_id_its_children_wait_s84(harness: Harness, name: str) -> None:
    harness.send(new_message(name, hitl=True))
    assert harness.send(new_message("child", parent=name))[0].answer.state == "held"


def test_a_child_waits_for_a_gate_that_is_approved_and_not_forwarded_yet_s84(harness: Harness) -> None:
    harness.send(new_message("0"))
    pause(harness)
    harness.send(new_message("ask", hitl=True))
    approve(harness, "ask")
    assert harness.send(new_message("child", parent="ask", agent="worker-2"))[0].answer.state == "held"
    unpause(harness)
    assert delivered(harness) == ["0", "ask", "child"]


def test_a_rule_that_denies_at_release_takes_only_what_hangs_on_it(harness: Harness) -> None:
    harness.send(new_message("0"))
    pause(harness)
    harness.send(new_message("ask", hitl=True), new_message("child", parent="ask"), new_message("1"))
    rule(harness, tool=("serp_search",))
    assert unpause(harness).code == 200
    assert states(harness) == {"0": "forwarded", "1": "rejected", "ask": "held", "child": "held"}


def test_nobody_is_approved_in_anothers_place_s88(harness: Harness) -> None:
    """A step id that looks like another message's id does not stand in its way."""
    harness.send(new_message("msg_x1", hitl=True), new_message("plain", hitl=True))
    holds = harness.read(harness.store.holds_page(HOME_TENANT, None, 10, True))
    number = holds[1]["sequence_number"]
    deed = gates.approve(person(harness), SESSION, AGENT, number, None, None, harness.now())
    assert act(harness, deed).answer.state == "forwarded"
    assert delivered(harness) == ["plain"]


def test_a_heartbeat_carries_nothing_to_anybody(harness: Harness) -> None:
    harness.send(new_message("0", agent="bob"))
    (bob,) = harness.read(harness.store.rows(HOME_TENANT, "agents"))
    sender = {"entity_id": bob["entity_id"].replace("agt_", "agt_x"), "entity_type": "agent"}
    to = {"entity_id": bob["entity_id"], "entity_type": "agent"}
    harness.send(envelope("heartbeat", sender=sender, recipient=to))
    assert harness.read(harness.store.rows(HOME_TENANT, "deliveries")) == []


def test_a_request_to_another_agent_is_talk_like_any_other(harness: Harness) -> None:
    harness.send(new_message("0", agent="bob"))
    rule(harness, recipient=("bob",))
    (bob,) = harness.read(harness.store.rows(HOME_TENANT, "agents"))
    sender = {"entity_id": "agt_11111111-1111-4111-8111-111111111111", "entity_type": "agent"}
    to = {"entity_id": bob["entity_id"], "entity_type": "agent"}
    verdict = harness.send(envelope("decision_request", sender=sender, recipient=to))[0]
    assert (verdict.code, verdict.answer.reason) == (403, "policy_denied")


def test_another_type_in_the_message_evades_no_rule_s147(harness: Harness) -> None:
    harness.send(new_message("0", agent_type="writer"))
    rule(harness, sender=("type:writer",))
    assert harness.send(new_message("1", agent_type="reader"))[0].code == 403


def test_rules_hold_no_person(harness: Harness) -> None:
    assert PolicyRule(rule_id="x", position=1, effect="hold", match=Match()).effect == "hold"
    rule(harness)
    user = {"entity_id": "usr_ann", "entity_type": "user"}
    assert harness.send(envelope("text", sender=user))[0].code == 202


def test_a_figure_that_falls_gives_no_credit_s154(harness: Harness) -> None:
    def decide(uow: UnitOfWork) -> SubmissionResult:
        uow.memory.tenant.rulebook_version += 1
        row = {
            "tenant_id": HOME_TENANT, "budget_id": "bud_1", "scope": "session", "target": "*", "hard": 10.0,
            "period": "none", "created_ns": 1, "updated_ns": 1, "updated_by": "usr_ann",
        }  # fmt: skip
        return SubmissionResult(200, None, [], [RowWrite("budgets", row)])

    act(harness, Command(harness.admin(), harness.now(), decide))
    codes = []
    for number, cost in enumerate((9.0, 0.0, 0.9, 0.0, 5.0)):
        body = new_message(str(number))
        body["state_delta"] = {"cumulative_session_cost": cost}
        codes.append(harness.send(body)[0].code)
    assert codes == [202, 202, 202, 202, 402]

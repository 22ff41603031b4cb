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
from observatory.pipeline.rows import Write
from observatory.pipeline.state import HOME_TENANT, Act, Desk, Verdict
from observatory.protocol.rulebook import Match, PolicyRule
from tests.contract.conftest import House
from tests.contract.test_relay import (
    AGENT,
    SESSION,
    act,
    approve,
    delivered,
    events,
    pause,
    person,
    rewritten,
    said,
    states,
    unpause,
)
from tests.contract.test_relay_rules import rule
from tests.samples import envelope


def engage(house: House, scope: str, target: str) -> None:
    """An engaged kill-switch, straight into the rulebook."""

    def decide(desk: Desk) -> Verdict:
        desk.memory.tenant.rulebook_version += 1
        row = {
            "tenant_id": HOME_TENANT, "kill_id": "kil_1", "scope": scope, "target": target, "reason": "",
            "state": "engaged", "requested_by": "usr_ann", "created_ns": 1, "expires_ns": 1, "updated_ns": 1,
        }  # fmt: skip
        return Verdict(200, None, [], [Write(kill_switch.TABLE, row)])

    act(house, Act(house.admin(), house.now(), decide))


def drain(house: House) -> None:
    act(house, release.drain(person(house), SESSION, house.now()))


def other(step: str, cluster: str, **more: Any) -> dict[str, Any]:
    body = said(step, **more)
    body["meta"]["cluster_id"] = cluster
    return body


def test_no_new_name_leads_out_of_a_kill_switch_s164(house: House) -> None:
    house.send(other("0", "south"))
    engage(house, "cluster", "north")
    assert house.send(other("1", "north"))[0].answer.state == "held", "by what the message says"
    drain(house)
    assert delivered(house) == ["0"], "what it said when it was held counts at release too"


def test_neither_registration_nor_heartbeat_nor_gate_moves_a_stopped_agent_s164(house: House) -> None:
    house.send(other("0", "north"))
    engage(house, "cluster", "north")
    answer = act(house, enrolment.register(house.admin(), AGENT, {"cluster_id": "south"}, house.now()))
    assert (answer.code, answer.answer.reason) == (409, "stopped")
    beat = {"cluster_id": "south", "status": "working"}
    act(house, enrolment.beat(house.admin(), AGENT, None, beat, house.now()))
    house.send(other("gated", "south", hitl=True))
    assert house.send(other("1", "south"))[0].answer.state == "held"
    (agent,) = house.read(house.store.rows(HOME_TENANT, "agents"))
    assert agent["cluster_id"] == "north"


@pytest.mark.parametrize("how", ["undo", "rewrite"])
def test_content_that_nobody_approved_is_never_forwarded_s88(house: House, how: str) -> None:
    house.send(said("0"))
    pause(house)
    house.send(said("ask", hitl=True))
    harmless, harmful = said("ask"), said("ask")
    harmless["action"]["tool_call"], harmful["action"]["tool_call"] = "look", "delete_all"
    done = act(
        house,
        interventions.rewrite(
            person(house), SESSION, AGENT, "ask", rewritten(house, "ask", harmless), house.now()
        ),
    )
    assert approve(house, "ask").answer.state == "held", "still paused"
    if how == "undo":
        where = {"intervention_id": done.answer.intervention_id}
        (row,) = house.read(house.store.rows(HOME_TENANT, "interventions", **where))
        (agent,) = house.read(house.store.rows(HOME_TENANT, "agents"))
        undo = reversal.undo(person(house), row, SESSION, agent, house.now())
        assert isinstance(undo, Act) and act(house, undo).code == 200
    else:
        new = rewritten(house, "ask", harmful)
        act(house, interventions.rewrite(person(house), SESSION, AGENT, "ask", new, house.now()))
    unpause(house)
    assert delivered(house) == ["0"]
    assert approve(house, "ask").answer.state == "forwarded"


def test_undoing_the_second_rewrite_brings_back_the_first_s86(house: House) -> None:
    house.send(said("0"))
    pause(house)
    house.send(said("1"))
    first, second = said("1"), said("1")
    first["cognition"]["intent"], second["cognition"]["intent"] = "first", "second"
    hashes = [
        act(
            house,
            interventions.rewrite(
                person(house), SESSION, AGENT, "1", rewritten(house, "1", body), house.now()
            ),
        ).answer
        for body in (first, second)
    ]
    (agent,) = house.read(house.store.rows(HOME_TENANT, "agents"))
    for at, expected in ((1, hashes[0].after_hash), (0, hashes[0].before_hash)):
        where = {"intervention_id": hashes[at].intervention_id}
        (row,) = house.read(house.store.rows(HOME_TENANT, "interventions", **where))
        undo = reversal.undo(person(house), row, SESSION, agent, house.now())
        assert isinstance(undo, Act) and act(house, undo).answer.after_hash == expected


def test_a_graph_of_descendants_is_rejected_once_each_s85(house: House) -> None:
    house.send(said("G", hitl=True), said("C", parent="G"))
    both = said("D", parent="G")
    both["meta"]["parent_step_ids"] = ["G", "C"]
    house.send(both)
    deed = gates.refuse(person(house), SESSION, AGENT, "G", None, None, house.now())
    assert act(house, deed).answer.rejected == 3
    assert len(events(house, "message_rejected")) == 3


def test_a_long_chain_of_descendants_can_be_rejected_s85(house: House) -> None:
    chain = (said(str(number), parent=str(number - 1)) for number in range(1, 1_200))
    house.send(said("0", hitl=True), *chain)
    deed = gates.refuse(person(house), SESSION, AGENT, "0", None, None, house.now())
    assert act(house, deed).answer.rejected == 1_200


def test_what_names_a_rejected_message_later_is_refused_s85(house: House) -> None:
    house.send(said("G", hitl=True))
    act(house, gates.refuse(person(house), SESSION, AGENT, "G", None, None, house.now()))
    late = house.send(said("late", parent="G"))[0]
    assert (late.code, late.answer.reason) == (403, "ancestor_rejected")
    assert house.send(said("later", parent="G", agent="worker-2"))[0].code == 403
    assert delivered(house) == []


@pytest.mark.parametrize("name", ["plan/1", "msg_mine"])
def test_whatever_is_in_a_step_id_its_children_wait_s84(house: House, name: str) -> None:
    house.send(said(name, hitl=True))
    assert house.send(said("child", parent=name))[0].answer.state == "held"


def test_a_child_waits_for_a_gate_that_is_approved_and_not_forwarded_yet_s84(house: House) -> None:
    house.send(said("0"))
    pause(house)
    house.send(said("ask", hitl=True))
    approve(house, "ask")
    assert house.send(said("child", parent="ask", agent="worker-2"))[0].answer.state == "held"
    unpause(house)
    assert delivered(house) == ["0", "ask", "child"]


def test_a_rule_that_denies_at_release_takes_only_what_hangs_on_it(house: House) -> None:
    house.send(said("0"))
    pause(house)
    house.send(said("ask", hitl=True), said("child", parent="ask"), said("1"))
    rule(house, tool=("serp_search",))
    assert unpause(house).code == 200
    assert states(house) == {"0": "forwarded", "1": "rejected", "ask": "held", "child": "held"}


def test_nobody_is_approved_in_anothers_place_s88(house: House) -> None:
    """A step id that looks like another message's id does not stand in its way."""
    house.send(said("msg_x1", hitl=True), said("plain", hitl=True))
    holds = house.read(house.store.holds_page(HOME_TENANT, None, 10, True))
    number = holds[1]["sequence_number"]
    deed = gates.approve(person(house), SESSION, AGENT, number, None, None, house.now())
    assert act(house, deed).answer.state == "forwarded"
    assert delivered(house) == ["plain"]


def test_a_heartbeat_carries_nothing_to_anybody(house: House) -> None:
    house.send(said("0", agent="bob"))
    (bob,) = house.read(house.store.rows(HOME_TENANT, "agents"))
    sender = {"entity_id": bob["entity_id"].replace("agt_", "agt_x"), "entity_type": "agent"}
    to = {"entity_id": bob["entity_id"], "entity_type": "agent"}
    house.send(envelope("heartbeat", sender=sender, recipient=to))
    assert house.read(house.store.rows(HOME_TENANT, "deliveries")) == []


def test_a_request_to_another_agent_is_talk_like_any_other(house: House) -> None:
    house.send(said("0", agent="bob"))
    rule(house, recipient=("bob",))
    (bob,) = house.read(house.store.rows(HOME_TENANT, "agents"))
    sender = {"entity_id": "agt_11111111-1111-4111-8111-111111111111", "entity_type": "agent"}
    to = {"entity_id": bob["entity_id"], "entity_type": "agent"}
    verdict = house.send(envelope("decision_request", sender=sender, recipient=to))[0]
    assert (verdict.code, verdict.answer.reason) == (403, "policy_denied")


def test_another_type_in_the_message_evades_no_rule_s147(house: House) -> None:
    house.send(said("0", agent_type="writer"))
    rule(house, sender=("type:writer",))
    assert house.send(said("1", agent_type="reader"))[0].code == 403


def test_rules_hold_no_person(house: House) -> None:
    assert PolicyRule(rule_id="x", position=1, effect="hold", match=Match()).effect == "hold"
    rule(house)
    user = {"entity_id": "usr_ann", "entity_type": "user"}
    assert house.send(envelope("text", sender=user))[0].code == 202


def test_a_figure_that_falls_gives_no_credit_s154(house: House) -> None:
    def decide(desk: Desk) -> Verdict:
        desk.memory.tenant.rulebook_version += 1
        row = {
            "tenant_id": HOME_TENANT, "budget_id": "bud_1", "scope": "session", "target": "*", "hard": 10.0,
            "period": "none", "created_ns": 1, "updated_ns": 1, "updated_by": "usr_ann",
        }  # fmt: skip
        return Verdict(200, None, [], [Write("budgets", row)])

    act(house, Act(house.admin(), house.now(), decide))
    codes = []
    for number, cost in enumerate((9.0, 0.0, 0.9, 0.0, 5.0)):
        body = said(str(number))
        body["state_delta"] = {"cumulative_session_cost": cost}
        codes.append(house.send(body)[0].code)
    assert codes == [202, 202, 202, 202, 402]

"""What an agent tells and asks of the gateway by name: decisions, registration, heartbeats (S117, S118)."""

from pathlib import Path

import pytest

from observatory import Agent
from observatory.sdk import Denied, NotAnswered, Rejected
from tests.unit.sdk.sdk_control_gateway import PATIENCE_S, ControlGateway, agent_at
from tests.waiting import aside


def test_a_decision_returns_the_option_and_is_confirmed(gateway: ControlGateway, tmp_path: Path) -> None:
    """S117."""
    agent = agent_at(gateway, tmp_path)
    agent.register(capabilities=["write"], owner="usr_1")
    asked = aside(
        lambda: agent.decide("Ship?", ["ship", {"option_id": "wait", "label": "Wait a day"}], deadline=600,
                             default="wait", owner="usr_1", description="v2")
    )  # fmt: skip
    gateway.wait_for(lambda: bool(gateway.envelopes))
    payload = gateway.envelopes[0]["payload"]
    assert payload["auto_action"] == {"option_id": "wait", "trigger": "deadline_expired"}
    assert [option["is_default"] for option in payload["options"]] == [False, True]
    answer = {"decision_id": payload["decision_id"], "selected_option_id": "ship", "respondent_note": "fine"}
    gateway.wait_acked(gateway.deliver("decision", answer))
    choice = asked.result(PATIENCE_S)
    assert choice == "ship" and choice.note == "fine"
    agent.confirm(choice, "success", "shipped", title="Shipping").answer(PATIENCE_S)
    request, confirmation = gateway.envelopes
    assert confirmation["payload"]["triggered_by"] == {"decision_id": payload["decision_id"]}
    assert confirmation["parent_span_id"] == request["span_id"]
    assert gateway.registered[0]["owner"] == "usr_1"
    agent.outbox.close()


@pytest.mark.parametrize("end", ["expired", "cancelled"])
def test_a_decision_that_nobody_took_is_denied(end: str, gateway: ControlGateway, tmp_path: Path) -> None:
    """S117."""
    agent = agent_at(gateway, tmp_path)
    asked = aside(lambda: agent.decide("Ship?", ["ship"]))
    gateway.wait_for(lambda: bool(gateway.envelopes))
    decision_id = gateway.envelopes[0]["payload"]["decision_id"]
    gateway.deliver("decision", {"decision_id": decision_id, "selected_option_id": None, end: True})
    with pytest.raises(Denied) as caught:
        asked.result(PATIENCE_S)
    assert caught.value.reason == end
    agent.outbox.close()


@pytest.mark.parametrize("owner", ["ada", "", "usr_", "agt_1"])
def test_a_decision_is_asked_of_a_user_id_only(owner: str, gateway: ControlGateway, agent: Agent) -> None:
    """S117."""
    with pytest.raises(ValueError, match="`observatory users list`"):
        agent.decide("Ship?", ["ship"], owner=owner)
    assert gateway.envelopes == []


def test_what_needs_the_gateway_says_so_while_it_is_away(gateway: ControlGateway, tmp_path: Path) -> None:
    """S117."""
    gateway.stop()
    agent = agent_at(gateway, tmp_path)
    with pytest.raises(Denied) as caught:
        agent.decide("Ship?", ["ship"], default="ship", timeout=0.1)
    assert caught.value.reason == "no_verdict"
    with pytest.raises(NotAnswered):
        agent.register(timeout=1)
    agent.outbox.close()
    with pytest.raises(NotAnswered):
        agent.register(timeout=1)
    with pytest.raises(NotAnswered):
        agent.confirm("dec_1", "success")
    gateway.start()


def test_a_registration_that_is_refused_says_why(gateway: ControlGateway, agent: Agent) -> None:
    gateway.key = "obs_another"
    with pytest.raises(Rejected) as caught:
        agent.register(timeout=PATIENCE_S)
    assert caught.value.code == 401


def test_pulses_come_by_themselves_and_say_what_was_told(gateway: ControlGateway, tmp_path: Path) -> None:
    """S118."""
    agent = agent_at(gateway, tmp_path, heartbeat_s=0.02, cluster="c1")
    agent.step("works")
    gateway.wait_for(lambda: len(gateway.pulses) >= 2)
    first = gateway.pulses[0]
    assert (first["type"], first["agent_id"], first["cluster_id"]) == ("heartbeat", "a", "c1")
    agent.heartbeat("busy", task="Reading", progress=40)
    gateway.wait_for(lambda: gateway.pulses[-1].get("status") == "busy")
    assert gateway.pulses[-1]["current_task"]["progress_pct"] == 40
    agent.outbox.close()

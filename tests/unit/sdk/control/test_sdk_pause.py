"""Pause, stop and cancel as an agent feels them: it waits for people, nobody else (S110, S111, S119)."""

from pathlib import Path

import pytest

from observatory import Agent
from observatory.sdk import Cancelled
from tests.unit.sdk.sdk_control_gateway import PATIENCE_S, ControlGateway, agent_at, home
from tests.waiting import aside


def test_a_paused_agent_waits_at_its_next_step_and_goes_on_in_order(
    gateway: ControlGateway, agent: Agent
) -> None:
    """S110."""
    session = home(agent)
    gateway.wait_acked(gateway.deliver("hold", {"reason": "paused"}, session))
    blocked = aside(lambda: [agent.step("second"), agent.step("third")])
    elsewhere = agent.session().step("another session is free")
    assert elsewhere.answer(PATIENCE_S).accepted
    assert not blocked.done() and "second" not in gateway.intents
    gateway.wait_acked(gateway.deliver("resume", {}, session))
    assert [step.answer(PATIENCE_S).code for step in blocked.result(PATIENCE_S)] == [202, 202]
    assert gateway.intents == ["first", "another session is free", "second", "third"]


def test_the_kill_switch_stops_all_sessions_until_it_is_released(
    gateway: ControlGateway, agent: Agent
) -> None:
    """S110."""
    home(agent)
    gateway.wait_acked(gateway.deliver("stop", {"kill_id": "kil_1"}))
    blocked = aside(lambda: agent.session().step("second"))
    with pytest.raises(TimeoutError):
        blocked.result(0.05)
    gateway.deliver("start", {"kill_id": "kil_1"})
    assert blocked.result(PATIENCE_S).answer(PATIENCE_S).accepted


def test_cancel_raises_at_the_next_step_and_wakes_a_waiting_one(
    gateway: ControlGateway, agent: Agent
) -> None:
    """S111: the last word may still be said."""
    session = home(agent)
    gateway.wait_acked(gateway.deliver("hold", {}, session))
    blocked = aside(lambda: agent.step("second"))
    gateway.wait_acked(gateway.deliver("cancel", {"reason": "wrong client", "by": "usr_1"}, session))
    with pytest.raises(Cancelled, match="wrong client") as caught:
        blocked.result(PATIENCE_S)
    assert (caught.value.session_id, caught.value.by) == (session, "usr_1")
    with pytest.raises(Cancelled):
        agent.step("third")
    with pytest.raises(Cancelled), agent.tool("deploy"):
        pytest.fail("the tool was called")
    assert agent.step("Clean up", terminal=True).answer(PATIENCE_S).accepted
    assert agent.session().step("other work").answer(PATIENCE_S).accepted


def test_a_tool_is_not_called_while_paused_and_what_was_done_is_said(
    gateway: ControlGateway, agent: Agent
) -> None:
    """S110."""
    session = home(agent)
    with agent.tool("search"):
        gateway.wait_acked(gateway.deliver("hold", {}, session))
    gateway.wait_for(lambda: "Call search" in gateway.intents)
    called: list[str] = []

    def call() -> None:
        with agent.tool("deploy"):
            called.append("deploy")

    blocked = aside(call)
    with pytest.raises(TimeoutError):
        blocked.result(0.05)
    assert called == []
    gateway.deliver("resume", {}, session)
    blocked.result(PATIENCE_S)
    assert called == ["deploy"]


def test_closing_wakes_whoever_waits_and_lets_nothing_through(gateway: ControlGateway, agent: Agent) -> None:
    """S113."""
    session = home(agent)
    asked = aside(lambda: agent.ask("Deploy"))
    gateway.held()
    gateway.wait_acked(gateway.deliver("hold", {}, session))
    blocked = aside(lambda: agent.step("second"))
    agent.outbox.close()
    with pytest.raises(Cancelled, match="closed"):
        blocked.result(PATIENCE_S)
    assert not asked.result(PATIENCE_S)
    with pytest.raises(Cancelled, match="closed"):  # the pause still holds, and nobody can end it any more
        agent.step("third")


def test_an_agent_that_opted_out_hears_nothing_until_it_asks(gateway: ControlGateway, tmp_path: Path) -> None:
    """S119."""
    agent = agent_at(gateway, tmp_path, control=False)
    gateway.deliver("hold", {}, home(agent))
    agent.step("second").answer(PATIENCE_S)
    assert gateway.connections == 0 and gateway.acked == []
    gateway.hold = False
    assert aside(lambda: agent.session().ask("Deploy", timeout=PATIENCE_S)).result(PATIENCE_S)
    gateway.wait_for(lambda: bool(gateway.acked))
    agent.outbox.close()

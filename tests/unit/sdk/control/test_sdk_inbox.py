"""What is told to an agent: prompts, messages, instructions, each once and acknowledged (S114-S116)."""

import threading
from pathlib import Path

from observatory import Agent
from tests.unit.sdk.sdk_control_gateway import PATIENCE_S, ControlGateway, agent_at


def test_a_prompt_arrives_once_with_the_next_context(gateway: ControlGateway, agent: Agent) -> None:
    """S114: it counts as read only when the agent has taken it."""
    session = agent.session()
    assert agent.listen(PATIENCE_S)
    first = gateway.deliver("inject", {"prompt": "Be brief", "by": "usr_1"}, session.session_id)
    other = gateway.deliver("inject", {"prompt": "Use euros", "by": "usr_1"}, "elsewhere")
    gateway.again()
    agent.orders.wait_for(lambda: len(agent.orders._prompts) == 2, PATIENCE_S)
    assert gateway.acked == []
    assert session.context([{"role": "user", "content": "Go"}]) == [
        {"role": "user", "content": "Go"},
        {"role": "user", "content": "Be brief"},
    ]
    gateway.wait_acked(first)
    assert [(p.text, p.by, p.session_id) for p in agent.prompts()] == [("Use euros", "usr_1", "elsewhere")]
    gateway.wait_acked(other)
    assert agent.prompts() == [] == session.prompts()


def test_a_message_goes_on_in_the_trace_it_came_from(gateway: ControlGateway, agent: Agent) -> None:
    """S115: the reply's parent is what triggered it."""
    trace, step = "0199e5a0000070008000000000000001", "0199e5a0-0000-7000-8000-0000000000a1"
    log = {"meta": {"trace_id": trace, "step_id": step}, "cognition": {"intent": "Check this"}}
    gateway.deliver(
        "message", {}, "case 7", message=log, message_id="msg_9", message_type="decision_log",
        sender={"agent_id": "planner-1", "entity_id": "agt_2"}, traceparent=f"00-{trace}-00f067aa0ba902b7-01",
    )  # fmt: skip
    (received,) = agent.messages(PATIENCE_S)
    assert received.text == "Check this"
    assert received.sender is not None and received.sender.agent_id == "planner-1"
    with agent.session(continues=received):
        agent.step("Checked", recipient="planner-1").answer(PATIENCE_S)
    meta = gateway.logs[-1]["meta"]
    assert (meta["session_id"], meta["parent_step_id"]) == ("case 7", step)
    assert meta["trace_id"].replace("-", "") == trace


def test_a_message_an_agent_dies_over_is_not_acknowledged(gateway: ControlGateway, agent: Agent) -> None:
    """S114."""
    first, second = gateway.deliver("message", {"n": 1}), gateway.deliver("message", {"n": 2})
    inbox = agent.incoming(PATIENCE_S)
    assert next(inbox).body_value("n") == 1
    assert gateway.acked == []
    assert next(inbox).body_value("n") == 2
    gateway.wait_acked(first)
    assert second not in gateway.acked


def test_instructions_are_kept_told_and_acknowledged(gateway: ControlGateway, tmp_path: Path) -> None:
    """S116."""
    received: list[str] = []
    heard = threading.Event()

    def hear(text: str) -> None:
        received.append(text)
        heard.set()
        raise RuntimeError("the agent's own bug")

    agent = agent_at(gateway, tmp_path, on_instruction=hear)
    assert agent.instructions is None
    agent.listen()
    gateway.wait_acked(gateway.deliver("instruction", {"agent_type": "a", "version": 2, "text": "Be kind"}))
    assert heard.wait(PATIENCE_S) and received == ["Be kind"]
    assert agent.instructions == "Be kind"
    agent.outbox.close()

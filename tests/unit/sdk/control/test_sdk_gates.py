"""Approval as an agent asks for it: it does what was approved, and without a yes nothing (S112, S113)."""

import time
from pathlib import Path
from typing import Any

import pytest

from observatory import Agent
from observatory.sdk import Denied, Outbox, Rejected
from tests.unit.sdk.sdk_control_gateway import PATIENCE_S, ControlGateway, controlling
from tests.unit.sdk.sdk_gateway import QUICK
from tests.waiting import aside


def test_an_approved_step_returns_with_its_verdict(gateway: ControlGateway, agent: Agent) -> None:
    """S112."""
    asked = aside(lambda: agent.step("Deploy", tool_call="deploy", hitl_required=True))
    log = gateway.held()
    assert not asked.done()
    gateway.wait_acked(gateway.judge_gate("approved", log, note="go"))
    step = asked.result(PATIENCE_S)
    assert (step.verdict.verdict, step.verdict.note, step.verdict.by) == ("approved", "go", "usr_1")
    assert step.verdict.content is None and not step.verdict.edited
    assert (step.verdict.tool_call, step.verdict.tool_input) == ("deploy", None)


def test_an_edited_step_carries_the_new_content(gateway: ControlGateway, agent: Agent) -> None:
    """S112."""
    asked = aside(lambda: agent.ask("Mail", tool_call="mail", tool_input={"to": "all"}))
    log = gateway.held()
    content = {"action": {"tool_call": "fax", "tool_input": '{"to":"one"}'}}
    gateway.judge_gate("edited", log, content=content)
    approval = asked.result(PATIENCE_S)
    assert approval and approval.verdict == "edited" and approval.edited
    assert (approval.tool_call, approval.tool_input) == ("fax", {"to": "one"})
    assert approval.content == content
    assert approval.step.step_id == log["meta"]["step_id"]
    assert log["action"]["status"] == "pending"


@pytest.mark.parametrize(
    ("asked_with", "approved"),
    [
        ({"to": ["all"], "n": 1.5}, {"to": ["all"], "n": 1.5}),
        ('{"to":"all"}', {"to": "all"}),
        ("all of them", "all of them"),
        ('{"to":', '{"to":'),
        ([1, 2], [1, 2]),
        (None, None),
    ],
)
def test_what_was_approved_is_what_was_asked_unless_it_was_edited(
    asked_with: Any, approved: Any, gateway: ControlGateway, agent: Agent
) -> None:
    """S112: as data, and as it was when it was asked."""
    given = {**asked_with} if isinstance(asked_with, dict) else asked_with
    asked = aside(lambda: agent.ask("Mail", tool_call="mail", tool_input=given, timeout=PATIENCE_S))
    log = gateway.held()
    if isinstance(given, dict):
        given["to"] = "whom the agent thinks of while it waits"
    gateway.judge_gate("approved", log)
    approval = asked.result(PATIENCE_S)
    assert approval and not approval.edited
    assert (approval.tool_call, approval.tool_input) == ("mail", approved)


@pytest.mark.parametrize(
    "unreadable",
    [
        {"verdict": "edited"},
        {"verdict": "edited", "content": {"action": "mail"}},
        {"verdict": "edited", "content": {"action": {"tool_call": 7}}},
        {"verdict": "not_required"},
    ],
)
def test_an_edit_that_does_not_say_into_what_is_a_no(
    unreadable: dict[str, Any], gateway: ControlGateway, agent: Agent
) -> None:
    """S113: the original was not approved."""
    asked = aside(lambda: agent.ask("Mail", tool_call="mail", tool_input={"to": "all"}))
    gateway.judge_gate(log=gateway.held(), **unreadable)
    approval = asked.result(PATIENCE_S)
    assert not approval and "could not be read" in approval.note
    assert (approval.tool_call, approval.tool_input) == (None, None)


def test_an_edit_that_takes_the_input_away_leaves_none(gateway: ControlGateway, agent: Agent) -> None:
    """S112."""
    asked = aside(lambda: agent.step("Mail", tool_call="mail", tool_input="all", hitl_required=True))
    gateway.judge_gate("edited", gateway.held(), content={"cognition": {"intent": "Rest"}})
    verdict = asked.result(PATIENCE_S).verdict
    assert verdict.edited and (verdict.tool_call, verdict.tool_input) == (None, None)


@pytest.mark.parametrize("verdict", ["rejected", "expired", "no such word"])
def test_whatever_is_not_an_approval_denies(verdict: str, gateway: ControlGateway, agent: Agent) -> None:
    """S112."""
    asked = aside(lambda: agent.step("Deploy", hitl_required=True))
    gateway.judge_gate(verdict, gateway.held(), note="not on a Friday")
    with pytest.raises(Denied) as caught:
        asked.result(PATIENCE_S)
    if verdict == "no such word":
        assert caught.value.reason == "rejected"
    else:
        assert (caught.value.reason, caught.value.note) == (verdict, "not on a Friday")
        assert caught.value.by == "usr_1" and caught.value.step is not None


def test_what_no_gate_holds_needs_no_verdict(gateway: ControlGateway, agent: Agent) -> None:
    """S112."""
    gateway.hold = False
    approval = agent.ask("Read a file", tool_call="read", tool_input={"n": 1}, timeout=PATIENCE_S)
    assert approval and approval.verdict == "not_required" and not approval.edited
    assert (approval.tool_call, approval.tool_input) == ("read", {"n": 1})
    step = agent.step("Read on", tool_input={"n": 2}, hitl_required=True, timeout=PATIENCE_S)
    assert step.verdict is not None and step.verdict.tool_input == {"n": 2}


def test_a_gate_without_a_verdict_in_time_is_closed(gateway: ControlGateway, agent: Agent) -> None:
    """S113."""
    approval = agent.ask("Deploy", timeout=0.2)
    assert not approval and approval.verdict == "no_verdict"
    gateway.stop()
    started = time.monotonic()
    with pytest.raises(Denied) as caught:
        agent.step("Deploy", hitl_required=True, timeout=0.2)
    assert caught.value.reason == "no_verdict"
    assert time.monotonic() - started < PATIENCE_S
    assert agent.step("telemetry goes on").step_id is not None


def test_a_message_the_gateway_refuses_is_denied(gateway: ControlGateway, agent: Agent) -> None:
    """S113."""
    approval = agent.ask("Deploy", confidence_score=7.0, timeout=PATIENCE_S)
    assert not approval and approval.verdict == "schema_violation"
    assert (approval.note or "").startswith("$: ")


def test_a_denial_says_what_the_gateway_said(gateway: ControlGateway, agent: Agent) -> None:
    """S113."""
    gateway.refusal = {"code": 403, "status": "refused", "reason": "policy_denied", "rule_id": "pol_1",
                       "cap": None, "detail": "a rule denies it"}  # fmt: skip
    with pytest.raises(Denied) as caught:
        agent.step("Deploy", hitl_required=True, timeout=PATIENCE_S)
    assert str(caught.value) == "denied: policy_denied (rule pol_1: a rule denies it)"
    assert isinstance(caught.value.__cause__, Rejected)
    assert caught.value.__cause__.answer.rule_id == "pol_1"


def test_a_gate_asked_while_the_gateway_backs_off_is_tried_at_once(tmp_path: Path) -> None:
    """S113."""
    with controlling() as gateway:
        gateway.stop()
        slow = QUICK._replace(backoff_s=60, max_backoff_s=60)
        agent = Agent("a", outbox=Outbox("a", gateway.credentials(tmp_path), slow))
        agent.step("spooled")
        assert agent.outbox.wait_for(lambda: agent.outbox.in_memory == 0, PATIENCE_S)
        gateway.start()
        gateway.hold = False
        assert agent.ask("Deploy", timeout=PATIENCE_S)
        assert gateway.intents == ["spooled", "Deploy"]
        agent.outbox.close()


def test_the_line_goes_on_from_before_a_gate_that_stayed_open(gateway: ControlGateway, agent: Agent) -> None:
    """S113: what named it as its parent would be held, or refused, with it."""
    first = agent.step("first")
    agent.ask("Deploy", timeout=0.1)
    way = agent.step("another way")
    asked = aside(lambda: agent.ask("Deploy again"))
    gateway.wait_for(lambda: gateway.intents[-1] == "Deploy again")
    gateway.judge_gate("rejected", gateway.held())
    assert not asked.result(PATIENCE_S)
    agent.step("yet another").answer(PATIENCE_S)
    parents = {log["cognition"]["intent"]: log["meta"]["parent_step_id"] for log in gateway.logs}
    assert parents["another way"] == first.step_id
    assert parents["yet another"] == way.step_id

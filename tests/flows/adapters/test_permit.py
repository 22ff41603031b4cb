"""`permit`: an agent asks before it acts; rules, people and the state of the mesh answer (S895–S899)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from observatory import Agent, AsyncAgent
from observatory.sdk import Approval, Cancelled, Delivery, gate
from observatory.sdk.integrations.course import Course, GatedCall, Terms
from tests.flows.sdk_harness import PATIENCE_S, Json, aside, until
from tests.flows.server import Server
from tests.flows.tenant import Tenant
from tests.flows.tool_harness import ToolHarness
from tests.samples import decision_log


@pytest.mark.req(99, 181, 182)
def test_rules_decide_and_people_only_where_a_rule_says_so_s895(harness: ToolHarness) -> None:
    agent = harness.agent()
    free = agent.permit("Read", tool_call="read", tool_input={"path": "a"})
    assert free and (free.verdict, free.tool_input) == ("not_required", {"path": "a"})
    no = agent.permit("Drop", tool_call="drop_table", tool_input={"name": "users"})
    assert not no and (no.verdict, no.tool_input) == ("policy_denied", None)
    assert "rule pol_" in (no.note or "")
    hasty = agent.permit("Drop", tool_call="drop_table", timeout=0)
    assert not hasty and hasty.verdict == "policy_denied", (
        "no time for a person is no way round a rule (S897)"
    )
    asked = aside(lambda: agent.permit("Deploy", tool_call="deploy", tool_input={"to": "production"}))
    held = harness.held()
    assert not asked.done()
    harness.edit({"to": "staging"}, held)
    approval: Approval = asked.result(PATIENCE_S)
    assert approval and approval.edited and approval.by
    assert (approval.verdict, approval.tool_call, approval.tool_input) == (
        "edited",
        "deploy",
        {"to": "staging"},
    )
    asked = aside(lambda: agent.permit("Deploy", tool_call="deploy"))
    harness.answer("reject", note="not on a Friday")
    assert (asked.result(PATIENCE_S).verdict, asked.result().note) == ("rejected", "not on a Friday")
    asked = aside(lambda: agent.permit("Mail", tool_call="mail", needs_approval=True))
    harness.answer("approve")
    assert asked.result(PATIENCE_S).verdict == "approved"
    late = agent.permit("Deploy", tool_call="deploy", timeout=0.2)
    assert not late and (late.verdict, late.note) == ("no_verdict", "no verdict arrived in time")
    after = agent.step("Goes on")
    assert after.answer(PATIENCE_S).state == "forwarded", "it hangs on nothing that was refused"


def test_what_a_pause_held_goes_on_as_it_was_rewritten_s896(harness: ToolHarness) -> None:
    """The agent does not know of the pause when it asks: the gateway holds what it asked."""
    first = harness.agent()
    session_id = first.session().step("works").session_id
    assert session_id is not None and first.flush(PATIENCE_S)
    first.close()
    harness.do("pause", session_id)
    unaware = Agent(harness.name, **harness.credentials(), control=False)
    harness.agents.append(unaware)
    session = unaware.session(session_id=session_id)
    asked = aside(lambda: session.permit("Pay", tool_call="pay", tool_input={"amount": 98_000}))
    held = harness.held()
    assert held["cause"] == "pause"
    new = harness.changed(held, {"amount": 9_800})
    harness.do("rewrite", session_id, original_message_id=held["message_id"], new_content=new)
    assert not asked.done()
    harness.do("unpause", session_id)
    approval = asked.result(PATIENCE_S)
    assert approval and approval.edited and approval.tool_input == {"amount": 9_800}


def test_what_follows_from_a_held_step_waits_with_it_s896(harness: ToolHarness) -> None:
    """A step at a gate (as a soft cap would put it there) and a tool call that names it as its parent."""
    agent = harness.agent()
    session = agent.session()
    said = session.step("Thought", tool_call="deploy")  # telemetry that a rule holds
    assert said.answer(PATIENCE_S).state == "held"
    asked = aside(lambda: session.permit("Read", tool_call="read", tool_input={"n": 1}))
    until(lambda: len(harness.holds()) == 2)
    gates = [hold for hold in harness.holds() if hold["cause"] == "gate"]
    assert [hold["cause"] for hold in harness.holds() if hold not in gates] == ["ancestor"]
    assert not asked.done()
    harness.do("approve", session.session_id, message_id=gates[0]["message_id"])
    assert asked.result(PATIENCE_S).tool_input == {"n": 1}


def test_what_a_rule_denies_by_the_time_a_gate_opens_is_never_told_as_approved_s896(
    harness: ToolHarness,
) -> None:
    """S89, S896: the gate's own policy would approve it; the rule made meanwhile is what the agent hears."""
    admin, mine = harness.server.http("admin"), {"sender": [harness.name], "tool": ["burn"]}
    opening = {"effect": "hold", "match": mine, "deadline_s": 1, "on_expiry": "approve"}
    assert (made := admin.post("/v1/policies", json=opening)).status_code < 300, made.text
    log = decision_log(identity={"agent_id": harness.name}, action={"tool_call": "burn", "status": "pending"})
    assert harness.server.http("agent").post("/v1/messages", json=log).json()["state"] == "held"
    denying = {"effect": "deny", "match": mine}
    assert (made := admin.post("/v1/policies", json=denying)).status_code < 300, made.text
    verdicts = until(harness.inbox)
    assert [one["body"]["verdict"] for one in verdicts] == ["rejected"], "one verdict, and no yes before it"
    assert "now denies it" in verdicts[0]["body"]["note"]


def test_a_cancelled_session_permits_nothing_s895(harness: ToolHarness) -> None:
    agent = harness.agent()
    asked = aside(lambda: agent.permit("Deploy", tool_call="deploy"))
    held = harness.held()
    harness.do("cancel", held["session_id"], note="wrong client")
    with pytest.raises(Cancelled, match="wrong client"):
        asked.result(PATIENCE_S)


def test_a_gateway_that_is_away_forbids_only_what_needs_approval_s897(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "ANSWER_S", 0.3)
    quick = Delivery(close_timeout_s=0.1)
    door: Json = {"url": "http://127.0.0.1:9", "key": "k", "data": tmp_path, "delivery": quick}
    with Agent("alone", **door) as agent:
        approval = agent.permit("Read", tool_call="read", tool_input={"n": 1})
        assert approval and (approval.verdict, approval.tool_input) == ("gateway_away", {"n": 1})
        assert agent.outbox.failures
        monkeypatch.setattr(gate, "ANSWER_S", 60.0)  # known to be away: one more try, not that long
        assert agent.permit("Read", tool_call="read").verdict == "gateway_away"
        monkeypatch.setattr(gate, "ANSWER_S", 0.3)
        assert agent.permit("Pay", needs_approval=True).verdict == "no_verdict"
    kept = b"".join(file.read_bytes() for file in (tmp_path / "spool").iterdir())
    assert kept.count(b'"status":"pending"') == 3

    async def later() -> Approval:
        async with AsyncAgent("alone-too", **door) as other:
            return await other.permit("Read", tool_call="read")

    assert asyncio.run(later()).verdict == "gateway_away"


def test_an_agent_whose_key_was_revoked_may_do_nothing_s898(harness: ToolHarness) -> None:
    admin = harness.server.http("admin")
    made = admin.post("/v1/keys", json={"role": "agent", "label": "to be revoked"}).json()
    agent = Agent(harness.name, **(harness.credentials() | {"key": made["key"]}))
    harness.agents.append(agent)
    assert agent.permit("Read", tool_call="read").verdict == "not_required"
    assert admin.delete(f"/v1/keys/{made['key_id']}").status_code < 300
    no = agent.permit("Read", tool_call="read")
    assert not no and (no.verdict, no.tool_input) == ("not_admitted", None)
    agent.close(0)


def test_a_governed_call_is_two_steps_and_holds_up_no_sibling_s899(harness: ToolHarness) -> None:
    agent = harness.agent()
    course = Course(agent, terms=Terms(needs_approval=("pay_*",)))
    ran: list[Any] = []

    def work(given: Any) -> str:
        ran.append(given)
        return "done"

    def do(tool: str, args: Any) -> str:
        return course.govern(tool, args, work, lambda why: why)

    thought = course.said("Plan", tokens_consumed=7)
    paying = aside(lambda: do("pay_invoice", {"amount": 10}))
    held = harness.held()
    assert do("read", {"n": 1}) == "done", "the open gate next to it holds nothing up"
    with pytest.raises(ZeroDivisionError):
        course.govern("divide", {}, lambda _: str(1 / 0), lambda why: why)
    assert "a rule forbids it" in do("drop_table", {})
    assert ran == [{"n": 1}]
    harness.edit({"amount": 1}, held)
    assert paying.result(PATIENCE_S) == "done" and ran[-1] == {"amount": 1}
    other: Json = {"tool_call": "fax"}
    for tool_input, action, received in (({}, other, "requests fax"), ([1], {}, "not an object")):
        paying = aside(lambda: do("pay_invoice", {"amount": 10}))
        harness.edit(tool_input, **action)
        assert received in paying.result(PATIENCE_S)
    assert len(ran) == 2, "what a person changed into something else is not run"
    joined = course.said("Answer")
    joined.answer(PATIENCE_S)
    steps = {item["step_id"]: item for item in harness.archived()}
    ends = [item for item in steps.values() if item["message"]["cognition"]["intent"].startswith("Called")]
    for item in ends:
        (parent,) = item["parents"]
        asked = steps[parent]
        assert asked["message"]["action"]["status"] == "pending" and asked["parents"] == [thought.step_id]
    assert set(steps[joined.step_id or ""]["parents"]) > {item["step_id"] for item in ends}


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("read", {"text": "a\x00b \ud800"}),
        ("read", {"text": "x" * 2_000_000}),
        ("t" * 400, {"n": 1 << 70}),
        ("read", {1: {2, 3}}),
    ],
    ids=["poison", "huge", "long name", "no JSON"],
)
def test_whatever_a_call_says_it_is_judged_and_runs_as_it_is_s900(
    harness: ToolHarness, tool: str, args: Any
) -> None:
    agent = harness.agent()
    course = Course(agent)
    ran: list[Any] = []

    def work(given: Any) -> str:
        ran.append(given)
        return "\x00" * 5_000

    assert course.govern(tool, args, work, lambda why: why).startswith("\x00")
    assert ran == [args] and ran[0] is args
    assert agent.flush(PATIENCE_S) and not agent.rejections
    assert [item["state"] for item in harness.archived()] == ["forwarded", "forwarded"]


def test_a_hard_cap_that_refused_a_turn_stops_its_tools_s899(server: Server, tmp_path: Path) -> None:
    tenant = Tenant(server, tmp_path / "capped")
    harness = ToolHarness(tenant, tmp_path / "home")
    cap = {"scope": "session", "target": "*", "hard": 5}
    assert tenant.http("admin").put("/v1/budgets", json=cap).status_code < 300
    with harness.agent() as agent:
        course = Course(agent)
        course.said("Think", cost=6)
        call: GatedCall = asyncio.run(course.abegin("read"))
        assert not call and "the budget is exhausted: session:* hard 5" in (call.refusal or "")
    tenant.stop()

"""Control as an agent feels it: it waits for people and for nobody else (S110-S119)."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from observatory import Agent
from observatory.sdk import Cancelled, Denied, NotAnswered, Outbox, Rejected
from tests.unit.sdk.sdk_control_gateway import PATIENCE_S, ControlGateway, controlling
from tests.unit.sdk.sdk_gateway import QUICK


@pytest.fixture(params=["socket", "poll"])
def gateway(request: pytest.FixtureRequest) -> Iterator[ControlGateway]:
    with controlling() as one:
        one.sockets_open = request.param == "socket"
        yield one


@pytest.fixture
def agent(gateway: ControlGateway, tmp_path: Path) -> Iterator[Agent]:
    one = agent_at(gateway, tmp_path)
    yield one
    one.outbox.close()


def agent_at(gateway: ControlGateway, data: Path, **more: Any) -> Agent:
    return Agent("a", outbox=Outbox("a", gateway.door(data), QUICK), **more)


def aside(act: Callable[[], Any]) -> "Future[Any]":
    """What an agent does in its own thread, so that the test can see it wait."""
    done: Future[Any] = Future()

    def run() -> None:
        try:
            done.set_result(act())
        except Exception as exc:  # noqa: BLE001
            done.set_exception(exc)

    threading.Thread(target=run, daemon=True).start()
    return done


def home(agent: Agent) -> str:
    session_id = agent.step("first").session_id
    assert session_id is not None
    return session_id


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
        agent = Agent("a", outbox=Outbox("a", gateway.door(tmp_path), slow))
        agent.step("spooled")
        assert agent.outbox.wait_for(lambda: agent.outbox.in_memory == 0, PATIENCE_S)
        gateway.start()
        gateway.hold = False
        assert agent.ask("Deploy", timeout=PATIENCE_S)
        assert gateway.intents == ["spooled", "Deploy"]
        agent.outbox.close()


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
    assert next(inbox).told("n") == 1
    assert gateway.acked == []
    assert next(inbox).told("n") == 2
    gateway.wait_acked(first)
    assert second not in gateway.acked


def test_instructions_are_kept_told_and_acknowledged(gateway: ControlGateway, tmp_path: Path) -> None:
    """S116."""
    told: list[str] = []
    heard = threading.Event()

    def hear(text: str) -> None:
        told.append(text)
        heard.set()
        raise RuntimeError("the agent's own bug")

    agent = agent_at(gateway, tmp_path, on_instruction=hear)
    assert agent.instructions is None
    agent.listen()
    gateway.wait_acked(gateway.deliver("instruction", {"agent_type": "a", "version": 2, "text": "Be kind"}))
    assert heard.wait(PATIENCE_S) and told == ["Be kind"]
    assert agent.instructions == "Be kind"
    agent.outbox.close()


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

"""A person's hand on a running agent: the SDK against a real gateway, commanded through the public doors."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from observatory import AsyncAgent
from observatory.sdk import Approval, Cancelled, Denied, Rejected, Step
from tests.flows.sdk_harness import PATIENCE_S, Json, SdkHarness, aside, until
from tests.flows.server import Server, clean_environment


@pytest.fixture
def harness(either_server: Server, tmp_path: Path) -> Iterator[SdkHarness]:
    one = SdkHarness(either_server, tmp_path / "home")
    yield one
    for agent in one.agents:
        agent.close()


@pytest.fixture
def fresh_harness(fresh_server: Server, tmp_path: Path) -> Iterator[SdkHarness]:
    one = SdkHarness(fresh_server, tmp_path / "home")
    yield one
    for agent in one.agents:
        agent.close()


@pytest.mark.req(99, 133, 186, 187, 188, 195)
def test_a_paused_agent_waits_at_its_next_step_and_goes_on_in_order(harness: SdkHarness) -> None:
    """S110: the pause is confirmed by the agent itself, and what it says afterwards keeps its order."""
    agent = harness.agent()
    first = agent.step("step 0")
    first.answer(PATIENCE_S)
    harness.do("pause", first.session_id)
    until(lambda: agent.orders.is_held(first.session_id or ""))
    until(lambda: not harness.inbox())  # acknowledged
    blocked = aside(lambda: [agent.step(f"step {n}") for n in range(1, 20)])
    elsewhere = agent.session().step("another session")
    assert elsewhere.answer(PATIENCE_S).state == "forwarded"
    assert not blocked.done()
    assert harness.intents() == ["step 0", "another session"]
    harness.do("unpause", first.session_id)
    steps: list[Step] = blocked.result(PATIENCE_S)
    assert {step.answer(PATIENCE_S).state for step in steps} == {"forwarded"}
    assert harness.intents() == ["step 0", "another session", *(f"step {n}" for n in range(1, 20))]


@pytest.mark.req(188)
def test_an_agent_started_while_it_is_paused_waits_too(harness: SdkHarness) -> None:
    """S110: the gateway says so when the agent comes."""
    session_id = str(uuid.uuid4())
    first = harness.agent()
    first.session(session_id=session_id).step("before").answer(PATIENCE_S)
    first.close()
    harness.do("pause", session_id)
    second = harness.agent()
    blocked = aside(lambda: second.session(session_id=session_id).step("after"))
    with pytest.raises(TimeoutError):
        blocked.result(0.2)
    assert harness.intents() == ["before"]
    harness.do("unpause", session_id)
    assert blocked.result(PATIENCE_S).answer(PATIENCE_S).state == "forwarded"


def ask_for(harness: SdkHarness, command: str, **body: Any) -> Approval:
    agent = harness.agent()
    asked = aside(lambda: agent.ask("Deploy", tool_call="deploy", tool_input={"to": "production"}))
    held = harness.held()
    assert not asked.done()
    harness.do(command, held["session_id"], message_id=held["message_id"], **body)
    answer: Approval = asked.result(PATIENCE_S)
    return answer


@pytest.mark.req(99, 155, 180, 182)
def test_an_approved_request_goes_on(harness: SdkHarness) -> None:
    """S112."""
    approval = ask_for(harness, "approve", note="go ahead")
    assert (approval.tool_call, approval.tool_input) == ("deploy", {"to": "production"})
    assert not approval.edited
    assert approval and approval.verdict == "approved" and approval.note == "go ahead" and approval.by
    assert [item["state"] for item in harness.archived()] == ["forwarded"]


@pytest.mark.req(181)
def test_an_edited_request_goes_on_with_the_new_content(harness: SdkHarness) -> None:
    """S112."""
    agent = harness.agent()
    asked = aside(lambda: agent.step("Mail all", tool_call="mail", tool_input="all", hitl_required=True))
    held = harness.held()
    new = harness.archived()[0]["message"]
    new["action"]["tool_input"] = '"only me"'
    harness.do("edit", held["session_id"], message_id=held["message_id"], new_content=new)
    step = asked.result(PATIENCE_S)
    assert step.verdict.verdict == "edited"
    assert step.verdict.content["action"]["tool_input"] == '"only me"'
    assert step.verdict.edited
    assert (step.verdict.tool_call, step.verdict.tool_input) == ("mail", "only me")


@pytest.mark.req(99, 183)
def test_a_rejected_request_is_denied_and_a_step_raises(harness: SdkHarness) -> None:
    """S112."""
    approval = ask_for(harness, "reject", note="not on a Friday")
    assert not approval and (approval.verdict, approval.note) == ("rejected", "not on a Friday")
    agent = harness.agents[0]
    asked = aside(lambda: agent.session().step("Again", hitl_required=True))
    held = harness.held()
    harness.do("reject", held["session_id"], message_id=held["message_id"])
    with pytest.raises(Denied, match="rejected"):
        asked.result(PATIENCE_S)


def test_a_refusal_carries_the_gateways_explanation(fresh_harness: SdkHarness) -> None:
    """S113: by a cap and by a rule, at a gate and after the fact."""
    harness = fresh_harness
    admin = harness.server.http("admin")
    cap = {"scope": "session", "target": "*", "hard": 5}
    assert admin.put("/v1/budgets", json=cap).status_code < 300
    agent = harness.agent()
    with pytest.raises(Rejected) as caught:
        agent.step("Spend", cost=6).answer(PATIENCE_S)
    assert "was refused with 402: budget_exceeded: session:* hard 5" in str(caught.value)
    assert "may spend 5" in (caught.value.detail or "")
    rule = {"effect": "deny", "match": {"sender": [harness.name]}}
    assert (made := admin.post("/v1/policies", json=rule)).status_code < 300, made.text
    with pytest.raises(Denied, match="a rule of this tenant denies this message") as denied:
        agent.session().step("Deploy", hitl_required=True, timeout=PATIENCE_S)
    assert denied.value.reason == "policy_denied" and "rule pol_" in (denied.value.note or "")


@pytest.mark.req(99)
def test_a_gate_fails_closed_while_the_gateway_is_dead_and_telemetry_spools(
    fresh_harness: SdkHarness,
) -> None:
    """S113, S80."""
    harness = fresh_harness
    agent = harness.agent()
    agent.step("before").answer(PATIENCE_S)
    harness.server.kill()
    started = time.monotonic()
    with pytest.raises(Denied) as denied:
        agent.step("Deploy", hitl_required=True, timeout=0.5)
    assert denied.value.reason == "no_verdict"
    assert not agent.ask("Deploy once more", timeout=0.5)
    assert time.monotonic() - started < PATIENCE_S
    later = agent.step("telemetry")
    harness.server.start()
    assert later.answer(PATIENCE_S).state == "forwarded"  # not a child of a gate that is still open
    assert harness.intents() == ["before", "Deploy", "Deploy once more", "telemetry"]


@pytest.mark.req(99, 182)
def test_a_verdict_given_after_the_gateway_was_killed_still_arrives(fresh_harness: SdkHarness) -> None:
    """S112, S114: the agent waits through the gateway's death."""
    harness = fresh_harness
    agent = harness.agent()
    asked = aside(lambda: agent.ask("Deploy"))
    held = harness.held()
    harness.server.restart(kill=True)
    assert not asked.done()
    harness.do("approve", held["session_id"], message_id=held["message_id"])
    assert asked.result(PATIENCE_S)


@pytest.mark.req(133, 191, 192)
def test_an_injected_prompt_arrives_with_the_next_context(harness: SdkHarness) -> None:
    """S114."""
    agent = harness.agent()
    with agent.session() as session:
        session.step("works").answer(PATIENCE_S)
        harness.do("inject", session.session_id, prompt="Use euros")
        until(lambda: agent.orders._prompts)
        assert [item["kind"] for item in harness.inbox()] == ["inject"]
        assert session.context([]) == [{"role": "user", "content": "Use euros"}]
        until(lambda: not harness.inbox())
        assert session.prompts() == []


@pytest.mark.req(99)
def test_cancel_wakes_and_raises(harness: SdkHarness) -> None:
    """S111."""
    agent = harness.agent()
    first = agent.step("works")
    first.answer(PATIENCE_S)
    harness.do("pause", first.session_id)
    until(lambda: agent.orders.is_held(first.session_id or ""))
    blocked = aside(lambda: agent.step("goes on"))
    harness.do("cancel", first.session_id, note="wrong client")
    with pytest.raises(Cancelled, match="wrong client"):
        blocked.result(PATIENCE_S)
    with pytest.raises(Cancelled):
        agent.step("goes on all the same")


def test_the_kill_switch_stops_an_agent_and_releases_it(harness: SdkHarness) -> None:
    """S110."""
    kind = f"kind-{uuid.uuid4().hex[:8]}"
    agent = harness.agent(agent_type=kind)
    agent.step("works").answer(PATIENCE_S)
    admin = harness.server.http("admin")
    armed = admin.post("/v1/kill-switch", json={"scope": "class", "target": kind, "reason": "a drill"}).json()
    path = f"/v1/kill-switch/{armed['kill_id']}"
    second = admin.post(f"{path}/confirm", json={"token": armed["token"]}).json()
    assert admin.post(f"{path}/confirm", json={"token": second["token"]}).json()["state"] == "engaged"
    until(lambda: agent.orders.is_held("any"))
    blocked = aside(lambda: agent.step("goes on"))
    with pytest.raises(TimeoutError):
        blocked.result(0.1)
    assert admin.post(f"{path}/release", json={"reason": "over"}).status_code == 202
    assert blocked.result(PATIENCE_S).answer(PATIENCE_S).accepted


@pytest.mark.req(504)
def test_a_reply_has_the_message_that_triggered_it_as_parent(harness: SdkHarness) -> None:
    """S115: trace, session and parent cross from agent to agent."""
    other = f"planner-{uuid.uuid4().hex[:8]}"
    worker, planner = harness.agent(), harness.agent(other)
    sent = planner.session().step("Check the figures", recipient=harness.name)
    sent.answer(PATIENCE_S)
    (received,) = worker.messages(PATIENCE_S)
    assert received.text == "Check the figures"
    assert received.sender is not None and received.sender.agent_id == other
    with worker.session(continues=received):
        worker.step("Checked", recipient=other).answer(PATIENCE_S)
    (reply,) = planner.messages(PATIENCE_S)
    assert reply.session_id == sent.session_id
    assert reply.traceparent and received.traceparent
    assert reply.traceparent.split("-")[1] == received.traceparent.split("-")[1]
    (archived,) = harness.archived()
    assert archived["parents"] == [sent.step_id]


def test_a_decision_is_taken_by_its_owner_and_confirmed(harness: SdkHarness) -> None:
    """S117."""
    admin = harness.server.http("admin")
    user = admin.post("/v1/users", json={"name": f"owner-{uuid.uuid4().hex}", "role": "approver"}).json()
    key = admin.post("/v1/keys", json={"role": "approver", "user_id": user["user_id"]}).json()["key"]
    agent = harness.agent()
    agent.register(owner=user["user_id"], capabilities=["ship"])
    wait = {"option_id": "wait", "label": "Wait", "risk_level": "low"}
    asked = aside(lambda: agent.decide("Ship?", ["ship", wait], deadline=600, default="wait"))

    def pending() -> list[Json]:
        query = {"user_id": user["user_id"]}
        return list(admin.get("/v1/decisions/pending", params=query).json()["items"])

    until(pending)
    decision_id = pending()[0]["decision_id"]
    answer = admin.post(
        f"/v1/decisions/{decision_id}/respond",
        json={"selected_option_id": "ship", "respondent_note": "fine"},
        headers={"authorization": f"Bearer {key}"},
    )
    assert answer.status_code == 200, answer.text
    choice = asked.result(PATIENCE_S)
    assert (choice, choice.decision_id, choice.note) == ("ship", decision_id, "fine")
    assert agent.confirm(choice, "success", "shipped").answer(PATIENCE_S).warnings == []
    assert admin.get(f"/v1/decisions/{decision_id}").json()["state"] == "succeeded"


def test_instructions_and_heartbeats_reach_the_other_side(harness: SdkHarness) -> None:
    """S116, S118."""
    kind = f"kind-{uuid.uuid4().hex[:8]}"
    agent = harness.agent(agent_type=kind)
    agent.step("works").answer(PATIENCE_S)
    admin = harness.server.http("admin")
    assert admin.put(f"/v1/instructions/{kind}", json={"text": "Be kind"}).status_code == 201
    until(lambda: agent.instructions == "Be kind")
    agent.heartbeat("busy", task="Reading", progress=40)

    def known() -> Json:
        return dict(admin.get(f"/v1/agents/{harness.name}").json())

    until(lambda: known()["status"] == "busy")
    assert known()["liveness"] == "healthy" and known()["task"]["progress_pct"] == 40


def test_without_websockets_the_inbox_is_polled(harness: SdkHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    """S114: the same orders by the other way."""
    from websockets.exceptions import InvalidUpgrade

    def refuse(*_: Any, **__: Any) -> Any:
        raise InvalidUpgrade("Upgrade", "blocked by a proxy")

    monkeypatch.setattr("websockets.asyncio.client.connect", refuse)
    assert ask_for(harness, "approve")
    agent = harness.agents[0]
    agent.step("works").answer(PATIENCE_S)
    session_id = agent.step("works on").session_id
    harness.do("pause", session_id)
    until(lambda: agent.orders.is_held(session_id or ""))
    harness.do("unpause", session_id)
    assert agent.step("done").answer(PATIENCE_S).accepted


LIVES = """
import sys
from observatory import Agent
agent = Agent(sys.argv[1], heartbeat_s=None)
agent.session(session_id=sys.argv[2]).step("works").answer(20)
inbox = agent.incoming(20)
print(next(inbox).text, flush=True)
print(agent.orders.wait_for(lambda: agent.orders._prompts, 20) is not None, flush=True)
sys.stdin.readline()
"""


def test_a_killed_agent_gets_again_what_it_had_not_dealt_with(harness: SdkHarness) -> None:
    """S114: kill -9 between hearing and acknowledging loses nothing."""
    session_id = str(uuid.uuid4())
    planner = harness.agent(f"planner-{uuid.uuid4().hex[:8]}")
    environment = clean_environment(
        OBSERVATORY_URL=harness.server.url,
        OBSERVATORY_KEY=harness.server.key("agent"),
        OBSERVATORY_DATA=str(harness.home),
    )
    command = [sys.executable, "-c", LIVES, harness.name, session_id]
    with subprocess.Popen(
        command, env=os.environ | environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        until(harness.archived)
        planner.session(session_id=session_id).step("Check this", recipient=harness.name).answer(PATIENCE_S)
        assert process.stdout.readline() == b"Check this\n"
        harness.do("inject", session_id, prompt="Use euros")
        assert process.stdout.readline() == b"True\n"
        process.send_signal(signal.SIGKILL)
    assert {item["kind"] for item in harness.inbox()} >= {"message", "inject"}
    heir = harness.agent()
    assert [one.text for one in heir.messages(PATIENCE_S)] == ["Check this"]
    until(lambda: heir.orders._prompts)
    assert [prompt.text for prompt in heir.prompts()] == ["Use euros"]
    until(lambda: not harness.inbox())


@pytest.mark.req(99, 133)
def test_async_agents_are_controlled_by_the_same_words(harness: SdkHarness) -> None:
    """S110-S114, S117: and their loop never stands still."""

    async def live() -> None:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += 1

        async def do(command: str, **body: Any) -> None:
            await asyncio.to_thread(harness.do, command, session.session_id, **body)

        ticking = asyncio.create_task(tick())
        async with AsyncAgent(harness.name, **harness.credentials()) as agent:
            assert await agent.listen(PATIENCE_S)
            async with agent.session() as session:
                await (await session.step("works")).answer(PATIENCE_S)
                await do("pause")
                await asyncio.to_thread(until, lambda: agent.orders.is_held(session.session_id))
                blocked = asyncio.create_task(agent.step("goes on"))
                before = ticks
                await asyncio.sleep(0.1)
                assert not blocked.done() and ticks > before
                await do("unpause")
                await (await blocked).answer(PATIENCE_S)

                asked = asyncio.create_task(agent.ask("Deploy", tool_call="deploy"))
                held = await asyncio.to_thread(harness.held)
                await do("approve", message_id=held["message_id"])
                assert await asked
                refused = asyncio.create_task(session.step("Deploy again", hitl_required=True))
                held = await asyncio.to_thread(harness.held)
                await do("reject", message_id=held["message_id"], note="enough")
                with pytest.raises(Denied, match="enough"):
                    await refused

                await do("inject", prompt="Use euros")
                await asyncio.to_thread(until, lambda: agent.orders._prompts)
                assert [prompt.text for prompt in session.prompts()] == ["Use euros"]
                await do("cancel", note="over")
                await asyncio.to_thread(until, lambda: agent.orders.is_cancelled(session.session_id))
                with pytest.raises(Cancelled, match="over"):
                    await session.step("too late")
        ticking.cancel()

    asyncio.run(asyncio.wait_for(live(), 3 * PATIENCE_S))

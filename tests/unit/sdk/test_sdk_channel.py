"""The channel itself: it comes back, counts each delivery once, and dies and forks with its process."""

import asyncio
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from observatory import Agent, AsyncAgent
from observatory.sdk import Cancelled, Denied, Outbox, orders
from tests.unit.sdk.sdk_control_gateway import PATIENCE_S, ControlGateway, controlling
from tests.unit.sdk.sdk_gateway import KEY, QUICK
from tests.waiting import until

PYTHON = sys.executable


@pytest.fixture
def gateway() -> Iterator[ControlGateway]:
    with controlling() as one:
        yield one


@pytest.fixture
def outbox(gateway: ControlGateway, tmp_path: Path) -> Iterator[Outbox]:
    one = Outbox("a", gateway.credentials(tmp_path), QUICK)
    yield one
    one.close()


def test_a_broken_channel_is_opened_again_and_nothing_counts_twice(
    gateway: ControlGateway, outbox: Outbox
) -> None:
    """S114."""
    agent = Agent("a", outbox=outbox)
    assert agent.listen(PATIENCE_S)
    gateway.deliver("message", {"n": 1})
    (first,) = agent.messages(PATIENCE_S)
    gateway.wait_acked(first.delivery_id)
    gateway.pending[first.delivery_id] = {"delivery_id": first.delivery_id, "kind": "message", "body": {}}
    gateway.acked.clear()  # our acknowledgement was lost
    gateway.drop_channels()
    gateway.wait_connected(2)
    gateway.wait_acked(first.delivery_id)
    gateway.stop()
    gateway.start()
    gateway.deliver("message", {"n": 2})
    assert [one.body_value("n") for one in agent.messages(PATIENCE_S)] == [2]


def test_what_was_taken_while_the_gateway_is_away_is_acknowledged_when_it_is_back(
    gateway: ControlGateway, outbox: Outbox
) -> None:
    """S114."""
    agent = Agent("a", outbox=outbox)
    agent.listen()
    known = gateway.deliver("inject", {"prompt": "Be brief"})
    until(lambda: agent.orders._prompts)
    gateway.stop()
    assert [prompt.text for prompt in agent.prompts()] == ["Be brief"]
    gateway.start()
    gateway.wait_acked(known)
    assert agent.prompts() == []


def test_the_greeting_says_how_things_stand(gateway: ControlGateway, outbox: Outbox) -> None:
    """S110: also an agent that was started while it is paused, or stopped, waits; S116."""
    agent = Agent("a", outbox=outbox)
    session = agent.session()
    instructions = {"version": 3, "text": "Be kind"}
    gateway.hello = {
        "paused": [session.session_id.upper()],
        "stopped": False,
        "instructions": instructions,
    }
    assert agent.listen(PATIENCE_S)
    assert agent.instructions == "Be kind"
    assert agent.orders.is_held(session.session_id) and not agent.orders.is_held("another")
    gateway.hello = {"paused": [], "stopped": True}
    gateway.drop_channels()
    until(lambda: agent.orders.is_held("another"))
    gateway.hello = {"paused": [], "stopped": False}
    gateway.drop_channels()
    until(lambda: agent.orders.is_free)


def test_an_order_that_a_later_one_overtook_changes_nothing(gateway: ControlGateway, outbox: Outbox) -> None:
    """S110: deliveries may come again in another order than they were made."""
    agent = Agent("a", outbox=outbox)
    agent.listen(PATIENCE_S)
    gateway.wait_acked(gateway.deliver("resume", {}, "s", sequence_number=9))
    gateway.wait_acked(gateway.deliver("hold", {}, "s", sequence_number=8))
    assert agent.orders.is_free


def test_what_does_not_fit_is_not_acknowledged_and_comes_again(
    gateway: ControlGateway, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S114: and orders are heard all the same."""
    monkeypatch.setattr(orders, "MAX_WAITING", 2)
    agent = Agent("a", outbox=outbox)
    agent.listen(PATIENCE_S)
    for n in range(3):
        gateway.deliver("message", {"n": n})
    gateway.wait_acked(gateway.deliver("hold", {}, "s"))
    assert agent.orders.is_held("s")
    assert [one.body_value("n") for one in agent.messages()] == [0, 1]
    gateway.again()
    assert [one.body_value("n") for one in agent.messages(PATIENCE_S)] == [2]


def test_a_verdict_nobody_waits_for_is_among_the_messages(gateway: ControlGateway, outbox: Outbox) -> None:
    """S114: the agent that asked may have died."""
    agent = Agent("a", outbox=outbox)
    gateway.deliver("verdict", {"step_id": "s1", "message_id": "msg_1", "verdict": "approved"}, "s")
    (late,) = agent.messages(PATIENCE_S)
    verdict = late.body_value("verdict")
    assert (late.kind, late.body_value("step_id"), verdict) == ("verdict", "s1", "approved")


def test_frames_that_cannot_be_read_do_not_end_the_channel(gateway: ControlGateway, outbox: Outbox) -> None:
    agent = Agent("a", outbox=outbox)
    agent.listen(PATIENCE_S)
    gateway.deliver("message", {}, sequence_number="not a number")
    gateway.deliver("a kind of the future", {"n": 1})
    (found,) = agent.messages(PATIENCE_S)
    assert found.kind == "a kind of the future"
    assert gateway.connections == 1


def test_a_refused_key_is_said_once_and_tried_again(
    gateway: ControlGateway, outbox: Outbox, caplog: pytest.LogCaptureFixture
) -> None:
    gateway.key = "obs_another"
    agent = Agent("a", outbox=outbox)
    assert not agent.listen(1.0)
    warnings = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
    assert len(warnings) == 1 and "refuses this key (401)" in warnings[0] and "obs_" not in caplog.text
    gateway.key = KEY
    assert agent.listen(PATIENCE_S)


def test_closing_acknowledges_what_was_taken(gateway: ControlGateway, tmp_path: Path) -> None:
    """S114."""
    outbox = Outbox("a", gateway.credentials(tmp_path), QUICK)
    agent = Agent("a", outbox=outbox)
    known = gateway.deliver("message", {})
    assert len(agent.messages(PATIENCE_S)) == 1
    started = time.monotonic()
    assert agent.close(PATIENCE_S)
    assert time.monotonic() - started < PATIENCE_S / 2
    assert gateway.acked == [known]
    assert not agent.listen(0.05)
    outbox.close()


READS_AND_DIES = """
import os, sys
from observatory import Agent
agent = Agent("a", heartbeat_s=None)
assert [m.body_value("n") for m in agent.messages(20)] == [1]
inbox = agent.incoming(20)
print(next(inbox).body_value("n"), flush=True)
sys.stdin.readline()
"""


def environment(gateway: ControlGateway, data: Path) -> dict[str, str]:
    return os.environ | {
        "OBSERVATORY_URL": gateway.url,
        "OBSERVATORY_KEY": KEY,
        "OBSERVATORY_DATA": str(data),
    }


def test_a_killed_agent_gets_again_what_it_had_not_dealt_with(
    gateway: ControlGateway, tmp_path: Path
) -> None:
    """S114."""
    first = gateway.deliver("message", {"n": 1})
    with subprocess.Popen(
        [PYTHON, "-c", READS_AND_DIES],
        env=environment(gateway, tmp_path),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        gateway.wait_acked(first)
        second = gateway.deliver("message", {"n": 2})
        assert process.stdout is not None and process.stdout.readline() == b"2\n"
        process.send_signal(signal.SIGKILL)
    assert second not in gateway.acked
    with Agent("a", url=gateway.url, key=KEY, data=tmp_path) as agent:
        assert [one.body_value("n") for one in agent.messages(PATIENCE_S)] == [2]
    gateway.wait_acked(second)


def test_the_end_of_the_program_ends_the_listening(gateway: ControlGateway, tmp_path: Path) -> None:
    script = 'from observatory import Agent; agent = Agent("a"); agent.step("One"); assert agent.listen(20)'
    started = time.monotonic()
    done = subprocess.run(
        [PYTHON, "-W", "error", "-c", script],
        env=environment(gateway, tmp_path),
        check=True,
        timeout=PATIENCE_S,
        capture_output=True,
    )
    assert done.stderr == b""
    assert time.monotonic() - started < PATIENCE_S / 2
    assert gateway.intents == ["One"]


def test_a_forked_child_listens_for_itself_and_keeps_what_is_in_force(
    gateway: ControlGateway, outbox: Outbox
) -> None:
    """S110, S114."""
    agent = Agent("a", outbox=outbox)
    agent.listen(PATIENCE_S)
    gateway.deliver("inject", {"prompt": "told to the parent"}, "s")
    gateway.hello = {"paused": ["s"], "stopped": False}
    gateway.wait_acked(gateway.deliver("hold", {}, "s"))
    pid = os.fork()
    if pid == 0:
        held = agent.orders.is_held("s") and not agent.orders._prompts
        heard = agent.listen(PATIENCE_S) and agent.step("said by the child").answer(PATIENCE_S).accepted
        os._exit(0 if held and heard else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert gateway.connections == 2
    gateway.wait_acked(gateway.deliver("resume", {}, "s"))  # the parent's channel still stands
    until(lambda: agent.orders.is_free)
    assert [prompt.text for prompt in agent.prompts()] == ["told to the parent"]


def test_many_agents_share_one_thread(gateway: ControlGateway, outbox: Outbox) -> None:
    agents = [Agent(f"a-{n}", outbox=outbox) for n in range(20)]
    assert all(agent.listen(PATIENCE_S) for agent in agents)
    ours = [thread for thread in threading.enumerate() if thread.name == "observatory-receiver"]
    assert len(ours) == 1
    before = len(outbox.receivers)
    agents[0].close(PATIENCE_S)
    assert len(outbox.receivers) == before - 1


def test_async_words_wait_without_blocking_the_loop(gateway: ControlGateway, outbox: Outbox) -> None:
    """S110-S114, the same words."""

    async def live() -> None:
        agent = AsyncAgent("a", outbox=outbox)
        async with agent.session() as session:
            assert await agent.listen(PATIENCE_S)
            await asyncio.to_thread(
                lambda: gateway.wait_acked(gateway.deliver("hold", {}, session.session_id))
            )
            paused = asyncio.create_task(session.step("second"))
            done, _ = await asyncio.wait([paused], timeout=0.02)
            assert not done
            gateway.deliver("resume", {}, session.session_id)
            assert (await (await paused).answer(PATIENCE_S)).accepted

            asked = asyncio.create_task(agent.step("Deploy", hitl_required=True))
            log = await asyncio.to_thread(gateway.held)
            gateway.judge_gate("approved", log)
            step = await asked
            assert step.verdict is not None and step.verdict.verdict == "approved"

            gateway.logs.clear()
            refused = asyncio.create_task(session.ask("Deploy again"))
            gateway.judge_gate("rejected", await asyncio.to_thread(gateway.held))
            assert not await refused
            with pytest.raises(Denied):
                await agent.step("Deploy", hitl_required=True, timeout=0.05)

            gateway.deliver("message", {"n": 1})
            gateway.deliver("message", {"n": 2})
            async for message in agent.incoming(PATIENCE_S):
                if message.body_value("n") == 2:
                    break
            decided = asyncio.create_task(agent.decide("Ship?", ["ship", "wait"]))
            await asyncio.to_thread(gateway.wait_for, lambda: bool(gateway.envelopes))
            decision_id = gateway.envelopes[0]["payload"]["decision_id"]
            gateway.deliver("decision", {"decision_id": decision_id, "selected_option_id": "wait"})
            choice = await decided
            assert choice == "wait"
            assert (await (await agent.confirm(choice, "success", "waits")).answer(PATIENCE_S)).accepted
            assert (await agent.register())["entity_id"] == "agt_1"

            waiting = asyncio.create_task(session.ask("Once more"))
            await asyncio.to_thread(gateway.wait_for, lambda: gateway.intents[-1] == "Once more")
            gateway.deliver("cancel", {"reason": "enough"}, session.session_id)
            with pytest.raises(Cancelled, match="enough"):
                await waiting
            with pytest.raises(Cancelled):
                async with session.tool("deploy"):
                    pytest.fail("the tool was called")

    asyncio.run(asyncio.wait_for(live(), PATIENCE_S))


def test_a_task_that_is_cancelled_at_a_gate_leaves_nothing_behind(
    gateway: ControlGateway, outbox: Outbox
) -> None:
    async def live() -> None:
        agent = AsyncAgent("a", outbox=outbox)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(agent.step("Deploy", hitl_required=True), 0.1)
        assert agent.orders._expected == {} == agent.orders._watchers

    asyncio.run(live())


@pytest.mark.parametrize("seed", range(3))
def test_through_any_weather_every_message_comes_once_and_in_order(
    seed: int, gateway: ControlGateway, outbox: Outbox
) -> None:
    """S114: channels break, sockets are forbidden and allowed, deliveries come again."""
    rng = Random(seed)
    agent = Agent("a", outbox=outbox)
    heard: list[int] = []
    sent = 0
    for _ in range(40):
        match rng.randrange(6):
            case 0:
                gateway.drop_channels()
            case 1:
                gateway.stop()
                gateway.start()
            case 2:
                gateway.again()
            case 3:
                gateway.sockets_open = rng.random() < 0.7
            case 4:
                gateway.key = rng.choice((KEY, "obs_another"))
        for _ in range(rng.randrange(5)):
            gateway.deliver("message", {"n": sent})
            sent += 1
        heard += [one.body_value("n") for one in agent.messages(rng.choice((0, 0.01)))]
    gateway.key = KEY
    while len(heard) < sent:
        found = agent.messages(PATIENCE_S)
        assert found
        heard += [one.body_value("n") for one in found]
    assert heard == list(range(sent))
    gateway.wait_for(lambda: not gateway.pending)
    assert agent.messages() == []

"""The SDK's promise of delivery: never blocks, never loses, never repeats, never out of order."""

import threading
import time
from pathlib import Path
from random import Random

import pytest

from observatory import Agent
from observatory.sdk import Outbox
from tests.unit.sdk.sdk_gateway import PATIENCE_S, QUICK, FakeClock, FakeGateway, agent_at, spooled


def test_a_step_is_answered_by_the_gateway(gateway: FakeGateway, tmp_path: Path) -> None:
    agent = agent_at(gateway, tmp_path)
    step = agent.step(
        "Verify revenue", tool_call="serp_search", tool_input={"query": "NVDA"}, status="success"
    )
    answer = step.answer(PATIENCE_S)
    assert (answer.code, answer.state, answer.step_id) == (202, "forwarded", step.step_id)
    assert gateway.logs[0]["action"]["tool_input"] == '{"query":"NVDA"}'
    assert agent.outbox.close()
    assert not list(tmp_path.rglob("*.jsonl"))


def test_steps_taken_together_travel_in_one_request(gateway: FakeGateway, tmp_path: Path) -> None:
    agent = agent_at(gateway, tmp_path, linger_s=PATIENCE_S)
    for n in range(500):
        agent.step(f"step {n}")
    assert agent.flush(PATIENCE_S)
    assert gateway.intents == [f"step {n}" for n in range(500)]
    assert max(len(lines) for lines in gateway.requests) == 200
    agent.outbox.close()


def test_what_is_said_while_the_gateway_is_away_arrives_in_order_and_once(
    gateway: FakeGateway, tmp_path: Path
) -> None:
    agent = agent_at(gateway, tmp_path)
    agent.step("step 0").answer(PATIENCE_S)
    gateway.stop()
    steps = [agent.step(f"step {n}") for n in range(1, 700)]
    assert agent.outbox.wait_for(lambda: agent.outbox.in_memory == 0, PATIENCE_S)
    assert len(spooled(tmp_path)) == 699
    gateway.start()
    later = agent.step("step 700")
    assert agent.flush(PATIENCE_S)
    assert gateway.intents == [f"step {n}" for n in range(701)]
    assert gateway.repeats == 0
    assert all(step.answer(0).accepted for step in [*steps, later])
    assert agent.outbox.close()
    assert not list(tmp_path.glob("spool/*"))


def test_a_hanging_gateway_never_blocks_the_agent_and_loses_nothing(
    gateway: FakeGateway, tmp_path: Path
) -> None:
    gateway.hang.set()
    agent = agent_at(gateway, tmp_path, max_queue=100, timeout_s=PATIENCE_S)
    agent.step("step 0")
    gateway.wait_for(lambda: len(gateway.requests) == 1)
    longest = 0.0
    for n in range(1, 2000):
        before = time.perf_counter()
        agent.step(f"step {n}")
        longest = max(longest, time.perf_counter() - before)
    assert longest < 1.0  # a blocked step would take the request's 20 s
    assert not agent.outbox.close(timeout=0.01)
    assert len(spooled(tmp_path)) == 2000
    gateway.let_go()
    next_start = agent_at(gateway, tmp_path)
    assert next_start.flush(PATIENCE_S)
    assert gateway.intents == [f"step {n}" for n in range(2000)]
    next_start.outbox.close()


def test_a_hanging_gateway_that_recovers_gets_each_line_once(gateway: FakeGateway, tmp_path: Path) -> None:
    gateway.hang.set()
    agent = agent_at(gateway, tmp_path, max_queue=10, timeout_s=PATIENCE_S)
    agent.step("step 0")
    gateway.wait_for(lambda: len(gateway.requests) == 1)
    for n in range(1, 95):
        agent.step(f"step {n}")
    gateway.let_go()
    assert agent.flush(PATIENCE_S)
    assert gateway.intents == [f"step {n}" for n in range(95)]
    assert gateway.repeats == 0
    agent.outbox.close()


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_is_honoured_to_the_second(status: int, gateway: FakeGateway, tmp_path: Path) -> None:
    clock = FakeClock()
    outbox = Outbox(
        "a", gateway.credentials(tmp_path), QUICK._replace(linger_s=0), clock=clock, jitter=lambda: 0.5
    )
    clock.rest(1)  # nothing to do
    gateway.replies.append((status, {"Retry-After": "8"}))
    step = Agent("a", outbox=outbox).step("patient")
    clock.rest(2)
    assert clock.waits[-1] == pytest.approx(9.0)  # 8 s and an eighth of jitter, never less than asked
    clock.advance(8.9, outbox.changed)
    clock.rest(3)
    assert clock.waits[-1] == pytest.approx(0.1)
    assert len(gateway.requests) == 1
    clock.advance(0.2, outbox.changed)
    assert step.answer(PATIENCE_S).accepted
    assert len(spooled(tmp_path)) == 0
    outbox.close()


def test_without_retry_after_the_wait_doubles_up_to_its_bound(gateway: FakeGateway, tmp_path: Path) -> None:
    clock = FakeClock()
    delivery = QUICK._replace(linger_s=0, backoff_s=1.0, max_backoff_s=5.0)
    outbox = Outbox("a", gateway.credentials(tmp_path), delivery, clock=clock, jitter=lambda: 1.0)
    clock.rest(1)
    gateway.replies.extend([(503, {})] * 5)
    step = Agent("a", outbox=outbox).step("patient")
    for n, expected in enumerate([1.0, 2.0, 4.0, 5.0, 5.0], 2):
        clock.rest(n)
        assert clock.waits[-1] == pytest.approx(expected)
        clock.advance(expected, outbox.changed)
    assert step.answer(PATIENCE_S).accepted
    outbox.close()


def test_lines_without_an_answer_are_sent_again(gateway: FakeGateway, tmp_path: Path) -> None:
    gateway.cut_after = 3
    agent = agent_at(gateway, tmp_path, linger_s=PATIENCE_S)
    for n in range(10):
        agent.step(f"step {n}")
    assert agent.flush(PATIENCE_S)
    assert gateway.intents == [f"step {n}" for n in range(10)]
    agent.outbox.close()


def test_threads_sharing_an_agent_keep_their_own_order(gateway: FakeGateway, tmp_path: Path) -> None:
    agent = agent_at(gateway, tmp_path)

    def talk(who: int) -> None:
        with agent.session():
            for n in range(100):
                agent.step(f"{who}/{n}")

    threads = [threading.Thread(target=talk, args=(who,)) for who in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert agent.flush(PATIENCE_S)
    for who in range(4):
        mine = [log for log in gateway.logs if log["cognition"]["intent"].startswith(f"{who}/")]
        assert [log["cognition"]["intent"] for log in mine] == [f"{who}/{n}" for n in range(100)]
        ids = [log["meta"]["step_id"] for log in mine]
        assert [log["meta"]["parent_step_id"] for log in mine] == [None, *ids[:-1]]
    agent.outbox.close()


@pytest.mark.parametrize("seed", range(4))
def test_through_any_weather_every_line_arrives_once_and_in_order(
    seed: int, gateway: FakeGateway, tmp_path: Path
) -> None:
    """The gateway goes, comes, is busy, cuts answers short; the agent restarts. Nothing of it shows."""
    rng = Random(seed)
    agent, said = agent_at(gateway, tmp_path, max_queue=40, batch_lines=16), 0
    for _ in range(40):
        match rng.randrange(6):
            case 0:
                gateway.stop()
            case 1:
                gateway.stop()
                gateway.start()
            case 2:
                gateway.replies.append((rng.choice((429, 500, 503)), {}))
            case 3:
                gateway.cut_after = rng.randrange(4)
            case 4:
                agent.outbox.close(timeout=rng.choice((0.0, 1.0)))
                agent = agent_at(gateway, tmp_path, max_queue=40, batch_lines=16)
        for _ in range(rng.randrange(60)):
            agent.step(f"step {said}")
            said += 1
    gateway.stop()
    gateway.start()
    assert agent.flush(PATIENCE_S)
    agent.outbox.close()
    assert gateway.intents == [f"step {n}" for n in range(said)]
    assert agent.outbox.lost == 0
    assert not list(tmp_path.glob("spool/*"))

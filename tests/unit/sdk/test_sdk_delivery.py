"""The SDK's promise of delivery: never blocks, never loses, never repeats, never out of order."""

import logging
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from observatory import Agent
from observatory.sdk import Lost, NotAnswered, Outbox, Rejected
from observatory.sdk.client import Answer
from observatory.sdk.refusals import MOST_KINDS, Refusals
from observatory.sdk.spool import Spool
from tests.unit.sdk.sdk_gateway import PATIENCE_S, QUICK, FakeClock, FakeGateway, running


@pytest.fixture
def gateway() -> Iterator[FakeGateway]:
    with running() as one:
        yield one


def agent_at(gateway: FakeGateway, data: Path, name: str = "researcher-1", **delivery: float) -> Agent:
    return Agent(name, outbox=Outbox(name, gateway.door(data), QUICK._replace(**delivery)))  # type: ignore[arg-type]


def spooled(data: Path) -> list[str]:
    return [line for path in sorted(data.glob("spool/*.jsonl")) for line in path.read_text().splitlines()]


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


def test_what_was_not_sent_at_close_is_sent_by_the_next_start(gateway: FakeGateway, tmp_path: Path) -> None:
    gateway.stop()
    first = agent_at(gateway, tmp_path)
    steps = [first.step(f"step {n}") for n in range(20)]
    assert not first.outbox.close()
    with pytest.raises(NotAnswered):
        steps[0].answer()
    gateway.start()
    second = agent_at(gateway, tmp_path)
    second.step("step 20")
    assert second.flush(PATIENCE_S)
    assert gateway.intents == [f"step {n}" for n in range(21)]
    assert gateway.repeats == 0
    second.outbox.close()
    assert not list(tmp_path.glob("spool/*"))


def test_a_spool_is_sent_only_by_its_agent_to_its_gateway_by_one_process(tmp_path: Path) -> None:
    with running() as ours, running() as other:
        ours.stop()
        holder = agent_at(ours, tmp_path)
        holder.step("waits")
        assert holder.outbox.wait_for(lambda: len(spooled(tmp_path)) == 1, PATIENCE_S)
        twin = agent_at(ours, tmp_path)  # the spool is locked by its living owner
        stranger = agent_at(ours, tmp_path, name="researcher")
        assert twin.flush(PATIENCE_S)
        assert stranger.flush(PATIENCE_S)
        holder.outbox.close()
        assert agent_at(other, tmp_path).flush(PATIENCE_S)  # same agent, another gateway
        assert other.requests == []
        assert len(spooled(tmp_path)) == 1
        for agent in (twin, stranger):
            agent.outbox.close()


def test_a_refused_step_is_told_to_the_log_the_callback_and_whoever_asks(
    gateway: FakeGateway, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[Rejected] = []
    outbox = Outbox("researcher-1", gateway.door(tmp_path), QUICK, on_reject=told.append)
    agent = Agent("researcher-1", outbox=outbox)
    bad = agent.step("Publish", confidence_score=1.7)
    good = agent.step("Publish", confidence_score=0.7)
    with pytest.raises(Rejected) as caught:
        bad.answer(PATIENCE_S)
    assert caught.value.code == 422
    assert caught.value.faults[0].path == "$"
    assert good.answer(PATIENCE_S).accepted
    assert outbox.close()
    assert [r.step_id for r in told] == [bad.step_id] == [r.step_id for r in agent.rejections]
    assert agent.rejections[-1:] == agent.rejections  # a list of its own, newest last
    agent.rejections.clear()
    assert len(agent.rejections) == 1
    assert "schema_violation ($: " in caplog.text
    assert len(gateway.logs) == 1
    assert sum(len(lines) for lines in gateway.requests) == 2  # never sent again


BROKE = {
    "code": 402, "status": "refused", "reason": "budget_exceeded", "cap": "session:* hard 5", "rule_id": None,
    "detail": "session s may spend 5 in all",
}  # fmt: skip


def test_a_refusal_explains_itself(gateway: FakeGateway, tmp_path: Path) -> None:
    gateway.refusal = BROKE
    agent = agent_at(gateway, tmp_path)
    with pytest.raises(Rejected) as caught:
        agent.step("Spend").answer(PATIENCE_S)
    told = "was refused with 402: budget_exceeded: session:* hard 5: session s may spend 5 in all"
    assert str(caught.value).endswith(told)
    assert (caught.value.detail, caught.value.answer.cap) == (BROKE["detail"], BROKE["cap"])
    agent.outbox.close()


def test_the_same_refusal_is_logged_once_and_then_counted(
    gateway: FakeGateway, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    gateway.refusal = BROKE
    agent = agent_at(gateway, tmp_path)
    for n in range(250):
        agent.step(f"step {n}", cost=n)
    assert agent.flush(PATIENCE_S)
    gateway.refusal = BROKE | {"cap": "tenant hard 50"}
    agent.step("refused for another reason")
    assert agent.flush(PATIENCE_S)
    assert [len(agent.rejections), len(agent.rejections[-10:])] == [251, 10]
    agent.outbox.close()
    told = [record.getMessage() for record in caplog.records if "refused with" in record.getMessage()]
    counts = [text.split(" more like it")[0].split()[-1] if "more like" in text else "" for text in told]
    assert counts == ["", "100", "100", "", "49"]
    assert "session:* hard 5" in told[0] and "tenant hard 50" in told[3]


def test_a_refusal_that_goes_on_is_told_once_a_minute_and_kinds_are_bounded(
    caplog: pytest.LogCaptureFixture,
) -> None:
    refusals = Refusals("a")

    def note(cap: str, now: float, detail: str = "") -> int:
        refusals.note(Rejected(Answer(402, reason="budget_exceeded", cap=cap, detail=detail), "s"), now)
        return len(caplog.records)

    assert [note("x", now, f"spent {now}") for now in (0.0, 1.0, 59.0, 61.0, 62.0, 121.5)] == [
        1,
        1,
        1,
        2,
        2,
        3,
    ]
    assert "3 more like it" in caplog.messages[1] and "spent 61" in caplog.messages[1]
    assert note("x", 122.0) == 3
    for n in range(MOST_KINDS):
        note(f"cap {n}", 122.0)
    assert len(refusals._kinds) == MOST_KINDS
    assert "1 more like it" in caplog.messages[-1]  # told before it is forgotten
    refusals.tell_rest(123.0)
    assert len(caplog.records) == 4 + MOST_KINDS


def test_a_callback_that_fails_does_not_stop_delivery(gateway: FakeGateway, tmp_path: Path) -> None:
    def explode(_: Rejected) -> None:
        raise RuntimeError("the agent's own bug")

    agent = Agent("a", outbox=Outbox("a", gateway.door(tmp_path), QUICK, on_reject=explode))
    agent.raw({})
    assert agent.step("goes on").answer(PATIENCE_S).accepted
    agent.outbox.close()


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
    outbox = Outbox("a", gateway.door(tmp_path), QUICK._replace(linger_s=0), clock=clock, jitter=lambda: 0.5)
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
    outbox = Outbox("a", gateway.door(tmp_path), delivery, clock=clock, jitter=lambda: 1.0)
    clock.rest(1)
    gateway.replies.extend([(503, {})] * 5)
    step = Agent("a", outbox=outbox).step("patient")
    for n, expected in enumerate([1.0, 2.0, 4.0, 5.0, 5.0], 2):
        clock.rest(n)
        assert clock.waits[-1] == pytest.approx(expected)
        clock.advance(expected, outbox.changed)
    assert step.answer(PATIENCE_S).accepted
    outbox.close()


def test_a_refused_key_is_said_once_and_the_lines_are_kept(
    gateway: FakeGateway, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    gateway.key = "obs_another"
    agent = agent_at(gateway, tmp_path)
    agent.step("kept")
    gateway.wait_for(lambda: len(gateway.requests) >= 3)
    errors = [r.getMessage() for r in caplog.records if r.levelno == logging.ERROR]
    assert len(errors) == 1
    assert "refuses this key (401)" in errors[0]
    assert "obs_" not in caplog.text
    assert len(spooled(tmp_path)) == 1
    gateway.key = "obs_test_key"
    assert agent.flush(PATIENCE_S)
    assert gateway.intents == ["kept"]
    agent.outbox.close()


def test_a_request_too_large_is_halved_until_the_culprit_stands_alone(
    gateway: FakeGateway, tmp_path: Path
) -> None:
    gateway.refuse_size = 20_000
    agent = agent_at(gateway, tmp_path, linger_s=PATIENCE_S)
    steps = [
        agent.step(f"step {n}", tool_output_summary="x" * (30_000 if n == 33 else 10)) for n in range(60)
    ]
    assert agent.flush(PATIENCE_S)
    with pytest.raises(Rejected) as caught:
        steps[33].answer(0)
    assert caught.value.code == 413
    assert gateway.intents == [f"step {n}" for n in range(60) if n != 33]
    agent.outbox.close()


def test_lines_without_an_answer_are_sent_again(gateway: FakeGateway, tmp_path: Path) -> None:
    gateway.cut_after = 3
    agent = agent_at(gateway, tmp_path, linger_s=PATIENCE_S)
    for n in range(10):
        agent.step(f"step {n}")
    assert agent.flush(PATIENCE_S)
    assert gateway.intents == [f"step {n}" for n in range(10)]
    agent.outbox.close()


def test_when_memory_and_spool_are_full_it_says_so_and_goes_on(
    gateway: FakeGateway, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    gateway.stop()
    agent = agent_at(gateway, tmp_path, max_queue=5, spool_bytes=4000, linger_s=PATIENCE_S)
    steps = [agent.step(f"step {n}") for n in range(60)]
    lost = [step for step in steps if isinstance(step.outcome, Lost)]
    assert agent.outbox.lost == len(lost) > 0
    with pytest.raises(Lost):
        lost[0].answer(0)
    assert "is full (4000 bytes)" in caplog.text
    gateway.start()
    assert agent.flush(PATIENCE_S)
    assert len(gateway.logs) == 60 - len(lost)
    agent.outbox.close()


def test_a_folder_that_cannot_be_written_leaves_messages_in_memory(
    gateway: FakeGateway, tmp_path: Path
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    gateway.stop()
    agent = agent_at(gateway, blocked)
    agent.step("kept in memory")
    gateway.start()
    assert agent.flush(PATIENCE_S)
    assert agent.outbox.close()


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


def test_a_step_said_after_close_waits_on_disk(gateway: FakeGateway, tmp_path: Path) -> None:
    agent = agent_at(gateway, tmp_path)
    agent.outbox.close()
    agent.step("too late")
    assert len(spooled(tmp_path)) == 1
    again = agent_at(gateway, tmp_path)
    assert again.flush(PATIENCE_S)
    assert gateway.intents == ["too late"]
    again.outbox.close()


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


def test_a_spool_is_free_for_the_next_start_though_a_flush_of_it_still_runs(tmp_path: Path) -> None:
    spool = Spool.create(tmp_path, "a", "http://gateway", 1000)
    spool.append([b"{}"])
    kept = os.dup(spool._fd)  # as a system call in another thread keeps it past the close
    spool.release()
    (adopted,) = Spool.adopt(tmp_path, "a", "http://gateway", 1000)
    adopted.release()
    os.close(kept)

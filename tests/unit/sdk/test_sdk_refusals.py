"""What the gateway refuses: said to the log, the callback and whoever asks, and never sent again."""

import logging
from pathlib import Path

import pytest

from observatory import Agent
from observatory.sdk import Outbox, Rejected
from observatory.sdk.answers import Answer
from observatory.sdk.refusals import MAX_KINDS, RefusalLog
from tests.unit.sdk.sdk_gateway import PATIENCE_S, QUICK, FakeGateway, agent_at, spooled

BROKE = {
    "code": 402, "status": "refused", "reason": "budget_exceeded", "cap": "session:* hard 5", "rule_id": None,
    "detail": "session s may spend 5 in all",
}  # fmt: skip


def test_a_refused_step_is_told_to_the_log_the_callback_and_whoever_asks(
    gateway: FakeGateway, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    received: list[Rejected] = []
    outbox = Outbox("researcher-1", gateway.credentials(tmp_path), QUICK, on_reject=received.append)
    agent = Agent("researcher-1", outbox=outbox)
    bad = agent.step("Publish", confidence_score=1.7)
    good = agent.step("Publish", confidence_score=0.7)
    with pytest.raises(Rejected) as caught:
        bad.answer(PATIENCE_S)
    assert caught.value.code == 422
    assert caught.value.faults[0].path == "$"
    assert good.answer(PATIENCE_S).accepted
    assert outbox.close()
    assert [r.step_id for r in received] == [bad.step_id] == [r.step_id for r in agent.rejections]
    assert agent.rejections[-1:] == agent.rejections  # a list of its own, newest last
    agent.rejections.clear()
    assert len(agent.rejections) == 1
    assert "schema_violation ($: " in caplog.text
    assert len(gateway.logs) == 1
    assert sum(len(lines) for lines in gateway.requests) == 2  # never sent again


def test_a_refusal_explains_itself(gateway: FakeGateway, tmp_path: Path) -> None:
    gateway.refusal = BROKE
    agent = agent_at(gateway, tmp_path)
    with pytest.raises(Rejected) as caught:
        agent.step("Spend").answer(PATIENCE_S)
    received = "was refused with 402: budget_exceeded: session:* hard 5: session s may spend 5 in all"
    assert str(caught.value).endswith(received)
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
    received = [record.getMessage() for record in caplog.records if "refused with" in record.getMessage()]
    counts = [text.split(" more like it")[0].split()[-1] if "more like" in text else "" for text in received]
    assert counts == ["", "100", "100", "", "49"]
    assert "session:* hard 5" in received[0] and "tenant hard 50" in received[3]


def test_a_refusal_that_goes_on_is_told_once_a_minute_and_kinds_are_bounded(
    caplog: pytest.LogCaptureFixture,
) -> None:
    refusals = RefusalLog("a")

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
    for n in range(MAX_KINDS):
        note(f"cap {n}", 122.0)
    assert len(refusals._kinds) == MAX_KINDS
    assert "1 more like it" in caplog.messages[-1]  # told before it is forgotten
    refusals.log_rest(123.0)
    assert len(caplog.records) == 4 + MAX_KINDS


def test_a_callback_that_fails_does_not_stop_delivery(gateway: FakeGateway, tmp_path: Path) -> None:
    def explode(_: Rejected) -> None:
        raise RuntimeError("the agent's own bug")

    agent = Agent("a", outbox=Outbox("a", gateway.credentials(tmp_path), QUICK, on_reject=explode))
    agent.raw({})
    assert agent.step("goes on").answer(PATIENCE_S).accepted
    agent.outbox.close()


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

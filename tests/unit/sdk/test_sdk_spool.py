"""What could not be sent waits on disk, bounded, for the next start of the same agent."""

import os
from pathlib import Path

import pytest

from observatory.sdk import Lost, NotAnswered
from observatory.sdk.spool import Spool
from tests.unit.sdk.sdk_gateway import PATIENCE_S, FakeGateway, agent_at, running, spooled


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


def test_a_step_said_after_close_waits_on_disk(gateway: FakeGateway, tmp_path: Path) -> None:
    agent = agent_at(gateway, tmp_path)
    agent.outbox.close()
    agent.step("too late")
    assert len(spooled(tmp_path)) == 1
    again = agent_at(gateway, tmp_path)
    assert again.flush(PATIENCE_S)
    assert gateway.intents == ["too late"]
    again.outbox.close()


def test_a_spool_is_free_for_the_next_start_though_a_flush_of_it_still_runs(tmp_path: Path) -> None:
    spool = Spool.create(tmp_path, "a", "http://gateway", 1000)
    spool.append([b"{}"])
    kept = os.dup(spool._fd)  # as a system call in another thread keeps it past the close
    spool.release()
    (adopted,) = Spool.adopt(tmp_path, "a", "http://gateway", 1000)
    adopted.release()
    os.close(kept)

"""What the SDK promises across processes: exit, kill -9, fork."""

import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

from observatory import Agent
from observatory.sdk import Outbox
from tests.unit.sdk.sdk_gateway import KEY, PATIENCE_S, QUICK, FakeGateway

PYTHON = sys.executable


def environment(gateway: FakeGateway, data: Path) -> dict[str, str]:
    return os.environ | {
        "OBSERVATORY_URL": gateway.url,
        "OBSERVATORY_KEY": KEY,
        "OBSERVATORY_DATA": str(data),
    }


def test_two_lines_and_the_end_of_the_program_are_enough(gateway: FakeGateway, tmp_path: Path) -> None:
    script = 'from observatory import Agent; agent = Agent("researcher-1")\nagent.step("Verify revenue")'
    subprocess.run([PYTHON, "-c", script], env=environment(gateway, tmp_path), check=True, timeout=PATIENCE_S)
    assert gateway.intents == ["Verify revenue"]
    assert gateway.logs[0]["identity"] == {
        "agent_id": "researcher-1", "agent_type": "researcher", "capability_version": "1.0.0",
    }  # fmt: skip


SPOOLS_AND_WAITS = """
from observatory import Agent
agent = Agent("researcher-1")
for n in range(300):
    agent.step(f"step {n}")
agent.outbox.wait_for(lambda: agent.outbox.in_memory == 0, 20)
print("spooled", flush=True)
input()
"""


def test_what_a_killed_process_spooled_is_sent_by_the_next_of_its_name(
    gateway: FakeGateway, tmp_path: Path
) -> None:
    gateway.stop()
    with subprocess.Popen(
        [PYTHON, "-c", SPOOLS_AND_WAITS],
        env=environment(gateway, tmp_path),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"spooled\n"
        process.send_signal(signal.SIGKILL)
    (spool,) = tmp_path.glob("spool/*.jsonl")
    assert spool.name.startswith(f"researcher-1-{process.pid}.")
    assert spool.stat().st_mode & 0o777 == 0o600
    gateway.start()
    with Agent("researcher-1", url=gateway.url, key=KEY, data=tmp_path) as agent:
        agent.step("step 300")
        assert agent.flush(PATIENCE_S)
    assert gateway.intents == [f"step {n}" for n in range(301)]
    assert gateway.repeats == 0
    assert not list(tmp_path.glob("spool/*"))


def test_a_forked_child_speaks_for_itself(gateway: FakeGateway, tmp_path: Path) -> None:
    agent = Agent(
        "parent", outbox=Outbox("parent", gateway.credentials(tmp_path), QUICK._replace(linger_s=PATIENCE_S))
    )
    agent.step("said before the fork")  # still queued: the parent's to send, not the child's
    pid = os.fork()
    if pid == 0:
        agent.step("said by the child")
        os._exit(0 if agent.flush(PATIENCE_S) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert gateway.intents == ["said by the child"]
    assert agent.flush(PATIENCE_S)
    assert gateway.intents == ["said by the child", "said before the fork"]
    child, parent = gateway.logs
    assert child["meta"]["parent_step_id"] == parent["meta"]["step_id"]
    agent.outbox.close()


def test_a_fork_does_not_hold_the_lock_of_its_parents_spool(gateway: FakeGateway, tmp_path: Path) -> None:
    gateway.stop()
    agent = Agent("parent", outbox=Outbox("parent", gateway.credentials(tmp_path), QUICK))
    agent.step("spooled")
    assert agent.outbox.wait_for(lambda: agent.outbox.in_memory == 0, PATIENCE_S)
    reader, writer = os.pipe()
    forked, received = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(writer)
        os.write(received, b"1")
        os.read(reader, 1)  # lives on until the parent is done
        os._exit(0)
    assert os.read(forked, 1) == b"1"
    agent.outbox.close()
    gateway.start()
    with Agent("parent", url=gateway.url, key=KEY, data=tmp_path) as heir:
        assert heir.flush(PATIENCE_S)
    assert gateway.intents == ["spooled"]
    for end in (writer, reader, forked, received):
        os.close(end)
    os.waitpid(pid, 0)


def test_a_multiprocessing_child_flushes_when_it_ends(gateway: FakeGateway, tmp_path: Path) -> None:
    agent = Agent(
        "pool", outbox=Outbox("pool", gateway.credentials(tmp_path), QUICK._replace(linger_s=PATIENCE_S))
    )
    context = multiprocessing.get_context("fork")
    child = context.Process(target=agent.step, args=("said in a pool",))
    child.start()
    child.join(PATIENCE_S)
    assert gateway.intents == ["said in a pool"]
    agent.outbox.close()


def test_importing_the_package_loads_no_http_client() -> None:
    script = "import observatory, sys; sys.exit('httpx2' in sys.modules or 'observatory.sdk' in sys.modules)"
    subprocess.run([PYTHON, "-c", script], check=True, timeout=PATIENCE_S)

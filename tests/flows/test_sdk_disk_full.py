"""A full disk while the gateway is away: the SDK keeps steps in memory, bounded, and says what it had to
give up.

The disk is made full by the kernel: with RLIMIT_FSIZE no write of the agent's process succeeds, as any
user.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.flows.led import Led, plain_node, plain_python
from tests.flows.sdk_harness import Json, SdkHarness, until
from tests.flows.server import Server

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="prlimit and /proc are Linux's")
LANGUAGES = {"python": (plain_python, "spool"), "typescript": (plain_node, "spool-ts")}
QUEUE = 1000
SLOWEST_STEP_S = 0.002


def fill_disk(agent: Led) -> None:
    resource.prlimit(agent.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))


def free_disk(agent: Led) -> None:
    resource.prlimit(agent.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def descriptors(agent: Led) -> int:
    return len(os.listdir(f"/proc/{agent.pid}/fd"))


@pytest.mark.req(99, 182)
@pytest.mark.parametrize("language", LANGUAGES)
def test_on_a_full_disk_nothing_leaks_or_slows_and_none_of_1000_steps_is_lost_s1081(
    language: str, fresh_server: Server, tmp_path: Path
) -> None:
    start: Callable[[SdkHarness, dict[str, float]], Led]
    start, folder = LANGUAGES[language]
    harness = SdkHarness(fresh_server, tmp_path / "agent")
    agent = start(harness, {"max_queue": QUEUE})
    try:
        agent.steps(0, 100)
        assert agent.flush()
        before = descriptors(agent)
        fresh_server.kill()
        fill_disk(agent)
        agent.steps(100, 100 + QUEUE)
        assert agent.in_memory() == QUEUE
        assert agent.lost() == 0
        began = time.monotonic()
        agent.steps(5000, 7000)
        assert time.monotonic() - began < 2000 * SLOWEST_STEP_S
        assert agent.lost() == 2000, "counted: no room in memory and none on disk"
        assert agent.in_memory() == QUEUE
        assert descriptors(agent) <= before + 2
        assert os.listdir(harness.home / folder) == []

        fresh_server.start()
        assert agent.flush()
        assert agent.lost() == 2000
        assert harness.archived()[0]["message"]["cognition"]["intent"] == "step 0"
        fresh_server.kill()
        agent.steps(1100, 1300)
        free_disk(agent)
        until(lambda: agent.in_memory() == 0)
    finally:
        agent.kill()
    fresh_server.start()
    heir = start(harness, {})
    assert heir.flush()
    heir.kill()
    got: list[str] = []
    for after in (0, QUEUE):
        query: Json = {"agent_id": harness.name, "after": after, "limit": 1000}
        items = harness.server.http("admin").get("/v1/messages", params=query).json()["items"]
        got += [item["message"]["cognition"]["intent"] for item in items]
    assert list(dict.fromkeys(got)) == [f"step {n}" for n in range(1300)]

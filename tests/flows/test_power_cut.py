"""A power cut while the gateway is away: what the SDK had flushed arrives, from either SDK, whatever the
disk kept.

The folder is rebuilt as the cut leaves it (tests/flows/power_cut.py), for many moments at which the
system may have written everything back by itself, and a new agent is started on it. 1,000 steps, none
lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from observatory import Agent
from observatory.sdk.delivery import Delivery
from tests.flows.led import Led, recorded_node, recorded_python
from tests.flows.node_agent import NodeAgent
from tests.flows.power_cut import is_safe, journal_of, left_of, rebuild
from tests.flows.sdk_harness import PATIENCE_S, SdkHarness, until
from tests.flows.server import Server
from tests.unit.sdk.sdk_gateway import FakeGateway

STEPS = [f"step {n}" for n in range(1000)]
MOMENTS = 12


def spool_on_disk(agent: Led, journal: Path) -> None:
    """All is in the spool, and nothing was written to it since it was flushed."""

    until(lambda: agent.in_memory() == 0 and is_safe(journal_of(journal)))


@contextmanager
def pretending(server: Server) -> Iterator[FakeGateway]:
    """In the place of a gateway that is gone: it has seen nothing yet."""
    gateway = FakeGateway()
    gateway.port, gateway.key = server.port, server.key("agent")
    gateway.start()
    try:
        yield gateway
    finally:
        gateway.stop()


def heir_of_python(harness: SdkHarness, home: Path) -> None:
    with Agent(
        harness.name, **(harness.credentials() | {"data": home}), control=False, delivery=Delivery()
    ) as heir:
        assert heir.flush(PATIENCE_S)


def heir_of_node(harness: SdkHarness, home: Path) -> None:
    with NodeAgent(harness.server, harness.name, home, control=False) as heir:
        assert heir.run(f"return await agent.flush({{timeout_s: {PATIENCE_S}}})")


LANGUAGES = {"python": (recorded_python, heir_of_python), "typescript": (recorded_node, heir_of_node)}


@pytest.mark.req(99, 182)
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_power_cut_strands_no_spool_and_loses_none_of_1000_flushed_steps_s1080(
    language: str, fresh_server: Server, tmp_path: Path
) -> None:
    """S1080: two outages, the first one drained, then the cut."""
    recorded, start_heir = LANGUAGES[language]
    (home := tmp_path / "agent").mkdir()
    harness, journal = SdkHarness(fresh_server, home), tmp_path / "journal"
    agent: Led = recorded(harness, journal)
    try:
        agent.steps(0, 100)
        assert agent.flush()
        fresh_server.kill()
        agent.steps(100, 400)
        spool_on_disk(agent, journal)
        fresh_server.start()
        assert agent.flush()
        fresh_server.kill()
        for first in range(400, 1000, 200):
            agent.steps(first, first + 200)
            spool_on_disk(agent, journal)
    finally:
        agent.kill()
    acts = journal_of(journal)
    seen = {str(path): path.read_bytes() for path in home.rglob("*") if path.is_file()}
    assert left_of(acts, len(acts), names_survive=True) == seen, "the journal tells all that was done"

    with pretending(fresh_server) as gateway:
        for n, moment in enumerate(range(0, len(acts) + 1, max(len(acts) // MOMENTS, 1))):
            gateway.logs, gateway._seen = [], {}
            left = left_of(acts, moment, names_survive=n % 2 == 1)
            start_heir(harness, rebuild(left, home, tmp_path / f"after-{n}"))
            lost = set(STEPS[400:]) - set(gateway.intents)
            assert not lost, f"{len(lost)} lost when all was written back after {moment} acts"

    fresh_server.start()
    start_heir(harness, rebuild(left_of(acts, 0, names_survive=True), home, tmp_path / "again"))
    assert harness.intents() == STEPS

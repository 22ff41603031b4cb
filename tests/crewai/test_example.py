"""`examples/crewai`: a real process with a real crew, paused, told something and resumed by an operator."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from tests.flows.sdk_harness import PATIENCE_S, SdkHarness, until
from tests.flows.server import clean_environment

QUIET_S = 2.0  # a step takes a fifth of a second


@pytest.mark.req(97, 187)
def test_the_example_is_paused_and_resumed_by_an_operator_s927(harness: SdkHarness) -> None:
    harness.name = "bookkeeper"
    running = subprocess.Popen(
        [sys.executable, "examples/crewai/crew.py", "5000"],
        env=clean_environment(OBSERVATORY_DATA=str(harness.server.folder)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        until(lambda: "Called read_invoice" in harness.intents(), 2 * PATIENCE_S)
        session = harness.archived()[0]["session_id"]
        harness.do("pause", session)
        until(lambda: not harness.inbox())  # acknowledged
        # The pause may come between a call and its result; either way nothing more is done once it holds.
        said = _when_quiet(harness)
        harness.do("inject", session, prompt="That is enough for today.")
        assert _when_quiet(harness) == said and running.poll() is None
        harness.do("unpause", session)
        out, err = running.communicate(timeout=2 * PATIENCE_S)
    finally:
        running.kill()
        running.wait()
    assert running.returncode == 0, err
    assert f"session {session}: A person said: That is enough for today." in out
    assert harness.intents()[-1] == "Finish the crew's work"


def _when_quiet(harness: SdkHarness) -> list[str]:
    """What it did, once nothing was added for as long as several of its steps take."""
    last, since = harness.intents(), time.monotonic()

    def is_quiet() -> bool:
        nonlocal last, since
        if (now := harness.intents()) != last:
            last, since = now, time.monotonic()
        return time.monotonic() - since > QUIET_S

    until(is_quiet)
    return last

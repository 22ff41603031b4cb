"""`examples/crewai`: a real process with a real crew, paused, told something and resumed by an operator."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from tests.flows.sdk_desk import PATIENCE_S, Desk, until
from tests.flows.server import clean_environment

QUIET_S = 2.0  # a step takes a fifth of a second


@pytest.mark.req(97, 187)
def test_the_example_is_paused_and_resumed_by_an_operator_s927(desk: Desk) -> None:
    desk.name = "bookkeeper"
    running = subprocess.Popen(
        [sys.executable, "examples/crewai/crew.py", "5000"],
        env=clean_environment(OBSERVATORY_DATA=str(desk.server.folder)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        until(lambda: "Called read_invoice" in desk.intents(), 2 * PATIENCE_S)
        session = desk.archived()[0]["session_id"]
        desk.do("pause", session)
        until(lambda: not desk.inbox())  # acknowledged
        # The pause may come between a call and its result; either way nothing more is done once it holds.
        said = _when_quiet(desk)
        desk.do("inject", session, prompt="That is enough for today.")
        assert _when_quiet(desk) == said and running.poll() is None
        desk.do("unpause", session)
        out, err = running.communicate(timeout=2 * PATIENCE_S)
    finally:
        running.kill()
        running.wait()
    assert running.returncode == 0, err
    assert f"session {session}: A person said: That is enough for today." in out
    assert desk.intents()[-1] == "Finish the crew's work"


def _when_quiet(desk: Desk) -> list[str]:
    """What it did, once nothing was added for as long as several of its steps take."""
    last, since = desk.intents(), time.monotonic()

    def is_quiet() -> bool:
        nonlocal last, since
        if (now := desk.intents()) != last:
            last, since = now, time.monotonic()
        return time.monotonic() - since > QUIET_S

    until(is_quiet)
    return last

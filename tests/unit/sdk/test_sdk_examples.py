"""Every example of the SDK runs against a gateway and ends well."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from observatory import Agent
from observatory.sdk import Outbox
from tests.unit.sdk.sdk_control_gateway import PATIENCE_S, controlling
from tests.unit.sdk.sdk_gateway import KEY, QUICK, running
from tests.waiting import aside

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.parametrize(("name", "steps"), [("first_agent", 3), ("async_agent", 5), ("fork_join", 5)])
def test_the_example_runs(name: str, steps: int, tmp_path: Path) -> None:
    with running() as gateway:
        environment = os.environ | {"OBSERVATORY_URL": gateway.url, "OBSERVATORY_KEY": KEY}
        environment |= {"OBSERVATORY_DATA": str(tmp_path)}
        command = [sys.executable, str(EXAMPLES / f"{name}.py")]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=30, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert "forwarded" in done.stdout
        assert len(gateway.logs) == steps


def test_the_intervene_example_does_what_was_approved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """S112: both ways to ask act on the edit."""
    example = runpy.run_path(str(EXAMPLES / "intervene/agent.py"))
    with controlling() as gateway:
        agent = Agent("a", outbox=Outbox("a", gateway.credentials(tmp_path), QUICK))
        paid = aside(lambda: example["pay"](agent, 6, 98_000))
        action = {"tool_call": "pay", "tool_input": '{"invoice":5,"amount":9800}'}
        gateway.judge_gate("edited", gateway.held(), content={"action": action})
        paid.result(PATIENCE_S)
        closed = aside(lambda: example["close_the_books"](agent))
        gateway.wait_for(lambda: gateway.intents[-1] == "Close the books")
        action = {"tool_call": "close_books", "tool_input": '{"month":"September"}'}
        gateway.judge_gate("edited", gateway.held(), content={"action": action})
        closed.result(PATIENCE_S)
        agent.outbox.close()
        done = next(log for log in gateway.logs if log["cognition"]["intent"] == "Paid invoice 5")
        assert done["action"]["tool_input"] == '{"invoice":5,"amount":9800}'
    received = capsys.readouterr().out
    assert "edited: pays 9,800 for invoice 5" in received and "closes the books of September" in received

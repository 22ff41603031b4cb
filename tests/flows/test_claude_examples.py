"""The examples with Claude: the real programs, a scripted model, an operator who pauses and resumes them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.flows.claude import Project, bash
from tests.flows.scripted_model import ScriptedModel, Turn
from tests.flows.server import Server
from tests.waiting import PATIENCE_S, until

EXAMPLES = Path("examples/claude").resolve()


@pytest.mark.req(50, 99)
@pytest.mark.parametrize(
    ("words", "agent"),
    [(["agent_sdk.py", "do it"], "coder-1"), (["hooks.py", ".", "do it"], None)],
    ids=["agent_sdk", "hooks"],
)
def test_the_example_is_paused_and_resumed_s891(
    words: list[str], agent: str | None, server: Server, tmp_path: Path
) -> None:
    """S891, S882."""
    project = Project(server, tmp_path)
    project.agent = agent or project.agent
    (project.folder / ".claude" / "settings.json").unlink()
    before = {step["meta"]["step_id"] for step in project.steps()}

    def session_id() -> str:
        fresh = [step for step in project.steps() if step["meta"]["step_id"] not in before]
        return str(fresh[0]["meta"]["session_id"]) if fresh else ""

    def paused() -> Turn:
        project.do("pause", until(session_id))
        return [bash("echo hello > said")]

    model = ScriptedModel(paused, ["all done"])
    run = subprocess.Popen(
        [sys.executable, str(EXAMPLES / words[0]), *words[1:]],
        cwd=project.folder,
        env=project.environment(model),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        until(lambda: len(model.asked) == 1)

        def is_known() -> bool:
            told = server.http("operator").get(f"/v1/sessions/{session_id()}/interventions").json()["items"]
            return any(one["acknowledged_at"] for one in told if one["command"] == "pause")

        until(is_known)
        assert not (project.folder / "said").exists()
        project.do("unpause", session_id())
        out, err = run.communicate(timeout=PATIENCE_S * 2)
    finally:
        run.kill()
        model.close()
    assert run.returncode == 0, err
    assert "all done" in out and (project.folder / "said").read_text() == "hello\n"

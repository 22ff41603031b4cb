"""The examples with Claude: the real programs, a scripted model, an operator who holds them meanwhile."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.flows.claude import Project, bash
from tests.flows.scripted_model import Script, ScriptedModel, Turn
from tests.flows.server import Server
from tests.waiting import PATIENCE_S, until

EXAMPLES = Path("examples/adapters").resolve()


class Example(Project):
    """One example at work in a folder of its own. It is commanded in the model's turns, so before the tool
    that the model then asks for."""

    def __init__(self, server: Server, folder: Path, agent: str | None = None) -> None:
        super().__init__(server, folder)
        self.agent = agent or self.agent
        (self.folder / ".claude" / "settings.json").unlink()
        self.known = {step["meta"]["session_id"] for step in self.steps()}

    def session(self) -> str:
        """Of this run, once it has spoken."""

        def look() -> list[str]:
            ids = [str(step["meta"]["session_id"]) for step in self.steps()]
            return [one for one in ids if one not in self.known]

        return until(look)[0]

    def has_obeyed(self) -> bool:
        received = (
            self.server.http("operator").get(f"/v1/sessions/{self.session()}/interventions").json()["items"]
        )
        return any(one["acknowledged_at"] for one in received if one["command"] == "pause")

    @contextmanager
    def at_work(self, example: str, *words: str, turns: list[Script]) -> Iterator[ScriptedModel]:
        model = ScriptedModel(*turns)
        self.models.append(model)
        run = subprocess.Popen(
            [sys.executable, str(EXAMPLES / example), *words],
            cwd=self.folder,
            env=self.environment(model),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            yield model
            out, _ = run.communicate(timeout=PATIENCE_S * 2)
            assert run.returncode == 0, out
        finally:
            run.kill()
            run.communicate()
            self.close()


@pytest.mark.req(99, 186, 187, 188)
def test_claude_codes_next_tool_waits_a_prompt_reaches_the_model_and_a_cancel_ends_the_turn_s882(
    server: Server, tmp_path: Path
) -> None:
    """S882, S884, S886."""
    example = Example(server, tmp_path)
    log = example.folder / "log"

    def paused() -> Turn:
        example.do("pause", example.session())
        example.do("inject", example.session(), prompt="Mind the gap.")
        return [bash("echo two >> log")]

    def cancelled() -> Turn:
        example.do("cancel", example.session(), note="enough")
        return [bash("echo three >> log")]

    turns: list[Script] = [[bash("echo one >> log")], paused, cancelled, ["never said"]]
    with example.at_work("claude_code_hooks.py", ".", "do it", turns=turns) as model:
        until(lambda: len(model.asked) == 2 and example.has_obeyed())
        assert log.read_text() == "one\n"
        asked = [step["action"].get("tool_input") or "" for step in example.steps(example.session())]
        assert not [one for one in asked if "two" in one], "while it is paused it says nothing"
        example.do("unpause", example.session())
    assert log.read_text() == "one\ntwo\n"
    assert "Mind the gap." in model.sent(2) and len(model.asked) == 3


@pytest.mark.req(99, 186, 187, 188)
def test_an_agent_of_the_sdk_stands_still_while_it_is_paused_and_then_goes_on_s891(
    server: Server, tmp_path: Path
) -> None:
    example = Example(server, tmp_path, "coder-1")

    def paused() -> Turn:
        example.do("pause", example.session())
        return [bash("echo hello > said")]

    with example.at_work("claude_agent.py", "do it", turns=[paused, ["all done"]]) as model:
        until(lambda: len(model.asked) == 1 and example.has_obeyed())
        assert not (example.folder / "said").exists()
        example.do("unpause", example.session())
    assert (example.folder / "said").read_text() == "hello\n"

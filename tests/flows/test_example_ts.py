"""The TypeScript example, run as its first lines say, paused, told something and answered by an operator."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.flows.sdk_harness import PATIENCE_S, SdkHarness, until
from tests.flows.server import Server, clean_environment
from tools import windows


@pytest.mark.req(50, 99, 133, 187)
def test_the_example_is_paused_and_resumed_by_an_operator_s911(server: Server, tmp_path: Path) -> None:
    """S911, S912, S920: it imports the package by its name, as everybody does, and ends by itself."""
    harness = SdkHarness(server, tmp_path)
    windows.build_sdk()
    node, _ = windows.node()
    example = [str(node), str(windows.SDK / "examples/agent.ts"), harness.name]
    environment = clean_environment(OBSERVATORY_DATA=str(server.folder))

    def started(*words: str) -> subprocess.Popen[str]:
        return subprocess.Popen([*example, *words], env=environment, stdout=subprocess.PIPE, text=True)

    def said(process: subprocess.Popen[str]) -> str:
        assert process.stdout is not None
        return process.stdout.readline().strip()

    with started("1000") as process:  # paused amid its work
        try:
            session_id = said(process).removeprefix("session ")
            until(harness.archived)
            harness.do("pause", session_id)

            def confirmed() -> bool:
                done = server.http("operator").get(f"/v1/sessions/{session_id}/interventions").json()
                return bool(done["items"][-1]["confirmation"] == "confirmed")

            until(confirmed)
            before = len(harness.archived())
        finally:
            process.kill()
    assert len(harness.archived()) == before < 1000
    with started("2", session_id) as process:  # and still, when it is started anew
        try:
            assert said(process) == f"session {session_id}"
            harness.do("inject", session_id, prompt="Invoice 2 is a copy")
            until(lambda: [one for one in harness.inbox() if one["kind"] == "inject"])
            assert len(harness.archived()) == before
            harness.do("unpause", session_id)
            held = harness.held()
            assert said(process).endswith("says: Invoice 2 is a copy")
            harness.do("approve", session_id, message_id=held["message_id"])
            assert said(process) == 'paid {"amount":300}'
            assert process.wait(PATIENCE_S) == 0
        finally:
            process.kill()
    assert [one for one in harness.intents()[before:] if one.startswith("Read")] == [
        "Read invoice 1",
        "Read invoice 2",
    ]
    assert harness.intents()[-1] == "Done"

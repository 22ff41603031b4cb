"""Every example is a program that runs by itself against a running gateway."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.flows.server import Server, clean_environment

EXAMPLES = sorted(Path("examples").glob("*.py"))


@pytest.mark.req(50)
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_runs_and_its_steps_are_archived(example: Path, server: Server) -> None:
    reader = server.http("operator")
    newest = reader.get("/v1/sessions", params={"limit": 1}).json()["items"]
    before = newest[0]["last_sequence_number"] if newest else 0
    run = subprocess.run(
        [sys.executable, str(example)],
        env=clean_environment(OBSERVATORY_DATA=str(server.folder)),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert "rejected" not in run.stderr
    (last,) = reader.get("/v1/sessions", params={"limit": 1}).json()["items"]
    assert last["first_sequence_number"] > before, "a session of its own"

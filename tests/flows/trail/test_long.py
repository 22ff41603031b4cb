"""A trail long enough to share the work of, and to kill in the midst of an import."""

from __future__ import annotations

import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.flows.databases import ALONE
from tests.flows.server import COMMAND, Server, clean_environment, observatory
from tests.flows.trail.outside import HOME, bend, lines, refused, verified

MANY = 21_000  # enough for verify to share the work


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("long") / "data"
    with Server(folder, environment=ALONE) as server:
        made = lines(MANY)
        for start in range(0, MANY, 3_000):
            server.send_lines(made[start : start + 3_000])
    return folder


def test_two_processes_share_a_long_trail_and_find_a_break_in_the_second_half(
    long: Path, tmp_path: Path
) -> None:
    run = observatory("verify", "--data", str(long), "--workers", "2")
    assert run.returncode == 0 and "valid" in run.stdout
    assert "verifying tnt_default: " in run.stderr  # progress, in plain lines, not among the results
    data = shutil.copytree(long, tmp_path / "data")
    bend(data, f"DELETE FROM audit_log WHERE key = {HOME} + {MANY - 7}")
    run = observatory("verify", "--data", str(data), "--no-payloads")
    assert run.returncode == 2
    assert f"BROKEN at event {MANY - 7:,}" in run.stdout and "density      BROKEN" in run.stdout


def test_an_import_that_was_killed_left_nothing_and_can_be_repeated(long: Path, tmp_path: Path) -> None:
    out, new = tmp_path / "trail.jsonl", tmp_path / "new"
    assert observatory("export", "--data", str(long), "--out", str(out)).returncode == 0
    command = [*COMMAND, "import", "--in", str(out), "--data", str(new)]
    run = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=clean_environment())
    assert run.stderr is not None
    while not (line := run.stderr.readline()).startswith("importing"):
        assert line, "the import ended before it began"
    run.send_signal(signal.SIGKILL)
    run.wait()
    run.stderr.close()
    assert "no such tenant" in refused("verify", "--data", str(new))
    assert observatory("import", "--in", str(out), "--data", str(new)).returncode == 0
    assert verified("--data", str(new), "--workers", "1", "--no-payloads")[1]["valid"]

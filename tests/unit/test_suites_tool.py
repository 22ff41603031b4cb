"""The tool that runs suites beside each other: what failed once runs once more, what fails twice is red."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SUITES = {
    "held": "def test_it() -> None:\n    assert True\n",
    "missed": (
        "from pathlib import Path\n"
        "BEFORE = Path(__file__).with_name('before')\n"
        "def test_it() -> None:\n"
        "    was = BEFORE.exists()\n"
        "    BEFORE.touch()\n"
        "    assert was\n"
        "def test_another() -> None:\n"
        "    assert not BEFORE.with_name('again').exists()\n"
        "    BEFORE.with_name('again').touch()\n"
    ),
    "broken": "def test_it() -> None:\n    assert 'red' == 'green'\n",
    "unreadable": "def test_it() -> None\n",
}


def run(folder: Path, *asked: str) -> subprocess.CompletedProcess[str]:
    for name, text in SUITES.items():
        (folder / name).mkdir(exist_ok=True)
        (folder / name / f"test_{name}.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\n")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment.pop("PYTEST_ADDOPTS", None)
    command = [sys.executable, "-m", "tools.suites", *asked]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=100
    )


def test_what_failed_runs_once_more_and_nothing_else_does(tmp_path: Path) -> None:
    other = tmp_path / "python"
    other.write_text(f'#!/bin/sh\necho "by another Python"\nexec {sys.executable} "$@"\n')
    other.chmod(0o700)
    done = run(tmp_path, "held", f"{other} missed")
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("by another Python") == 2
    assert "1 failed, 1 passed" in done.stdout and done.stdout.count("once more, one by one") == 1
    # The other one of it would not have passed a second time.


@pytest.mark.parametrize(
    ("asked", "says", "times"),
    [(["held", "broken"], "- AssertionError: assert 'red'", 2), (["unreadable", "held"], "SyntaxError", 1)],
    ids=["fails twice", "breaks off"],
)
def test_what_fails_twice_or_breaks_off_is_red_and_told_whole(
    asked: list[str], says: str, times: int, tmp_path: Path
) -> None:
    done = run(tmp_path, *asked)
    assert done.returncode == 1
    assert done.stdout.count(says) >= times
    assert "1 passed" in done.stdout, "the other is told of all the same"

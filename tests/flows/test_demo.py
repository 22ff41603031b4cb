"""The demo on a bare machine: one command, an empty home, and everything is gone when it ends."""

from __future__ import annotations

import fcntl
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.flows.server import COMMAND, Server, clean_environment, observatory
from tests.waiting import until


def folder_is_free(folder: Path) -> bool:
    with (folder / "lock").open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
    return True


def children_of_demo(folder: Path) -> list[str]:
    """Processes that still speak of this folder."""
    found = []
    for place in Path("/proc").glob("[0-9]*/environ"):
        try:
            if str(folder).encode() in place.read_bytes() + (place.parent / "cmdline").read_bytes():
                found.append((place.parent / "cmdline").read_bytes().decode(errors="replace"))
        except OSError:
            continue
    return found


@pytest.mark.req(137, 138)
def test_the_demo_runs_in_an_empty_home_and_ends_by_itself(tmp_path: Path) -> None:
    run = observatory("demo", "--port", "0", "--rate", "60", "--pace", "9", "--seconds", "4", home=tmp_path)
    assert run.returncode == 0, run.stderr
    links = re.findall(r"as (\w+) \(once\): +http://127\.0\.0\.1:\d+/login\?token=\S+", run.stdout)
    assert links == ["operator", "admin"]
    summary = re.search(
        r"messages accepted ([\d,]+), rejected ([\d,]+); sessions ([\d,]+), agents (\d+)", run.stdout
    )
    assert summary is not None, run.stdout
    accepted, _, sessions, agents = (int(text.replace(",", "")) for text in summary.groups())
    assert accepted > 5 and sessions > 1 and agents > 5
    assert "chain verified: yes" in run.stdout
    assert re.search(r"^\d+ accepted, .* \| last: ", run.stdout, re.MULTILINE)
    assert "A tour in five steps:" in run.stdout
    folder = tmp_path / ".observatory/demo"
    assert folder_is_free(folder)
    assert children_of_demo(folder) == []
    assert observatory("verify", "--data", str(folder)).returncode == 0


def test_ctrl_c_ends_the_demo_its_mesh_and_its_gateway(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    command = [*COMMAND, "demo", "--data", str(folder), "--port", "0", "--rate", "60", "--pace", "9"]
    demo = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=clean_environment()
    )
    assert demo.stdout is not None and demo.stderr is not None
    try:
        received: dict[str, str] = {}
        while not {"gate", "violation"} <= received.keys():
            line = demo.stdout.readline()
            assert line, demo.stderr.read()
            if found := re.match(r"\[(\w+)\] .* (http://127\.0\.0\.1:\d+/\S+)$", line):
                received[found[1]] = found[2]
        assert received["gate"].endswith("/inbox")
        demo.send_signal(signal.SIGINT)
        rest, problems = demo.communicate(timeout=30)
    finally:
        demo.kill()
        demo.wait()
    assert demo.returncode == 0, problems
    assert re.search(r"rejected [1-9]", rest), "what the bad deploy sent"
    assert "chain verified: yes" in rest and "Traceback" not in problems
    assert folder_is_free(folder)
    assert children_of_demo(folder) == []


def test_a_demo_that_is_killed_leaves_nothing_behind(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    demo = subprocess.Popen(
        [*COMMAND, "demo", "--data", str(folder), "--port", "0", "--rate", "20"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=clean_environment(),
    )
    assert demo.stdout is not None
    try:
        while "accepted" not in (line := demo.stdout.readline()):
            assert line
        assert len(children_of_demo(folder)) > 2
    finally:
        demo.kill()
        demo.wait()
        demo.stdout.close()
    until(lambda: not children_of_demo(folder))
    until(lambda: folder_is_free(folder))  # a dying process loses its name first and its locks a moment later


def test_an_unknown_incident_is_told_with_the_names_there_are(tmp_path: Path) -> None:
    wrong = observatory("demo", "--data", str(tmp_path / "demo"), "--incident", "earthquake")
    assert wrong.returncode == 1
    assert "no incident is called earthquake; there are gate, violation, loop" in wrong.stderr


def test_the_demo_passes_on_why_its_gateway_cannot_start(server: Server, tmp_path: Path) -> None:
    taken = observatory("demo", "--data", str(tmp_path / "demo"), "--port", str(server.port))
    assert taken.returncode == 1
    assert taken.stderr.startswith(f"observatory: port {server.port} on 127.0.0.1 is in use")
    locked = observatory("demo", "--data", str(server.folder), "--port", "0")
    assert locked.returncode == 1 and f"process {server.pid}" in locked.stderr

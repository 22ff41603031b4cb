"""A gateway whose clock is wrong: a process of its own, in which only the time is not what it is."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.flows import server as servers
from tests.flows import terminal
from tests.flows.databases import ALONE
from tests.flows.fleet import beat
from tests.flows.server import Server
from tests.waiting import until

Json = dict[str, Any]
YEAR_S = 365 * 86_400
# Only the wall clock: by so many seconds as a file says, read anew each time.
PROGRAM = """
import sys, time, pathlib
file, real_ns, real = pathlib.Path(sys.argv.pop(1)), time.time_ns, time.time
def shift(): return int(file.read_text() or 0)
time.time_ns = lambda: real_ns() + shift() * 10**9
time.time = lambda: real() + shift()
from observatory.cli import main
sys.argv[0] = "observatory"
sys.exit(main())
"""


class Shifted(Server):
    """A gateway whose clock a test can set."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, environment=ALONE | {"OBSERVATORY_HEARTBEAT_CHECK_S": "1"})
        self.shift = folder.parent / "shift"
        self.set(0)

    def set(self, seconds: int) -> None:
        new = self.shift.with_suffix(".new")
        new.write_text(str(seconds))
        new.replace(self.shift)

    def begin(self, words: list[str], environment: dict[str, str], log: Path) -> Any:
        command = [sys.executable, "-c", PROGRAM, str(self.shift), *words]
        with log.open("ab") as out:
            return subprocess.Popen(command, env=environment, stdout=out, stderr=out)


@pytest.fixture
def shifted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shifted]:
    made = Shifted(tmp_path / "data")
    monkeypatch.setattr(terminal, "stay", made.begin)
    with made as running:
        assert isinstance(running, Shifted)
        yield running


def job(server: Server, cron: str = "* * * * * *") -> Json:
    asked: Json = {"name": "every-second", "cron": cron, "intent": "tick", "overlap": "allow"}
    asked |= {"target": {"kind": "agent", "name": "ticker"}}
    answer = server.http("operator").post("/v1/jobs", json=asked)
    assert answer.status_code == 201, answer.text
    made: Json = answer.json()
    return made


def runs(server: Server, made: Json) -> int:
    return int(server.http().get(f"/v1/jobs/{made['job_id']}").json()["runs"])


def clock_of(server: Server) -> Json:
    found: Json = server.http().get("/v1/fleet/health").json()
    assert found["clock"]["status"] == "ok" or found["status"] != "ok"
    clock: Json = found["clock"]
    return clock


def test_five_seconds_of_a_clock_a_year_ahead_are_seen_and_mended_s1164_s1165(shifted: Shifted) -> None:
    """S1164, S1165: the gateway is started with the wrong clock, and again with the right one."""
    beat(shifted, "ticker")
    made = job(shifted)
    until(lambda: runs(shifted, made) > 0)
    assert clock_of(shifted)["status"] == "ok"
    shifted.stop()
    shifted.set(YEAR_S)
    shifted.start()
    before = runs(shifted, made)
    until(lambda: runs(shifted, made) > before)
    shifted.stop()
    shifted.set(0)
    shifted.start()
    clock = clock_of(shifted)
    assert (clock["status"], clock["jobs_ahead"]) == ("degraded", 1)
    assert clock["behind_record_s"] > YEAR_S - 3_600 and "364 days" in clock["text"]
    assert shifted.http().get("/v1/scheduler").json()["clock"]["status"] == "degraded"
    stuck = runs(shifted, made)
    said = terminal_run(shifted, "jobs", "from-now", "--yes")
    assert "schedules continued from now: 1" in said
    until(lambda: runs(shifted, made) > stuck)
    assert clock_of(shifted)["status"] == "ok"
    events = shifted.http().get("/v1/audit/tenant", params={"limit": 100}).json()["items"]
    (received,) = [one for one in events if one["body"]["event_type"] == "schedule_resumed"]
    assert received["attributes"]["av.sender.entity_type"] == "user"
    assert shifted.http("admin").post("/v1/audit/verify", json={}).json()["valid"] is True


def test_nothing_fires_while_the_clock_was_set_under_a_running_gateway_s1164(shifted: Shifted) -> None:
    """S1164: neither the schedule nor a reminder that is due in a year; set back, it goes on by itself."""
    beat(shifted, "ticker")
    made = job(shifted)
    until(lambda: runs(shifted, made) > 0)
    shifted.set(YEAR_S)
    until(lambda: clock_of(shifted)["parted_s"] > 1)
    clock = clock_of(shifted)
    assert (clock["status"], clock["is_firing"]) == ("degraded", False)
    assert abs(clock["parted_s"] - YEAR_S) < 60 and "no schedule fires" in clock["text"]
    before, looked = runs(shifted, made), time.monotonic()
    until(lambda: time.monotonic() - looked > 1.5)
    assert runs(shifted, made) == before
    other = shifted.http("admin").post("/v1/tenants", json={"display_name": "Other"}).json()
    asked = {"Authorization": f"Bearer {other['key']}"}
    refused = shifted.http("nobody").post("/v1/scheduler/from-now", headers=asked)
    assert (refused.status_code, refused.json()["reason"]) == (409, "clock_parted")
    shifted.set(0)
    until(lambda: runs(shifted, made) > before)
    assert clock_of(shifted)["parted_s"] < 1


def looks(server: Server) -> int:
    """How often it was looked for agents that are silent."""
    name = 'observatory_due_runs_total{due="heartbeats"} '
    (line,) = [line for line in server.http().get("/metrics").text.splitlines() if line.startswith(name)]
    return int(line.removeprefix(name))


def test_no_agent_is_evicted_by_a_clock_that_was_set_ahead_s1302(shifted: Shifted) -> None:
    """S1302: a year without a heartbeat is none when nobody lived it."""
    beat(shifted, "ticker")
    shifted.set(YEAR_S)
    before = looks(shifted)
    until(lambda: looks(shifted) > before + 1)
    agent = shifted.http().get("/v1/agents/ticker").json()
    assert agent["evicted_at"] is None, agent


def test_no_alert_of_silence_fires_by_a_clock_that_was_set_ahead_s1303(shifted: Shifted) -> None:
    """S1303: the same rule fires of an agent that really is silent, by a clock that is believed."""
    beat(shifted, "ticker")
    rule = {"name": "Silence", "condition": "silence", "threshold": 60}
    assert shifted.http("admin").post("/v1/alert-rules", json=rule).status_code == 201
    shifted.set(YEAR_S)
    before = looks(shifted)
    until(lambda: looks(shifted) > before + 3)

    def raised() -> list[Json]:
        events = shifted.http().get("/v1/audit/tenant", params={"limit": 100}).json()["items"]
        return [one for one in events if one["body"]["event_type"] == "alert_raised"]

    assert raised() == []
    shifted.set(100)  # as if so long had gone by
    until(raised)


def terminal_run(server: Server, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "observatory.cli", *words, "--data", str(server.folder)],
        env=servers.clean_environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout

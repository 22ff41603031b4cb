"""Insight through its door: folded behind the commit by a process that lives and dies with its gateway."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from observatory.derived.sqlite import remove
from tests.flows.insight import settled, status
from tests.flows.nursery import EXECUTED
from tests.flows.server import Server
from tests.flows.tenant import Tenant
from tests.samples import decision_log, envelope
from tests.waiting import until


def lines(count: int, session: str = "ses-insight", first: int = 0) -> list[bytes]:
    bodies = [
        decision_log(
            meta={"session_id": session, "step_id": f"{number}", "parent_step_id": None},
            state_delta={"cumulative_session_cost": number / 100},
        )
        for number in range(first, first + count)
    ]
    return [json.dumps(body).encode() for body in bodies]


def children(pid: int) -> list[int]:
    found = subprocess.run(
        ["pgrep", "-P", str(pid), "-f", "observatory.analyst"], capture_output=True, text=True
    )
    return [int(word) for word in found.stdout.split()]


def is_alive(pid: int) -> bool:
    """A zombie that its parent has not asked about is gone."""
    state = Path(f"/proc/{pid}/stat")
    try:
        return state.read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def analyst_of(server: Server, other_than: int = 0) -> int:
    def look() -> int | None:
        return next((pid for pid in children(server.pid) if pid != other_than), None)

    found = until(look)
    assert found is not None
    return found


def rows(server: Server, sql: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(f"file:{server.folder / 'derived.db'}?mode=ro", uri=True)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def test_everything_committed_is_folded_s197(either_tenant: Tenant) -> None:
    either_tenant.send_lines(lines(50))
    assert either_tenant.send(envelope("text")).status_code == 202
    found = settled(either_tenant)
    assert found["cursor"] >= 51 and found["head"] >= found["cursor"]
    assert (found["analyst"], found["skipped"], found["unread"]) == ("running", 0, 0)
    assert found["cursor_at"] is not None
    still = until(lambda: (now := status(either_tenant))["lag_messages"] == 0 and now)
    assert still["lag_s"] == 0


def test_a_tenant_is_told_of_its_own_record_only_s197(either_server: Server, either_tenant: Tenant) -> None:
    either_server.send_lines(lines(30, session="ses-of-the-house"))
    mine, theirs = settled(either_tenant), settled(either_server)
    assert mine["head"] < 30 <= theirs["head"]


def test_metrics_tell_of_lag_and_analyst_s197(either_server: Server) -> None:
    settled(either_server)

    def told_of_it() -> str:
        text: str = either_server.http().get("/metrics").text
        return text if "observatory_analyst_up 1" in text else ""

    received = until(told_of_it)
    for name in ("lag_messages", "skipped", "unread"):
        assert f"\nobservatory_insight_{name} " in received


@pytest.fixture
def server_with_analyst(tmp_path: Path) -> Iterator[Server]:
    """Its analyst is executed, as the product does it, and not forked as elsewhere in the tests."""
    with Server(tmp_path / "data", environment=EXECUTED) as running:
        analyst_of(running)
        yield running


def test_a_killed_analyst_is_started_again_and_counts_nothing_twice_s198_s203(
    server_with_analyst: Server,
) -> None:
    server, pid = server_with_analyst, 0
    for part in range(3):
        server.send_lines(lines(400, first=part * 400))
        pid = analyst_of(server, other_than=pid)
        os.kill(pid, signal.SIGKILL)
    found = settled(server)
    assert found["restarts"] >= 2 and found["skipped"] == 0
    assert rows(server, "SELECT count(*), round(sum(cost), 6) FROM insight_steps") == [(1_200, 11.99)]
    assert server.http().get("/healthz").status_code == 200


def test_a_stopped_gateway_takes_its_analyst_along_s203(server_with_analyst: Server) -> None:
    pid = analyst_of(server_with_analyst)
    server_with_analyst.send_lines(lines(2_000))  # in the middle of its work
    assert server_with_analyst.stop() == 0
    assert not is_alive(pid)
    assert "Traceback" not in server_with_analyst.log and "WARNING" not in server_with_analyst.log


def test_the_analyst_of_a_killed_gateway_goes_by_itself_s203(server_with_analyst: Server) -> None:
    server = server_with_analyst
    pid = analyst_of(server)
    server.send_lines(lines(2_000))
    server.kill()
    until(lambda: not is_alive(pid), 10)
    server.start()
    settled(server)
    assert rows(server, "SELECT count(*) FROM insight_steps") == [(2_000,)]


def test_nothing_secret_on_the_analysts_command_line_and_it_gives_way_s197_s203(
    either_options: tuple[str, ...], tmp_path: Path
) -> None:
    with Server(tmp_path / "data", *either_options, environment=EXECUTED) as server:
        pid = analyst_of(server)
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        assert words[1:] == [b"-P", b"-m", b"observatory.analyst", b""]
        wanted = min(19, os.getpriority(os.PRIO_PROCESS, server.pid) + 10)
        until(lambda: os.getpriority(os.PRIO_PROCESS, pid) == wanted)


def test_without_insight_there_is_no_analyst_s203(tmp_path: Path) -> None:
    with Server(tmp_path / "data", environment={"OBSERVATORY_INSIGHT": "false"}) as server:
        server.send_lines(lines(3))
        found = status(server)
        assert (found["analyst"], found["cursor"]) == ("off", 0)
        assert found["lag_messages"] == found["head"] > 0 and found["lag_s"] > 0
        assert children(server.pid) == []


def test_a_derived_store_that_vanishes_is_made_anew_s199(server_with_analyst: Server) -> None:
    server = server_with_analyst
    server.send_lines(lines(20))
    settled(server)
    remove(server.folder / "derived.db")
    until(lambda: (server.folder / "derived.db").exists())
    settled(server)
    assert rows(server, "SELECT count(*) FROM insight_steps") == [(20,)]
    assert (server.folder / "derived.db").stat().st_mode & 0o077 == 0
    server.stop()
    (server.folder / "derived.db").write_bytes(b"no database at all" * 1_000)
    server.start()
    settled(server)
    assert rows(server, "SELECT count(*) FROM insight_steps") == [(20,)]
    assert "it is rebuilt" in server.log

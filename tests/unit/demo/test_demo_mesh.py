"""The simulated mesh: a believable story, told the same way for the same seed, through the SDK alone."""

import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from observatory.demo.mesh import CLUSTERS, cast, main, perform, run
from observatory.sdk import Outbox
from tests.unit.sdk.sdk_gateway import KEY, PATIENCE_S, QUICK, FakeGateway, running


@pytest.fixture
def gateway() -> Iterator[FakeGateway]:
    with running() as one:
        yield one


def play(
    gateway: FakeGateway, data: Path, part: str, seed: int = 7, messages: int = 400
) -> list[dict[str, Any]]:
    """What a part says in `messages` turns; a rate so high that nothing is waited for."""
    outbox = Outbox(f"demo-{part}", gateway.door(data), QUICK)
    roles = [role for role in cast(12) if role.part == part]
    before = len(gateway.logs)
    said = perform(part, roles, outbox, 1e6, threading.Event(), seconds=messages / 1e6, seed=seed)
    assert said >= messages - 1
    assert outbox.flush(PATIENCE_S)
    outbox.close()
    return gateway.logs[before:]


def content(logs: list[dict[str, Any]]) -> list[Any]:
    return [
        (log["identity"]["agent_id"], log["cognition"], log["action"], log["state_delta"]) for log in logs
    ]


def test_twelve_agents_in_three_clusters_tell_the_whole_story() -> None:
    roles = cast(12)
    assert {role.cluster for role in roles} == set(CLUSTERS)
    assert {role.part for role in roles} == {"newsroom", "looper", "sloppy"}
    assert {"planner", "web_researcher", "writer", "reviewer", "deployer"} < {
        role.agent_type for role in roles
    }


def test_a_thousand_agents_have_names_of_their_own_and_a_smaller_cast_is_a_prefix() -> None:
    roles = cast(1000)
    assert len({role.agent_id for role in roles}) == 1000
    assert roles[:12] == cast(12)


def test_the_newsroom_forks_joins_fails_spends_and_ends(gateway: FakeGateway, tmp_path: Path) -> None:
    logs = play(gateway, tmp_path, "newsroom")
    ids = {log["meta"]["step_id"] for log in logs}
    children = Counter(log["meta"]["parent_step_id"] for log in logs)
    joins = [log for log in logs if len(log["meta"].get("parent_step_ids", ())) >= 2]
    assert max(children[i] for i in ids) >= 2
    assert joins
    assert all(set(log["meta"]["parent_step_ids"]) <= ids for log in joins)
    assert {log["action"]["status"] for log in logs} == {"success", "failure"}
    assert any(log["control"]["is_terminal"] for log in logs)
    assert not any(log["control"]["hitl_required"] for log in logs)
    assert len({log["identity"]["agent_type"] for log in logs}) == 5
    spent: dict[tuple[str, str], float] = {}
    for log in logs:
        key, total = (log["identity"]["agent_id"], log["meta"]["session_id"]), log["state_delta"]
        assert total["cumulative_session_cost"] > spent.get(key, 0.0)
        spent[key] = total["cumulative_session_cost"]
    assert gateway.refused == 0


def test_the_looper_says_the_same_at_least_five_times_running(gateway: FakeGateway, tmp_path: Path) -> None:
    logs = play(gateway, tmp_path, "looper", messages=60)
    same = Counter(
        (
            log["meta"]["session_id"],
            log["cognition"]["intent"],
            log["action"]["tool_call"],
            log["action"]["status"],
        )
        for log in logs
    )
    (*_, status), times = same.most_common(1)[0]
    assert status == "failure"
    assert times >= 5


def test_the_sloppy_one_is_refused_now_and_then_and_heard_otherwise(
    gateway: FakeGateway, tmp_path: Path
) -> None:
    logs = play(gateway, tmp_path, "sloppy", messages=100)
    assert 10 <= gateway.refused <= 40
    assert len(logs) > 50


def test_content_depends_on_the_seed_alone(gateway: FakeGateway, tmp_path: Path) -> None:
    first, second = (content(play(gateway, tmp_path, "newsroom", messages=120)) for _ in range(2))
    other = content(play(gateway, tmp_path, "newsroom", messages=120, seed=8))
    n = min(len(first), len(second), len(other))
    assert first[:n] == second[:n] != other[:n]


def test_run_plays_every_part_in_processes_and_ends_by_itself(gateway: FakeGateway, tmp_path: Path) -> None:
    assert run(gateway.url, KEY, agents=12, rate=600, seconds=0.5, data=tmp_path) == 0
    speakers = {log["identity"]["agent_id"] for log in gateway.logs}
    assert {"crawler-1", "scraper-1", "planner-1", "deployer-1"} <= speakers
    assert gateway.refused > 0
    assert not list(tmp_path.glob("spool/*"))


def test_a_signal_stops_the_mesh_cleanly(gateway: FakeGateway, tmp_path: Path) -> None:
    environment = os.environ | {"OBSERVATORY_URL": gateway.url, "OBSERVATORY_KEY": KEY}
    environment |= {"OBSERVATORY_DATA": str(tmp_path)}
    command = [sys.executable, "-m", "observatory.demo.mesh", "--agents", "24", "--rate", "200"]
    with subprocess.Popen(command, env=environment) as supervisor:
        gateway.wait_for(lambda: len({log["identity"]["agent_type"] for log in gateway.logs}) >= 6)
        hosts = psutil.Process(supervisor.pid).children()
        assert len(hosts) == 4
        assert not any(KEY in " ".join(host.cmdline()) for host in hosts)
        supervisor.send_signal(signal.SIGTERM)
        assert supervisor.wait(PATIENCE_S) == 0
    assert not psutil.wait_procs(hosts, timeout=0)[1]


@pytest.mark.parametrize("argv", [["--agents", "0"], ["--rate", "0"], ["--role", "looper", "--agents", "1"]])
def test_impossible_arguments_are_refused_with_a_sentence(
    argv: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OBSERVATORY_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("OBSERVATORY_KEY", KEY)
    with pytest.raises(SystemExit):
        main(argv)
    assert "error:" in capsys.readouterr().err

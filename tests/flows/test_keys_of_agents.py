"""The keys of agents and of those who govern them lie apart (A6); see also `test_bound_agents`."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.flows.server import Server, clean_environment, observatory

ROOT = Path(__file__).parents[2]
GOVERNORS = ("admin_key", "operator_key")
SPEAK = """from observatory import Agent
with Agent("lone-1") as agent: print(agent.step("Hello").answer(timeout=10).state)"""


def speak(folder: Path) -> subprocess.CompletedProcess[str]:
    """An agent of two lines, as a process of its own."""
    environment = clean_environment(OBSERVATORY_DATA=str(folder))
    return subprocess.run(
        [sys.executable, "-c", SPEAK], capture_output=True, text=True, timeout=60, env=environment
    )


@pytest.mark.req(136)
def test_a_start_writes_what_agents_need_apart_from_the_keys_of_people_s980(fresh_server: Server) -> None:
    file = fresh_server.folder / "agent.json"
    known = json.loads(file.read_text())
    assert known == {"url": fresh_server.url, "agent_key": fresh_server.credentials["agent_key"]}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    own = fresh_server.folder.parent / "agents-own"
    own.mkdir()
    (own / "agent.json").write_bytes(file.read_bytes())
    assert speak(own).stdout == "forwarded\n", "it is all an agent needs"

    file.unlink()  # a folder of before, and its gateway not started again yet
    refused = speak(fresh_server.folder)
    assert refused.returncode != 0 and "agents do not read it" in refused.stderr
    assert not any(fresh_server.credentials[name] in refused.stderr for name in GOVERNORS)
    found = observatory("doctor", "--json", "--data", str(fresh_server.folder))
    (row,) = [row for row in json.loads(found.stdout) if not row["ok"]]
    assert row["check"] == "agents' key" and "start the gateway once" in row["do"]
    assert json.loads(fresh_server.restart().folder.joinpath("agent.json").read_text()) == known
    assert speak(fresh_server.folder).stdout == "forwarded\n"


def test_the_doctor_says_what_an_agent_of_this_environment_would_find_s981(fresh_server: Server) -> None:
    folder, keys = str(fresh_server.folder), fresh_server.credentials

    def found(**environment: str) -> dict[str, dict[str, object]]:
        received = observatory("doctor", "--json", "--data", folder, environment=environment)
        return {row["check"]: row for row in json.loads(received.stdout)}

    assert "agents' environment" not in found(OBSERVATORY_KEY=keys["agent_key"])
    governs = found(OBSERVATORY_KEY=keys["operator_key"])["agents' environment"]
    assert not governs["ok"] and "could approve themselves" in str(governs["do"])
    assert keys["operator_key"] not in json.dumps(governs)
    seen = found(OBSERVATORY_DATA=folder)["agents' environment"]
    assert seen["ok"] and seen["warns"] and "another user" in str(seen["do"])
    (fresh_server.folder / "agent.json").chmod(0o644)
    assert not found()["agents' key"]["ok"]


def test_nothing_that_an_agent_runs_opens_the_keys_of_people_s980() -> None:
    """S980: by the text of all that agents import, run or copy from. A sentence may name it."""
    places = [*(ROOT / "src/observatory/sdk").rglob("*.py"), *(ROOT / "sdk-ts/src").rglob("*.ts")]
    demo = ROOT / "src/observatory/demo"
    of_people = {
        demo / "command.py",
        demo / "operator.py",
        demo / "operator_setup.py",
    }  # they act for an operator
    places += [path for path in demo.rglob("*.py") if path not in of_people]
    places.append(ROOT / "src/observatory/cli/claude_code.py")
    operator = ROOT / "examples/intervene/run.py"  # plays the people; its agent is a process of its own
    places += [path for path in (ROOT / "examples").rglob("*.py") if path != operator]
    words = ("admin_key", "operator_key", '"credentials.json").read', "credentials.json')))['agent_key']")
    assert {path.name: word for path in places for word in words if word in path.read_text()} == {}
    guides = [ROOT / "README.md", *(ROOT / "docs/guides").glob("*.md")]
    assert [path.name for path in guides if words[-1] in path.read_text("utf-8")] == []


def test_a_broken_file_of_one_agent_keeps_no_gateway_from_starting_s1272(fresh_server: Server) -> None:
    """S1272: an agent may have written it; that file is left as it is, and the others get the address."""
    folder = fresh_server.folder / "agents"
    for name, content in (
        ("bad", b"{"),
        ("good", b'{"url":"http://old","agent_key":"obs_x","agent_id":"good"}'),
    ):
        (folder / name).mkdir(parents=True)
        (folder / name / "agent.json").write_bytes(content)
    fresh_server.stop()
    fresh_server.start()
    assert (folder / "bad/agent.json").read_bytes() == b"{"
    assert json.loads((folder / "good/agent.json").read_text())["url"] == fresh_server.url
    assert str(folder / "bad/agent.json") in fresh_server.log

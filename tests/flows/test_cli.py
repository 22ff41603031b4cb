"""The terminal, as an operator uses it: real processes, exit codes, stdout, stderr."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
from pathlib import Path

import httpx2
import pytest

from tests.flows.server import COMMAND, Server, clean_environment, observatory
from tests.samples import decision_log


def of(server: Server, *words: str) -> subprocess.CompletedProcess[str]:
    return observatory(*words, "--data", str(server.folder))


def received(*words: str, code: int = 1, home: Path | None = None, **environment: str) -> str:
    """The one sentence on stderr of a command that cannot do it."""
    run = observatory(*words, home=home, environment=environment)
    assert run.returncode == code, run
    assert run.stdout == ""
    (sentence,) = run.stderr.splitlines()
    assert sentence.startswith("observatory: ")
    return sentence


# --- keys, users, tenants, versions, login ---


def test_a_key_is_shown_once_works_at_once_and_is_refused_once_revoked(server: Server) -> None:
    made = of(
        server, "keys", "create", "--role", "agent", "--agent", "researcher-alpha-9", "--label", "bench"
    )
    assert made.returncode == 0 and "shown only once" in made.stderr
    (key,) = made.stdout.splitlines()
    headers = {"Authorization": f"Bearer {key}"}
    url = f"{server.url}/v1/messages"
    assert httpx2.post(url, json=decision_log(), headers=headers, trust_env=False).status_code == 202

    listed = of(server, "keys", "list")
    assert key not in listed.stdout
    (row,) = [line for line in listed.stdout.splitlines() if "\tbench\t" in line]
    assert "researcher-alpha-9" in row and row.endswith("active")
    key_id = row.split("\t")[0]
    assert of(server, "keys", "revoke", key_id, "--yes").returncode == 0
    assert httpx2.post(url, json=decision_log(), headers=headers, trust_env=False).status_code == 401
    assert "revoked" in next(
        line for line in of(server, "keys", "list").stdout.splitlines() if key_id in line
    )


def test_keys_can_expire_and_lists_can_be_json(server: Server) -> None:
    made = of(server, "keys", "create", "--label", "short", "--expires", "30d", "--json")
    assert json.loads(made.stdout)["expires_at"] is not None
    labels = {row["label"] for row in json.loads(of(server, "keys", "list", "--json").stdout)}
    assert "short" in labels


@pytest.mark.req(326)
def test_a_person_is_invited_by_a_link_and_disabled_by_name(server: Server) -> None:
    made = of(server, "users", "create", "cli-ada", "--role", "auditor")
    (link,) = made.stdout.splitlines()
    with httpx2.Client(trust_env=False) as browser:
        assert browser.post(link).status_code == 303
        assert browser.get(f"{server.url}/v1/whoami").json()["role"] == "auditor"
        assert browser.post(link).status_code == 401
        assert of(server, "users", "disable", "cli-ada", "--yes").returncode == 0
        assert browser.get(f"{server.url}/v1/whoami").status_code == 401
    assert "cli-ada\tauditor\tcli-ada\tdisabled" in of(server, "users", "list").stdout


@pytest.mark.req(326, 485)
def test_a_tenant_comes_with_an_admin_of_its_own(server: Server) -> None:
    made = of(server, "tenants", "create", "Acme", "--tenant", "tnt_cli")
    (key,) = made.stdout.splitlines()
    listed = observatory("tenants", "list", "--json", "--url", server.url, "--key", key)
    assert [row["tenant_id"] for row in json.loads(listed.stdout)] == ["tnt_cli"]
    assert "tnt_cli\tAcme" in of(server, "tenants", "list").stdout
    again = of(server, "tenants", "create", "Acme", "--tenant", "tnt_cli")
    assert again.returncode == 1 and "exists already" in again.stderr


@pytest.mark.req(41, 42, 51, 249)
def test_a_new_current_version_makes_the_old_one_previous_and_that_one_retired(server: Server) -> None:
    for version in ("v1.0.0", "v1.1.0", "v2.0.0"):
        assert of(server, "versions", "set", "cli_planner", version, "current").returncode == 0
    rows = json.loads(of(server, "versions", "list", "--agent-type", "cli_planner", "--json").stdout)
    found = {row["version"]: row["status"] for row in rows}
    assert found == {"v1.0.0": "retired", "v1.1.0": "previous", "v2.0.0": "current"}
    old = decision_log(identity={"agent_type": "cli_planner", "capability_version": "v1.0.0"})
    assert server.send(old).status_code == 422


def test_a_lost_login_is_replaced_by_a_fresh_link(server: Server) -> None:
    (link,) = of(server, "login").stdout.splitlines()
    with httpx2.Client(trust_env=False) as browser:
        assert browser.post(link).status_code == 303
        assert browser.get(f"{server.url}/v1/whoami").json()["role"] == "operator"
    (link,) = of(server, "login", "--user", "admin").stdout.splitlines()
    with httpx2.Client(trust_env=False) as browser:
        browser.post(link)
        assert browser.get(f"{server.url}/v1/whoami").json()["role"] == "admin"


# --- sentences instead of tracebacks ---


def test_where_no_gateway_answers_the_sentence_says_how_to_start_one(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    for words in (["keys", "list"], ["login"], ["tail"], ["verify"]):
        sentence = received(*words, "--url", url, "--key", "obs_x")
        advice = "start it with `observatory serve`"
        assert sentence == f"observatory: no Observatory is reachable at {url}; {advice}"
    assert "start it with `observatory serve`" in received("keys", "list", home=tmp_path)
    assert "there is no database" in received("verify", home=tmp_path)


def test_a_wrong_key_is_told_as_such(server: Server) -> None:
    for words in (["keys", "list"], ["login"], ["tail"]):
        assert "does not accept this key" in received(*words, "--url", server.url, "--key", "obs_wrong")
    agent = server.key("agent")
    assert "may not" in received("keys", "list", "--url", server.url, "--key", agent)
    assert "may not read" in received("tail", "--url", server.url, "--key", agent)


def test_a_key_of_one_folder_is_not_sent_to_another_gateway(server: Server) -> None:
    sentence = received("keys", "list", "--data", str(server.folder), "--url", "http://127.0.0.1:9")
    assert "no key for http://127.0.0.1:9" in sentence


def test_the_environment_names_a_gateway_too(server: Server, tmp_path: Path) -> None:
    known = {"OBSERVATORY_URL": server.url, "OBSERVATORY_KEY": server.key("admin")}
    assert observatory("keys", "list", home=tmp_path, environment=known).returncode == 0


def test_a_port_in_use_and_a_folder_in_use_are_told_plainly(server: Server, tmp_path: Path) -> None:
    taken = received("serve", "--data", str(tmp_path / "other"), "--port", str(server.port))
    assert f"port {server.port}" in taken and "--port" in taken
    locked = received("serve", "--data", str(server.folder), "--port", "0")
    assert f"process {server.pid}" in locked and "--data" in locked


def test_wrong_words_get_a_sentence_too() -> None:
    assert "bogus" in received("bogus")
    assert "--rank" in received("keys", "list", "--rank", "3")
    assert "OBSERVATORY_PROT is not a setting" in received("serve", OBSERVATORY_PROT="1")
    assert observatory("--version").stdout.strip()


# --- tail ---


def test_tail_prints_the_past_and_ends_after_its_count(server: Server) -> None:
    sent = server.send(decision_log(identity={"agent_id": "tailed-1"})).json()
    lines = of(server, "tail", "--topic", "events", "--after", "0", "--count", "3").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["1", "2", "3"]
    assert "tenant_created" in lines[0]
    after = str(sent["sequence_number"] - 1)
    (line,) = of(server, "tail", "--after", after, "--count", "1", "--json").stdout.splitlines()
    assert json.loads(line)["message"]["identity"]["agent_id"] == "tailed-1"
    (line,) = of(server, "tail", "--after", after, "--count", "1").stdout.splitlines()
    assert line.split()[2:5] == ["forwarded", sent["session_id"][:8], "tailed-1"]


def test_tail_says_that_it_waits_and_takes_options_only(fresh_server: Server) -> None:
    assert "'elsewhere'" in received("tail", "elsewhere")
    command = [*COMMAND, "tail", "--data", str(fresh_server.folder), "--count", "1"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=clean_environment()
    ) as reader:
        assert reader.stdout is not None and reader.stderr is not None
        assert reader.stderr.readline() == "waiting for messages…\n"
        fresh_server.send(decision_log(control={"hitl_required": True}))
        assert "  held       " in reader.stdout.readline()


def test_tail_resumes_from_its_cursor_when_the_gateway_comes_back(fresh_server: Server) -> None:
    command = [*COMMAND, "tail", "--data", str(fresh_server.folder), "--after", "0"]
    # A suite run in the background hands on an ignored Ctrl-C.
    reader = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        env=clean_environment(),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL) and None,
    )
    assert reader.stdout is not None
    try:
        fresh_server.send(decision_log(identity={"agent_id": "before-1"}))
        assert "before-1" in reader.stdout.readline()
        fresh_server.restart(kill=True)
        fresh_server.send(decision_log(identity={"agent_id": "after-1"}))
        assert "after-1" in reader.stdout.readline()
        reader.send_signal(signal.SIGINT)
        assert reader.wait(10) == 130
    finally:
        reader.kill()
        reader.wait()
        reader.stdout.close()


# --- doctor, migrate ---


def test_doctor_finds_a_running_house_sound_and_open_files_a_problem_s597(fresh_server: Server) -> None:
    healthy = of(fresh_server, "doctor", "--json")
    assert healthy.returncode == 0, healthy.stdout
    assert {"Python", "SQLite", "pragmas", "gateway"} <= {row["check"] for row in json.loads(healthy.stdout)}
    credentials = fresh_server.folder / "credentials.json"
    credentials.chmod(0o644)
    ill = of(fresh_server, "doctor")
    assert ill.returncode == 1
    assert f"chmod 600 {credentials}" in ill.stdout
    named = {"OBSERVATORY_QUEUE_MESAGES": "5"}
    misspelt = observatory("doctor", "--json", "--data", str(fresh_server.folder), environment=named)
    assert misspelt.returncode == 1
    problems = {row["check"]: row for row in json.loads(misspelt.stdout) if not row["ok"]}
    assert problems.keys() == {"settings", "credentials"}, "and the rest is looked at all the same"
    assert "OBSERVATORY_QUEUE_MESAGES is not a setting" in problems["settings"]["found"]
    credentials.chmod(0o600)
    (fresh_server.folder / "log.key").chmod(0o640)
    open_key = of(fresh_server, "doctor", "--json")
    assert [row["check"] for row in json.loads(open_key.stdout) if not row["ok"]] == ["log key"]


def test_migrate_says_what_it_did(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    assert "a new database was created" in observatory("migrate", "--data", str(folder)).stdout
    assert "nothing to do" in observatory("migrate", "--data", str(folder)).stdout
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
    url = f"sqlite:///{tmp_path / 'elsewhere.db'}"
    assert "a new database was created" in observatory("migrate", "--db", url).stdout


def test_copy_refuses_what_it_cannot_copy(tmp_path: Path) -> None:
    nowhere = f"sqlite:///{tmp_path / 'none.db'}"
    assert "there is no database" in received("copy", "--from", nowhere, "--to", "postgresql://localhost/x")

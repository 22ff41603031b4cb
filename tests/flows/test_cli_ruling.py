"""The operator's terminal: rules, caps, weights, the kill-switch and instructions, against a real gateway."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.flows.hand import answer, done, held, of, refused, typing
from tests.flows.server import Server, observatory
from tests.flows.tenant import Tenant
from tests.samples import decision_log


@pytest.fixture
def server(either_server: Server) -> Server:
    """On both databases."""
    return either_server


# --- rules, caps, weights ---


@pytest.mark.req(225)
def test_a_rule_is_tried_added_listed_and_removed(either_tenant: Tenant) -> None:
    server = either_tenant
    held(server, "ruled-1", tool="rm")
    tried = done(server, "policy", "dry-run", "deny", "--tool", "rm")
    assert tried.splitlines()[0].endswith("1 denied, 0 held") and "ruled-1\t1\t0" in tried
    assert answer(server, "policy", "dry-run", "hold", "--sender", "ruled-*")["held"] == 1
    assert "Deny tool rm from now on?" in refused(server, "policy", "add", "deny", "--tool", "rm", code=2)
    denied = answer(server, "policy", "add", "deny", "--tool", "rm", "--note", "never", "--yes")
    gate = answer(server, "policy", "add", "hold", "--tool", "deploy", "--quorum", "2", "--deadline", "60")
    assert (gate["quorum"], gate["deadline_s"], gate["position"]) == (2, 60, 2)
    lines = done(server, "policy", "list").splitlines()
    assert lines[1].split("\t")[2:] == ["deny", "tool rm", "", "never"]
    assert lines[2].split("\t")[2:5] == ["hold", "tool deploy", "2 approvals, 60 s, then deny"]
    assert server.send(decision_log(action={"tool_call": "rm"})).status_code == 403

    assert "Hold everything from now on?" in refused(server, "policy", "add", "hold", code=2)
    assert "(use --force)" in refused(server, "policy", "add", "deny", "--yes")
    assert answer(server, "policy", "add", "deny", "--yes", "--force", "--position", "1")["position"] == 1
    assert "a * is allowed only" in refused(server, "policy", "dry-run", "deny", "--tool", "a*b")
    assert "Remove the rule" in refused(server, "policy", "remove", "1", code=2)
    for name in ("1", denied["rule_id"], gate["rule_id"][:-1]):
        assert "removed" in done(server, "policy", "remove", name, "--yes")
    assert answer(server, "policy", "list")["items"] == []
    assert "1 not found" in refused(server, "policy", "remove", "1", "--yes")


@pytest.mark.req(103, 225)
def test_where_two_people_are_needed_one_approval_leaves_it_held(server: Server) -> None:
    rule = answer(server, "policy", "add", "hold", "--tool", "cli_two_people", "--quorum", "2")
    sent = server.send(
        decision_log(identity={"agent_id": "quorate-1"}, action={"tool_call": "cli_two_people"})
    )
    assert sent.json()["state"] == "held"
    done(server, "policy", "remove", rule["rule_id"], "--yes")
    message = sent.json()["message_id"]
    assert "1 of 2 required approvals; it stays held" in done(server, "approve", message)
    assert "approval 1/2" in done(server, "holds", "--agent", "quorate-1")
    assert "you have already approved this" in refused(server, "approve", message)
    second = ["--url", server.url, "--key", server.key("admin")]
    assert "is approved and forwarded" in observatory("approve", message, *second).stdout


def test_a_budget_is_set_raised_shown_and_removed(server: Server) -> None:
    words = ("budget", "set", "agent", "spender-1", "--period", "daily")
    made = answer(server, *words, "--hard", "0.05", "--soft", "0.01")
    costly = {"identity": {"agent_id": "spender-1"}, "state_delta": {"cost": 1.5}}
    assert server.send(decision_log(**costly)).status_code == 402
    assert answer(server, *words, "--hard", "10")["budget_id"] == made["budget_id"]
    assert server.send(decision_log(**costly)).status_code == 202
    (line,) = [line for line in done(server, "budget", "list").splitlines() if "spender-1" in line]
    assert line.split("\t")[1:7] == ["agent", "spender-1", "", "10.0", "daily", "1.5 (15%)"]
    assert "give --soft, --hard or both" in refused(server, *words, code=2)
    assert "a finite amount" in refused(server, *words, "--soft", "1", "--hard", "nan", code=2)
    assert "hard: must be a number from 0" in refused(server, *words, "--hard=-1")
    assert "Remove the budget" in refused(server, "budget", "remove", made["budget_id"], code=2)
    assert "removed" in done(server, "budget", "remove", made["budget_id"][:-1], "--yes")
    assert "spender-1" not in done(server, "budget", "list")


@pytest.mark.req(124)
def test_weights_are_set_and_shown_as_shares_and_circuits_open_by_hand(server: Server) -> None:
    words = ("route", "set", "cli_summarizer", "cluster:new=10", "cluster:old=30")
    assert "Send new work for cli_summarizer" in refused(server, *words, code=2)
    assert "cluster:new 25.0%" in done(server, *words, "--yes")
    assert "cli_summarizer\tcluster:old\t30\t75.0%" in done(server, "route", "list")
    assert answer(server, "route", "list")[0]["weights"]
    assert "negative" in refused(server, "route", "set", "cli_summarizer", "cluster:new=-1", "--yes")
    assert "all be zero" in refused(server, "route", "set", "cli_summarizer", "cluster:new=0", "--yes")
    for bad in (("cluster:new",), ("=3",), ("a=nan",), ("a=1", "a=2"), ()):
        assert "TARGET=WEIGHT" in refused(server, "route", "set", "cli_summarizer", *bad, code=2)
    assert "will wait" in refused(server, "route", "circuit", "cli_summarizer", "open", code=2)
    assert "is open" in done(server, "route", "circuit", "cli_summarizer", "open", "--yes")
    assert "cli_summarizer\topen" in done(server, "route", "circuits")
    assert answer(server, "route", "circuit", "cli_summarizer", "closed")["state"] == "closed"


# --- what reaches many ---


@pytest.mark.req(226)
def test_s176_a_kill_switch_takes_a_yes_and_the_name_of_what_is_stopped(either_tenant: Tenant) -> None:
    """S175: and without a terminal it takes --yes."""
    server = either_tenant
    server.send(decision_log(identity={"agent_id": "doomed-1", "agent_type": "doomed"}))
    words = ["kill", "class", "doomed", "--reason", "drill"]
    assert "stdin is not a TTY" in refused(server, *words, code=2)
    assert answer(server, "kill", "list")["items"] == []

    code, shown = typing(server, words, "n")
    assert code == 1 and "Stop class doomed: 1 agent in 1 session? [y/N]" in shown
    assert "nothing was done" in shown
    code, shown = typing(server, words, "y", "dooomed")
    assert code == 1 and "Type doomed to continue" in shown and "that is not doomed" in shown
    assert not answer(server, "kill", "list")["engaged"]

    code, shown = typing(server, words, "y", "doomed")
    assert code == 0 and "class doomed is stopped; 1 agent notified" in shown, shown
    late = decision_log(identity={"agent_id": "doomed-1", "agent_type": "doomed"})
    assert server.send(late).json()["state"] == "held"
    listed = of(server, "kill", "list")
    assert "class doomed\tengaged\t1" in listed.stdout and "a kill switch is engaged" in listed.stderr

    assert "Release class doomed, with 1 held message?" in refused(
        server, "kill", "release", "--reason", "over", code=2
    )
    assert answer(server, "kill", "release", "--reason", "over", "--yes")["held"] == 1
    assert "0 kill switches are engaged" in refused(server, "kill", "release", "--reason", "x", code=2)
    assert "name the cluster" in refused(server, "kill", "class", "--reason", "x", code=2)

    gated = held(server, "doomed-1")
    engaged = answer(server, "kill", "global", "--reason", "all of it", "--yes")
    kept = done(server, "approve", gated["message_id"])
    assert f"is approved, but still held: {engaged['kill_id']} stops everything" in kept
    assert f"{engaged['kill_id']} stops everything: all of it" in of(server, "holds").stderr
    other = answer(server, "kill", "class", "doomed", "--force", "--reason", "again", "--yes")
    release = ("kill", "release", other["kill_id"][:-1], "--reason", "over", "--yes")
    assert f"class doomed is still stopped by {engaged['kill_id']}" in done(server, *release)
    assert (engaged["state"], engaged["scope"]) == ("engaged", "global")
    assert "everything is released" in done(
        server, "kill", "release", engaged["kill_id"], "--reason", "over", "--yes"
    )


@pytest.mark.req(227)
def test_instructions_are_issued_shown_and_rolled_back(server: Server, tmp_path: Path) -> None:
    server.send(decision_log(identity={"agent_id": "taught-1", "agent_type": "cli_taught"}))
    file = tmp_path / "instructions.md"
    file.write_text("Be brief.")
    words = ("instructions", "set", "cli_taught")
    assert "Issue these instructions to every agent" in refused(server, *words, "Be brief.", code=2)
    assert "either in quotes or with --file" in refused(server, *words, "--yes", code=2)
    assert "has version 1; 1 agent notified" in done(server, *words, "--file", str(file), "--yes")
    assert answer(server, *words, "Be long.", "--note", "for lawyers", "--yes")["version"] == 2
    assert answer(server, "instructions", "rollback", "cli_taught", "1", "--yes")["version"] == 3
    assert "no instructions of that version" in refused(
        server, "instructions", "rollback", "cli_taught", "9", "--yes"
    )
    shown = done(server, "instructions", "show", "cli_taught")
    assert shown.startswith("Be brief.\n") and "for lawyers" in shown and "taught-1\tnone\tpending" in shown
    assert "cli_taught\t3\t0/1" in done(server, "instructions", "list")
    assert "no instructions were issued" in refused(server, "instructions", "show", "nobody")

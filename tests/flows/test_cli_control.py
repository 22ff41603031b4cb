"""The operator's terminal: what acts on a running agent, through real processes against a real gateway."""

from __future__ import annotations

import json
import subprocess
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from observatory.sdk import Agent, Cancelled, Decision, Denied
from tests.flows.hand import answer, done, held, of, refused, state_of, typing
from tests.flows.server import COMMAND, Server, clean_environment, observatory
from tests.samples import decision_log
from tests.waiting import until


@pytest.fixture
def server(either_server: Server) -> Server:
    """On both databases."""
    return either_server


# --- holds and the answers at a gate ---


@pytest.mark.req(103, 242)
def test_what_hides_in_a_held_message_is_named_in_the_terminal_and_in_its_json(server: Server) -> None:
    """S1112: in the list, before an answer and after it, in `tail`; and JSON keeps the exact value."""
    session, intent = str(uuid.uuid4()), "pay bob\u202e1234 \x1b]0;owned\x07\u009b2J"
    log = decision_log(meta={"trace_id": session, "session_id": session, "step_id": "hidden"})
    log["identity"]["agent_id"], log["cognition"]["intent"] = "hider-1", intent
    log["action"]["tool_call"], log["control"]["hitl_required"] = "p\u0430y", True
    sent = server.send(log).json()
    assert sent["state"] == "held"
    number = str(sent["sequence_number"])
    shown = [done(server, "holds", "--session", session), done(server, "holds", number)]
    exact = done(server, "holds", number, "--json")
    assert json.loads(exact)["message"]["cognition"]["intent"] == intent
    assert "bob\\u202e1234" in exact and "\\u009b" in exact
    shown.append(done(server, "approve", number))
    shown.append(done(server, "tail", "--after", str(sent["sequence_number"] - 1), "--count", "1"))
    assert "bob⟨U+202E⟩1234 ␛]0;owned␇⟨U+009B⟩2J" in shown[0] + shown[2]
    assert "p\u0430y⟨Latin+Cyrillic⟩" in shown[2] and "p\u0430y⟨Latin+Cyrillic⟩" in shown[3]
    for text in (*shown, exact):
        assert not {"\u202e", "\x1b", "\x07", "\u009b"} & {*text}


@pytest.mark.req(103, 242)
def test_held_messages_are_listed_gates_first_and_named_by_number_id_or_beginning(server: Server) -> None:
    """S173: the list, and every way to name one of it."""
    session = str(uuid.uuid4())
    first = held(server, "lister-1", session=session)
    assert server.http("operator").post(
        f"/v1/sessions/{session}/pause", json={"agent_id": "lister-1"}
    ).status_code in (200, 202)
    plain = decision_log(meta={"trace_id": session, "session_id": session, "step_id": "plain"})
    plain["identity"]["agent_id"] = "lister-1"
    assert server.send(plain).json()["state"] == "held"
    second = held(server, "lister-1", session=session)

    lines = done(server, "holds", "--session", session).splitlines()
    assert lines[0].split("\t")[:4] == ["NO", "AGENT", "WAITS FOR", "WHAT"]
    assert [line.split("\t")[2] for line in lines[1:]] == ["approval 0/1", "approval 0/1", "pause"]
    assert [line.split("\t")[7] for line in lines[1:3]] == [first["message_id"], second["message_id"]]
    assert len(answer(server, "holds", "--session", session, "--gates")) == 2
    assert len(answer(server, "holds", "--agent", "lister-1")) == 3

    for name in (
        str(first["sequence_number"]),
        first["message_id"],
        first["step_id"],
        first["message_id"][:-1],
    ):
        found = answer(server, "holds", name)
        assert found["message_id"] == first["message_id"], name
        assert found["message"]["identity"]["agent_id"] == "lister-1"
    assert "is ambiguous" in refused(server, "holds", "msg_")
    assert "msg_nowhere not found" in refused(server, "holds", "msg_nowhere")
    assert json.loads(done(server, "holds", first["message_id"], "--content"))["action"]["tool_call"] == "pay"


@pytest.mark.req(103, 193)
def test_a_held_message_is_approved_once_and_the_second_answer_says_what_became_of_it(server: Server) -> None:
    row = held(server, "approver-1")
    received = done(server, "approve", str(row["sequence_number"]), "--note", "fine")
    assert f"{row['message_id']} is approved and forwarded" in received
    assert state_of(server, row) == "forwarded"
    assert "was already released" in refused(server, "approve", row["message_id"])
    assert "not found" in refused(server, "approve", "msg_00000000-unknown")


@pytest.mark.req(103)
def test_s174_an_answer_is_of_what_was_read(server: Server, tmp_path: Path) -> None:
    row = held(server, "digest-1")
    file = tmp_path / "new.json"
    file.write_text(done(server, "holds", row["message_id"], "--content").replace("NVDA", "AMD"))
    assert answer(server, "rewrite", row["message_id"], "--file", str(file))["state"] == "held"
    stale = refused(server, "approve", row["message_id"], "--digest", row["action_digest"])
    assert "digest" in stale or "changed" in stale
    assert state_of(server, row) == "held"
    now = answer(server, "holds", row["message_id"])["action_digest"]
    assert answer(server, "approve", row["message_id"], "--digest", now)["state"] == "forwarded"


@pytest.mark.req(103)
def test_a_rejected_message_is_never_forwarded(server: Server) -> None:
    row = held(server, "rejecter-1")
    assert "use --yes" in refused(server, "reject", row["message_id"], code=2)
    assert state_of(server, row) == "held"
    assert "rejected, never forwarded" in done(server, "reject", row["message_id"], "--yes", "--note", "no")
    assert state_of(server, row) == "rejected"


@pytest.mark.req(189, 190, 195)
def test_s178_new_content_comes_from_a_file_or_stdin_and_is_checked(server: Server, tmp_path: Path) -> None:
    row = held(server, "editor-1")
    file = tmp_path / "new.json"
    file.write_text(done(server, "holds", row["message_id"], "--content").replace("NVDA", "AMD"))
    rewritten = answer(server, "rewrite", row["message_id"], "--file", str(file))
    assert rewritten["before_hash"] == row["action_digest"] != rewritten["after_hash"]
    assert "is undone" in done(server, "undo", rewritten["intervention_id"])
    assert "already undone" in refused(server, "undo", rewritten["intervention_id"])
    assert answer(server, "holds", row["message_id"])["action_digest"] == row["action_digest"]

    file.write_text("{}")
    assert "meta: is missing" in refused(server, "edit", row["message_id"], "--file", str(file))
    file.write_text("[1")
    assert "not a JSON object" in refused(server, "edit", row["message_id"], "--file", str(file), code=2)
    nowhere = str(tmp_path / "nowhere")
    assert "cannot be read" in refused(server, "edit", row["message_id"], "--file", nowhere, code=2)
    assert state_of(server, row) == "held"

    content = done(server, "holds", row["message_id"], "--content").replace("NVDA", "INTC")
    words = [*COMMAND, "edit", row["message_id"], "--data", str(server.folder)]
    run = subprocess.run(
        words, input=content, capture_output=True, text=True, env=clean_environment(), timeout=60, check=False
    )
    assert run.returncode == 0, run.stderr
    assert "is edited and forwarded" in run.stdout
    shown = server.http("operator").get(f"/v1/messages/{row['message_id']}").json()
    assert shown["rewritten"] and "INTC" in shown["message"]["cognition"]["intent"]


# --- a running agent ---


@contextmanager
def running(server: Server, name: str) -> Iterator[tuple[Agent, str]]:
    with Agent(name, agent_type=f"type-of-{name}", data=server.folder, heartbeat_s=None) as agent:
        step = agent.step("Begin")
        session = step.answer(timeout=30).session_id
        assert session is not None
        assert agent.listen(timeout=30)
        yield agent, session


@pytest.mark.req(99, 114, 133, 186, 187, 188, 191, 192, 194, 195)
def test_s179_an_agent_is_paused_told_something_and_goes_on(server: Server) -> None:
    with running(server, "pausee-1") as (agent, session):
        paused = of(server, "pause", session, "pausee-1", "--note", "look", "--wait", "30")
        assert paused.returncode == 0, paused
        assert [line.split(":")[0] for line in paused.stderr.splitlines()][-1] == "confirmed"
        assert answer(server, "pause", session, "pausee-1")["status"] == "already_paused"
        worker = threading.Thread(target=agent.step, args=("Go on",))
        worker.start()
        injected = answer(server, "inject", session, "pausee-1", "Use the primary source")
        assert injected["state"] == "queued"
        assert worker.is_alive()
        assert "pausee-1 is running" in done(server, "unpause", session, "pausee-1")
        worker.join(30)
        assert not worker.is_alive()
        assert [str(prompt) for prompt in agent.prompts()] == ["Use the primary source"]
        assert "is not paused" in done(server, "unpause", session, "pausee-1")
        listed = answer(server, "interventions", session)
        assert [row["command"] for row in listed] == ["pause", "inject", "unpause"]
        assert listed[0]["confirmation"] == "confirmed" and listed[0]["note"] == "look"
        lines = done(server, "interventions", session).splitlines()
        assert [line.split("\t")[2] for line in lines] == ["COMMAND", "pause", "inject", "unpause"]


@pytest.mark.req(188)
def test_a_pause_that_nobody_acknowledges_is_told_as_such(server: Server) -> None:
    """S179: the agent does not listen."""
    row = held(server, "deaf-1")
    run = of(server, "pause", row["session_id"], "deaf-1", "--wait", "0.3")
    assert run.returncode == 1
    assert "paused, but not confirmed within 0.3 s: requested" in run.stderr


@pytest.mark.req(195)
def test_a_prompt_can_be_withdrawn_until_it_is_delivered_and_work_can_be_ended(
    server: Server, tmp_path: Path
) -> None:
    row = held(server, "patient-1")
    file = tmp_path / "prompt.txt"
    file.write_text("Read the second page")
    made = answer(server, "inject", row["session_id"], "patient-1", "--file", str(file))
    assert answer(server, "undo", made["intervention_id"])["status"]
    words = ("cancel", row["session_id"], "patient-1", "--note", "enough")
    assert "cannot be undone" in refused(server, *words, code=2)
    cancelled = done(server, *words, "--yes")
    assert "patient-1 is asked to end its work" in cancelled
    items = server.http("admin").get("/v1/agents/patient-1/inbox").json()["items"]
    assert [item["kind"] for item in items] == ["cancel"]
    assert items[0]["body"]["reason"] == "enough"


# --- decisions ---


@pytest.mark.req(366)
def test_a_decision_is_listed_with_its_options_and_answered(server: Server) -> None:
    chosen: list[Decision] = []
    owner = server.http("operator").get("/v1/whoami").json()["user_id"]
    with running(server, "chooser-1") as (agent, _):
        worker = threading.Thread(
            target=lambda: chosen.append(
                agent.decide("Deploy now?", ["deploy", "wait"], owner=owner, timeout=60)
            )
        )
        worker.start()
        found = _decision_of(server, "chooser-1")
        listed = done(server, "decisions", "list", "--user", owner)
        assert "Deploy now?" in listed and "deploy" in listed
        assert refused(server, "decisions", "respond", found, "explode")
        received = done(server, "decisions", "respond", found[:-1], "wait", "--note", "Friday")
        assert "is answered: wait" in received
        worker.join(30)
    assert chosen == ["wait"] and chosen[0].note == "Friday"
    assert "this decision is" in refused(server, "decisions", "respond", found, "deploy")
    assert found in done(server, "decisions", "list", "--state", "all")


def test_a_pending_decision_can_be_taken_back(server: Server) -> None:
    with running(server, "asker-1") as (agent, _):
        owner = server.http("operator").get("/v1/whoami").json()["user_id"]
        worker = threading.Thread(target=_quiet, args=(agent, owner))
        worker.start()
        found = _decision_of(server, "asker-1")
        assert "cancelled" in done(server, "decisions", "cancel", found)
        worker.join(30)
        assert not worker.is_alive()
    assert "no decision" in refused(server, "decisions", "respond", "dec_unknown", "yes")


def _quiet(agent: Agent, owner: str) -> None:
    with pytest.raises((Denied, Cancelled)):
        agent.decide("Really?", ["yes", "no"], owner=owner, timeout=60)


def _decision_of(server: Server, agent_id: str) -> str:
    def asked() -> str:
        rows = server.http("operator").get("/v1/decisions/pending").json()["items"]
        return next((str(row["decision_id"]) for row in rows if row["agent_id"] == agent_id), "")

    return until(asked)


# --- answers, refusals, exit codes ---


@pytest.mark.req(193)
def test_s177_json_is_the_gateways_answer_and_refusals_are_sentences(server: Server) -> None:
    row = held(server, "jsoned-1")
    session = row["session_id"]
    paused = answer(server, "pause", session, "jsoned-1")
    assert (paused["status"], paused["state"], paused["confirmation"]) == ("accepted", "paused", "requested")
    run = of(server, "pause", "no-such-session", "jsoned-1", "--json")
    assert run.returncode == 1
    assert json.loads(run.stdout)["reason"] == "not_found"
    (sentence,) = run.stderr.splitlines()
    assert sentence == "observatory: no session of this tenant has that id"
    elsewhere = ["--url", server.url, "--key", server.key("operator")]
    named = observatory("pause", "no-such-session", "jsoned-1", *elsewhere).stderr
    assert named.startswith(f"observatory: the Observatory at {server.url} refused: no session")
    assert "no agent of this tenant" in refused(server, "inject", session, "nobody", "Hello")
    assert "either in quotes or with --file" in refused(server, "inject", session, "jsoned-1", code=2)
    for words in (["pause", session], ["approve"], ["kill", "moon", "--reason", "x"], ["holds", "--odd"]):
        assert refused(server, *words, code=2)


@pytest.mark.req(193)
def test_a_key_that_may_not_command_is_told_so(server: Server) -> None:
    """S177: whose key it is decides, and the sentence says what is missing."""
    row = held(server, "guarded-1")
    viewer = ["--url", server.url, "--key", server.key("viewer")]
    run = observatory("pause", row["session_id"], "guarded-1", *viewer)
    assert run.returncode == 1 and "may not do that" in run.stderr
    assert "use an operator's key" in run.stderr
    run = observatory("approve", row["message_id"], *viewer)
    assert run.returncode == 1 and "use an approver's or an operator's key" in run.stderr
    assert observatory("holds", *viewer).returncode == 0
    operator = ["--url", server.url, "--key", server.key("operator")]
    run = observatory("kill", "global", "--reason", "x", "--yes", *operator)
    assert run.returncode == 1 and "use an admin's key" in run.stderr


@pytest.mark.req(103)
def test_s175_on_a_terminal_a_question_is_asked_and_a_no_changes_nothing(server: Server) -> None:
    row = held(server, "questioned-1")
    code, shown = typing(server, ["reject", row["message_id"]], "")
    assert code == 1 and "for good? [y/N]" in shown and "nothing was done" in shown
    assert state_of(server, row) == "held"
    code, shown = typing(server, ["reject", row["message_id"]], "yes")
    assert code == 0 and "never forwarded" in shown
    code, shown = typing(server, ["holds", "--session", row["session_id"]])
    assert code == 0 and shown == "nothing is held\n"
    row = held(server, "questioned-1")
    code, shown = typing(server, ["holds", "--session", row["session_id"]], columns=60)
    assert code == 0 and "WAITS FOR" in shown and "MESSAGE" not in shown
    assert row["session_id"] in shown


@pytest.mark.req(103)
def test_a_person_is_shown_what_is_rejected_and_how_much_follows_from_it(server: Server) -> None:
    row = held(server, "rooted-1", tool_input='{"amount": 98000}')
    follower = decision_log(
        meta={
            "trace_id": row["session_id"],
            "session_id": row["session_id"],
            "step_id": "follower",
            "parent_step_id": row["step_id"],
        }
    )
    follower["identity"]["agent_id"] = "rooted-1"
    assert server.send(follower).json()["state"] == "held"
    listed = done(server, "holds", "--session", row["session_id"]).splitlines()
    assert f"after {row['sequence_number']}" in listed[2] and 'pay {"amount": 98000}' in listed[1]
    code, shown = typing(server, ["reject", row["message_id"]], "y")
    assert code == 0, shown
    assert 'pay {"amount": 98000}' in shown
    assert f"{row['message_id']} of rooted-1 and 1 that follow from it for good? [y/N]" in shown
    assert "is rejected, and 1 that followed from it; never forwarded" in shown


@pytest.mark.req(103)
def test_what_passed_is_told_and_a_rewritten_message_is_marked(server: Server, tmp_path: Path) -> None:
    row = held(server, "echoed-1", tool_input='{"amount": 98000}')
    file = tmp_path / "new.json"
    file.write_text(done(server, "holds", row["message_id"], "--content").replace("98000", "9800"))
    done(server, "rewrite", row["message_id"], "--file", str(file))
    assert "(rewritten) " in done(server, "holds", "--session", row["session_id"])
    passed = done(server, "approve", row["message_id"]).splitlines()
    assert passed[1].startswith("  ") and passed[1].endswith('pay {"amount": 9800}')


# --- what there is ---


def test_sessions_and_agents_are_listed_newest_first_and_a_beginning_names_a_session(server: Server) -> None:
    row = held(server, "seen-1")
    session = row["session_id"]
    (newest,) = answer(server, "sessions", "--limit", "1")
    assert (newest["session_id"], newest["held"], newest["agents_count"]) == (session, 1, 1)
    lines = done(server, "sessions").splitlines()
    assert lines[0].split("\t") == ["SESSION", "AGENTS", "MESSAGES", "HELD", "COST", "ALERTS", "LAST SEEN"]
    assert lines[1].split("\t")[:4] == [session, "1", "1", "1"]
    lines = done(server, "agents", "list").splitlines()
    assert lines[0].split("\t")[:4] == ["AGENT", "TYPE", "CLUSTER", "STATE"]
    assert lines[1].split("\t")[:2] == ["seen-1", "type-of-seen-1"]
    assert answer(server, "agents", "list", "--limit", "1")[0]["agent_id"] == "seen-1"
    assert answer(server, "pause", session[:18], "seen-1")["status"] == "accepted"
    assert [one["command"] for one in answer(server, "interventions", session[:18])] == ["pause"]
    code, shown = typing(server, ["sessions", "--limit", "1"], columns=40)
    assert code == 0 and session in shown


@pytest.mark.parametrize(
    ("words", "received"),
    [
        ("pause", "SESSION is missing: observatory pause SESSION AGENT"),
        ("unpause x", "AGENT is missing: observatory unpause SESSION AGENT"),
        ("inject", "SESSION is missing: observatory inject SESSION AGENT [PROMPT]"),
        ("cancel", "SESSION is missing: observatory cancel SESSION AGENT"),
        ("approve", "MESSAGE is missing: observatory approve MESSAGE"),
        ("rewrite", "MESSAGE is missing: observatory rewrite MESSAGE"),
        (
            "kill class x",
            "--reason is missing: observatory kill global|cluster|class|agent [TARGET] --reason REASON",
        ),
    ],
)
def test_a_missing_argument_is_named_with_the_whole_command(words: str, received: str) -> None:
    run = observatory(*words.split())
    assert (run.returncode, run.stderr) == (2, f"observatory: {received}\n")

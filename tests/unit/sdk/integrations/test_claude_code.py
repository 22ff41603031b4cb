"""A hook's input and options, and our hooks in a settings file: pure, without a process."""

from __future__ import annotations

import fcntl
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from observatory.sdk.approval import Approval
from observatory.sdk.credentials import GatewayCredentials
from observatory.sdk.integrations import claude_code
from observatory.sdk.integrations.claude_code import events, memory, settings, transcript
from observatory.sdk.integrations.claude_code.hook import Hook, HookOptions
from observatory.sdk.integrations.claude_code.memory import HookSession, HookStateStore, OpenTool, Thread
from observatory.sdk.integrations.claude_code.wire import Away, HookGateway
from observatory.sdk.orders import Orders
from observatory.sdk.received import Received
from observatory.sdk.spool import Spool

COMMAND = "/opt/our tools/observatory hook"
THEIRS: dict[str, Any] = {
    "model": "opus",
    "hooks": {
        "PreToolUse": [
            {"matcher": "Bash", "hooks": [{"type": "command", "command": "observatory-like hook"}]}
        ],
        "Stop": [],
    },
}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is not a JSON object"),
        ("[1]", "is not a JSON object"),
        ('{"a":', "is not a JSON object"),
        ('{"hook_event_name": "\\ud800"}', "is not a JSON object"),
        ("[" * 100_000, "is not a JSON object"),
        ("{}", "has no hook_event_name"),
        ('{"hook_event_name": "Stop", "session_id": 7}', "has no session_id"),
        (json.dumps({"hook_event_name": "Stop", "session_id": "x" * 300}), "has no session_id"),
    ],
)
def test_what_is_no_hook_is_a_sentence_s889(text: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode(errors="surrogatepass"))))
    with pytest.raises(ValueError, match=why):
        claude_code.read()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--wait"], "needs a value"),
        (["--wait=soon"], "number"),
        (["--box", "-1"], "number"),
        (["--x"], "option"),
    ],
)
def test_options_that_cannot_be_meant_so_are_refused_s889(words: list[str], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        claude_code.options_of(words)
    assert claude_code.options_of(["--ask", "A, B", "--ask=C*", "--box=1"]).ask == ("A", "B", "C*")


def test_ours_go_in_once_beside_theirs_and_come_out_without_a_trace_s890() -> None:
    once = settings.installed(THEIRS, COMMAND, HookOptions(ask=("Write", "mcp__*"), agent="me & you"))
    assert settings.installed(once, COMMAND, HookOptions(ask=("Write", "mcp__*"), agent="me & you")) == once
    assert {*settings.ours(once)} == {*settings.EVENTS}
    assert once["hooks"]["PreToolUse"][0] == THEIRS["hooks"]["PreToolUse"][0]
    command = settings.ours(once)["PreToolUse"]
    assert command == f"{COMMAND} --agent='me & you' --ask='Write,mcp__*' --wait=590 --box=5"
    assert "--ask" not in settings.ours(once)["Stop"]
    for event, groups in once["hooks"].items():
        [ours] = [hook for group in groups for hook in group["hooks"] if hook["command"].startswith(COMMAND)]
        waits = 590 if event in settings.GATES else 5
        assert ours["timeout"] > waits, "it has answered before it would be killed"
    changed = settings.installed(once, "observatory hook", HookOptions())
    assert settings.ours(changed)["PreToolUse"] == "observatory hook --wait=590 --box=5"
    module = settings.installed({}, "python -P -m observatory.cli hook", HookOptions())
    assert settings.removed(module) == {}
    gone = settings.removed(changed)
    assert gone == {"model": "opus", "hooks": {"PreToolUse": THEIRS["hooks"]["PreToolUse"]}}
    assert settings.removed(THEIRS) is THEIRS
    assert settings.removed(settings.installed({}, COMMAND, HookOptions())) == {}


@pytest.mark.parametrize(
    "hooks", [[], "x", {"Stop": {}}, {"Stop": ["x"]}, {"Stop": [{"hooks": "x"}]}, {"Stop": [{"hooks": [1]}]}]
)
def test_hooks_of_another_form_are_refused_s890(hooks: Any) -> None:
    with pytest.raises(settings.UnknownSettingsForm):
        settings.installed({"hooks": hooks}, COMMAND, HookOptions())
    with pytest.raises(settings.UnknownSettingsForm):
        settings.ours({"hooks": hooks})


def test_tools_that_run_at_once_have_the_same_parents_and_are_joined_s881() -> None:
    line = Thread(tips=["prompt"])
    assert line.begin("a", OpenTool("a1", "Bash")) == line.begin("b", OpenTool("b1", "Bash")) == ["prompt"]
    line.end("a", "a2")
    assert line.begin("c", OpenTool("c1", "Bash")) == ["prompt"], "b is still running"
    line.end("c", None)  # never allowed
    line.end("b", "b2")
    assert line.move("next") == ["a2", "b2"]
    line.begin("d", OpenTool("d1", "Bash"))
    line.close()  # it never told its end
    assert line.move("prompt 2") == ["next"]


def test_what_was_approved_is_what_runs_or_nothing_is_s883() -> None:
    event = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "a"}}
    as_asked = events.granted(event, Approval(True, "approved", None, "usr_1"))["hookSpecificOutput"]
    assert as_asked["permissionDecision"] == "allow" and "updatedInput" not in as_asked
    let_go = Approval(True, "approved", None, "usr_1", gated=False)
    assert events.granted(event, let_go) == {}, "the end of a pause is no word about this tool"
    edited = Approval(True, "edited", None, "usr_1", {"action": {}}, None, "Bash", {"command": "b"})
    received = events.granted(event, edited)["hookSpecificOutput"]
    assert (received["permissionDecision"], received["updatedInput"]) == ("allow", {"command": "b"})
    for tool, given in (
        ("Write", {"command": "b"}),
        ("Bash", "b"),
        ("Bash", {"too_large": 1, "sha256": "", "begins": ""}),
    ):
        other = Approval(True, "edited", None, "usr_1", {"action": {}}, None, tool, given)
        assert events.granted(event, other)["hookSpecificOutput"]["permissionDecision"] == "deny"


def test_the_transcript_is_read_once_and_counts_each_answer_once_s880(tmp_path: Any) -> None:
    path, session = tmp_path / "t.jsonl", HookSession()
    usage = {"input_tokens": 5, "output_tokens": 2, "cache_read_input_tokens": None, "other": 9}
    answer = {"id": "m1", "model": "opus", "content": [{"type": "text", "text": "hm"}], "usage": usage}
    line = json.dumps({"type": "assistant", "message": answer})
    path.write_text("\n".join(["garbage", '{"type": "user", "message": "x"}', line, line, line[:20]]))
    assert transcript.read(session, str(path)) == (7, "opus", ["hm", "hm"])
    path.write_text(path.read_text() + line[20:] + "\n")
    assert transcript.read(session, str(path)) == (None, "opus", ["hm"]), "no tokens told is not zero"
    assert transcript.read(session, str(path)) == (None, "opus", [])
    assert (
        transcript.read(session, None)
        == transcript.read(session, str(tmp_path / "none"))
        == (None, "opus", [])
    )


@pytest.mark.parametrize("session_id", ["..", ".", "/etc", "a/../..", "é" * 200, "lock"])
def test_what_hooks_keep_lies_in_one_folder_and_is_begun_anew_when_it_is_broken_s889(
    tmp_path: Path, session_id: str
) -> None:
    memory = HookStateStore(tmp_path, session_id)
    with memory.session() as session:
        assert session.claim("a") and not session.claim("a")
    assert memory.folder.parent == tmp_path / "claude-code" and memory.folder.resolve() == memory.folder
    (memory.folder / "state.json").write_text('{"claimed": 7')
    with memory.session() as session:
        assert session.claim("a") and session.unknown == {"state that could not be read": 1}
    orders = Orders("me/you")
    with memory.orders(orders):
        orders.take(Received("d1", "hold", 5, session_id))
    other = Orders("me/you")
    with memory.orders(other):
        assert other.is_held(session_id), "what one hook learned, the next knows"
        other.take(Received("d2", "resume", 4, session_id))
        assert other.is_held(session_id), "an order that was overtaken changes nothing"


URL = "http://127.0.0.1:9"


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> Callable[..., tuple[int, list[Any]]]:
    """One hook in this process: its code, and whatever JSON it answered."""
    for name, value in (("URL", URL), ("KEY", "obs_x"), ("DATA", str(tmp_path))):
        monkeypatch.setenv(f"OBSERVATORY_{name}", value)

    def run(name: str, *words: str) -> tuple[int, list[Any]]:
        event = {"hook_event_name": name, "session_id": "s", "tool_name": "Bash", "tool_input": {}}
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(event).encode())))
        code = claude_code.main(words)
        text = capsysbinary.readouterr().out
        return code, [json.loads(text)] if text else []

    return run


Run = Callable[..., tuple[int, list[Any]]]


def test_what_was_held_or_refused_does_not_run_because_the_hook_fails_afterwards_s888(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def judge(hook: Hook) -> Any:
        hook.is_shut = True
        raise RuntimeError("the disk is full")

    monkeypatch.setattr(Hook, "judge", judge)
    code, [answer] = run("PreToolUse")
    assert code == 0 and answer["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert "the disk is full" in answer["hookSpecificOutput"]["permissionDecisionReason"]
    assert run("UserPromptSubmit")[1][0]["decision"] == "block"
    assert run("PostToolUse") == (0, []), "telemetry stands in nobody's way"


def test_an_answer_that_was_given_is_the_only_one_whatever_fails_then_s888(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S888: two answers on one line are no JSON, and a no that cannot be read is none."""

    def finish(hook: Hook, answer: Any) -> None:
        claude_code._answer(hook, events.denied(hook.event, "a person said no"))
        raise Away("a lock nobody lets go")

    monkeypatch.setattr(Hook, "judge", lambda hook: {})
    monkeypatch.setattr(claude_code, "_finish", finish)
    _, [answer] = run("PreToolUse", "--ask=Bash")
    assert answer["hookSpecificOutput"]["permissionDecisionReason"] == "a person said no"


@pytest.mark.parametrize(("words", "code"), [(["--ask=Bash", "--wait=1e9"], 2), (["--wait=1e9"], 1)])
def test_a_gate_whose_options_cannot_be_read_stays_shut_s888(run: Run, words: list[str], code: int) -> None:
    assert run("PreToolUse", *words) == (code, [])


def test_an_address_of_nats_is_told_and_its_password_is_not_s889(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S889: over NATS no hook speaks, and the key goes to nobody who is no gateway."""
    monkeypatch.setenv("OBSERVATORY_URL", "nats://me:secret@127.0.0.1:9")
    [answer] = run("SessionStart")[1]
    assert "with http or https" in answer["systemMessage"] and "secret" not in answer["systemMessage"]
    assert run("PreToolUse", "--ask=*")[1][0]["hookSpecificOutput"]["permissionDecision"] == "deny"


def test_of_two_that_are_installed_the_one_that_asks_a_person_asks_s889(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S889: and what is asked for again later is asked anew: a deferred tool comes with the same id."""
    event = {"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Bash", "tool_use_id": "t"}

    def is_first(*ask: str) -> bool:
        return Hook(event, HookOptions(ask=ask), GatewayCredentials(URL, "obs_x", tmp_path)).is_first

    assert [is_first(), is_first(), is_first("Bash"), is_first("Bash"), is_first("Write")] == [
        True, False, True, False, False,
    ]  # fmt: skip
    monkeypatch.setattr(memory, "CLAIMED_S", 0.0)
    assert is_first("Bash") and is_first()


def test_a_tool_that_waits_is_asked_for_before_what_was_left_unsent_s888(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S888: a gate that spent its box on old telemetry would open unasked."""
    sent: list[bytes] = []

    def ask(
        self: HookGateway, method: str, path: str, body: bytes = b"", kind: str = ""
    ) -> tuple[int, bytes]:
        sent.append(body.strip())
        if body == b"old\n":
            raise Away("it takes too long")
        return 200, b'{"code": 202, "status": "accepted"}\n'

    monkeypatch.setattr(HookGateway, "_ask", ask)
    left = Spool.create(tmp_path / "spool", "me", URL, 1 << 20)
    left.append([b"old"])
    left.release()
    wire = HookGateway(GatewayCredentials(URL, "obs_x", tmp_path), "me")
    assert wire.send(b"asked", 5.0, is_asked=True).code == 202
    with pytest.raises(Away):
        wire.send(b"told", 5.0)
    assert sent == [b"asked", b"old", b"old"]


def test_where_nothing_can_be_kept_a_hook_goes_by_what_it_hears_s888(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "claude-code").write_text("no folder")
    here, orders = HookStateStore(tmp_path, "s"), Orders("me")
    with here.session() as session:
        session.waiting.append("step")
    with here.session() as session:
        assert session.waiting == ["step"]
    with here.orders(orders):
        orders.take(Received("d1", "hold", 5, "s"))
    with here.orders(orders), here.giving():
        assert orders.is_held("s"), "not forgotten with what could not be written"
    monkeypatch.setattr(memory, "LOCKED_S", 0.0)
    there = HookStateStore(tmp_path / "other", "s")
    with there.session():
        pass
    with (there.folder / "lock").open() as stopped:
        fcntl.flock(stopped, fcntl.LOCK_EX)
        with there.session() as session:
            assert session.claim("a"), "who was stopped amid stops nobody else"

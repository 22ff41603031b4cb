"""A hook's input and options, and our hooks in a settings file: pure, without a process."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from observatory.sdk.approval import Approval
from observatory.sdk.integrations import claude_code
from observatory.sdk.integrations.claude_code import events, settings, transcript
from observatory.sdk.integrations.claude_code.hook import Options
from observatory.sdk.integrations.claude_code.memory import Memory, Session, Thread, Tool
from observatory.sdk.orders import Orders
from observatory.sdk.received import Received

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
    once = settings.installed(THEIRS, COMMAND, Options(ask=("Write", "mcp__*"), agent="me & you"))
    assert settings.installed(once, COMMAND, Options(ask=("Write", "mcp__*"), agent="me & you")) == once
    assert {*settings.ours(once)} == {*settings.EVENTS}
    assert once["hooks"]["PreToolUse"][0] == THEIRS["hooks"]["PreToolUse"][0]
    command = settings.ours(once)["PreToolUse"]
    assert command == f"{COMMAND} --agent='me & you' --ask='Write,mcp__*' --wait=590 --box=5"
    assert "--ask" not in settings.ours(once)["Stop"]
    for event, groups in once["hooks"].items():
        [ours] = [hook for group in groups for hook in group["hooks"] if hook["command"].startswith(COMMAND)]
        waits = 590 if event in settings.GATES else 5
        assert ours["timeout"] > waits, "it has answered before it would be killed"
    changed = settings.installed(once, "observatory hook", Options())
    assert settings.ours(changed)["PreToolUse"] == "observatory hook --wait=590 --box=5"
    module = settings.installed({}, "python -P -m observatory.cli hook", Options())
    assert settings.removed(module) == {}
    gone = settings.removed(changed)
    assert gone == {"model": "opus", "hooks": {"PreToolUse": THEIRS["hooks"]["PreToolUse"]}}
    assert settings.removed(THEIRS) is THEIRS
    assert settings.removed(settings.installed({}, COMMAND, Options())) == {}


@pytest.mark.parametrize(
    "hooks", [[], "x", {"Stop": {}}, {"Stop": ["x"]}, {"Stop": [{"hooks": "x"}]}, {"Stop": [{"hooks": [1]}]}]
)
def test_hooks_of_another_form_are_refused_s890(hooks: Any) -> None:
    with pytest.raises(settings.NotOurForm):
        settings.installed({"hooks": hooks}, COMMAND, Options())


def test_tools_that_run_at_once_have_the_same_parents_and_are_joined_s881() -> None:
    line = Thread(tips=["prompt"])
    assert line.begin("a", Tool("a1", "Bash")) == line.begin("b", Tool("b1", "Bash")) == ["prompt"]
    line.end("a", "a2")
    assert line.begin("c", Tool("c1", "Bash")) == ["prompt"], "b is still running"
    line.end("c", None)  # never allowed
    line.end("b", "b2")
    assert line.move("next") == ["a2", "b2"]
    line.begin("d", Tool("d1", "Bash"))
    line.close()  # it never told its end
    assert line.move("prompt 2") == ["next"]


def test_what_was_approved_is_what_runs_or_nothing_is_s883() -> None:
    event = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "a"}}
    as_asked = events.granted(event, Approval(True, "approved", None, "usr_1"))["hookSpecificOutput"]
    assert as_asked["permissionDecision"] == "allow" and "updatedInput" not in as_asked
    edited = Approval(True, "edited", None, "usr_1", {"action": {}}, None, "Bash", {"command": "b"})
    told = events.granted(event, edited)["hookSpecificOutput"]
    assert (told["permissionDecision"], told["updatedInput"]) == ("allow", {"command": "b"})
    for tool, given in (
        ("Write", {"command": "b"}),
        ("Bash", "b"),
        ("Bash", {"too_large": 1, "sha256": "", "begins": ""}),
    ):
        other = Approval(True, "edited", None, "usr_1", {"action": {}}, None, tool, given)
        assert events.granted(event, other)["hookSpecificOutput"]["permissionDecision"] == "deny"


def test_the_transcript_is_read_once_and_counts_each_answer_once_s880(tmp_path: Any) -> None:
    path, session = tmp_path / "t.jsonl", Session()
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
    memory = Memory(tmp_path, session_id)
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

"""Hooks of Claude Code one by one, as it starts them: bad input, bad lines, at once, killed half way."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from tests.flows.claude import Json, Line, Project
from tests.flows.server import Server
from tests.flows.tenant import Tenant
from tests.waiting import until


@pytest.fixture(scope="module")
def project(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    made = Project(server, tmp_path_factory.mktemp("hooks"))
    yield made
    made.close()


@pytest.fixture
def session_id() -> str:
    return str(uuid.uuid4())


def asks(project: Project, session_id: str, command: str, tool_use_id: str | None = None) -> Json:
    received: dict[str, Any] = {"tool_name": "Bash", "tool_input": {"command": command}}
    received["tool_use_id"] = tool_use_id or f"toolu_{uuid.uuid4().hex}"
    return project.event("PreToolUse", session_id, **received)


def test_what_is_no_hook_is_told_and_blocks_only_where_tools_need_approval_s889(project: Project) -> None:
    ended = project.hook("garbage")
    assert (ended.code, ended.answer) == (1, {})
    assert ended.complaint == (
        "observatory hook: the hook's input is not a JSON object; nothing was recorded\n"
    )
    assert project.hook("garbage", "--ask=Write").code == 2


def test_hooks_and_members_of_a_newer_version_pass_and_are_counted_s889(
    project: Project, session_id: str
) -> None:
    """Also: the same hook installed twice counts once; an input too large to show is named by its hash."""
    assert project.hook(project.event("Foretold", session_id, x=1)) == (0, {}, "")
    file = {"file_path": "x", "content": "y" * 600_000}
    write = project.event("PreToolUse", session_id, tool_name="Write", tool_input=file, tool_use_id="toolu_1")
    first, second = project.begin(write | {"mood": "good"}), project.begin(write | {"mood": "good"})
    assert [first.end(), second.end()] == [(0, {}, "")] * 2
    assert project.hook(project.event("SessionEnd", session_id, reason="clear")).code == 0
    asked, ended = project.steps(session_id)
    assert json.loads(asked["action"]["tool_input"])["too_large"] > 600_000
    assert ended["action"]["tool_output_summary"] == "unknown members: hook Foretold: 1, PreToolUse.mood: 2"
    assert ended["control"]["is_terminal"]


def test_telemetry_ends_within_its_box_and_a_killed_hook_loses_nothing_s887(
    project: Project, session_id: str
) -> None:
    line = Line(project.server)
    project.know_gateway(line.url)
    line.hang()
    try:
        prompt = project.event("UserPromptSubmit", session_id, prompt="first")
        assert project.hook(prompt, "--box=0.3") == (0, {}, "")
        killed = project.begin(project.event("Notification", session_id, message="second"), "--box=600")
        spool = project.data / "spool"
        until(lambda: any(b"second" in path.read_bytes() for path in spool.glob("*.jsonl")))
        killed.process.kill()
        killed.end()
        line.mend()
        assert project.hook(project.event("Notification", session_id, message="third")).code == 0
    finally:
        line.cut()
        project.know_gateway(project.server.url)
    received = [step["cognition"]["intent"] for step in project.steps(session_id)]
    assert received == ["Prompt: first", "Notification: second", "Notification: third"]
    assert [*spool.iterdir()] == []


@pytest.mark.req(99)
def test_a_gate_nobody_answers_stays_shut_and_a_late_answer_is_told_s888(
    project: Project, session_id: str
) -> None:
    ended = project.hook(asks(project, session_id, "echo late"), "--ask=B*", "--wait=0.5")
    assert ended.received["permissionDecision"] == "deny"
    assert "no verdict arrived in time" in ended.received["permissionDecisionReason"]
    held = project.held("echo late")
    project.do("approve", session_id, message_id=held["message_id"], note="sorry")
    prompt = project.event("UserPromptSubmit", session_id, prompt="go on")
    assert "approved (sorry). It was not run" in project.hook(prompt).received["additionalContext"]
    assert project.hook(prompt).answer == {}, "told once"
    inbox = project.server.http("admin").get(f"/v1/agents/{project.agent}/inbox").json()["items"]
    assert [item for item in inbox if item["session_id"] == session_id] == [], "and taken"


@pytest.mark.req(99)
def test_an_agent_whose_key_is_not_taken_runs_no_tool_s888(project: Project, session_id: str) -> None:
    file = project.data / "agent.json"
    known = json.loads(file.read_text())
    file.write_text(json.dumps(known | {"agent_key": known["agent_key"][:-4] + "AAAA"}))
    try:
        ended = project.hook(asks(project, session_id, "echo hi"))
        assert ended.received["permissionDecision"] == "deny"
        assert "does not accept this agent's key" in ended.received["permissionDecisionReason"]
        file.unlink()
        received = project.hook(project.event("SessionStart", session_id, source="startup")).answer
        assert "No gateway found" in received["systemMessage"]
        assert project.hook(asks(project, session_id, "echo hi")).answer == {}, "never set up: nothing to ask"
        assert (
            project.hook(asks(project, session_id, "echo hi"), "--ask=*").received["permissionDecision"]
            == "deny"
        )
    finally:
        file.write_text(json.dumps(known))


@pytest.mark.req(99)
def test_of_hooks_that_run_at_once_one_gives_the_prompt_and_all_keep_their_place_s884(
    project: Project, session_id: str
) -> None:
    """S884, S881."""
    assert project.hook(project.event("UserPromptSubmit", session_id, prompt="go")).code == 0
    project.do("inject", session_id, prompt="Mind the gap.")
    calls = [asks(project, session_id, f"echo {n}") for n in range(5)]
    ended = [one.end() for one in [project.begin(call) for call in calls]]
    assert [one.code for one in ended] == [0] * 5
    assert ["Mind the gap." in one.received.get("additionalContext", "") for one in ended].count(True) == 1
    steps = project.steps(session_id)
    assert {step["meta"]["parent_step_id"] for step in steps[1:]} == {steps[0]["meta"]["step_id"]}
    for call in calls:
        done = call | {"hook_event_name": "PostToolUse", "tool_response": {"stdout": "ok"}, "duration_ms": 1}
        assert project.hook(done).answer == {}
    assert project.hook(project.event("Stop", session_id, last_assistant_message="done")).code == 0
    ends = {step["meta"]["step_id"] for step in project.steps(session_id)[6:11]}
    last = project.steps(session_id)[-1]["meta"]
    assert {*last["parent_step_ids"]} == ends


@pytest.mark.req(99, 226)
def test_a_stopped_agent_waits_before_a_prompt_and_a_tool_and_goes_on_when_released_s882(
    server: Server, tmp_path_factory: pytest.TempPathFactory, session_id: str
) -> None:
    """S882: by the kill-switch, in a tenant of its own."""
    folder = tmp_path_factory.mktemp("stopped")
    project = Project(Tenant(server, folder / "tenant"), folder)
    assert project.hook(project.event("SessionStart", session_id, source="startup")).code == 0
    admin = project.server.http("admin")
    asked = {"scope": "class", "target": "claude_code", "reason": "a drill"}
    armed = admin.post("/v1/kill-switch", json=asked).json()
    path = f"/v1/kill-switch/{armed['kill_id']}"
    second = admin.post(f"{path}/confirm", json={"token": armed["token"]}).json()
    assert admin.post(f"{path}/confirm", json={"token": second["token"]}).json()["state"] == "engaged"
    late = project.hook(asks(project, session_id, "echo no"), "--wait=0.3")
    assert "was not resumed in time" in late.received["permissionDecisionReason"]
    prompt = project.event("UserPromptSubmit", session_id, prompt="go on")
    assert project.hook(prompt, "--wait=0.3").answer["decision"] == "block"
    waiting = [project.begin(prompt), project.begin(asks(project, session_id, "echo yes"))]
    assert admin.post(f"{path}/release", json={"reason": "over"}).status_code == 202
    assert [one.end() for one in waiting] == [(0, {}, "")] * 2
    received = [step["cognition"]["intent"] for step in project.steps(session_id)]
    assert sorted(received)[:2] == ["Call Bash", "Prompt: go on"]


@pytest.mark.req(99)
def test_a_pause_holds_where_the_hook_can_keep_nothing_s888(project: Project, session_id: str) -> None:
    assert project.hook(project.event("UserPromptSubmit", session_id, prompt="go")).code == 0
    project.do("pause", session_id)
    kept, away = project.data / "claude-code", project.data / "elsewhere"
    kept.rename(away)
    kept.write_text("no folder, as on a full disk")
    try:
        ended = project.hook(asks(project, session_id, "echo no"), "--wait=0.5")
    finally:
        kept.unlink()
        away.rename(kept)
        project.do("unpause", session_id)
    assert "was not resumed in time" in ended.received["permissionDecisionReason"]

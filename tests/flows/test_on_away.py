"""What was done while the gateway was away is on record as such, and an agent may be forbidden to do it."""

from __future__ import annotations

import json
import os
import subprocess
import uuid
from pathlib import Path
from typing import Any

import pytest

from observatory.sdk import Agent, Denied
from observatory.sdk import gate as sdk_gate
from observatory.sdk.delivery import Delivery
from observatory.sdk.integrations.course import Course
from tests.flows.databases import ALONE
from tests.flows.node_agent import NodeAgent, Thrown
from tests.flows.sdk_harness import SdkHarness
from tests.flows.server import COMMAND, Server, clean_environment
from tests.waiting import until

Json = dict[str, Any]
QUICK = Delivery(close_timeout_s=0.1)
NOWHERE: Json = {"url": "http://127.0.0.1:9", "key": "k", "delivery": QUICK}


def shown(server: Server, path: str) -> Json:
    """The step, once it is folded."""
    http = server.http("admin")
    until(lambda: http.get(path).is_success)
    found: Json = http.get(path).json()
    return found


def test_a_tool_run_while_the_gateway_was_away_is_on_record_as_such_s1128(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S1128: by a permit, an adapter and `tool`; on the step, its event, and the API; others are not."""
    monkeypatch.setattr(sdk_gate, "ANSWER_S", 0.5)
    with Server(tmp_path / "data", environment=ALONE) as server:
        agent = Agent(
            f"alone-{uuid.uuid4().hex[:6]}", url=server.url, key=server.key("agent"), data=tmp_path / "agent"
        )
        session = agent.session()
        assert session.permit("Before", tool_call="look").verdict == "not_required"
        before = session.step("Looked", tool_call="look")
        assert before.answer(20).state == "forwarded"
        server.kill()
        assert session.permit("Look", tool_call="look").verdict == "gateway_away"
        said = session.step("Looked", tool_call="look", tool_output_summary="found")
        with session.tool("fetch", {"n": 1}) as call:
            pass
        course = Course(agent)
        begun = course.begin("read", {"n": 1})
        assert begun.refusal is None
        received = course.end(begun, "done")
        thought = session.step("Only thought about it")
        server.start()
        assert agent.flush(60)
        assert call.step is not None
        admin = server.http("admin")
        for step, expected in (
            (said, True),
            (call.step, True),
            (received, True),
            (thought, False),
            (before, False),
        ):
            path = f"/v1/sessions/{step.session_id}/steps/{step.step_id}"
            found = shown(server, path)
            assert found["gateway_away"] is expected, step
            events = admin.get(f"/v1/audit/trace/{step.session_id}").json()["items"]
            (event,) = [one for one in events if one["attributes"].get("av.step.id") == step.step_id]
            assert event["attributes"].get("av.step.gateway_away", False) is expected
        assert admin.post("/v1/audit/verify", json={}).json()["valid"] is True
        agent.close(1)


def test_an_agent_may_be_forbidden_to_act_while_the_gateway_is_away_s1129(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S1129: by option or environment; a permit is a no, `tool` raises, an adapter's tool is refused."""
    monkeypatch.setattr(sdk_gate, "ANSWER_S", 0.3)
    with Agent("careful", data=tmp_path, on_away="deny", **NOWHERE) as agent:
        no = agent.permit("Pay", tool_call="pay", tool_input={"n": 1})
        assert not no and (no.verdict, no.tool_input) == ("gateway_away", None)
        with pytest.raises(Denied, match="gateway is unreachable"), agent.tool("pay", {"n": 1}):
            raise AssertionError("it was run")
        call = Course(agent).begin("pay", {"n": 1})
        assert call.refusal is not None
    monkeypatch.setenv("OBSERVATORY_ON_AWAY", "deny")
    with Agent("careful-too", data=tmp_path, **NOWHERE) as agent:
        assert not agent.permit("Pay", tool_call="pay")
    monkeypatch.setenv("OBSERVATORY_ON_AWAY", "perhaps")
    with pytest.raises(ValueError, match="must be allow or deny"):
        Agent("careful-three", data=tmp_path, **NOWHERE)


def test_the_typescript_sdk_marks_and_forbids_likewise_s1128_s1129(
    fresh_server: Server, tmp_path: Path
) -> None:
    """S1128, S1129."""
    harness, careful = (
        SdkHarness(fresh_server, tmp_path / "home"),
        SdkHarness(fresh_server, tmp_path / "home"),
    )
    with (
        NodeAgent(harness.server, harness.name, harness.home) as agent,
        NodeAgent(harness.server, careful.name, harness.home, on_away="deny") as other,
    ):
        agent.run("await (await agent.step('Before', {tool_call: 'look'})).answer()")
        harness.server.kill()
        permit = "await agent.permit('Look', {tool_call: 'look', timeout_s: 0.3})"
        assert agent.run(f"return ({permit}).verdict") == "gateway_away"
        agent.run("await agent.step('Looked', {tool_call: 'look'})")
        agent.run("await agent.tool('fetch', {n: 1}, () => 1)")
        with pytest.raises(Thrown, match="gateway_away"):
            other.run(permit)
        with pytest.raises(Thrown, match="gateway_away"):
            other.run("await agent.tool('fetch', {n: 1}, () => 1)")
        harness.server.start()
        assert agent.run("return await agent.flush({timeout_s: 60})")
        sent = [one["message"] for one in harness.archived()]
    marks = [(one["action"]["status"], one["control"].get("gateway_away", False)) for one in sent]
    assert marks == [("success", False), ("pending", False), ("success", True), ("success", True)]


def hook(tmp_path: Path, *words: str, event: str = "PreToolUse", tool_use: str = "t1") -> Json:
    body = {
        "hook_event_name": event,
        "session_id": "11111111-1111-4111-8111-111111111111",
        "tool_name": "Bash",
        "tool_input": {"command": "ls"},
        "tool_use_id": tool_use,
        "cwd": str(tmp_path),
    }
    if event == "PostToolUse":
        body["tool_response"] = {"stdout": "found"}
    known = {"OBSERVATORY_URL": "http://127.0.0.1:9", "OBSERVATORY_KEY": "k"}
    ran = subprocess.run(
        [*COMMAND, "hook", "--box=2", *words],
        input=json.dumps(body),
        capture_output=True,
        text=True,
        env=clean_environment() | known | {"OBSERVATORY_DATA": str(tmp_path / "hook")},
        check=True,
    )
    found: Json = json.loads(ran.stdout or "{}")
    return found


def test_a_claude_code_hook_marks_or_forbids_what_the_gateway_did_not_judge_s1128_s1129(
    tmp_path: Path,
) -> None:
    """S1128, S1129: `--on-away deny` refuses the tool; without it the tool's outcome is marked."""
    denied = hook(tmp_path, "--on-away", "deny")
    assert denied["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert hook(tmp_path, tool_use="t2") == {}
    hook(tmp_path, event="PostToolUse", tool_use="t2")
    kept = b"".join(
        Path(folder, file).read_bytes() for folder, _, files in os.walk(tmp_path / "hook") for file in files
    )
    assert kept.count(b'"gateway_away":true') == 1


def test_a_key_with_no_scopes_is_refused_s1127(either_server: Server) -> None:
    """S1127: an empty list would read like nothing and mean everything."""
    admin = either_server.http("admin")
    before = len(admin.get("/v1/keys").json()["items"])
    answer = admin.post("/v1/keys", json={"role": "agent", "scopes": []})
    assert answer.status_code == 422, answer.text
    assert len(admin.get("/v1/keys").json()["items"]) == before
    whole = admin.post("/v1/keys", json={"role": "agent", "scopes": None})
    assert whole.status_code == 201 and whole.json()["scopes"] == []

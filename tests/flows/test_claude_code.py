"""Claude Code itself, observed and held by its hooks: the real program, a scripted model, a person."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from observatory.sdk.integrations.claude_code.hook import HookOptions
from tests.flows.claude import MODEL, Line, Project, bash
from tests.flows.scripted_model import USAGE
from tests.flows.server import Server


@pytest.fixture
def project(server: Server, tmp_path: Path) -> Iterator[Project]:
    made = Project(server, tmp_path)
    yield made
    made.close()


def parents_of(step: dict[str, Any]) -> set[str]:
    meta = step["meta"]
    return {*(meta.get("parent_step_ids") or [meta["parent_step_id"]])}


def test_a_session_is_told_step_by_step_with_causes_tokens_and_sub_agents_s880(project: Project) -> None:
    """S880, S881: a tool's request and outcome, the sub-agent's line from its starter and back."""
    sub = {
        "description": "Look",
        "prompt": "look",
        "subagent_type": "general-purpose",
        "run_in_background": False,
    }
    run = project.start(
        [("Agent", sub)], [bash("echo hi > out.txt; echo hi", "Say hi")], ["sub done"], ["all done"]
    )
    assert run.result()["result"] == "all done"
    assert (project.folder / "out.txt").exists()
    steps = project.steps(run.session_id)
    by = {step["cognition"]["intent"]: step for step in steps}
    ids = {intent: step["meta"]["step_id"] for intent, step in by.items()}
    assert [*by] == [
        "Session begins (startup)",
        "Prompt: do it",
        "Look",
        "Sub-agent begins: general-purpose",
        "Say hi",
        "Called Bash",
        "Sub-agent ends: general-purpose",
        "Called Agent",
        "Answer",
        "Session ends (other)",
    ]
    chain = [*by][:7]
    for parent, child in pairwise(chain):
        assert parents_of(by[child]) == {ids[parent]}
    assert parents_of(by["Called Agent"]) == {ids["Look"], ids["Sub-agent ends: general-purpose"]}
    assert by["Say hi"]["cognition"]["strategy_used"] == "sub-agent general-purpose"
    assert (by["Say hi"]["action"]["status"], by["Say hi"]["action"]["tool_call"]) == ("pending", "Bash")
    called = by["Called Bash"]["action"]
    assert (called["tool_output_summary"], called["status"]) == ("hi", "success")
    assert called["duration_ms"] >= 0
    tokens = [step["state_delta"].get("tokens_consumed") for step in steps]
    assert sum(filter(None, tokens)) == 4 * sum(USAGE.values()), "each answer of the model counted once"
    assert 0 not in tokens, "what is not told is not zero"
    assert by["Answer"]["identity"]["model"] == MODEL


@pytest.mark.req(99, 180, 181, 183)
def test_what_a_rule_holds_waits_for_a_person_whose_edit_runs_and_whose_no_is_told_s883(
    project: Project,
) -> None:
    """S883, S885: also when it was approved during a pause."""
    project.rule("hold", "Bash")
    log = project.folder / "log"
    run = project.start([bash("echo one >> log")], [bash("echo two >> log")], ["done"])
    try:
        held = project.held("echo one")
        project.do("pause", run.session_id)
        content = {name: held["content"][name] for name in ("meta", "identity", "cognition", "action")}
        asked = json.loads(content["action"]["tool_input"])
        content["action"]["tool_input"] = json.dumps(asked | {"command": "echo edited >> log"})
        content["cognition"] = {"intent": content["cognition"]["intent"]}
        project.do("edit", run.session_id, message_id=held["message_id"], new_content=content)
        assert not log.exists()
        project.do("unpause", run.session_id)
        held = project.held("echo two")
        assert log.read_text() == "edited\n"
        project.do("reject", run.session_id, message_id=held["message_id"], note="not on a Friday")
        assert run.result()["result"] == "done"
    finally:
        run.kill()
    assert log.read_text() == "edited\n"
    assert "not on a Friday" in run.model.sent(2) and "a person rejected it" in run.model.sent(2)
    assert [step["state"] for step in project.steps(run.session_id)].count("rejected") == 1
    assert project.holds() == [], "an outcome is not asked for again"


@pytest.mark.req(99)
def test_without_a_gateway_work_goes_on_a_gate_stays_shut_and_nothing_is_lost_s887(project: Project) -> None:
    """S887, S888: the steps are told when the gateway is back, in order, none twice."""
    line = Line(project.server)
    project.know_gateway(line.url)
    project.install(HookOptions(ask=("Write",)))
    file = {"file_path": str(project.folder / "written"), "content": "x"}
    run = project.start([bash("echo one >> log")], [("Write", file)], ["done"])
    try:
        assert run.result()["result"] == "done"
    finally:
        run.kill()
    assert (project.folder / "log").read_text() == "one\n"
    assert not (project.folder / "written").exists()
    assert "needs a person's approval" in run.model.sent(2)
    assert project.steps() == []
    line.mend()
    try:
        project.hook(project.event("Notification", run.session_id, message="back"))
    finally:
        line.cut()
    received = [(step["cognition"]["intent"], step["action"]["status"]) for step in project.steps()]
    assert received == [
        ("Session begins (startup)", "success"),
        ("Prompt: do it", "success"),
        ("Run echo one >> log", "pending"),
        ("Called Bash", "success"),
        ("Was not allowed to call Write", "skipped"),
        ("Answer", "success"),
        ("Session ends (other)", "success"),
        ("Notification: back", "success"),
    ]


@pytest.mark.req(99, 180, 183)
def test_a_person_at_the_observatory_answers_what_the_user_would_be_asked_s883(project: Project) -> None:
    """S883: with `--permissions`, for tools that no rule of Claude Code allows."""
    project.install(HookOptions(permissions=True))
    run = project.start([bash("touch one")], [bash("touch two")], ["done"], tools="Read")
    try:
        project.do("approve", run.session_id, message_id=project.held("touch one")["message_id"])
        held = project.held("touch two")
        project.do("reject", run.session_id, message_id=held["message_id"], note="one is enough")
        assert run.result()["result"] == "done"
    finally:
        run.kill()
    assert (project.folder / "one").exists() and not (project.folder / "two").exists()
    assert "one is enough" in run.model.sent(2)

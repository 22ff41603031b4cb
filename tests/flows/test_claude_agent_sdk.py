"""Agents made with the real Claude Agent SDK and its real program; only the model is scripted."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, HookMatcher, Message, ResultMessage

from observatory import AsyncAgent
from observatory.sdk.errors import NotSupported
from observatory.sdk.integrations import framework
from observatory.sdk.integrations.claude_agent_sdk import Watch
from tests.flows.claude import MODEL, bash
from tests.flows.scripted_model import USAGE, Script, ScriptedModel, Turn
from tests.flows.sdk_harness import PATIENCE_S, aside, until
from tests.flows.server import Server
from tests.flows.tool_harness import ToolHarness


@pytest.fixture
def harness(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ToolHarness:
    for name in os.environ:  # the program inherits what is here
        if name.startswith(("ANTHROPIC_", "CLAUDE")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("NO_PROXY", "*")
    return ToolHarness(server, tmp_path / "home")


TOKENS = sum(USAGE.values())


class Coder:
    """An agent of the SDK in a folder of its own, asked one prompt after the other."""

    def __init__(self, folder: Path, *turns: Script) -> None:
        self.folder = folder / "work"
        self.folder.mkdir(parents=True)
        self.model = ScriptedModel(*turns)
        self.own_hooks: list[str] = []

    def options(self) -> ClaudeAgentOptions:
        async def own(event: Any, tool_use_id: str | None, context: Any) -> Any:
            self.own_hooks.append(event["tool_name"])
            return {}

        environment = {
            "HOME": str(self.folder.parent),
            "CLAUDE_CONFIG_DIR": str(self.folder.parent / ".claude"),
            "ANTHROPIC_BASE_URL": self.model.url,
            "ANTHROPIC_API_KEY": "sk-ant-of-a-test",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        }
        return ClaudeAgentOptions(
            cwd=self.folder,
            env=environment,
            model=MODEL,
            setting_sources=[],
            allowed_tools=["Bash", "Read", "Write", "Agent"],
            hooks={"PreToolUse": [HookMatcher(hooks=[own])]},
        )

    async def work(self, agent: AsyncAgent, *prompts: str, **terms: Any) -> list[ResultMessage]:
        watch, results = Watch(agent, **terms), []
        async with agent, ClaudeSDKClient(watch.options(self.options())) as client:
            for prompt in prompts:
                await client.query(prompt)
                async for message in watch.messages(client.receive_response()):
                    results += self.result_of(message)
        self.model.close()
        return results

    def result_of(self, message: Message) -> list[ResultMessage]:
        return [message] if isinstance(message, ResultMessage) else []

    def write(self, content: str) -> tuple[str, dict[str, Any]]:
        return "Write", {"file_path": str(self.folder / content), "content": content}


@pytest.mark.req(99, 180, 181, 183)
def test_an_operator_pauses_injects_edits_rejects_and_cancels_an_agent_of_the_sdk_s891(
    harness: ToolHarness, tmp_path: Path
) -> None:
    """S891, S892."""
    log = tmp_path / "work" / "log"

    def session_id() -> str:
        return str(harness.archived()[0]["session_id"])

    def paused() -> Turn:
        harness.do("pause", session_id())
        harness.do("inject", session_id(), prompt="Mind the gap.")
        return [bash("echo two >> log", "Say two")]

    def cancelled() -> Turn:
        harness.do("cancel", session_id(), note="enough")
        return [bash("echo three >> log")]

    coder = Coder(
        tmp_path,
        [bash("echo one >> log", "Say one")],
        paused,
        [coder_write := ("Write", {"file_path": str(tmp_path / "work" / "a"), "content": "a"})],
        [coder_write],
        ["all done"],
        cancelled,
        ["never said"],
    )
    agent = AsyncAgent(harness.name, **harness.credentials())
    run = aside(lambda: asyncio.run(coder.work(agent, "do it", "and more", needs_approval=["Wri*"])))
    until(lambda: len(coder.model.asked) == 2)
    until(lambda: agent.orders.is_held(session_id()))
    assert log.read_text() == "one\n"
    harness.do("unpause", session_id())
    held = harness.held()
    assert log.read_text() == "one\ntwo\n"
    assert "Mind the gap." in coder.model.sent(2)
    file = {"file_path": str(tmp_path / "work" / "b"), "content": "edited"}
    harness.edit(file, held)
    harness.answer(
        "reject", until(lambda: [one for one in harness.holds() if one != held])[0], note="not on a Friday"
    )
    first, second = run.result(PATIENCE_S * 2)
    assert [path.name for path in sorted((tmp_path / "work").iterdir())] == ["b", "log"]
    assert (tmp_path / "work" / "b").read_text() == "edited"
    assert "not on a Friday" in coder.model.sent(4)
    assert first.result == "all done" and log.read_text() == "one\ntwo\n"
    assert coder.own_hooks == ["Bash", "Bash", "Write", "Write", "Bash"]
    assert second.terminal_reason == "hook_stopped" and len(coder.model.asked) == 6
    parents = harness.parents()
    assert parents["Say two"] == ["Called Bash"] and parents["Called Write"] == ["Call Write"]
    spent = [
        item["message"]["state_delta"] for item in harness.archived() if item["message"].get("state_delta")
    ]
    assert [one.get("tokens_consumed") for one in spent if "cost" in one] == [5 * TOKENS, TOKENS]
    assert spent[-1]["cumulative_session_cost"] == pytest.approx(second.total_cost_usd)
    assert [(i, status) for i, status, _ in harness.received()][-3:] == [
        ("Result: completed", "success"),
        ("Prompt: and more", "success"),
        ("Result: hook_stopped", "success"),
    ]


def test_tools_called_at_once_and_sub_agents_stand_where_they_belong_s881(
    harness: ToolHarness, tmp_path: Path
) -> None:
    """S881: what runs at once has the same parents and is joined by what follows; a sub-agent's work lies
    between the call that started it and its outcome."""
    sub = {
        "description": "Look",
        "prompt": "look",
        "subagent_type": "general-purpose",
        "run_in_background": False,
    }
    file = str(tmp_path / "work" / "x")
    read: Turn = [("Read", {"file_path": file, "limit": n}) for n in (1, 2)]
    coder = Coder(tmp_path, read, [("Agent", sub)], [bash("echo hi", "Say hi")], ["sub done"], ["all done"])
    (coder.folder / "x").write_text("x")
    [result] = asyncio.run(coder.work(AsyncAgent(harness.name, **harness.credentials()), "do it"))
    assert result.result == "all done"
    parents = harness.parents()
    assert [intent for intent, _, _ in harness.received()].count("Called Read") == 2
    # Claude Code asks for both at once; should the first be done before it asks for the second, it is a line.
    assert parents["Look"] in (["Called Read", "Called Read"], ["Called Read"])
    assert parents["Sub-agent begins: general-purpose"] == ["Look"]
    assert parents["Say hi"] == ["Sub-agent begins: general-purpose"]
    assert parents["Sub-agent ends: general-purpose"] == ["Called Bash"]
    assert parents["Called Agent"] == ["Sub-agent ends: general-purpose"]
    assert parents["Answer"] == ["Called Agent"]


@pytest.mark.req(99)
def test_without_a_gateway_the_sdks_tools_run_but_those_that_need_approval_s893(
    harness: ToolHarness, tmp_path: Path
) -> None:
    write = ("Write", {"file_path": str(tmp_path / "work" / "a"), "content": "a"})
    coder = Coder(tmp_path, [bash("echo one >> log")], [write], ["done"])
    agent = AsyncAgent(
        harness.name, url="http://127.0.0.1:9", key=harness.server.key("agent"), data=harness.home
    )
    [result] = asyncio.run(coder.work(agent, "do it", needs_approval=["Write"]))
    assert result.result == "done"
    assert [path.name for path in (tmp_path / "work").iterdir()] == ["log"]
    assert "no verdict was received" in coder.model.sent(2)


def test_a_version_of_the_sdk_without_its_hooks_is_refused_with_a_sentence_s894(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(HookMatcher, "on_failure")
    with pytest.raises(NotSupported, match=r"has no claude_agent_sdk\.HookMatcher\.on_failure"):
        framework.need(
            "claude-agent-sdk", "claude-agent-sdk>=0.2.182", "claude_agent_sdk:HookMatcher.on_failure"
        )

"""The TypeScript SDK while its gateway is dead, and when its own process dies: nothing lost or doubled."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from observatory import Agent
from tests.flows.node_agent import NodeAgent, Thrown
from tests.flows.sdk_harness import PATIENCE_S, SdkHarness, until
from tests.flows.server import Server

SETTLED = "{timeout_s: 60}"
GO = "for (let n = %d; n < %d; n++) agent.step(`step ${n}`);"


def spools(harness: SdkHarness) -> list[Path]:
    return list((harness.home / "spool-ts").glob("*.jsonl"))


@pytest.mark.req(99, 182)
def test_with_the_gateway_dead_steps_are_kept_in_order_and_gates_fail_closed_s916(
    fresh_server: Server, tmp_path: Path
) -> None:
    """S916, S912, S913: killed amid a stream, then frozen; who waits for a verdict waits through it."""
    harness = SdkHarness(fresh_server, tmp_path / "home")
    asker = SdkHarness(fresh_server, tmp_path / "home")
    with (
        NodeAgent(
            harness.server, harness.name, harness.home, delivery={"ping_s": 0.2, "timeout_s": 5}
        ) as agent,
        NodeAgent(harness.server, asker.name, harness.home) as waiting,
    ):
        asked = waiting.aside("return (await agent.ask('Deploy')).verdict")
        held = asker.held()
        agent.run(f"{GO % (0, 100)} await agent.flush({SETTLED})")
        harness.server.kill()
        agent.run(GO % (100, 300))
        until(lambda: spools(harness) and agent.run("return agent.outbox.in_memory") == 0)
        with pytest.raises(Thrown, match="no_verdict"):
            agent.run("await agent.session().ask('Publish', {timeout_s: 0.3})")
        with pytest.raises(Thrown, match="no_verdict"):
            agent.run("await agent.session().permit('Publish', {needs_approval: true, timeout_s: 0.3})")
        read = "await agent.session().permit('Read', {tool_input: 7, timeout_s: 0.3})"
        away = agent.run(f"const {{verdict, tool_input}} = {read}; return [verdict, tool_input]")
        assert away == ["gateway_away", 7]
        with pytest.raises(Thrown, match=r"NotAnswered.*nothing was stored"):
            agent.run("await agent.think('plan', 'x', {timeout_s: 1})")
        harness.server.start()
        agent.run(f"{GO % (300, 350)} await agent.flush({SETTLED})")
        asker.do("approve", held["session_id"], message_id=held["message_id"])
        assert asked.result(PATIENCE_S) == "approved"
        assert agent.run("return agent.outbox.lost") == 0
        os.kill(harness.server.pid, signal.SIGSTOP)  # no goodbye, no reset: it just says nothing any more
        try:
            until(lambda: not agent.run("return agent.orders.connected"))
        finally:
            os.kill(harness.server.pid, signal.SIGCONT)
        until(lambda: agent.run("return agent.orders.connected"))
        assert agent.run("return await agent.close()")
    items = [item for item in harness.archived() if item["message"]["cognition"]["intent"].startswith("step")]
    assert [item["message"]["cognition"]["intent"] for item in items] == [f"step {n}" for n in range(350)]
    assert [item["parents"] for item in items[1:]] == [[item["step_id"]] for item in items[:-1]]
    assert harness.server.http("admin").post("/v1/audit/verify", json={}).json()["valid"]
    assert spools(harness) == []


def test_what_a_dead_process_left_is_sent_by_the_next_and_a_living_ones_is_let_be_s917(
    fresh_server: Server, tmp_path: Path
) -> None:
    """S917, S920: kill -9, a torn line, `process.exit`, a program that just ends; Python's own beside it."""
    harness = SdkHarness(fresh_server, tmp_path / "home")
    server = harness.server
    first = NodeAgent(server, harness.name, harness.home, control=False)
    living = NodeAgent(server, harness.name, harness.home, control=False)
    leaving = NodeAgent(server, harness.name, harness.home, control=False)
    ending = NodeAgent(server, harness.name, harness.home, control=False)
    python = Agent(harness.name, url=server.url, key=server.key("agent"), data=harness.home, control=False)
    server.kill()
    for number, agent in enumerate((first, living)):
        agent.run(f"for (let n = 0; n < 50; n++) agent.step(`{number}.${{n}}`)")
        until(lambda agent=agent: agent.run("return agent.outbox.in_memory") == 0)  # type: ignore[misc]
    python.step("python")
    until(lambda: list((harness.home / "spool").glob("*.jsonl")))
    (left,) = [path for path in spools(harness) if f"-{first.process.pid}-" in path.name]
    assert oct(left.stat().st_mode)[-3:] == "600"
    first.kill()
    with left.open("ab") as torn:
        torn.write(b'{"half": ')
    leaving.aside("agent.step('exit'); process.exit(3)")
    assert leaving.process.wait(PATIENCE_S) == 3
    ending.run("agent.step('end')")
    assert ending.end() == 0
    leaving.kill()

    server.start()
    with NodeAgent(server, harness.name, harness.home) as heir:
        assert heir.run(f"return await agent.flush({SETTLED})")
        heir.run(f"await (await agent.step('heir')).answer({SETTLED})")
        intents = harness.intents()
        assert sorted(one for one in intents if one.startswith("0.")) == sorted(f"0.{n}" for n in range(50))
        assert [one for one in intents if one.startswith("0.")] == [f"0.{n}" for n in range(50)]
        assert intents.count("exit") == 1 == intents.count("end")
        assert any("incomplete line" in text for _, text in heir.run("return logged"))
        assert living.run(f"return await agent.flush({SETTLED})")
        assert python.flush(PATIENCE_S)
    living.end()
    python.close()
    intents = harness.intents()
    assert [one for one in intents if one.startswith("1.")] == [f"1.{n}" for n in range(50)]
    assert intents.count("python") == 1 and len(intents) == 104
    assert os.listdir(harness.home / "spool-ts") == []


def test_a_full_queue_is_waited_out_in_order_and_nothing_is_sent_twice_s919(
    tight_server: Server, tmp_path: Path
) -> None:
    """S919: agents of one process, each with a sender of its own, at a gateway that takes two at a time."""
    harness = SdkHarness(tight_server, tmp_path)
    names = [f"{harness.name}-{n}" for n in range(4)]
    with NodeAgent(tight_server, harness.name, tmp_path, control=False) as agent:
        received = agent.run(
            """
            const [names, door] = ARGUMENTS;
            const log = (level, text) => logged.push([level, text]);
            const all = names.map((name) => new sdk.Agent(name, {...door, control: false, log}));
            for (const one of all) for (let n = 0; n < 50; n++) one.step(`step ${n}`);
            const done = await Promise.all(all.map((one) => one.flush({timeout_s: 60})));
            return [...done, ...(await Promise.all(all.map((one) => one.close())))];
            """.replace("ARGUMENTS", json.dumps([names, agent.credentials]))
        )
        assert received == [True] * 8
        assert any("answered 429" in text for _, text in agent.run("return logged"))
    for name in names:
        harness.name = name
        assert harness.intents() == [f"step {n}" for n in range(50)]
    assert not (tmp_path / "spool-ts").exists()  # who is only busy needs no disk

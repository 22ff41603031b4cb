"""The SDK against a real gateway: two lines to start, and nothing lost while the gateway is away."""

from __future__ import annotations

import time
import uuid
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from observatory import Agent
from observatory.sdk import Rejected
from tests.flows.server import Server

PATIENCE_S = 30.0
Json = dict[str, Any]


def agent_at(server: Server, name: str, monkeypatch: pytest.MonkeyPatch, home: Path) -> Agent:
    monkeypatch.setenv("OBSERVATORY_URL", server.url)
    monkeypatch.setenv("OBSERVATORY_KEY", server.key("agent"))
    monkeypatch.setenv("OBSERVATORY_DATA", str(home))
    return Agent(name)


def archived(server: Server, name: str) -> list[Json]:
    """What the archive holds of an agent, oldest first."""
    query: Json = {"agent_id": name, "after": 0, "limit": 1000}
    items: list[Json] = server.http("admin").get("/v1/messages", params=query).json()["items"]
    return items


@pytest.mark.req(50, 107)
def test_what_the_sdk_emits_is_valid_by_the_published_schema(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S80, S1: session, step and parent are kept by the SDK itself."""
    name = f"sdk-{uuid.uuid4()}"
    agent = agent_at(server, name, monkeypatch, tmp_path)
    first = agent.step("Look it up", tool_call="search", tool_input={"q": "x"}, status="success")
    second = agent.step("Write it down", status="pending")
    assert first.answer(PATIENCE_S).accepted and second.answer(PATIENCE_S).accepted
    agent.outbox.close()
    items = archived(server, name)
    schema = server.http("nobody").get("/schemas/decision_log.json").json()
    for item in items:
        jsonschema.validate(item["message"], schema, jsonschema.Draft202012Validator)
    assert [item["message"]["cognition"]["intent"] for item in items] == ["Look it up", "Write it down"]
    assert items[0]["session_id"] == items[1]["session_id"]
    assert items[1]["parents"] == [items[0]["step_id"]]
    assert all("parent_step_id" in item["message"]["meta"] for item in items)


def test_steps_taken_while_the_gateway_is_dead_arrive_once_and_in_order_s80(
    fresh_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S80, S20: killed in the middle of a stream of steps; no step waits for the gateway."""
    server, name = fresh_server, f"steady-{uuid.uuid4()}"
    agent = agent_at(server, name, monkeypatch, tmp_path / "home")
    slowest = 0.0

    def go(start: int, end: int) -> None:
        nonlocal slowest
        for n in range(start, end):
            before = time.perf_counter()
            agent.step(f"step {n}")
            slowest = max(slowest, time.perf_counter() - before)

    go(0, 100)
    server.kill()
    go(100, 300)
    deadline = time.monotonic() + PATIENCE_S
    while not list((tmp_path / "home").rglob("*.jsonl")):
        assert time.monotonic() < deadline, "nothing was spooled to disk"
    server.start()
    go(300, 350)
    assert agent.flush(PATIENCE_S)
    assert slowest < 1.0
    agent.outbox.close()
    items = archived(server, name)
    assert [item["message"]["cognition"]["intent"] for item in items] == [f"step {n}" for n in range(350)]
    assert [item["parents"] for item in items[1:]] == [[item["step_id"]] for item in items[:-1]]
    assert server.http("admin").post("/v1/audit/verify", json={}).json()["valid"]
    assert not list((tmp_path / "home").rglob("*.jsonl"))


def test_a_refused_step_tells_its_agent_every_fault(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S2, S80: and the steps after it go on."""
    agent = agent_at(server, f"refused-{uuid.uuid4()}", monkeypatch, tmp_path)
    bad = agent.step("Too sure", confidence_score=7.0)
    good = agent.step("Sure", confidence_score=0.7)
    assert good.answer(PATIENCE_S).accepted
    with pytest.raises(Rejected, match=r"422.*cognition\.confidence_score") as refused:
        bad.answer(PATIENCE_S)
    assert [fault.path for fault in refused.value.faults] == ["cognition.confidence_score"]
    agent.outbox.close()

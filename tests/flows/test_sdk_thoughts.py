"""Thinking with the SDK: durable when it returns, loud when it cannot be, and a proof in one block."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from observatory import Agent
from observatory.sdk import AsyncAgent, NotAnswered, Rejected
from tests.flows.server import Server

Json = dict[str, Any]
CLOSING: Json = {"happened": "shipped", "proved": "3/3 nodes", "uncertain": "load at night"}


@pytest.fixture
def door(server: Server, tmp_path: Path) -> Json:
    return {"url": server.url, "key": server.key("agent"), "data": tmp_path, "control": False}


@pytest.fixture
def agent(door: Json) -> Iterator[Agent]:
    made = Agent(f"thinker-{uuid.uuid4()}", **door)
    yield made
    made.close()


def thoughts(server: Server, session_id: str) -> Json:
    found: Json = server.http("viewer").get(f"/v1/sessions/{session_id}/thoughts").json()
    return found


def test_a_thought_is_durable_when_think_returns_s343(server: Server, agent: Agent) -> None:
    """S343: in the session the code runs in, in the agent's name; one text is enough for a plan."""
    with agent.session() as session:
        agent.step("Look it up")
        plan = agent.think("plan", "look, decide, tell")
        made = agent.think(
            "decision",
            {"choice": "ship", "alternatives": ["wait"], "why": "green"},
            references=[plan.record_id],
            audit_event_ids=[plan.audit_event_id],
        )
    assert (plan.index, made.index, made.parent_chain_hash) == (0, 1, plan.chain_hash)
    page = thoughts(server, session.session_id)
    assert [item["content_hash"] for item in page["items"]] == [plan.content_hash, made.content_hash]
    assert page["items"][0]["content"] == {"trajectory": "look, decide, tell"}
    assert page["items"][1]["references"] == [plan.record_id]
    assert {item["author"] for item in page["items"]} == {page["session"]["caller"]}
    assert page["session"]["caller"].startswith("agt_")
    again = agent.think("plan", "look, decide, tell", session_id=plan.session_id, record_id=plan.record_id)
    assert again == plan


@pytest.mark.parametrize(
    ("kind", "content", "reason"),
    [
        ("informational", {"x": "y"}, "schema_violation"),
        ("decision", {"choice": "a"}, "schema_violation"),
        ("plan", {"trajectory": {}}, "schema_violation"),
    ],
)
def test_what_the_gateway_refuses_is_raised_s343(agent: Agent, kind: str, content: Json, reason: str) -> None:
    """S343: with the gateway's own sentence."""
    with pytest.raises(Rejected) as refused:
        agent.think(kind, content)
    assert refused.value.reason == reason and refused.value.detail
    with pytest.raises(ValueError, match="choice, alternatives, why"):
        agent.think("decision", "yes")


def test_with_the_gateway_away_it_raises_and_drops_nothing_silently_s343(
    fresh_server: Server, tmp_path: Path
) -> None:
    """S343: nothing is kept to be sent later; the same again is recorded once."""
    door: Json = {"url": fresh_server.url, "key": fresh_server.key("agent"), "data": tmp_path}
    with Agent("thinker", control=False, **door) as agent:
        first = agent.think("plan", "go", record_id="rec_first")
        fresh_server.kill()
        with pytest.raises(NotAnswered):
            agent.think("analysis", "nobody there", timeout=1, record_id="rec_second")
        fresh_server.start()
        assert agent.think("plan", "go", record_id="rec_first", timeout=20) == first
        second = agent.think("analysis", "nobody there", record_id="rec_second")
        assert second.index == 1


def test_a_proof_is_sealed_when_its_block_is_left_s344(server: Server, agent: Agent) -> None:
    """S344: verified, reflected, sealed, ended; finishing again changes nothing."""
    with agent.proof("Deploy v2.3.1") as proof:
        assert proof.genesis and proof.root is None
        proof.think("plan", "one node at a time")
        proof.think("analysis", "green", task_id="tsk_other")
        proof.think("reflection", CLOSING, task_id="tsk_other")
        proof.conclude(**CLOSING)
    page = thoughts(server, proof.session_id)
    assert page["session"]["root"] == proof.root is not None
    assert page["session"]["ended_at"] and page["session"]["proof_grade"]
    assert [item["type"] for item in page["items"]] == ["plan", "analysis", "reflection", "reflection"]
    root = proof.root
    proof.finish()
    assert proof.root == root
    with agent.session() as session, agent.proof("Next", predecessor=proof.session_id) as following:
        assert following.session_id == session.session_id
        following.conclude(**CLOSING)
    (item,) = thoughts(server, following.session_id)["items"]
    assert item["predecessor_chain_hash"] == page["items"][-1]["chain_hash"]


def test_a_block_that_fails_or_says_nothing_at_its_end_is_not_sealed_s344(
    server: Server, agent: Agent
) -> None:
    """S344: nothing was proved."""
    proof, silent = agent.proof("Fails"), agent.proof("Silent")
    with pytest.raises(Rejected), proof:
        proof.think("informational", {"not": "a thought"})
    with pytest.raises(ValueError, match="conclude"), silent:
        silent.think("plan", "say nothing")
    for one in (proof, silent):
        assert thoughts(server, one.session_id)["session"]["root"] is None


def test_the_same_words_awaited_s343_s344(server: Server, door: Json) -> None:
    """S343, S344: for asyncio."""

    async def go() -> tuple[str, str | None]:
        async with AsyncAgent(f"thinker-{uuid.uuid4()}", **door) as agent:
            plan = await agent.think("plan", "go")
            assert plan.index == 0
            async with agent.proof("Deploy") as proof:
                await proof.think("analysis", "green")
                proof.conclude(**CLOSING)
            with pytest.raises(Rejected):
                await agent.think("other", {})
            return proof.session_id, proof.root

    session_id, root = asyncio.run(go())
    assert thoughts(server, session_id)["session"]["root"] == root is not None

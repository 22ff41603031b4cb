"""The seed's writeback sequence by MCP: passes in order, over both ways and in both eras; else refused."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.flows.mcp_ways import WAYS, Hand, played, trail
from tests.flows.tenant import Tenant

Json = dict[str, Any]
PLAN: Json = {"type": "plan", "content": {"trajectory": ["read", "decide", "write"]}}
ANALYSIS: Json = {"type": "analysis", "content": {"observation": "the figures disagree"}}
DECISION: Json = {
    "type": "decision",
    "content": {"choice": "the filing", "alternatives": ["the news"], "why": "it is the primary source"},
}
REFLECTION: Json = {
    "type": "reflection",
    "content": {"happened": "revenue was confirmed", "proved": "the filing says so", "uncertain": ["dates"]},
}
TASK, CALLED = "tsk_writeback", "mcp_tool_called"


@pytest.fixture
def tenant(either_tenant: Tenant) -> Tenant:
    """The sequence is kept on both databases."""
    return either_tenant


async def begun(hand: Hand, *thoughts: Json) -> str:
    """A proof-grade session with these records, verified in between where it says so."""
    session: str = (await hand.do("audit_session_start", intent="confirm revenue", task_id=TASK))[
        "session_id"
    ]
    for thought in thoughts:
        if thought is VERIFY:
            await hand.do("audit_verify_chain", session_id=session)
        else:
            await hand.do("thought_record", **({"session_id": session, "task_id": TASK} | thought))
    return session


@pytest.mark.req(*range(292, 299), *range(300, 307), 523)
@pytest.mark.parametrize(("way", "mode"), WAYS)
def test_the_writeback_sequence_passes_in_its_order_s409(tenant: Tenant, way: str, mode: str) -> None:
    """S409, S410, S405: and every call is in the trail, in order, written by the gateway."""

    async def story(hand: Hand) -> list[Json]:
        started = await hand.do("audit_session_start", intent="confirm revenue", task_id=TASK)
        here = {"session_id": started["session_id"]}
        records = [
            await hand.do("thought_record", **here, task_id=TASK, **thought)
            for thought in (PLAN, ANALYSIS, DECISION)
        ]
        verified = await hand.do("audit_verify_chain", **here)
        records.append(await hand.do("thought_record", **here, task_id=TASK, **REFLECTION))
        sealed = await hand.do("merkle_finalize", **here)
        root = await hand.do("merkle_root", **here)
        ended = await hand.do("audit_session_end", **here)
        assert started["proof_grade"] is True
        assert verified == {"valid": True, "records": 3, "first_broken_index": None}
        assert [record["index"] for record in records] == [0, 1, 2, 3]
        assert records[0]["parent_chain_hash"] == started["genesis"]
        parents = [record["parent_chain_hash"] for record in records[1:]]
        assert parents == [record["chain_hash"] for record in records[:-1]]
        assert root == {"root": sealed["root"], "size": 4}
        assert (ended["records"], ended["root"]) == (4, root["root"])
        return records

    records = played(tenant, story, way, mode)
    calls = trail(tenant)
    assert [(one["tool"], one["outcome"]) for one in calls] == [
        ("audit_session_start", "ok"),
        *[("thought_record", "ok")] * 3,
        ("audit_verify_chain", "ok"),
        ("thought_record", "ok"),
        ("merkle_finalize", "ok"),
        ("merkle_root", "ok"),
        ("audit_session_end", "ok"),
    ]
    # Each call's own event follows that of what it did.
    page = tenant.http("admin").get("/v1/audit/tenant").json()["items"]
    received = [one["body"]["event_type"] for one in reversed(page)]
    assert [name for name in received if name.startswith(("thought_", "mcp_"))] == [
        *("thought_session_started", CALLED),
        *("thought_recorded", CALLED) * 3,
        *("thought_chain_verified", CALLED),
        *("thought_recorded", CALLED),
        *("thought_session_sealed", CALLED),
        CALLED,
        *("thought_session_ended", CALLED),
    ]
    assert {one["who"] for one in calls} == {tenant.http("operator").get("/v1/whoami").json()["user_id"]}
    session = records[0]["session_id"]
    kept = tenant.http("operator").get(f"/v1/sessions/{session}/thoughts").json()["items"]
    assert [item["record_id"] for item in kept] == [record["record_id"] for record in records]


@pytest.mark.req(292, 301, 302, 303, 304, 305, 306)
def test_an_agents_key_is_enough_for_the_whole_sequence_s409(tenant: Tenant) -> None:
    """S409, S404: what it wrote it may prove, whoever else may read it."""

    async def story(hand: Hand) -> None:
        session = await begun(hand, DECISION)
        await hand.do("audit_verify_chain", session_id=session)
        await hand.do("thought_record", session_id=session, task_id=TASK, **REFLECTION)
        sealed = await hand.do("merkle_finalize", session_id=session)
        assert (await hand.do("merkle_root", session_id=session))["root"] == sealed["root"]
        await hand.do("audit_session_end", session_id=session)

    played(tenant, story, key=tenant.key("agent"))


FINALIZE, ROOT, END = "merkle_finalize", "merkle_root", "audit_session_end"
VERIFY: Json = {"verify": True}
OTHER = PLAN | {"task_id": "tsk_other"}
OUT_OF_ORDER = [
    ("nothing was recorded", (), FINALIZE, "empty_session", "thought_record"),
    ("no closing reflection", (PLAN, VERIFY), FINALIZE, "no_reflection", "audit_verify_chain"),
    ("another task is open", (OTHER, VERIFY, REFLECTION), FINALIZE, "open_tasks", "audit_verify_chain"),
    ("never verified", (PLAN, REFLECTION), FINALIZE, "not_verified", "audit_verify_chain"),
    ("verified too early", (VERIFY, PLAN, REFLECTION), FINALIZE, "not_verified", "audit_verify_chain"),
    ("verified too late", (PLAN, REFLECTION, VERIFY), FINALIZE, "not_verified", "another task_id"),
    ("root before the seal", (PLAN, VERIFY, REFLECTION), ROOT, "not_sealed", "merkle_finalize"),
    ("end before the seal", (PLAN, VERIFY, REFLECTION), END, "not_sealed", "merkle_finalize"),
    ("end at once", (), END, "not_sealed", "merkle_finalize"),
]


@pytest.mark.req(294, 295, 296, 297, 298)
@pytest.mark.parametrize("way", ["http", "stdio"])
def test_each_violation_of_the_order_is_refused_with_what_to_do_next_s409(tenant: Tenant, way: str) -> None:
    """S409, S408, S405: nothing is sealed, and each refusal is in the trail with its reason."""

    async def story(hand: Hand) -> list[str]:
        sessions = []
        for received, steps, tool, reason, then in OUT_OF_ORDER:
            session = await begun(hand, *steps)
            found = await hand.refused(tool, session_id=session)
            assert found["reason"] == reason, (received, found)
            assert then in found["next"], (received, found)
            assert (await hand.refused(ROOT, session_id=session))["reason"] == "not_sealed", received
            sessions.append(session)
        return sessions

    played(tenant, story, way)
    refused = [(one["tool"], one["reason"]) for one in trail(tenant) if one["outcome"] == "refused"]
    expected = [[(tool, reason), (ROOT, "not_sealed")] for _, _, tool, reason, _ in OUT_OF_ORDER]
    assert refused == [one for pair in expected for one in pair]


@pytest.mark.req(295, 296)
def test_what_to_do_next_does_lead_to_the_seal_s409(tenant: Tenant) -> None:
    """S409: the advice of each refusal is followed, and the session is sealed."""

    async def story(hand: Hand) -> None:
        for _, steps, _, _, _ in OUT_OF_ORDER:
            session = await begun(hand, *steps)
            result = await hand.ask("merkle_finalize", session_id=session)
            tries = 0
            while result.is_error and tries < 3:
                reason = result.structured_content["reason"]
                if reason == "empty_session":
                    await hand.do("thought_record", session_id=session, task_id=TASK, **PLAN)
                await hand.do("audit_verify_chain", session_id=session)
                task = {"not_verified": "another", "open_tasks": "tsk_other"}.get(reason, TASK)
                await hand.do("thought_record", session_id=session, task_id=task, **REFLECTION)
                result = await hand.ask("merkle_finalize", session_id=session)
                tries += 1
            assert not result.is_error, result
            await hand.do("audit_session_end", session_id=session)

    played(tenant, story)


@pytest.mark.req(296, 297)
def test_nothing_follows_the_seal_and_sealing_again_is_the_same_s409(tenant: Tenant) -> None:
    """S409: two that seal at once get one root; a record after it is refused and told where to go on."""

    async def story(hand: Hand) -> None:
        session = await begun(hand, PLAN)
        await hand.do("audit_verify_chain", session_id=session)
        await hand.do("thought_record", session_id=session, task_id=TASK, **REFLECTION)
        roots = await asyncio.gather(*(hand.do("merkle_finalize", session_id=session) for _ in range(4)))
        assert len({one["root"] for one in roots}) == 1
        late = await hand.refused("thought_record", session_id=session, task_id="late", **PLAN)
        assert late["reason"] == "sealed" and "predecessor_session_id" in late["next"]
        assert (await hand.do("merkle_root", session_id=session))["size"] == 2
        assert (await hand.do("audit_verify_chain", session_id=session))["valid"] is True
        ended = await hand.do("audit_session_end", session_id=session)
        assert await hand.do("audit_session_end", session_id=session) == ended
        after = await hand.do("audit_session_start", intent="go on", predecessor_session_id=session)
        first = await hand.do("thought_record", session_id=after["session_id"], task_id=TASK, **PLAN)
        page = tenant.http("operator").get(f"/v1/sessions/{after['session_id']}/thoughts").json()
        before = tenant.http("operator").get(f"/v1/sessions/{session}/thoughts").json()["session"]
        assert page["items"][0]["record_id"] == first["record_id"]
        assert page["items"][0]["predecessor_chain_hash"] == before["last_chain_hash"]

    played(tenant, story)


@pytest.mark.req(299)
def test_a_task_without_proof_needs_only_its_reflection_s411(tenant: Tenant) -> None:
    """S411: no start, no verification, no seal; and after the reflection the task takes nothing more."""

    async def story(hand: Hand) -> None:
        first = await hand.do("thought_record", task_id="tsk_plain", **PLAN)
        session = first["session_id"]
        open_task = await hand.refused("audit_session_end", session_id=session)
        assert open_task["reason"] == "open_tasks" and "reflection" in open_task["next"]
        last = await hand.do("thought_record", task_id="tsk_plain", **REFLECTION)
        assert (last["session_id"], last["index"]) == (session, 1)
        closed = await hand.refused("thought_record", task_id="tsk_plain", session_id=session, **PLAN)
        assert closed["reason"] == "task_closed" and "another task_id" in closed["next"]
        await hand.do("audit_session_end", session_id=session)

    played(tenant, story, key=tenant.key("agent"))


NO_RECORDS: list[tuple[Json, str]] = [
    ({"type": "note"}, "bad_arguments"),
    ({"type": "decision"}, "schema_violation"),
    ({"content": {"trajectory": ""}}, "schema_violation"),
    ({"content": {"trajectory": {}}}, "schema_violation"),
    ({"content": {"trajectory": "x" * 70_000}}, "too_large"),
    ({"references": ["rec_that_is_not_there"]}, "not_found"),
    ({"audit_event_ids": ["evt_not-there"]}, "not_found"),
]


@pytest.mark.req(302)
def test_a_record_that_is_none_is_refused_and_nothing_is_appended_s408(tenant: Tenant) -> None:
    """S407, S408."""

    async def story(hand: Hand) -> None:
        session = await begun(hand, PLAN)
        for changed, reason in NO_RECORDS:
            asked = {"session_id": session, "task_id": TASK} | PLAN | changed
            found = await hand.refused("thought_record", **asked)
            assert found["reason"] == reason and found["next"], found
        assert (await hand.do("audit_verify_chain", session_id=session))["records"] == 1

    played(tenant, story)

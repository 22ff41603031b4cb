"""Registry and router over both databases: pulses, evictions, deliveries, circuits, edges as stored rows."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from observatory.features.fleet.types_edges import edges
from observatory.features.registry import circuit_breaker as breaker
from observatory.features.registry import commands as enrolment
from observatory.features.registry import commands_eviction as reaping
from observatory.features.registry import router
from observatory.pipeline.agents import SECOND
from observatory.pipeline.pipeline import PipelineBatch
from observatory.pipeline.ports import BacklogDelivery
from observatory.pipeline.state import HOME_TENANT, Principal, Submission, SubmissionResult
from observatory.protocol.tenant_config import Route
from observatory.stages import WRITE_PATH
from tests.contract.conftest import SERVICE, Harness
from tests.samples import decision_log

KEEPER = Principal(tenant_id=HOME_TENANT, role="admin", key_id="sys_gateway")


def at(harness: Harness, now_ns: int, *items: Submission) -> list[SubmissionResult]:
    """One batch at a time of our own, as a gateway just started would run it: nothing is remembered."""
    batch = PipelineBatch(WRITE_PATH, SERVICE, HOME_TENANT, items, now_ns)
    return harness.transact(HOME_TENANT, lambda tx: batch.run(tx, None)[0])


def log(agent_id: str, recipient: str | None = None, **more: Any) -> dict[str, Any]:
    identity = {"agent_id": agent_id, "agent_type": "writer", "recipient": recipient}
    return decision_log(
        meta={"step_id": str(uuid.uuid4()), **more.pop("meta", {})},
        identity=identity | more.pop("identity", {}),
        **more,
    )


def rows(harness: Harness, table: str, **where: Any) -> list[dict[str, Any]]:
    return harness.read(harness.store.rows(HOME_TENANT, table, **where))


def agent(harness: Harness, agent_id: str) -> dict[str, Any]:
    return rows(harness, "agents", agent_id=agent_id)[0]


def sent(harness: Harness, sender: str, recipient: str) -> dict[str, Any]:
    """Send and give back the newest delivery it made."""
    (verdict,) = harness.send(log(sender, recipient))
    assert verdict.code == 202
    return rows(harness, "deliveries", sequence_number=verdict.answer.sequence_number)[0]


@pytest.mark.req(124)
def test_a_message_becomes_a_delivery_of_its_recipient_and_names_the_archived_one(harness: Harness) -> None:
    """S135"""
    harness.send(log("b"))
    row = sent(harness, "a", "b")
    assert (row["agent_no"], row["state"], row["kind"]) == (
        agent(harness, "b")["agent_no"],
        "pending",
        "message",
    )
    assert (
        row["message_seq"] == row["sequence_number"] and row["sender_no"] == agent(harness, "a")["agent_no"]
    )


def test_type_and_cluster_find_registered_capabilities_and_no_evicted_agent(harness: Harness) -> None:
    """S136"""
    now = harness.now()
    at(
        harness,
        now,
        enrolment.register(KEEPER, "c", {"capabilities": '["proof"]', "cluster_id": "west"}, now),
    )
    number = agent(harness, "c")["agent_no"]
    assert [sent(harness, "a", to)["agent_no"] for to in ("type:proof", "cluster:west")] == [number, number]
    at(harness, now, enrolment.record_heartbeat(KEEPER, "c", number, {}, now))
    later = now + 200 * SECOND
    (silent,) = harness.read(harness.store.silent(HOME_TENANT, later - 90 * SECOND, 10))
    assert at(harness, later, reaping.evict(KEEPER, silent, later))[0].answer == 1
    assert harness.read(harness.store.silent(HOME_TENANT, later, 10)) == []
    assert sent(harness, "a", "type:proof")["state"] == "parked"
    assert at(harness, later, reaping.evict(KEEPER, silent, later))[0].answer == 0


@pytest.mark.req(100)
def test_what_an_evicted_agent_left_is_handed_on_under_the_lock_and_only_once(harness: Harness) -> None:
    """S139"""
    harness.send(log("old"), log("new", identity={"agent_type": "other"}))
    left = sent(harness, "a", "old")
    now, number = harness.now(), agent(harness, "old")["agent_no"]
    at(harness, now, enrolment.record_heartbeat(KEEPER, "old", number, {}, now))
    later = now + 100 * SECOND
    (silent,) = harness.read(harness.store.silent(HOME_TENANT, now, 10))
    at(harness, later, reaping.evict(KEEPER, silent, later))
    (part,) = harness.read(harness.store.backlog(HOME_TENANT))
    assert (part.agent_no, part.address, part.waiting) == (number, None, 1)
    (work,) = harness.read(harness.store.stranded(HOME_TENANT, number, None, 10))
    assert work.sequence_number == left["sequence_number"]
    act = reaping.reroute_delivery(KEEPER, work, silent.entity_id, "type:other", later)
    both = [verdict.answer for verdict in at(harness, later, act, act)]
    assert both == [1, 0]
    (fresh,) = rows(harness, "deliveries", agent_no=agent(harness, "new")["agent_no"])
    assert (fresh["state"], fresh["message_seq"]) == ("pending", left["message_seq"])
    assert rows(harness, "deliveries", agent_no=number)[0]["state"] == "rerouted"
    assert harness.read(harness.store.backlog(HOME_TENANT)) == []


def test_parked_work_is_found_by_its_address_and_given_to_who_came(harness: Harness) -> None:
    """S138"""
    parked = sent(harness, "a", "type:painter")
    assert parked["state"] == "parked"
    harness.send(log("p", identity={"agent_type": "painter"}))
    (part,) = harness.read(harness.store.backlog(HOME_TENANT))
    assert (part.agent_no, part.address) == (0, "type:painter")
    (work,) = harness.read(harness.store.stranded(HOME_TENANT, 0, "type:painter", 10))
    assert isinstance(work, BacklogDelivery)
    now = harness.now()
    assert at(harness, now, reaping.reroute_delivery(KEEPER, work, None, "type:painter", now))[0].answer == 1
    assert rows(harness, "deliveries", agent_no=agent(harness, "p")["agent_no"])[0]["state"] == "pending"


def test_what_was_said_into_an_empty_room_reaches_who_comes_later(harness: Harness) -> None:
    """S138"""
    (verdict,) = harness.send(log("a", "session:hall", meta={"session_id": "hall"}))
    assert rows(harness, "deliveries", sequence_number=verdict.answer.sequence_number)[0]["state"] == "parked"
    harness.send(*(log(name, meta={"session_id": "hall"}) for name in ("b", "c")))
    (work,) = harness.read(harness.store.stranded(HOME_TENANT, 0, "session:hall", 10))
    now = harness.now()
    assert at(harness, now, reaping.reroute_delivery(KEEPER, work, None, "session:hall", now))[0].answer == 1
    pending = {row["agent_no"] for row in rows(harness, "deliveries", state="pending")}
    assert pending == {agent(harness, name)["agent_no"] for name in ("b", "c")}


def test_a_pulse_is_renewed_without_being_chained_each_time(harness: Harness) -> None:
    """S131"""
    harness.send(log("a"))
    now, number = harness.now(), agent(harness, "a")["agent_no"]
    received = {"status": "working", "task": '{"task_id":"tsk_1"}'}
    before = len(harness.trail_of())
    for step in range(5):
        at(harness, now + step * SECOND, enrolment.record_heartbeat(KEEPER, "a", number, received, now))
    assert len(harness.trail_of()) == before + 1
    (pulse,) = rows(harness, "pulses", agent_no=number)
    assert (pulse["heartbeat_ns"], pulse["status"]) == (now + 4 * SECOND, "working")
    assert pulse["task"] == '{"task_id":"tsk_1"}'


def test_a_route_and_a_circuit_count_for_a_gateway_that_starts_afterwards(harness: Harness) -> None:
    """S137, S140"""
    harness.send(log("w1", meta={"cluster_id": "one"}), log("w2", meta={"cluster_id": "two"}))
    now = harness.now()
    given = Route(capability="writer", weights={"cluster:two": 1.0, "cluster:one": 0.0})
    at(harness, now, router.put_route(KEEPER, given, now))
    chosen = {sent(harness, "a", "type:writer")["agent_no"] for _ in range(10)}
    assert chosen == {agent(harness, "w2")["agent_no"]}
    failing = [log("w2", action={"status": "failure"}) for _ in range(20)]
    harness.send(*failing)
    (row,) = rows(harness, "breakers", capability="writer")
    assert row["state"] == "open" and row["reason"]
    assert sent(harness, "a", "type:writer")["state"] == "parked"
    at(harness, now, breaker.force_state(KEEPER, "writer", "closed", now))
    assert sent(harness, "a", "type:writer")["state"] == "pending"


def test_edges_are_counted_by_the_database_and_handed_on_work_counts_where_it_went(harness: Harness) -> None:
    """S142"""
    harness.send(log("b"))
    since = harness.now() - 10 * SECOND
    for recipient in ("b", "b", "type:writer"):
        sent(harness, "a", recipient)
    sent(harness, "a", "type:nobody")
    harness.sql("UPDATE deliveries SET acked_ns = created_ns + 2000000, state = 'acked' WHERE agent_no > 0")
    counts = harness.read(harness.store.edges(HOME_TENANT, since, since))
    spent = harness.read(harness.store.latencies(HOME_TENANT, since, 100))
    known = {row["agent_no"]: row | {"liveness": "unknown"} for row in rows(harness, "agents")}
    received, parked = edges(counts, spent, known, harness.now())
    assert (received["from"], received["to"], received["messages"], received["status"]) == (
        "a",
        "b",
        3,
        "Healthy",
    )
    assert (received["latency_p50_ms"], received["latency_p95_ms"], received["unacknowledged"]) == (
        2.0,
        2.0,
        0,
    )
    assert (parked["to"], parked["status"], parked["unacknowledged"]) == ("type:nobody", "Blocked", 1)
    assert harness.read(harness.store.edges(HOME_TENANT, harness.now() + SECOND, since)) == []


def test_rooms_are_the_sessions_with_others_in_which_an_agent_is(harness: Harness) -> None:
    """S134"""
    harness.send(
        log("a", meta={"session_id": "shared"}),
        log("b", meta={"session_id": "shared"}),
        log("a", meta={"session_id": "alone"}),
    )
    number = agent(harness, "a")["agent_no"]
    assert harness.read(harness.store.rooms(HOME_TENANT, number)) == ["shared"]
    now = harness.now()
    assert (
        at(harness, now, enrolment.leave_session_command(KEEPER, "shared", "a", now))[0].answer["state"]
        == "left"
    )
    assert harness.read(harness.store.rooms(HOME_TENANT, number)) == []

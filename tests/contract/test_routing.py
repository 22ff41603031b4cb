"""Registry and router over both databases: pulses, evictions, deliveries, circuits, edges as stored rows."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from observatory.features.fleet.edges import edges
from observatory.features.registry import circuit_breaker as breaker
from observatory.features.registry import commands as enrolment
from observatory.features.registry import commands_eviction as reaping
from observatory.features.registry import router
from observatory.features.registry.stage import SECOND
from observatory.pipeline.pipeline import Batch
from observatory.pipeline.ports import Stranded
from observatory.pipeline.state import HOME_TENANT, Principal, Submission, Verdict
from observatory.protocol.rulebook import Route
from tests.contract.conftest import SERVICE, House
from tests.samples import decision_log

KEEPER = Principal(tenant_id=HOME_TENANT, role="admin", key_id="sys_gateway")


def at(house: House, now_ns: int, *items: Submission) -> list[Verdict]:
    """One batch at a time of our own, as a gateway just started would run it: nothing is remembered."""
    batch = Batch(SERVICE, HOME_TENANT, items, now_ns)
    return house.transact(HOME_TENANT, lambda tx: batch.run(tx, None)[0])


def log(agent_id: str, recipient: str | None = None, **more: Any) -> dict[str, Any]:
    identity = {"agent_id": agent_id, "agent_type": "writer", "recipient": recipient}
    return decision_log(
        meta={"step_id": str(uuid.uuid4()), **more.pop("meta", {})},
        identity=identity | more.pop("identity", {}),
        **more,
    )


def rows(house: House, table: str, **where: Any) -> list[dict[str, Any]]:
    return house.read(house.store.rows(HOME_TENANT, table, **where))


def agent(house: House, agent_id: str) -> dict[str, Any]:
    return rows(house, "agents", agent_id=agent_id)[0]


def sent(house: House, sender: str, recipient: str) -> dict[str, Any]:
    """Send and give back the newest delivery it made."""
    (verdict,) = house.send(log(sender, recipient))
    assert verdict.code == 202
    return rows(house, "deliveries", sequence_number=verdict.answer.sequence_number)[0]


@pytest.mark.req(124)
def test_a_message_becomes_a_delivery_of_its_recipient_and_names_the_archived_one(house: House) -> None:
    """S135"""
    house.send(log("b"))
    row = sent(house, "a", "b")
    assert (row["agent_no"], row["state"], row["kind"]) == (
        agent(house, "b")["agent_no"],
        "pending",
        "message",
    )
    assert row["message_seq"] == row["sequence_number"] and row["sender_no"] == agent(house, "a")["agent_no"]


def test_type_and_cluster_find_registered_capabilities_and_no_evicted_agent(house: House) -> None:
    """S136"""
    now = house.now()
    at(house, now, enrolment.register(KEEPER, "c", {"capabilities": '["proof"]', "cluster_id": "west"}, now))
    number = agent(house, "c")["agent_no"]
    assert [sent(house, "a", to)["agent_no"] for to in ("type:proof", "cluster:west")] == [number, number]
    at(house, now, enrolment.beat(KEEPER, "c", number, {}, now))
    later = now + 200 * SECOND
    (silent,) = house.read(house.store.silent(HOME_TENANT, later - 90 * SECOND, 10))
    assert at(house, later, reaping.evict(KEEPER, silent, later))[0].answer == 1
    assert house.read(house.store.silent(HOME_TENANT, later, 10)) == []
    assert sent(house, "a", "type:proof")["state"] == "parked"
    assert at(house, later, reaping.evict(KEEPER, silent, later))[0].answer == 0


@pytest.mark.req(100)
def test_what_an_evicted_agent_left_is_handed_on_under_the_lock_and_only_once(house: House) -> None:
    """S139"""
    house.send(log("old"), log("new", identity={"agent_type": "other"}))
    left = sent(house, "a", "old")
    now, number = house.now(), agent(house, "old")["agent_no"]
    at(house, now, enrolment.beat(KEEPER, "old", number, {}, now))
    later = now + 100 * SECOND
    (silent,) = house.read(house.store.silent(HOME_TENANT, now, 10))
    at(house, later, reaping.evict(KEEPER, silent, later))
    (part,) = house.read(house.store.backlog(HOME_TENANT))
    assert (part.agent_no, part.address, part.waiting) == (number, None, 1)
    (work,) = house.read(house.store.stranded(HOME_TENANT, number, None, 10))
    assert work.sequence_number == left["sequence_number"]
    act = reaping.hand_on(KEEPER, work, silent.entity_id, "type:other", later)
    both = [verdict.answer for verdict in at(house, later, act, act)]
    assert both == [1, 0]
    (fresh,) = rows(house, "deliveries", agent_no=agent(house, "new")["agent_no"])
    assert (fresh["state"], fresh["message_seq"]) == ("pending", left["message_seq"])
    assert rows(house, "deliveries", agent_no=number)[0]["state"] == "rerouted"
    assert house.read(house.store.backlog(HOME_TENANT)) == []


def test_parked_work_is_found_by_its_address_and_given_to_who_came(house: House) -> None:
    """S138"""
    parked = sent(house, "a", "type:painter")
    assert parked["state"] == "parked"
    house.send(log("p", identity={"agent_type": "painter"}))
    (part,) = house.read(house.store.backlog(HOME_TENANT))
    assert (part.agent_no, part.address) == (0, "type:painter")
    (work,) = house.read(house.store.stranded(HOME_TENANT, 0, "type:painter", 10))
    assert isinstance(work, Stranded)
    now = house.now()
    assert at(house, now, reaping.hand_on(KEEPER, work, None, "type:painter", now))[0].answer == 1
    assert rows(house, "deliveries", agent_no=agent(house, "p")["agent_no"])[0]["state"] == "pending"


def test_what_was_said_into_an_empty_room_reaches_who_comes_later(house: House) -> None:
    """S138"""
    (verdict,) = house.send(log("a", "session:hall", meta={"session_id": "hall"}))
    assert rows(house, "deliveries", sequence_number=verdict.answer.sequence_number)[0]["state"] == "parked"
    house.send(*(log(name, meta={"session_id": "hall"}) for name in ("b", "c")))
    (work,) = house.read(house.store.stranded(HOME_TENANT, 0, "session:hall", 10))
    now = house.now()
    assert at(house, now, reaping.hand_on(KEEPER, work, None, "session:hall", now))[0].answer == 1
    pending = {row["agent_no"] for row in rows(house, "deliveries", state="pending")}
    assert pending == {agent(house, name)["agent_no"] for name in ("b", "c")}


def test_a_pulse_is_renewed_without_being_chained_each_time(house: House) -> None:
    """S131"""
    house.send(log("a"))
    now, number = house.now(), agent(house, "a")["agent_no"]
    told = {"status": "working", "task": '{"task_id":"tsk_1"}'}
    before = len(house.trail_of())
    for step in range(5):
        at(house, now + step * SECOND, enrolment.beat(KEEPER, "a", number, told, now))
    assert len(house.trail_of()) == before + 1
    (pulse,) = rows(house, "pulses", agent_no=number)
    assert (pulse["heartbeat_ns"], pulse["status"]) == (now + 4 * SECOND, "working")
    assert pulse["task"] == '{"task_id":"tsk_1"}'


def test_a_route_and_a_circuit_count_for_a_gateway_that_starts_afterwards(house: House) -> None:
    """S137, S140"""
    house.send(log("w1", meta={"cluster_id": "one"}), log("w2", meta={"cluster_id": "two"}))
    now = house.now()
    given = Route(capability="writer", weights={"cluster:two": 1.0, "cluster:one": 0.0})
    at(house, now, router.put_route(KEEPER, given, now))
    chosen = {sent(house, "a", "type:writer")["agent_no"] for _ in range(10)}
    assert chosen == {agent(house, "w2")["agent_no"]}
    failing = [log("w2", action={"status": "failure"}) for _ in range(20)]
    house.send(*failing)
    (row,) = rows(house, "breakers", capability="writer")
    assert row["state"] == "open" and row["reason"]
    assert sent(house, "a", "type:writer")["state"] == "parked"
    at(house, now, breaker.force(KEEPER, "writer", "closed", now))
    assert sent(house, "a", "type:writer")["state"] == "pending"


def test_edges_are_counted_by_the_database_and_handed_on_work_counts_where_it_went(house: House) -> None:
    """S142"""
    house.send(log("b"))
    since = house.now() - 10 * SECOND
    for recipient in ("b", "b", "type:writer"):
        sent(house, "a", recipient)
    sent(house, "a", "type:nobody")
    house.sql("UPDATE deliveries SET acked_ns = created_ns + 2000000, state = 'acked' WHERE agent_no > 0")
    counts = house.read(house.store.edges(HOME_TENANT, since, since))
    spent = house.read(house.store.latencies(HOME_TENANT, since, 100))
    known = {row["agent_no"]: row | {"liveness": "unknown"} for row in rows(house, "agents")}
    told, parked = edges(counts, spent, known, house.now())
    assert (told["from"], told["to"], told["messages"], told["status"]) == ("a", "b", 3, "Healthy")
    assert (told["latency_p50_ms"], told["latency_p95_ms"], told["unacknowledged"]) == (2.0, 2.0, 0)
    assert (parked["to"], parked["status"], parked["unacknowledged"]) == ("type:nobody", "Blocked", 1)
    assert house.read(house.store.edges(HOME_TENANT, house.now() + SECOND, since)) == []


def test_rooms_are_the_sessions_with_others_in_which_an_agent_is(house: House) -> None:
    """S134"""
    house.send(
        log("a", meta={"session_id": "shared"}),
        log("b", meta={"session_id": "shared"}),
        log("a", meta={"session_id": "alone"}),
    )
    number = agent(house, "a")["agent_no"]
    assert house.read(house.store.rooms(HOME_TENANT, number)) == ["shared"]
    now = house.now()
    assert at(house, now, enrolment.leave_room(KEEPER, "shared", "a", now))[0].answer["state"] == "left"
    assert house.read(house.store.rooms(HOME_TENANT, number)) == []

"""Heartbeats with the clock running: healthy, zombie, evicted, back; and what becomes of the work meanwhile.

The gateways here check every second and evict after three.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flows.databases import ALONE, DATABASES, new_database, options_of
from tests.flows.fleet import agent_of, beat, inbox, named, received, say, until
from tests.flows.server import Server
from tests.samples import envelope

QUICK = ALONE | {"OBSERVATORY_HEARTBEAT_CHECK_S": "1", "OBSERVATORY_HEARTBEAT_TIMEOUT_S": "3"}


@pytest.fixture(scope="module", params=DATABASES)
def quick(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("quick") / "data"
    with Server(folder, *options_of(request), environment=QUICK) as running:
        yield running


@pytest.mark.req(125)
def test_an_agent_that_stops_beating_becomes_a_zombie_is_evicted_and_comes_back(quick: Server) -> None:
    """S130, S132, S133"""
    name, quiet = named(), named("quiet")
    say(quick, quiet)
    say(quick, name, kind="worker")
    assert agent_of(quick, name)["liveness"] == "unknown"
    answer = beat(quick, name, status="working")
    assert answer["liveness"] == "healthy" and answer["chained"]
    seen = agent_of(quick, name)
    assert (seen["liveness"], seen["status"]) == ("healthy", "working") and seen["last_heartbeat_at"]
    until(lambda: agent_of(quick, name)["liveness"] == "zombie")
    until(lambda: agent_of(quick, name)["liveness"] == "evicted")
    (event,) = received(quick, "agent_evicted", agent_id=name)
    assert event["body"]["silent_s"] >= 3 and event["severity_number"] == 13
    gone = agent_of(quick, name)
    assert (gone["state"], gone["messages"]) == ("dead", 1) and gone["evicted_at"]  # history is kept
    beat(quick, name)
    assert agent_of(quick, name)["liveness"] == "healthy"
    assert len(received(quick, "agent_recovered", agent_id=name)) == 1
    until(lambda: agent_of(quick, name)["liveness"] == "evicted")
    say(quick, name, kind="worker")
    assert agent_of(quick, name)["liveness"] == "healthy"  # heard: its silence counts anew
    assert len(received(quick, "agent_recovered", agent_id=name)) == 2
    # Never heard by heartbeat: neither zombie nor evicted, however long it is silent.
    assert (
        agent_of(quick, quiet)["liveness"] == "unknown"
        and received(quick, "agent_evicted", agent_id=quiet) == []
    )


@pytest.mark.req(100)
def test_undelivered_work_of_an_evicted_agent_reaches_a_healthy_one_of_its_capability(quick: Server) -> None:
    """S139: by name and by type, what waited and what comes later."""
    kind = named("kind")
    doomed, heir, sender = named("doomed"), named("heir"), named("sender")
    say(quick, doomed, kind=kind)
    beat(quick, doomed)
    by_name = say(quick, sender, doomed)["sequence_number"]
    by_type = say(quick, sender, f"type:{kind}")["sequence_number"]
    assert len(inbox(quick, doomed)) == 2
    say(quick, heir, kind=kind)

    def heirs() -> list[int]:
        beat(quick, heir)  # the heir lives
        return [
            event["body"]["message_sequence_number"] for event in received(quick, "message_rerouted", to=heir)
        ]

    until(lambda: sorted(heirs()) == [by_name, by_type])
    assert len(inbox(quick, heir)) == 2
    # By name to an evicted agent: another of its kind gets it.
    late = say(quick, sender, doomed)["sequence_number"]
    until(lambda: late in heirs())
    assert inbox(quick, doomed) == []  # it looks, and so is back; its work is another's by now
    assert len(received(quick, "agent_recovered", agent_id=doomed)) == 1


def test_the_evicted_leave_their_rooms(quick: Server) -> None:
    """S134"""
    stays, goes, room = named(), named(), named("room")
    say(quick, stays, session=room)
    say(quick, goes, session=room)
    beat(quick, goes)
    until(lambda: received(quick, "agent_left_room", session_id=room, agent_id=goes))
    say(quick, stays, f"session:{room}", session=room)
    assert inbox(quick, goes) == []


@pytest.mark.req(370, 394, 395, 396)
def test_a_heartbeat_message_is_always_chained_and_feeds_the_same_registry(quick: Server) -> None:
    """S131"""
    entity = f"agt_{uuid.uuid4()}"
    for _ in range(3):
        sent = envelope("heartbeat", sender={"entity_id": entity, "entity_type": "agent"})
        assert quick.send(sent).status_code == 202
    seen = agent_of(quick, entity)
    assert (seen["liveness"], seen["status"]) == ("healthy", "working")
    assert seen["task"]["progress_pct"] == 67 and seen["task"]["description"]
    assert seen["usage"] == {"tokens_consumed_24h": 14500, "api_calls_24h": 230}
    beats = [
        event
        for event in received(quick, "heartbeat")
        if event["attributes"].get("av.sender.entity_id") == entity
    ]
    assert len(beats) == 3 and {event["severity_number"] for event in beats} == {5}


def test_a_pulse_by_post_is_chained_only_when_its_status_changes_or_a_minute_passed(quick: Server) -> None:
    """S131"""
    name = named()
    statuses = ["idle", "idle", "working", "working", "idle"]
    task = {"task_id": "tsk_1", "progress_pct": 12}
    chained = [beat(quick, name, status=status, current_task=task)["chained"] for status in statuses]
    assert chained == [True, False, True, False, True]
    assert len(received(quick, "heartbeat", agent_id=name)) == 3
    assert agent_of(quick, name)["task"] == task
    assert beat(quick, name, cluster_id="c", timestamp="2026-02-16T14:32:00Z")["status"] == "idle"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"agent_id": ""},
        {"agent_id": "a", "type": "pulse"},
        {"agent_id": "a", "timestamp": "yesterday"},
        {"agent_id": "a", "current_task": {"text": "x" * 5_000}},
        {"agent_id": "a", "resource_usage": "much"},
    ],
)
def test_a_pulse_that_is_none_is_refused_with_a_sentence(quick: Server, body: dict[str, object]) -> None:
    """S131"""
    answer = quick.http("agent").post("/v1/heartbeat", json=body)
    assert answer.status_code == 422 and answer.json()["detail"]


def test_two_gateways_on_one_database_evict_and_hand_on_once(postgres_url: str, tmp_path: Path) -> None:
    """S132, S139"""
    url, kind = new_database(postgres_url), named("kind")
    with (
        Server(tmp_path / "one", "--db", url, environment=QUICK) as one,
        Server(tmp_path / "two", "--db", url, environment=QUICK) as two,
    ):
        heir, doomed = named("heir"), [named("doomed") for _ in range(8)]
        for name in doomed:
            say(one, name, kind=kind)
            beat(one, name)
            say(one, named(), name)
        say(two, heir, kind=kind)

        def evicted() -> bool:
            beat(two, heir)
            return len(received(one, "message_rerouted", to=heir)) >= len(doomed)

        until(evicted)
        for name in doomed:
            assert len(received(two, "agent_evicted", agent_id=name)) == 1
        assert len(received(two, "message_rerouted", to=heir)) == len(doomed) == len(inbox(two, heir))

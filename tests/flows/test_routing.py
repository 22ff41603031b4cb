"""Routing through the doors: who a message reaches, weights, circuits, and what the edges tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.flows.databases import ALONE, DATABASES, options_of
from tests.flows.fleet import Json, ack, agent_of, inbox, named, received, say, until
from tests.flows.server import Server
from tests.samples import envelope

LIMITS = ALONE | {
    "OBSERVATORY_BREAKER_MIN_CALLS": "4",
    "OBSERVATORY_BREAKER_OPEN_S": "1",
    "OBSERVATORY_BREAKER_WINDOW_S": "600",
}


@pytest.fixture(scope="module", params=DATABASES)
def brittle(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A gateway whose circuits open after four calls and probe after a second."""
    folder = tmp_path_factory.mktemp("brittle") / "data"
    with Server(folder, *options_of(request), environment=LIMITS) as running:
        yield running


def seqs(items: list[Json]) -> list[int]:
    return [item["sequence_number"] for item in items]


@pytest.mark.req(124)
def test_a_message_reaches_the_agent_the_type_the_cluster_and_the_session_it_names(
    either_server: Server,
) -> None:
    """S135"""
    server = either_server
    sender, kind, cluster, room = named("sender"), named("kind"), named("cluster"), named("room")
    worker = named("worker")
    say(server, worker, kind=kind, cluster=cluster, session=room)
    entity_id = agent_of(server, worker)["entity_id"]
    places = (worker, entity_id, f"type:{kind}", f"cluster:{cluster}", f"session:{room}")
    sent = [say(server, sender, place, session=room)["sequence_number"] for place in places]
    items = inbox(server, worker)
    assert seqs(items) == sent
    assert all(item["sender"]["agent_id"] == sender and item["session_id"] == room for item in items)
    assert items[0]["message"]["identity"]["recipient"] == worker
    assert inbox(server, sender) == []  # nothing goes back to whom it came from
    ack(server, worker, *items)
    assert inbox(server, worker) == []


@pytest.mark.req(367, 368, 369, 371, 372)
@pytest.mark.parametrize(
    "kind", ["status_alert", "artifact_share", "action_confirmation", "text", "system_event"]
)
def test_every_type_of_message_reaches_the_agent_it_is_addressed_to(server: Server, kind: str) -> None:
    """S135"""
    worker = named("worker")
    say(server, worker)
    party = {"entity_id": agent_of(server, worker)["entity_id"], "entity_type": "agent"}
    sent = envelope(kind, recipient=party)
    assert server.send(sent, "admin").status_code == 202
    (item,) = inbox(server, worker)
    assert (item["message_type"], item["message_id"]) == (kind, sent["message_id"])
    assert item["message"]["payload"] == sent["payload"]


def test_work_nobody_can_take_waits_and_goes_to_the_first_who_comes(either_server: Server) -> None:
    """S138: by type and by name, in order."""
    server, kind, late = either_server, named("kind"), named("late")
    sent = [
        say(server, named(), place)["sequence_number"] for place in (f"type:{kind}", late, f"type:{kind}")
    ]
    assert len(received(server, "message_undeliverable", address=f"type:{kind}")) == 2
    say(server, late, kind=kind)
    items = until(lambda: found if len(found := inbox(server, late)) == 3 else [])
    assert sorted(item["message"]["identity"]["recipient"] for item in items) == sorted(
        [late, f"type:{kind}", f"type:{kind}"]
    )
    rerouted = received(server, "message_rerouted", to=late)
    assert sorted(event["body"]["message_sequence_number"] for event in rerouted) == sent


@pytest.mark.req(213)
def test_an_operator_shifts_the_traffic_of_a_capability(either_server: Server) -> None:
    """S137: all to one cluster, then half to each; the change is told of and shown."""
    server, kind = either_server, named("kind")
    west, east = named("west"), named("east")
    say(server, west, kind=kind, cluster=f"{kind}-w")
    say(server, east, kind=kind, cluster=f"{kind}-e")
    operator, sender = server.http("operator"), named()

    def share(weights: dict[str, float], messages: int) -> Counter[str]:
        answer = operator.put("/v1/routes", json={"capability": kind, "weights": weights})
        assert answer.status_code == 200, answer.text
        for _ in range(messages):
            say(server, sender, f"type:{kind}")
        got: Counter[str] = Counter()
        for name in (west, east):
            items = inbox(server, name)
            got[name] = len(items)
            if items:
                ack(server, name, *items)
        return got

    assert share({f"cluster:{kind}-w": 1, f"cluster:{kind}-e": 0}, 12) == {west: 12, east: 0}
    assert share({east: 5}, 12) == {west: 0, east: 12}
    halves = share({f"cluster:{kind}-w": 50, f"cluster:{kind}-e": 50}, 60)
    assert min(halves.values()) >= 12
    routes = {item["capability"]: item for item in operator.get("/v1/routes").json()["items"]}
    assert routes[kind]["shares"] == {f"cluster:{kind}-w": 0.5, f"cluster:{kind}-e": 0.5}
    assert len(received(server, "route_changed", capability=kind)) == 3
    pages = server.http("viewer").get("/v1/capabilities").json()["items"]
    page = next(page for page in pages if page["capability"] == kind)
    assert page["weights"] and page["breaker"] == "closed"


@pytest.mark.parametrize(
    "weights",
    [
        '{"cluster:a": -1}',
        '{"cluster:a": 0, "b": 0}',
        "{}",
        '{"cluster:a": "nan"}',
        '{"cluster:a": "inf"}',
        '{"type:x": 1}',
    ],
)
def test_weights_that_share_out_nothing_are_answered_422(server: Server, weights: str) -> None:
    """S137"""
    body = f'{{"capability": "anything", "weights": {weights}}}'
    headers = {"content-type": "application/json"}
    answer = server.http("operator").put("/v1/routes", content=body, headers=headers)
    assert answer.status_code == 422 and len(answer.json()["detail"]) > 20, answer.text


@pytest.mark.parametrize("weight", ["NaN", "Infinity", "1e999"])
def test_a_weight_that_is_no_json_number_is_answered_400(server: Server, weight: str) -> None:
    """S137: as for every command whose body parsers would read differently."""
    body = f'{{"capability": "anything", "weights": {{"a": {weight}}}}}'
    headers = {"content-type": "application/json"}
    assert server.http("operator").put("/v1/routes", content=body, headers=headers).status_code == 400


def test_only_who_may_operate_changes_routes_and_circuits(server: Server) -> None:
    """S137, S141"""
    for role in ("viewer", "auditor", "approver", "agent"):
        client = server.http(role)
        assert client.put("/v1/routes", json={"capability": "x", "weights": {"a": 1}}).status_code == 403
        assert client.post("/v1/breakers/x", json={"state": "open"}).status_code == 403
    assert server.http("operator").post("/v1/breakers/x", json={"state": "ajar"}).status_code == 422


@pytest.mark.req(214)
def test_the_circuit_of_a_failing_capability_opens_probes_and_closes(brittle: Server) -> None:
    """S140, S141"""
    server, kind = brittle, named("kind")
    worker, sender = named("worker"), named("sender")
    say(server, worker, kind=kind)

    def state() -> str:
        items = server.http("viewer").get("/v1/breakers").json()["items"]
        return next((str(item["state"]) for item in items if item["capability"] == kind), "none")

    assert state() == "none"
    first = say(server, sender, f"type:{kind}")["sequence_number"]
    assert state() == "closed"
    for _ in range(4):
        say(server, worker, kind=kind, status="failure")
    assert state() == "open"
    parked = [say(server, sender, f"type:{kind}")["sequence_number"] for _ in range(3)]
    assert seqs(inbox(server, worker)) == [first]
    # After the open time the clock lets one of the parked pass, and only one.
    probed = until(lambda: found if len(found := inbox(server, worker)) == 2 else [])
    assert state() == "half_open"
    say(server, worker, kind=kind, status="success")
    assert state() == "closed"
    items = until(lambda: found if len(found := inbox(server, worker)) == 4 else [])
    rerouted = {
        event["body"]["message_sequence_number"] for event in received(server, "message_rerouted", to=worker)
    }
    assert rerouted == set(parked) and seqs(items)[:2] == seqs(probed)
    for name in ("breaker_opened", "breaker_half_opened", "breaker_closed"):
        assert len(received(server, name, capability=kind)) == 1


def test_a_circuit_opened_by_hand_stays_open_until_it_is_closed_by_hand(brittle: Server) -> None:
    """S141"""
    server, kind = brittle, named("kind")
    worker, operator = named("worker"), server.http("operator")
    say(server, worker, kind=kind)
    opened = operator.post(f"/v1/breakers/{kind}", json={"state": "open"}).json()
    assert opened["state"] == "open" and opened["forced_by"].startswith("usr_")
    say(server, named(), f"type:{kind}")
    assert inbox(server, worker, wait=2) == []
    assert operator.post(f"/v1/breakers/{kind}", json={"state": "closed"}).json()["forced_by"] is None
    assert until(lambda: inbox(server, worker))


def test_the_edges_tell_rate_latency_and_what_is_blocked(either_server: Server) -> None:
    """S142, S144"""
    server = either_server
    sender, worker, kind = named("sender"), named("worker"), named("kind")
    say(server, worker)
    for _ in range(6):
        say(server, sender, worker)
    say(server, sender, f"type:{kind}")
    items = inbox(server, worker)
    ack(server, worker, *items[:4])
    edges = {
        edge["to"]: edge
        for edge in server.http("viewer").get("/v1/edges").json()["items"]
        if edge["from"] == sender
    }
    received_, parked = edges[worker], edges[f"type:{kind}"]
    assert (received_["messages"], received_["messages_60s"], received_["unacknowledged"]) == (6, 6, 2)
    assert received_["rate_per_s"] == 0.1 and received_["status"] == "Healthy"
    assert 0 < received_["latency_p50_ms"] <= received_["latency_p95_ms"]
    assert (parked["status"], parked["unacknowledged"], parked["latency_p50_ms"]) == ("Blocked", 1, None)

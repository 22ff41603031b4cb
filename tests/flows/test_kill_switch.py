"""The kill-switch on running gateways: two confirmations, every door, stages, a second gateway, kill -9."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from websockets.sync.client import connect
from websockets.sync.connection import Connection

from tests.flows.databases import ALONE, new_database
from tests.flows.server import Server
from tests.flows.tenant import Tenant
from tests.samples import decision_log, envelope
from tests.waiting import until

DEADLINE_S = 60.0
Json = dict[str, Any]


def log(session: str, step: str, agent: str = "a1", kind: str = "writer", cluster: str = "north") -> Json:
    meta = {"session_id": session, "step_id": step, "parent_step_id": None, "cluster_id": cluster}
    return decision_log(meta=meta, identity={"agent_id": agent, "agent_type": kind})


def arm(server: Server, scope: str = "global", target: str | None = None) -> Json:
    body = {"scope": scope, "reason": "drill"} | ({} if target is None else {"target": target})
    answer = server.http("admin").post("/v1/kill-switch", json=body)
    assert answer.status_code == 202, answer.text
    found: Json = answer.json()
    return found


def confirm(server: Server, kill_id: str, token: str, code: int = 200) -> Json:
    answer = server.http("admin").post(f"/v1/kill-switch/{kill_id}/confirm", json={"token": token})
    assert answer.status_code == code, answer.text
    found: Json = answer.json()
    return found


def engage(server: Server, scope: str = "global", target: str | None = None) -> str:
    armed = arm(server, scope, target)
    kill_id: str = armed["kill_id"]
    second = confirm(server, kill_id, armed["token"])
    assert confirm(server, kill_id, second["token"])["state"] == "engaged"
    return kill_id


def release(server: Server, kill_id: str) -> Json:
    answer = server.http("admin").post(f"/v1/kill-switch/{kill_id}/release", json={"reason": "drill over"})
    assert answer.status_code == 202, answer.text
    found: Json = answer.json()
    return found


def shown(server: Server, kill_id: str, role: str = "operator") -> Json:
    items = server.http(role).get("/v1/kill-switch").json()["items"]
    found: Json = next(item for item in items if item["kill_id"] == kill_id)
    return found


def wait_released(server: Server, kill_id: str) -> None:
    until(lambda: shown(server, kill_id)["state"] == "released", DEADLINE_S)


def delivered(server: Server, session: str) -> list[str]:
    """Steps in the order in which they were forwarded."""
    steps: list[str] = []
    cursor: str | None = None
    while True:
        params = {"limit": "1000"} | ({"cursor": cursor} if cursor else {})
        page = server.http("admin").get(f"/v1/audit/trace/{session}", params=params).json()
        steps += [
            event["attributes"]["av.step.id"]
            for event in page["items"]
            if event["body"]["event_type"] == "message_delivered"
        ]
        cursor = page["next_cursor"]
        if cursor is None:
            return steps


def events(server: Server, kind: str) -> list[Json]:
    page = server.http("admin").get("/v1/audit/tenant", params={"limit": 1000}).json()["items"]
    return [event for event in reversed(page) if event["body"]["event_type"] == kind]


class Doors:
    """Every way in: a POST, an NDJSON batch and a socket that was open before."""

    def __init__(self, server: Server, socket: Connection) -> None:
        self.server, self.socket = server, socket

    def send(self, door: str, message: Json) -> str:
        if door == "post":
            answer = self.server.send(message)
            assert answer.status_code == 202, answer.text
            state: str = answer.json()["state"]
        elif door == "lines":
            state = self.server.send_lines([json.dumps(message).encode()])[0]["state"]
        else:
            self.socket.send(json.dumps({"id": 1, "message": message}))
            state = json.loads(self.socket.recv(20))["state"]
        return state


@contextmanager
def open_doors(server: Server) -> Iterator[Doors]:
    headers = {"Authorization": f"Bearer {server.key('agent')}"}
    with connect(f"{server.socket_url}/v1/ingest", additional_headers=headers) as socket:
        yield Doors(server, socket)


NAMES = ("post", "lines", "socket")


@pytest.mark.req(226, 242)
def test_two_confirmations_stop_every_door_and_a_release_brings_all_back_in_order(
    either_tenant: Tenant,
) -> None:
    """S160, S162, S163, S166, S167: armed holds nothing, engaged holds from the next message on."""
    with open_doors(either_tenant) as doors:
        drill(either_tenant, doors)


def drill(server: Server, doors: Doors) -> None:
    session = str(uuid.uuid4())
    assert [doors.send(door, log(session, f"0-{door}")) for door in NAMES] == ["forwarded"] * 3
    armed = arm(server)
    assert armed["state"] == "armed"
    assert armed["would_hold"] == {"known": True, "agents": 1, "agent_ids": ["a1"], "sessions": 1}
    assert [doors.send(door, log(session, f"1-{door}")) for door in NAMES] == ["forwarded"] * 3
    second = confirm(server, armed["kill_id"], armed["token"])
    assert (second["state"], second["confirmations_left"]) == ("confirmed", 1)
    assert [doors.send(door, log(session, f"2-{door}")) for door in NAMES] == ["forwarded"] * 3
    assert confirm(server, armed["kill_id"], armed["token"], 403)["reason"] == "wrong_token"
    engaged = confirm(server, armed["kill_id"], second["token"])
    assert (engaged["state"], engaged["told"]) == ("engaged", 1)
    for number in (3, 4):
        assert [doors.send(door, log(session, f"{number}-{door}")) for door in NAMES] == ["held"] * 3
    beat = envelope("heartbeat", sender={"entity_id": "agt_x", "entity_type": "agent"})
    assert server.send(beat).json()["state"] == "forwarded"
    seen = server.http("operator").get("/v1/kill-switch").json()
    assert (seen["engaged"], seen["items"][0]["held"]) == (True, 6)
    assert seen["items"][0]["requested_by"] == server.http("admin").get("/v1/whoami").json()["user_id"]
    assert "token" not in str(seen)
    assert release(server, armed["kill_id"])["held"] == 6
    wait_released(server, armed["kill_id"])
    assert delivered(server, session) == [f"{number}-{door}" for number in range(5) for door in NAMES]
    assert server.send(log(session, "5")).json()["state"] == "forwarded"
    fatal = events(server, "kill_switch_engaged")[0]
    assert (fatal["severity_number"], fatal["body"]["agents"]) == (21, 1)
    stages = [
        (event["body"]["stage"], event["body"].get("released"))
        for event in events(server, "kill_switch_released")
    ]
    assert stages == [("releasing", None), ("stage", 6), ("released", None)]
    assert server.http("admin").get("/v1/kill-switch").json()["engaged"] is False
    assert server.http("admin").post("/v1/audit/verify", json={}).json()["valid"] is True


def test_who_arms_it_for_a_name_no_agent_has_is_told_s1311(either_tenant: Tenant) -> None:
    """S1311: a name misspelt stops nobody, and must not look as if it had."""
    either_tenant.send(log("s1", "1", "a1", "writer"))
    entity_id = either_tenant.http("admin").get("/v1/agents").json()["items"][0]["entity_id"]
    known = {
        (scope, target): arm(either_tenant, scope, target)["would_hold"]["known"]
        for scope, target in (
            *(("class", name) for name in ("writer", "Writer", "writers")),
            *(("agent", name) for name in ("a1", entity_id, "a2")),
            ("global", None),
        )
    }
    assert [name for name, is_known in known.items() if not is_known] == [
        ("class", "writers"),
        ("agent", "a2"),
    ]


@pytest.mark.req(226)
def test_an_agent_finds_stop_and_start_in_its_inbox_s165(either_tenant: Tenant) -> None:
    """S165, S164: only those in scope."""
    server = either_tenant
    server.send(log("s1", "1", "a1", "writer"))
    server.send(log("s2", "1", "a2", "reader"))
    kill_id = engage(server, "class", "writer")
    release(server, kill_id)
    inbox = {
        agent: [
            (item["kind"], item["body"]["kill_id"], item["body"]["target"])
            for item in server.http("agent").get(f"/v1/agents/{agent}/inbox").json()["items"]
        ]
        for agent in ("a1", "a2")
    }
    assert inbox == {"a1": [("stop", kill_id, "writer"), ("start", kill_id, "writer")], "a2": []}


BAD: list[tuple[Json, int]] = [
    ({}, 422),
    ({"scope": "global"}, 422),
    ({"scope": "global", "reason": ""}, 422),
    ({"scope": "global", "reason": "x" * 1001}, 422),
    ({"scope": "global", "reason": "nul \u0000"}, 400),
    ({"scope": "planet", "reason": "drill"}, 422),
    ({"scope": "cluster", "reason": "drill"}, 422),
    ({"scope": "class", "target": "", "reason": "drill"}, 422),
    ({"scope": "global", "target": "north", "reason": "drill"}, 422),
]


def test_what_makes_no_sense_is_refused_with_a_sentence(either_tenant: Tenant) -> None:
    """S160, S161: and arms, confirms and releases nothing."""
    server = either_tenant
    http = server.http("admin")
    before = len(http.get("/v1/kill-switch").json()["items"])
    for body, code in BAD:
        answer = http.post("/v1/kill-switch", json=body)
        assert (answer.status_code in (400, 422)) and answer.status_code == code, (body, answer.text)
        assert answer.json()["detail"]
    assert len(http.get("/v1/kill-switch").json()["items"]) == before
    armed = arm(server, "class", "nobody-at-all")
    path = f"/v1/kill-switch/{armed['kill_id']}"
    for token in ("", "wrong", armed["token"][:-1], armed["token"] + "x"):
        assert http.post(f"{path}/confirm", json={"token": token}).status_code in (403, 422)
    assert http.post(f"{path}/release", json={"reason": "x"}).json()["reason"] == "not_engaged"
    for role in ("operator", "approver", "viewer", "agent"):
        refused = server.http(role).post(f"{path}/confirm", json={"token": armed["token"]})
        assert refused.status_code == 403
    assert http.post("/v1/kill-switch/kil_none/confirm", json={"token": "x"}).status_code == 404
    assert http.post("/v1/kill-switch/kil_none/release", json={"reason": "x"}).status_code == 404
    second = confirm(server, armed["kill_id"], armed["token"])
    confirm(server, armed["kill_id"], second["token"])
    assert confirm(server, armed["kill_id"], second["token"], 409)["detail"]
    release(server, armed["kill_id"])
    assert http.post(f"{path}/release", json={"reason": "x"}).status_code == 409
    wait_released(server, armed["kill_id"])


def test_a_flood_that_fills_the_queue_keeps_no_switch_from_engaging_s162(
    either_options: tuple[str, ...], tmp_path: Path
) -> None:
    """S162: others are answered 429 meanwhile; arming, confirming and releasing wait for room."""
    environment = ALONE | {"OBSERVATORY_QUEUE_MESSAGES": "2"}
    with Server(tmp_path / "data", *either_options, environment=environment) as server:
        flooded(server)


def flooded(server: Server) -> None:
    stop, codes = threading.Event(), list[int]()
    headers = {"Authorization": f"Bearer {server.key('agent')}"}

    def flood() -> None:
        with httpx2.Client(base_url=server.url, headers=headers, timeout=30, trust_env=False) as http:
            while not stop.is_set():
                codes.append(http.post("/v1/messages", json=decision_log()).status_code)

    threads = [threading.Thread(target=flood) for _ in range(8)]
    for thread in threads:
        thread.start()
    try:
        until(lambda: 429 in codes, DEADLINE_S)
        for _ in range(5):
            release(server, engage(server, "class", "nobody-at-all"))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert set(codes) == {202, 429}


def test_a_gateway_killed_in_mid_release_goes_on_after_its_start_s166(
    either_options: tuple[str, ...], tmp_path: Path
) -> None:
    """S166, S162: 1,000 held, kill -9 while engaged and again while releasing; all arrive once, in order."""
    environment = ALONE | {"OBSERVATORY_KILL_RELEASE_BATCH": "100"}
    session = str(uuid.uuid4())
    with Server(tmp_path / "data", *either_options, environment=environment) as server:
        kill_id = engage(server)
        lines = [json.dumps(log(session, f"{number:04}")).encode() for number in range(1_000)]
        assert {answer["state"] for answer in server.send_lines(lines)} == {"held"}
        server.restart(kill=True)
        assert server.send(log(session, "more")).json()["state"] == "held"
        assert (shown(server, kill_id)["state"], shown(server, kill_id)["held"]) == ("engaged", 1_001)
        release(server, kill_id)
        until(lambda: shown(server, kill_id)["held"] <= 900, DEADLINE_S)
        server.restart(kill=True)
        wait_released(server, kill_id)
        assert delivered(server, session) == [*(f"{number:04}" for number in range(1_000)), "more"]
        assert server.http("admin").post("/v1/audit/verify", json={}).json()["valid"] is True


@pytest.fixture
def two_gateways(postgres_url: str, tmp_path: Path) -> Iterator[tuple[Server, Server]]:
    """Two processes on one PostgreSQL."""
    url = new_database(postgres_url)
    with (
        Server(tmp_path / "one", "--db", url, environment=ALONE) as first,
        Server(tmp_path / "two", "--db", url, environment=ALONE) as second,
    ):
        yield first, second


@pytest.mark.req(226)
def test_a_second_gateway_on_the_same_database_obeys_at_all_its_doors_s162(
    two_gateways: tuple[Server, Server], capsys: pytest.CaptureFixture[str]
) -> None:
    """S162: within 5 s (measured and printed), also what it has cached and a socket that was open before."""
    first, second = two_gateways
    with open_doors(second) as doors:
        took, freed = obedience(first, second, doors)
    with capsys.disabled():
        received = ", ".join(f"{door} {seconds * 1000:.0f} ms" for door, seconds in took.items())
        print(
            f"\n  kill switch enforced by a second gateway on PostgreSQL: {received}; "
            f"freed {freed * 1000:.0f} ms"
        )


def obedience(first: Server, second: Server, doors: Doors) -> tuple[dict[str, float], float]:
    """Seconds until each door of the second held what the first was commanded to, and until it let go."""
    session, steps, sent = str(uuid.uuid4()), list[str](), 0

    def push(door: str) -> str:
        nonlocal sent
        sent += 1
        steps.append(f"{sent:05}")
        return doors.send(door, log(session, steps[-1]))

    assert [push(door) for door in NAMES] == ["forwarded"] * 3
    kill_id = engage(first)
    engaged_at = time.monotonic()
    took: dict[str, float] = {}
    for door in NAMES:
        while push(door) != "held":
            assert time.monotonic() - engaged_at < 5, f"{door} still forwards"
        took[door] = time.monotonic() - engaged_at
    assert [push(door) for door in NAMES] == ["held"] * 3
    assert first.send(log(session, "first")).json()["state"] == "held"
    steps.append("first")
    release(second, kill_id)
    released_at = time.monotonic()
    while doors.send("post", log(str(uuid.uuid4()), "1", "other")) != "forwarded":
        assert time.monotonic() - released_at < 5
    freed = time.monotonic() - released_at
    wait_released(first, kill_id)
    assert delivered(first, session) == steps
    return took, freed

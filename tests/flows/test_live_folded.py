"""`WS /v1/live`, topics of records: snapshot, then what changed, by id and version; on both databases."""

from __future__ import annotations

import json
import socket
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
from websockets.sync.connection import Connection

from observatory.protocol.clock import to_ns
from tests.flows.fleet import named, say
from tests.flows.graphs import Json, ask, dag, new, send, send_all, step
from tests.flows.insight import settled
from tests.flows.server import Server
from tests.flows.tenant import Tenant
from tests.flows.workers import did, work

PATIENCE_S = 30.0


class Reader:
    """A client as the guide describes it: a snapshot replaces, a delta upserts what is newer."""

    def __init__(self, opened: Connection) -> None:
        self.opened = opened
        self.records: dict[str, dict[tuple[str, str], Json]] = {}
        self.frames: list[Json] = []
        self.seq = 0

    def take(self) -> Json:
        frame: Json = json.loads(self.opened.recv(PATIENCE_S))
        self.frames.append(frame)
        self.upsert(frame)
        return frame

    def upsert(self, frame: Json) -> None:
        if frame["type"] in ("error", "event"):
            return
        mine = self.records.setdefault(frame["topic"], {})
        if frame["type"] == "snapshot":
            mine.clear()
        for item in frame["items"]:
            key = (item["kind"], item["id"])
            known = mine.get(key)
            assert known is None or item["version"] > known["version"] or item == known
            if item.get("removed"):
                mine.pop(key, None)
            else:
                mine[key] = item
        self.seq = frame["seq"]

    def of(self, topic: str, kind: str) -> dict[str, Json]:
        return {key[1]: item for key, item in self.records.get(topic, {}).items() if key[0] == kind}

    def until(self, look: Callable[[], Any]) -> Any:
        end = time.monotonic() + PATIENCE_S
        while not (found := look()):
            assert time.monotonic() < end, "it was not told in time"
            self.take()
        return found

    @property
    def kinds(self) -> list[tuple[str, str]]:
        return [(frame["type"], frame["topic"]) for frame in self.frames]


@contextmanager
def following(
    server: Server, *topics: str, after: int | None = None, role: str = "operator"
) -> Iterator[Reader]:
    headers = {"Authorization": f"Bearer {server.key(role)}"}
    with connect(f"{server.socket_url}/v1/live", additional_headers=headers, max_size=None) as opened:
        wish: Json = {"op": "subscribe", "topics": list(topics)}
        opened.send(json.dumps(wish if after is None else wish | {"after": after}))
        yield Reader(opened)


def bare(records: dict[str, Json]) -> dict[str, Json]:
    """Without versions: what a restart keeps."""
    return {
        name: {key: value for key, value in one.items() if key != "version"} for name, one in records.items()
    }


def going_round(server: Server, agent: str, times: int = 5) -> None:
    for _ in range(times):
        did(server, agent, session="ses-loop", intent="Find it", status="failure", tool="serp")


@pytest.mark.req(89, 170)
def test_a_node_turns_red_on_a_loop_and_back_and_dim_when_evicted_s284_s288(either_tenant: Tenant) -> None:
    """S284, S288: the snapshot first, then only what changed; alarms come beside it on their own topic."""
    server = either_tenant
    did(server, "looper", session="ses-loop", intent="Begin")
    with following(server, "fleet", "gateway:entropy_alerts") as reader:
        reader.until(lambda: reader.of("fleet", "node"))
        assert reader.of("fleet", "node")["looper"]["state"] == "active"
        assert reader.of("fleet", "sign")["dead"]["colour"] == "#374151"
        going_round(server, "looper")
        red = reader.until(
            lambda: (found := reader.of("fleet", "node")["looper"])["state"] == "alert_entropy" and found
        )
        assert (red["colour"], red["flashing"], red["rule"]) == ("#ef4444", True, 3)
        assert red["alarms"][0]["session_id"] == "ses-loop"
        group = reader.until(
            lambda: [one for one in reader.of("fleet", "group").values() if one["state"] == "alert_entropy"]
        )[0]
        assert group["states"]["alert_entropy"] == 1
        reader.until(lambda: ("event", "gateway:entropy_alerts") in reader.kinds)
        for number in range(6):
            did(server, "looper", session="ses-loop", intent=f"Another way {number}", tool=f"tool-{number}")
        reader.until(lambda: reader.of("fleet", "node")["looper"]["state"] == "active")
        assert server.http("operator").post("/v1/agents/looper/evict", json={}).status_code == 200
        dim = reader.until(
            lambda: (found := reader.of("fleet", "node")["looper"])["state"] == "dead" and found
        )
        assert (dim["colour"], dim["mark"]) == ("#374151", "×")
    folded = [kind for kind in reader.kinds if kind[1] == "fleet"]
    assert folded[0][0] == "snapshot" and {kind for kind, _ in folded[1:]} == {"delta"}
    deltas = [frame for frame in reader.frames if frame["type"] == "delta"]
    assert all(frame["items"] for frame in deltas)


def test_the_map_told_is_the_map_asked_for_s288(either_tenant: Tenant) -> None:
    """S288: states, rules and alarms of `GET /v1/fleet`."""
    server, door = either_tenant, either_tenant.http("operator")
    first = did(server, "planner", session="ses-a")
    did(server, "writer", first, session="ses-a")
    assert server.send(work("asker", session="ses-ask", hitl=True)).json()["state"] == "held"
    assert door.post("/v1/sessions/ses-a/pause", json={"agent_id": "writer"}).status_code == 202
    with following(server, "fleet") as reader:
        wanted = {one["id"]: (one["state"], one["rule"]) for one in ask(server, "/v1/fleet")["nodes"]}
        assert wanted["writer"] == ("blocked", 6) and wanted["asker"] == ("blocked", 7)
        nodes = reader.until(
            lambda: (
                {name: (one["state"], one["rule"]) for name, one in reader.of("fleet", "node").items()}
                == wanted
                and reader.of("fleet", "node")
            )
        )
        assert all(one["reason"] for one in nodes.values())
        assert nodes["planner"]["messages"] == 1
        edge = reader.until(lambda: reader.of("fleet", "edge").get("planner → writer"))
        assert (edge["from"], edge["to"], edge["status"]) == ("planner", "writer", "Blocked")


def test_sessions_are_told_as_the_list_shows_them_s289(either_tenant: Tenant) -> None:
    """S289."""
    server = either_tenant
    did(server, "ada", session="ses-old")
    with following(server, "sessions") as reader:
        reader.until(lambda: "ses-old" in reader.of("sessions", "session"))
        did(server, "ada", session="ses-new")
        did(server, "bob", session="ses-new")
        reader.until(lambda: reader.of("sessions", "session").get("ses-new", {}).get("messages") == 2)
        assert server.send(work("bob", session="ses-new", hitl=True)).json()["state"] == "held"
        reader.until(lambda: reader.of("sessions", "session")["ses-new"]["held"] == 1)
        settled(server)  # goals and trails are told when they are folded
        listed = {one["session_id"]: one for one in ask(server, "/v1/sessions")["items"]}
        wanted = {name: one | {"kind": "session", "id": name} for name, one in listed.items()}
        reader.until(lambda: bare(reader.of("sessions", "session")) == wanted)


@pytest.mark.req(150, 171)
def test_a_graph_grows_and_forks_as_it_is_told_s290(either_tenant: Tenant) -> None:
    """S290: a session that does not exist yet is an empty snapshot; then steps, links, badges, diamonds."""
    server, session = either_tenant, new()
    topic = f"session:dag:{session}"
    with following(server, topic) as reader:
        assert reader.take() | {"at": ""} == {
            "type": "snapshot", "topic": topic, "seq": reader.seq, "at": "", "items": [],
        }  # fmt: skip
        send(server, step(session, "root"))
        reader.until(lambda: len(reader.of(topic, "step")) == 1)
        send_all(server, [step(session, f"child-{n}", "root", agent=f"agent-{n}") for n in range(4)])
        reader.until(lambda: len(reader.of(topic, "link")) == 4)
        paused = server.http("operator").post(f"/v1/sessions/{session}/pause", json={"agent_id": "agent-1"})
        assert paused.status_code == 202
        reader.until(lambda: reader.of(topic, "agent")["agent-1"]["badge"] == "Waiting")
        reader.until(lambda: len(reader.of(topic, "intervention")) == 1)
        assert (
            reader.of(topic, "summary")[session]["forks"],
            reader.of(topic, "summary")[session]["steps"],
        ) == (
            1,
            5,
        )
        same_as_asked(reader, server, session)


def same_as_asked(reader: Reader, server: Server, session: str) -> None:
    topic, graph = f"session:dag:{session}", dag(server, session)
    nodes = {**reader.of(topic, "step"), **reader.of(topic, "intervention")}
    without = ("branch_cost", "version", "acknowledged_at", "confirmed_at")
    received = {name: {k: v for k, v in one.items() if k not in without} for name, one in nodes.items()}
    asked = {one["id"]: {k: v for k, v in one.items() if k not in without} for one in graph["nodes"]}
    assert received == asked
    links = {(one["from"], one["to"], one["relation"]) for one in reader.of(topic, "link").values()}
    assert links == {(edge["from"], edge["to"], edge["kind"]) for edge in graph["edges"]}


def test_a_held_step_rewritten_and_released_changes_its_node_s290(either_tenant: Tenant) -> None:
    server, session = either_tenant, new()
    topic = f"session:dag:{session}"
    send(server, step(session, "first"))
    held = step(session, "second", "first", control={"hitl_required": True})
    answer = send(server, held)
    with following(server, topic) as reader:
        name = f"{session}/second"
        reader.until(lambda: reader.of(topic, "step").get(name, {}).get("state") == "held")
        door, intent = server.http("operator"), reader.of(topic, "step")[name]["intent"]
        other = held | {"cognition": held["cognition"] | {"intent": "What a person wants"}}
        put = door.post(
            f"/v1/sessions/{session}/rewrite",
            json={"agent_id": "ada", "original_message_id": answer["message_id"], "new_content": other},
        )
        assert put.status_code == 200, put.text
        reader.until(lambda: reader.of(topic, "step")[name]["intent"] == "What a person wants")
        undone = door.post(f"/v1/interventions/{put.json()['intervention_id']}/undo", json={})
        assert undone.status_code == 200, undone.text
        reader.until(lambda: reader.of(topic, "step")[name]["intent"] == intent)
        passed = door.post(f"/v1/sessions/{session}/approve", json={"agent_id": "ada"})
        assert passed.status_code == 200, passed.text
        reader.until(lambda: reader.of(topic, "step")[name]["state"] == "forwarded")
        reader.until(lambda: len(reader.of(topic, "intervention")) == 2)
        reader.until(
            lambda: all(
                one["reversed_at"]
                for one in reader.of(topic, "intervention").values()
                if one["command"] == "rewrite"
            )
        )
        same_as_asked(reader, server, session)


def test_two_clients_have_the_same_in_the_end_s284(either_tenant: Tenant) -> None:
    """S284: whenever they came."""
    server = either_tenant
    with following(server, "sessions", "fleet") as early:
        for number in range(5):
            did(server, f"agent-{number}", session=f"ses-{number}")
        early.until(lambda: len(early.of("sessions", "session")) == 5 and len(early.of("fleet", "node")) == 5)
        with following(server, "sessions", "fleet") as late:
            late.until(
                lambda: len(late.of("sessions", "session")) == 5 and len(late.of("fleet", "node")) == 5
            )
            assert late.of("sessions", "session") == early.of("sessions", "session")
            mine, theirs = early.of("fleet", "node"), late.of("fleet", "node")
            assert {n: one["state"] for n, one in mine.items()} == {
                n: one["state"] for n, one in theirs.items()
            }


def test_at_most_ten_frames_a_second_over_all_topics_s286(either_tenant: Tenant) -> None:
    """S286: by the gateway's own stamps, while three topics change all the time."""
    server, session = either_tenant, new()
    with following(server, "fleet", "sessions", f"session:dag:{session}") as reader:
        for number in range(150):
            did(server, f"agent-{number % 7}", session=session)
        reader.until(lambda: reader.of("sessions", "session").get(session, {}).get("messages") == 150)
        reader.until(lambda: len(reader.of(f"session:dag:{session}", "step")) == 150)
        reader.until(lambda: sum(one["messages"] for one in reader.of("fleet", "node").values()) == 150)
    stamps = [to_ns(frame["at"]) for frame in reader.frames]
    assert all(late - early >= 950_000_000 for early, late in zip(stamps, stamps[10:], strict=False))
    assert {topic for _, topic in reader.kinds} == {"fleet", "sessions", f"session:dag:{session}"}


def test_one_that_stops_reading_gets_the_present_when_it_reads_again_s286(either_tenant: Tenant) -> None:
    """S286: it reads nothing while 1,500 messages pass by; another one is told all the while."""
    server = either_tenant
    agents = [named() for _ in range(20)]
    with slow_socket(server, "sessions") as slow, following(server, "sessions") as quick:
        quick.take()
        for _ in range(15):
            send_all(server, [work(agents[n % 20], session=f"ses-{n}") for n in range(100)])
            quick.take()
        quick.until(lambda: sum(one["messages"] for one in quick.of("sessions", "session").values()) == 1_500)
        reader, late = slow, Reader.__new__(Reader)
        late.records, late.frames, late.seq = {}, [], 0
        end = time.monotonic() + PATIENCE_S
        while sum(one["messages"] for one in late.of("sessions", "session").values()) < 1_500:
            assert time.monotonic() < end
            frame = reader()
            late.frames.append(frame)
            late.upsert(frame)
        assert late.of("sessions", "session") == quick.of("sessions", "session")


@contextmanager
def slow_socket(server: Server, topic: str) -> Iterator[Callable[[], Json]]:
    """A reader with hardly any room between it and the gateway; each call reads one frame."""
    with socket.create_connection(("127.0.0.1", server.port)) as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32_768)
        raw.settimeout(PATIENCE_S)
        raw.sendall(
            (
                f"GET /v1/live HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nUpgrade: websocket\r\n"
                "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                f"Sec-WebSocket-Version: 13\r\nAuthorization: Bearer {server.key('operator')}\r\n\r\n"
            ).encode()
        )
        buffered = b""
        while b"\r\n\r\n" not in buffered:
            buffered += raw.recv(1)
        wish = json.dumps({"op": "subscribe", "topics": [topic]}).encode()
        raw.sendall(bytes([0x81, 0x80 | len(wish), 0, 0, 0, 0]) + wish)
        file = raw.makefile("rb")

        def frame() -> Json:
            while True:
                first, length = file.read(2)
                size = length & 0x7F
                if size > 125:
                    size = int.from_bytes(file.read(2 if size == 126 else 8))
                body = file.read(size)
                if first & 0x0F == 1:
                    found: Json = json.loads(body)
                    return found

        yield frame


def test_after_a_restart_the_same_records_are_told_s287(either_analysed_server: Server) -> None:
    """S287: killed and started again; whoever comes back with its number has what it had, and goes on."""
    server, session = either_analysed_server, new()
    topics = ("sessions", f"session:dag:{session}")
    send_all(server, [step(session, "root"), step(session, "child", "root"), step(session, "lost", "nobody")])
    settled(server)
    with following(server, *topics) as before:
        before.until(lambda: before.of("sessions", "session") and before.of(topics[1], "summary"))
    with following(server, *topics, after=before.seq) as back:
        back.until(lambda: len(back.frames) >= 2)
    server.restart(kill=True)
    with following(server, *topics, after=before.seq) as after:
        after.until(lambda: after.of("sessions", "session") and after.of(topics[1], "summary"))
        assert {kind for kind, _ in after.kinds} == {"snapshot"}
        for topic, kind in (
            ("sessions", "session"),
            *((topics[1], k) for k in ("step", "link", "agent", "summary")),
        ):
            assert bare(after.of(topic, kind)) == bare(before.of(topic, kind))
        send(server, step(session, "more", "child"))
        after.until(lambda: f"{session}/more" in after.of(topics[1], "step"))


@pytest.mark.parametrize(
    "topic",
    [
        "session:dag:",
        "session:dag:a/b",
        "session:dag:\x07",
        "session:dag:" + "x" * 257,
        "fleet:eu",
        "session:dag",
    ],
)
def test_a_topic_that_cannot_be_is_answered_with_a_sentence_s292(server: Server, topic: str) -> None:
    """S292: and the socket goes on."""
    with following(server, topic) as reader:
        frame = reader.take()
        assert frame["type"] == "error" and len(frame["problem"]) > 20
        reader.opened.send(json.dumps({"op": "subscribe", "topics": ["sessions"]}))
        assert reader.take()["type"] == "snapshot"


def test_one_socket_follows_so_many_topics_and_no_more_s292(server: Server) -> None:
    with following(server, *(f"session:dag:{uuid.uuid4()}" for _ in range(17))) as reader:
        assert "at most 16" in reader.take()["problem"]


def test_folded_topics_are_a_reader_s_own_tenant_s_and_end_with_its_key_s293(either_tenant: Tenant) -> None:
    """S293: S52 and S54 hold for records too; an agent's key reads nothing."""
    server = either_tenant
    door = server.http("admin")
    made = door.post("/v1/keys", json={"role": "viewer"}).json()
    headers = {"Authorization": f"Bearer {made['key']}"}
    with connect(f"{server.socket_url}/v1/live", additional_headers=headers, max_size=None) as opened:
        reader = Reader(opened)
        opened.send(json.dumps({"op": "subscribe", "topics": ["fleet", "sessions"]}))
        say(server, "mine", session="ses-mine")
        reader.until(lambda: "mine" in reader.of("fleet", "node") and reader.of("sessions", "session"))
        # Nothing but its own: the gateway is shared by tests of many tenants.
        assert set(reader.of("fleet", "node")) == {"mine"}
        assert set(reader.of("sessions", "session")) == {"ses-mine"}
        assert door.delete(f"/v1/keys/{made['key_id']}").status_code == 200
        say(server, "mine", session="ses-mine")
        with pytest.raises(ConnectionClosed):
            reader.until(lambda: False)
        assert opened.close_code == 4401
    with pytest.raises(ConnectionClosed), following(server, "fleet", role="agent") as refused:
        refused.take()

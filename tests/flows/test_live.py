"""`WS /v1/live`: committed rows by topic, once and in order; readers that stop, lag or are shut out."""

from __future__ import annotations

import json
import socket
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
from websockets.sync.connection import Connection

from tests.flows.server import Server
from tests.samples import decision_log, envelope, shown

Json = dict[str, Any]


@contextmanager
def live(server: Server, *topics: str, after: int | None = None, key: str = "") -> Iterator[Connection]:
    headers = {"Authorization": f"Bearer {key or server.key('admin')}"}
    with connect(f"{server.socket_url}/v1/live", additional_headers=headers, max_size=None) as reader:
        wish: Json = {"op": "subscribe", "topics": list(topics)}
        reader.send(json.dumps(wish if after is None else wish | {"after": after}))
        for topic in topics:
            frame = json.loads(reader.recv(20))
            assert (frame["type"], frame["topic"]) == ("snapshot", topic)
        yield reader


def take(reader: Connection, count: int) -> tuple[list[Json], int]:
    """At least so many items of one topic, and the cursor after them."""
    items: list[Json] = []
    cursor = 0
    while len(items) < count:
        frame = json.loads(reader.recv(20))
        assert frame["type"] == "event", frame
        items += frame["items"]
        cursor = frame["seq"]
    return items, cursor


def head(server: Server) -> int:
    events = server.http("admin").get("/v1/audit/tenant", params={"limit": 1}).json()["items"]
    number: int = events[0]["hash_chain"]["sequence_number"]
    return number


def send_some(server: Server, count: int) -> list[int]:
    lines = [json.dumps(decision_log()).encode() for _ in range(count)]
    return [answer["sequence_number"] for answer in server.send_lines(lines)]


def numbers(items: list[Json]) -> list[int]:
    return [item.get("sequence_number") or item["hash_chain"]["sequence_number"] for item in items]


@pytest.mark.req(108)
def test_a_reader_hears_of_each_message_once_and_in_order_s60(server: Server) -> None:
    """S60: as the archive shows it, in the agent's own words."""
    with live(server, "messages") as reader:
        sent = [decision_log(), envelope("text"), decision_log()]
        answers = [server.send(one).json() for one in sent]
        items, _ = take(reader, 3)
    assert [item["message"] for item in items] == [shown(one) for one in sent]
    assert numbers(items) == [answer["sequence_number"] for answer in answers]
    http = server.http("admin")
    assert items == [http.get(f"/v1/messages/{item['message_id']}").json() for item in items]


def test_an_event_is_told_in_the_exact_bytes_that_were_hashed_s60(server: Server) -> None:
    """S60, S43."""
    with live(server, "events") as reader:
        session = server.send(decision_log(identity={"agent_id": "researcher-alpha-9"})).json()["session_id"]
        items, _ = take(reader, 1)
    trail = server.http("admin").get(f"/v1/audit/trace/{session}").json()["items"]
    assert items[-1] == trail[0]


def test_what_a_reader_hears_is_committed_already_s60(server: Server) -> None:
    """S60: whatever the live channel names can be read at that moment."""
    http = server.http("admin")
    with live(server, "messages") as reader:
        for _ in range(20):
            server.send(decision_log())
            [item], _ = take(reader, 1)
            assert http.get(f"/v1/messages/{item['message_id']}").status_code == 200


def test_a_reader_that_comes_back_with_its_cursor_misses_and_repeats_nothing_s60(server: Server) -> None:
    """S60: three connections, messages before, between and during; every number once, in order."""
    start = head(server)
    sent = send_some(server, 700)
    heard: list[int] = []
    cursor = start
    for _ in range(3):
        with live(server, "events", after=cursor) as reader:
            more, cursor = take(reader, 1)
            heard += numbers(more)
        sent += send_some(server, 50)
    with live(server, "events", after=cursor) as reader:
        sent += send_some(server, 50)
        while heard[-1] < sent[-1]:
            more, cursor = take(reader, 1)
            heard += numbers(more)
    assert heard == list(range(start + 1, heard[-1] + 1))
    assert set(sent) <= set(heard)


def test_one_that_asks_for_the_past_gets_all_of_it_s61(tight_server: Server) -> None:
    """S61: from number one on, far more than the backlog of 50, without a resync."""
    for _ in range(4):
        send_some(tight_server, 100)
    last = head(tight_server)
    with live(tight_server, "events", after=0) as reader:
        items, cursor = take(reader, last)
    assert numbers(items)[:last] == list(range(1, last + 1))
    assert cursor >= last


def test_a_reader_that_falls_behind_is_told_to_resync_and_goes_on_s61(tight_server: Server) -> None:
    """S61: it does not read while 6,000 rows pass by; then it hears of a gap, and of the present again."""
    server = tight_server
    key = server.key("admin")
    with socket.create_connection(("127.0.0.1", server.port)) as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.settimeout(30)
        handshake = (
            f"GET /v1/live HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            f"Sec-WebSocket-Version: 13\r\nAuthorization: Bearer {key}\r\n\r\n"
        )
        slow.sendall(handshake.encode())
        assert slow.recv(4096).startswith(b"HTTP/1.1 101")
        wish = b'{"op":"subscribe","topics":["messages"]}'
        slow.sendall(bytes([0x81, 0x80 | len(wish), 0, 0, 0, 0]) + wish)
        assert b'"snapshot"' in slow.recv(4096)
        for _ in range(30):
            send_some(server, 200)
        buffered, deadline = b"", time.monotonic() + 30
        while b'"resync"' not in buffered:
            assert time.monotonic() < deadline, "never told to resync"
            buffered = buffered[-20:] + slow.recv(1 << 16)
        number = server.send(decision_log()).json()["sequence_number"]
        buffered = b""
        while f'"sequence_number":{number},'.encode() not in buffered:
            assert time.monotonic() < deadline, "the present was never told"
            buffered = buffered[-60:] + slow.recv(1 << 16)
            if b'"resync"' in buffered:  # it had fallen behind once more, and the gap may hold this one too
                number, buffered = server.send(decision_log()).json()["sequence_number"], b""


def test_violations_have_a_topic_of_their_own_s30(server: Server) -> None:
    """S30: and nothing else is on it."""
    with live(server, "gateway:violations") as reader:
        server.send(decision_log())
        bad = server.send(decision_log(action={"status": "done"})).json()
        items, _ = take(reader, 1)
    assert [item["body"]["raw_payload_hash"] for item in items] == [bad["raw_payload_hash"]]


@pytest.mark.parametrize(
    "wish",
    [
        {"op": "subscribe", "topics": ["weather"]},
        {"op": "subscribe", "topics": []},
        {"op": "subscribe", "topics": "events"},
        {"op": "subscribe", "topics": ["events"], "after": "now"},
        {"op": "unsubscribe"},
        {},
        [],
        7,
    ],
)
def test_a_wish_that_cannot_be_met_is_answered_with_a_sentence(server: Server, wish: Any) -> None:
    """S60: and the socket goes on."""
    with connect(
        f"{server.socket_url}/v1/live", additional_headers={"Authorization": f"Bearer {server.key('admin')}"}
    ) as reader:
        reader.send(json.dumps(wish))
        frame = json.loads(reader.recv(20))
        assert frame["type"] == "error" and frame["problem"]
        reader.send(json.dumps({"op": "subscribe", "topics": ["events"]}))
        assert json.loads(reader.recv(20))["type"] == "snapshot"


def test_a_topic_named_twice_is_told_once_s60(server: Server) -> None:
    """S60."""
    headers = {"Authorization": f"Bearer {server.key('admin')}"}
    with connect(f"{server.socket_url}/v1/live", additional_headers=headers) as reader:
        reader.send(json.dumps({"op": "subscribe", "topics": ["messages", "messages"]}))
        assert json.loads(reader.recv(20))["type"] == "snapshot"
        sent = [server.send(decision_log()).json()["sequence_number"] for _ in range(3)]
        heard: list[int] = []
        while not heard or heard[-1] < sent[-1]:
            heard += numbers(json.loads(reader.recv(20))["items"])
    assert heard == sent


def test_a_cursor_outside_the_record_is_brought_back_into_it(server: Server) -> None:
    """S60: one from the future begins now, a negative one at the beginning."""
    with live(server, "messages", after=1 << 60) as reader:
        number = server.send(decision_log()).json()["sequence_number"]
        items, _ = take(reader, 1)
        assert numbers(items) == [number]
    with live(server, "events", after=-5) as reader:
        assert numbers(take(reader, 1)[0])[0] == 1


@pytest.mark.parametrize("way", ["header", "first frame"])
def test_a_listening_socket_ends_with_its_key_s52(server: Server, way: str) -> None:
    """S52: after the revocation is answered, a socket opened before hears nothing more."""
    made = server.http("admin").post("/v1/keys", json={"role": "viewer"}).json()
    headers = {"Authorization": f"Bearer {made['key']}"} if way == "header" else {}
    with connect(f"{server.socket_url}/v1/live", additional_headers=headers) as reader:
        if way == "first frame":
            reader.send(json.dumps({"op": "auth", "key": made["key"]}))
        reader.send(json.dumps({"op": "subscribe", "topics": ["messages"]}))
        assert json.loads(reader.recv(20))["type"] == "snapshot"
        server.send(decision_log())
        assert json.loads(reader.recv(20))["type"] == "event"
        assert server.http("admin").delete(f"/v1/keys/{made['key_id']}").status_code == 200
        server.send(decision_log())
        with pytest.raises(ConnectionClosed):
            reader.recv(20)
        assert reader.close_code == 4401


def test_the_live_channel_tells_a_tenant_only_its_own_s54(server: Server) -> None:
    """S54: whatever the other one does meanwhile, and whatever cursor is asked for."""
    other = server.http("admin").post("/v1/tenants", json={"display_name": "Other"}).json()
    with live(server, "events", "messages", after=0, key=other["key"]) as reader:
        send_some(server, 20)
        mine = decision_log(identity={"agent_id": f"theirs-{uuid.uuid4()}"})
        answer = server.http("nobody").post(
            "/v1/messages", json=mine, headers={"authorization": f"Bearer {other['key']}"}
        )
        assert answer.status_code == 202
        seen: list[Json] = []
        while not any(item.get("message") == shown(mine) for item in seen):
            seen += json.loads(reader.recv(20))["items"]
    events = [item for item in seen if "resource" in item]
    assert {event["resource"]["av.tenant.id"] for event in events} == {other["tenant_id"]}
    assert [item["message"] for item in seen if "message" in item] == [shown(mine)]

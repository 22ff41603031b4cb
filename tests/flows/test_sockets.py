"""`WS /v1/ingest`: one message a frame, an answer of a POST for each, in order; and who may open a socket."""

from __future__ import annotations

import json
import socket
import time
import uuid
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect
from websockets.sync.connection import Connection

from tests.flows.server import Server
from tests.samples import decision_log, envelope


def bearer(server: Server, role: str = "agent") -> dict[str, str]:
    return {"Authorization": f"Bearer {server.key(role)}"}


def frame(ident: Any, message: Any) -> str:
    return json.dumps({"id": ident, "message": message})


def answer(websocket: Connection) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(websocket.recv(20))
    return found


def code_of_close(websocket: Connection) -> int:
    with pytest.raises(ConnectionClosed):
        websocket.recv(20)
    assert websocket.close_code is not None
    return websocket.close_code


@pytest.mark.req(341)
def test_each_frame_is_acknowledged_with_the_clients_id_and_a_posts_answer_s29(server: Server) -> None:
    """S29: the same message by POST afterwards gets the same answer."""
    messages = [decision_log(), envelope("text"), decision_log(action={"status": "done"})]
    with connect(f"{server.socket_url}/v1/ingest", additional_headers=bearer(server)) as websocket:
        for ident, message in zip(("a", 2, "c"), messages, strict=True):
            websocket.send(frame(ident, message))
        answers = [answer(websocket) for _ in messages]
    assert [(one["id"], one["code"]) for one in answers] == [("a", 202), (2, 202), ("c", 422)]
    for one, message in zip(answers, messages, strict=True):
        posted = server.send(message)
        assert one == {"id": one["id"], "code": posted.status_code} | posted.json()


def test_a_thousand_frames_in_flight_are_answered_in_order_s29(server: Server) -> None:
    """S29: text and binary frames alike, none waited for."""
    session = str(uuid.uuid4())
    with connect(f"{server.socket_url}/v1/ingest", additional_headers=bearer(server)) as websocket:
        for n in range(1000):
            text = frame(n, decision_log(meta={"session_id": session, "step_id": f"w{n}"}))
            websocket.send(text if n % 2 else text.encode())
        answers = [answer(websocket) for _ in range(1000)]
    assert [one["id"] for one in answers] == list(range(1000))
    assert {one["code"] for one in answers} == {202}
    assert server.http("admin").get(f"/v1/sessions/{session}").json()["messages"] == 1000


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "nonsense",
        "[]",
        "7",
        '{"id": 1}',
        '{"message": {}}',
        '{"id": null, "message": {}}',
        '{"id": {"a": 1}, "message": {}}',
        '{"id": 1, "message": {}',
        b"\xff\xfe\x00",
        "[" * 100_000,
    ],
)
def test_what_is_no_frame_is_told_so_and_the_socket_goes_on(server: Server, bad: str | bytes) -> None:
    """S29: 400 without an id; the next frame is answered as ever."""
    with connect(f"{server.socket_url}/v1/ingest", additional_headers=bearer(server)) as websocket:
        websocket.send(bad)
        first = answer(websocket)
        assert (first["id"], first["code"], first["reason"]) == (None, 400, "not_a_frame")
        websocket.send(frame("next", decision_log()))
        assert (answer(websocket)["id"]) == "next"


def test_a_message_too_large_is_answered_and_a_frame_too_large_closes_s7(server: Server) -> None:
    """S7: 1 MiB for the message; far beyond it nobody reads on."""
    with connect(
        f"{server.socket_url}/v1/ingest", additional_headers=bearer(server), max_size=None
    ) as websocket:
        websocket.send(frame(1, "x" * ((1 << 20) + 1)))
        assert answer(websocket)["code"] == 413
        websocket.send(frame(2, decision_log()))
        assert answer(websocket)["code"] == 202
        websocket.send(frame(3, "x" * (8 << 20)))
        assert code_of_close(websocket) == 1009


def test_a_first_frame_can_carry_the_key_where_no_header_can(server: Server) -> None:
    """S50: `{op: "auth", key}`; nothing is answered before it."""
    with connect(f"{server.socket_url}/v1/ingest") as websocket:
        websocket.send(json.dumps({"op": "auth", "key": server.key("agent")}))
        websocket.send(frame(1, decision_log()))
        assert answer(websocket)["code"] == 202


@pytest.mark.parametrize("path", ["/v1/ingest", "/v1/live"])
@pytest.mark.parametrize(
    "opening",
    [
        {"op": "auth", "key": "obs_wrong"},
        {"op": "auth"},
        {"op": "hello"},
        {"id": 1, "message": {}},
        {"op": "subscribe", "topics": ["events"]},
        [1],
    ],
)
def test_a_socket_without_a_key_is_closed_at_once_s50(server: Server, path: str, opening: Any) -> None:
    """S50: whatever its first frame says."""
    with connect(server.socket_url + path) as websocket:
        websocket.send(json.dumps(opening))
        assert code_of_close(websocket) == 4401


@pytest.mark.parametrize("path", ["/v1/ingest", "/v1/live"])
def test_a_key_in_the_url_counts_for_nothing_s50(server: Server, path: str) -> None:
    """S50: URLs end up in logs; not for sockets and not for requests."""
    key = server.key("admin")
    for query in (f"key={key}", f"token={key}", f"access_token={key}", f"authorization=Bearer%20{key}"):
        with connect(f"{server.socket_url}{path}?{query}") as websocket:
            websocket.send(json.dumps({"op": "subscribe", "topics": ["events"]}))
            assert code_of_close(websocket) == 4401
        assert server.http("nobody").get(f"/v1/whoami?{query}").status_code == 401


@pytest.mark.parametrize(
    ("path", "role", "welcome"),
    [
        ("/v1/ingest", "viewer", False),
        ("/v1/ingest", "auditor", False),
        ("/v1/ingest", "agent", True),
        ("/v1/ingest", "operator", True),
        ("/v1/live", "agent", False),
        ("/v1/live", "viewer", True),
    ],
)
def test_a_socket_opens_only_to_its_roles_s58(server: Server, path: str, role: str, welcome: bool) -> None:
    """S58: agents send and do not listen; viewers listen and do not send."""
    with connect(server.socket_url + path, additional_headers=bearer(server, role)) as websocket:
        if not welcome:
            assert code_of_close(websocket) == 4403
            return
        websocket.send("{}")
        assert answer(websocket)["type" if path == "/v1/live" else "code"] in ("error", 400)


def test_a_socket_that_does_not_exist_or_comes_from_a_foreign_host_is_refused_s55(server: Server) -> None:
    """S55."""
    for url, headers in (
        (f"{server.socket_url}/v1/other", {}),
        (f"{server.socket_url}/v1/live", {"Host": "evil.example"}),
    ):
        with (
            pytest.raises((InvalidStatus, ConnectionClosed)),
            connect(url, additional_headers=headers) as websocket,
        ):
            websocket.recv(10)


def test_an_open_sending_socket_ends_with_its_key_s52(server: Server) -> None:
    """S52: the very next frame after the revocation is answered 401 and writes nothing."""
    made = server.http("admin").post("/v1/keys", json={"role": "agent"}).json()
    session = str(uuid.uuid4())
    with connect(
        f"{server.socket_url}/v1/ingest", additional_headers={"Authorization": f"Bearer {made['key']}"}
    ) as websocket:
        websocket.send(frame(1, decision_log(meta={"session_id": session, "step_id": "1"})))
        assert answer(websocket)["code"] == 202
        assert server.http("admin").delete(f"/v1/keys/{made['key_id']}").status_code == 200
        for n in (2, 3):
            websocket.send(frame(n, decision_log(meta={"session_id": session, "step_id": str(n)})))
            assert answer(websocket)["code"] == 401
    assert server.http("admin").get(f"/v1/sessions/{session}").json()["messages"] == 1


def test_a_client_that_vanishes_with_frames_in_flight_breaks_nothing_s28(server: Server) -> None:
    """S28: no goodbye, answers unread; whatever was whole is there once, and the server's log is calm."""
    session = str(uuid.uuid4())
    with connect(f"{server.socket_url}/v1/ingest", additional_headers=bearer(server)) as websocket:
        for n in range(500):
            websocket.send(frame(n, decision_log(meta={"session_id": session, "step_id": str(n)})))
        websocket.socket.shutdown(socket.SHUT_RDWR)
    deadline = time.monotonic() + 20
    while server.send(decision_log(meta={"session_id": session, "step_id": "last"})).status_code != 202:
        assert time.monotonic() < deadline
    items = server.http("admin").get("/v1/messages", params={"session_id": session, "limit": 1000}).json()
    steps = [item["step_id"] for item in items["items"]]
    assert len(steps) == len(set(steps))
    assert "Traceback" not in server.log

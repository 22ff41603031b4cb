"""Everything a hostile or broken client can send, at every door; afterwards nothing of it is anywhere.

Each rejected body carries a canary. The last test of this file looks for canaries in the database files,
the server's log, the audit trail and the live channel, and verifies the chain.
"""

from __future__ import annotations

import json
import socket
import time
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from websockets.sync.client import connect

from tests.flows import answered
from tests.flows.server import Server
from tests.samples import MESSAGE_TYPES, decision_log, envelope, full_decision_log

CANARY = "canary-5f1c2a"
JSON = {"content-type": "application/json"}


def text_of(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode()


def log_with(old: str, new: str) -> bytes:
    """A valid log whose text is then spoilt."""
    made = text_of(decision_log(cognition={"intent": CANARY}, identity={"agent_id": "spoiler"}))
    assert old.encode() in made
    return made.replace(old.encode(), new.encode(), 1)


def in_free_field(value: str) -> bytes:
    """A value inside an envelope's free-form object, where no schema looks."""
    made = text_of(envelope("action_confirmation", payload={"after_state": {"deep": ["PLACE", CANARY]}}))
    return made.replace(b'"PLACE"', value.encode(), 1)


BAD: dict[str, tuple[int, bytes]] = {
    "not JSON": (400, f"{CANARY} is not JSON".encode()),
    "empty": (400, b""),
    "blanks": (400, b"   "),
    "cut short": (400, text_of(decision_log(action={"tool_output_summary": CANARY}))[:-5]),
    "two documents": (400, b'{} {"a": "' + CANARY.encode() + b'"}'),
    "trailing comma": (400, log_with('"ReAct",', '"ReAct",,')),
    "single quotes": (400, str(decision_log(cognition={"intent": CANARY})).encode()),
    "invalid UTF-8": (400, log_with("ReAct", "ReAct\0").replace(b"\0", b"\xff\xfe")),
    "overlong UTF-8": (400, log_with("ReAct", "ReAct\0").replace(b"\0", b"\xc0\xaf")),
    "UTF-8 surrogate": (400, log_with("ReAct", "ReAct\0").replace(b"\0", b"\xed\xa0\x80")),
    "UTF-16": (400, json.dumps(decision_log(cognition={"intent": CANARY})).encode("utf-16")),
    "BOM": (400, b"\xef\xbb\xbf" + text_of(decision_log(cognition={"intent": CANARY}))),
    "raw control character": (400, log_with("ReAct", "Re\x01Act")),
    "empty object": (422, b"{}"),
    "array": (422, f'["{CANARY}"]'.encode()),
    "null": (422, b"null"),
    "number": (422, b"12345678"),
    "string": (422, f'"{CANARY}"'.encode()),
    "true": (422, b"true"),
    "NaN": (422, log_with("0.94", "NaN")),
    "Infinity": (422, log_with("0.94", "-Infinity")),
    "number beyond doubles": (422, log_with("0.084", "1e999")),
    "duplicate key": (422, log_with('"action": {', '"action": {"status": "failure", ')),
    "duplicate section": (422, log_with('"action":', f'"action": {{"tool_call": "{CANARY}"}}, "action":')),
    "duplicate by escape": (422, log_with('"action": {', '"action": {"st\\u0061tus": "failure", ')),
    "duplicate in unknown": (422, log_with('"meta": {', '"meta": {"x": {"k": 1, "\\u006b": 2}, ')),
    "duplicate in free form": (422, in_free_field('{"k": 1, "k": 2}')),
    "U+0000 in text": (422, log_with("ReAct", "Re\\u0000Act")),
    "U+0000 in a key": (422, log_with('"meta": {', '"meta": {"a\\u0000b": 1, ')),
    "U+0000 in free form": (422, in_free_field('"\\u0000"')),
    "lone surrogate": (422, log_with("ReAct", "\\ud800")),
    "surrogates reversed": (422, log_with("ReAct", "\\udc00\\ud800")),
    "lone surrogate in free form": (422, in_free_field('"\\udfff"')),
    "2^60 in free form": (422, in_free_field(str(2**60))),
    "-2^53 in free form": (422, in_free_field(str(-(2**53)))),
    "2^60 in an unknown field": (422, log_with('"meta": {', f'"meta": {{"big": {2**60}, ')),
    "2^60 as cost": (422, log_with("0.084", str(2**60))),
    "a million digits": (422, log_with("1250", "9" * 1_000_000)),
    "time without zone": (422, log_with("14:32:00.123456Z", "14:32:00.123456")),
    "score beyond 1": (422, log_with("0.94", "1.0000001")),
    "nested 65": (422, in_free_field("[" * 65 + "]" * 65)),
    "nested 1,000": (422, log_with('"meta": {', '"meta": {"x": ' + "[" * 1_000 + "]" * 1_000 + ", ")),
    "nested 100,000": (422, b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
    "brackets 100,000": (422, b"[" * 100_000 + b"]" * 100_000),
}


@pytest.mark.req(109, 123, 136)
@pytest.mark.parametrize("name", BAD)
def test_a_bad_body_is_answered_plainly_at_every_door(server: Server, name: str) -> None:
    """S2, S3, S27: by POST, as a line and in a frame, with the same code; never with a word of it."""
    code, body = BAD[name]
    answer = server.send(body)
    assert answer.status_code == code, answer.text
    assert answer.json()["status"] == "rejected" and answer.json()["faults"]
    assert CANARY not in answer.text
    if b"\n" not in body:
        good = text_of(decision_log())
        answers = server.send_lines([good, body, good])
        assert [line["code"] for line in answers] == [202, code, 202]
        assert CANARY not in str(answers)
    with connect(f"{server.socket_url}/v1/ingest", additional_headers=bearer(server)) as websocket:
        websocket.send(b'{"id": 1, "message": ' + body + b"}")
        websocket.send(b'{"id": 2, "message": ' + text_of(decision_log()) + b"}")
        first, second = websocket.recv(20), websocket.recv(20)
        # A frame is one JSON text: what breaks it is the frame's fault, told without an id.
        assert json.loads(first)["code"] in ({code, 400} if name != "empty" else {400})
        assert (json.loads(second)["id"], json.loads(second)["code"]) == (2, 202)
        assert CANARY not in str(first)


def bearer(server: Server) -> dict[str, str]:
    return {"Authorization": f"Bearer {server.key('agent')}"}


LEAVES: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just({}) | st.just([])
)


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(place for key, item in inner for place in places(item, (*at, key)))]


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_any_value_in_any_place_is_taken_or_refused_but_never_an_error(
    server: Server, data: st.DataObject
) -> None:
    """S2: no kind of value anywhere makes the gateway fail; a refusal always names a fault or a reason."""
    kind = data.draw(st.sampled_from(["log", *MESSAGE_TYPES]))
    message: Any = full_decision_log() if kind == "log" else answered.acceptable(server, kind)
    at = data.draw(st.sampled_from(places(message)[1:]))
    place = message
    for key in at[:-1]:
        place = place[key]
    place[at[-1]] = data.draw(LEAVES)
    answer = server.send(text_of(message), "admin")
    # An answer may become another person's, or one to another decision.
    refusals = (403, 404, 409) if kind == "decision_response" else ()
    assert answer.status_code in (202, 422, *refusals), answer.text
    assert answer.status_code == 202 or answer.json()["detail" if answer.status_code != 422 else "faults"]


RETIRED: dict[str, Any] = {
    "identity": {"agent_type": "old", "capability_version": "0.1.0", "agent_id": "pensioner"}
}
TAKEN = f"msg_{uuid.uuid4()}"
SECRET_PLACES: list[tuple[str, Callable[[str], bytes]]] = [
    ("a value", lambda s: text_of(decision_log(action={"status": s}))),
    ("a key", lambda s: text_of(decision_log(action={"status": "x"}, **{s: 1}))),
    ("a version", lambda s: text_of(decision_log(identity={"capability_version": s}))),
    ("a trace", lambda s: text_of(decision_log(meta={"trace_id": s}))),
    ("a time", lambda s: text_of(decision_log(meta={"timestamp": s}))),
    ("a message type", lambda s: text_of(envelope("text", message_type=s))),
    ("an id", lambda s: text_of(envelope("text", message_id=s + "!"))),
    ("metadata", lambda s: text_of(envelope("text", priority="x", metadata={"k": s}))),
    ("text that is not JSON", lambda s: f"password={s}".encode()),
    ("a retired version", lambda s: text_of(decision_log(cognition={"intent": s}, **RETIRED))),
    ("a conflict", lambda s: text_of(envelope("text", message_id=TAKEN, payload={"content": s}))),
]


@pytest.mark.req(137, 138, 139, 140)
def test_a_rejection_is_told_with_agent_version_reason_and_hash_s30(server: Server) -> None:
    """S30: and on the violations topic as soon as it is committed."""
    sent = decision_log(identity={"agent_id": "clumsy-1"}, action={"status": CANARY})
    with connect(
        f"{server.socket_url}/v1/live", additional_headers={"Authorization": f"Bearer {server.key('admin')}"}
    ) as live:
        live.send(json.dumps({"op": "subscribe", "topics": ["gateway:violations"]}))
        assert json.loads(live.recv(10))["type"] == "snapshot"
        answer = server.send(sent)
        frame = json.loads(live.recv(10))
    assert answer.status_code == 422
    [event] = frame["items"]
    assert event["body"] == {
        "event_type": "schema_violation",
        "message_id": None,
        "message_type": None,
        "summary": "refused a message of clumsy-1",
        "agent_id": "clumsy-1",
        "capability_version": "v2.1.0-stable",
        "violation_reason": "action.status: must be one of failure, pending, skipped, success",
        "raw_payload_hash": answer.json()["raw_payload_hash"],
    }
    assert (event["severity_number"], event["severity_text"]) == (13, "WARN")


@pytest.mark.req(141)
def test_a_violation_turns_its_agent_orange_until_its_next_valid_message_s31(server: Server) -> None:
    """S31: distinct from red and grey; an agent never seen before becomes a ghost node."""
    name = f"ghost-{uuid.uuid4()}"

    def node() -> dict[str, Any]:
        found: dict[str, Any] = server.http("admin").get(f"/v1/agents/{name}").json()
        return found

    assert server.send(decision_log(identity={"agent_id": name}, action={})).status_code == 202
    assert (node()["state"], node()["colour"], node()["ghost"]) == ("active", "#3b82f6", False)
    assert server.send(decision_log(identity={"agent_id": name}, meta={"timestamp": 1})).status_code == 422
    assert (node()["state"], node()["colour"]) == ("schema_violation", "#f97316")
    assert node()["colour"] not in ("#ef4444", "#6b7280")
    assert server.send(decision_log(identity={"agent_id": name})).status_code == 202
    assert node()["state"] == "active"
    stranger = f"{name}-2"
    assert (
        server.send(decision_log(identity={"agent_id": stranger}, meta={"timestamp": 1})).status_code == 422
    )
    ghost = server.http("admin").get(f"/v1/agents/{stranger}").json()
    assert (ghost["ghost"], ghost["state"], ghost["messages"]) == (True, "schema_violation", 0)


def test_the_orange_mark_ends_by_itself_after_its_window_s31(tight_server: Server) -> None:
    """S31: the window is a setting; here it is one second."""
    tight_server.send(decision_log(identity={"agent_id": "brief"}, meta={"timestamp": 1}))
    http, deadline = tight_server.http("admin"), time.monotonic() + 20
    assert http.get("/v1/agents/brief").json()["agent_id"] == "brief"
    while http.get("/v1/agents/brief").json()["state"] == "schema_violation":
        assert time.monotonic() < deadline
    assert http.get("/v1/agents/brief").json()["state"] == "idle"


RAW: list[tuple[str, bytes, tuple[bytes, ...]]] = [
    ("length too short", b"content-length: 10\r\n\r\n", (b"400",)),
    ("length no number", b"content-length: ten\r\n\r\n", (b"400",)),
    ("negative length", b"content-length: -1\r\n\r\n", (b"400",)),
    ("length and chunks", b"content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", (b"400",)),
    ("bad chunk size", b"transfer-encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n", (b"400",)),
    ("huge length", b"content-length: 99999999999\r\n\r\n", (b"413",)),
    ("no body at all", b"\r\n", (b"400",)),
    ("endless header", b"x: " + b"a" * 200_000 + b"\r\n\r\n", (b"400", b"431", b"")),
]


@pytest.mark.parametrize(("name", "tail", "codes"), RAW, ids=[name for name, _, _ in RAW])
def test_a_request_that_lies_about_itself_harms_nobody(
    server: Server, name: str, tail: bytes, codes: tuple[bytes, ...]
) -> None:
    """S27, S28: the answer is an error or a closed connection; the next request is answered as ever."""
    head = f"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {server.key('agent')}\r\n"
    body = text_of(decision_log(cognition={"intent": CANARY}))
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as raw:
        try:
            raw.sendall(head.encode() + b"content-type: application/json\r\n" + tail)
            if name == "length too short":
                raw.sendall(body)
            answer = raw.recv(4096)
        except (BrokenPipeError, ConnectionResetError):
            answer = b""
    assert answer[9:12] in codes, answer
    assert CANARY.encode() not in answer
    assert server.send(decision_log()).status_code == 202


def test_after_all_of_it_no_canary_is_anywhere_and_the_chain_verifies_s30(server: Server) -> None:
    """S30: not in the database, its write-ahead log, the server's log, the trail or an answer."""
    http = server.http("admin")
    old = {"agent_type": "old", "versions": [{"version": "0.1.0", "status": "retired"}]}
    assert http.put("/v1/versions", json=old).status_code == 200
    assert server.send(envelope("text", message_id=TAKEN)).status_code == 202
    kept = f"kept{uuid.uuid4().hex}"
    assert server.send(decision_log(cognition={"intent": kept})).status_code == 202
    planted = [CANARY]
    for n, (where, make) in enumerate(SECRET_PLACES):
        secret = f"zq{n}secret{uuid.uuid4().hex}"
        answer = server.send(make(secret))
        assert answer.status_code in (400, 409, 422), where
        assert secret not in answer.text, where
        planted.append(secret)
    assert http.get("/readyz").json()["status"] == "ready"
    result = http.post("/v1/audit/verify", json={}).json()
    assert result["valid"] and result["first_break"] is None
    seen = server.log.encode()
    for path in server.folder.rglob("*"):
        if path.is_file():
            seen += path.read_bytes()
    assert kept.encode() in seen, "this search would find nothing"
    assert [secret for secret in planted if secret.encode() in seen] == []
    assert "Traceback" not in server.log

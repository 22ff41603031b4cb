"""The agents' door: what an acknowledgement is worth, and what a repeat, a batch and a limit mean."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from tests.flows.server import Server, observatory
from tests.samples import decision_log, envelope, shown

NDJSON = {"content-type": "application/x-ndjson"}


def encoded(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode()


def archived_in(server: Server, session_id: str) -> list[dict[str, Any]]:
    answer = server.http("admin").get("/v1/messages", params={"session_id": session_id, "limit": 1000})
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


def verify(server: Server) -> dict[str, Any]:
    found: dict[str, Any] = server.http("admin").post("/v1/audit/verify", json={}).json()
    return found


@pytest.mark.req(108, 407)
def test_an_accepted_message_says_where_it_stands(server: Server) -> None:
    """S20, S41: the answer names message, session, step and the number of its audit event."""
    sent = decision_log()
    answer = server.send(sent)
    assert answer.status_code == 202
    found = answer.json()
    assert set(found) == {
        *("status", "message_id", "session_id", "step_id", "sequence_number", "state", "warnings")
    }
    assert (found["status"], found["state"]) == ("accepted", "forwarded")
    trail = server.http("admin").get(f"/v1/audit/trace/{found['session_id']}").json()["items"]
    assert [event["hash_chain"]["sequence_number"] for event in trail] == [found["sequence_number"]]
    assert trail[0]["body"]["message_id"] == found["message_id"]


def test_an_acknowledged_message_survives_kill_9_s20(fresh_server: Server) -> None:
    """S20, S21: after the kill all is there, and sending it again changes nothing."""
    server = fresh_server
    session = str(uuid.uuid4())
    lines = [encoded(decision_log(meta={"session_id": session, "step_id": f"s{n}"})) for n in range(50)]
    before = server.send_lines(lines)
    assert {answer["code"] for answer in before} == {202}
    server.restart(kill=True)
    assert [item["step_id"] for item in archived_in(server, session)] == [f"s{n}" for n in range(49, -1, -1)]
    assert server.send_lines(lines) == before
    assert len(archived_in(server, session)) == 50
    assert verify(server)["valid"]


@pytest.mark.req(239)
@pytest.mark.parametrize(
    "raw",
    [
        b' \r\n{"meta" : {"trace_id":"%s","timestamp":"2026-02-16T14:32:00+02:00",'
        b'"parent_step_id":null},\t"identity":{"agent_id":"\\u00e9\xf0\x9f\x98\x80","agent_type":"t",'
        b'"capability_version":"1.0.0"},"action":{"status":"success","tool_call":"a\\/b"},"x":1e2} ',
        b'{"action":{"status":"success"},"identity":{"agent_id":"a","agent_type":"t",'
        b'"capability_version":"v1.0.0"},"meta":{"timestamp":"2026-02-16T14:32:00Z","trace_id":"%s"}}',
    ],
)
def test_the_archive_holds_the_very_bytes_s40(server: Server, raw: bytes) -> None:
    """S40: spaces, escapes, key order and all."""
    body = raw % str(uuid.uuid4()).encode()
    answer = server.send(body)
    assert answer.status_code == 202, answer.text
    http = server.http("admin")
    kept = http.get(f"/v1/messages/{answer.json()['message_id']}", params={"raw": "true"})
    assert kept.content == body
    asked = {"accept": "application/octet-stream"}
    assert http.get(f"/v1/messages/{answer.json()['message_id']}", headers=asked).content == body


@pytest.mark.parametrize(
    "sent", [decision_log(meta={"step_id": str(uuid.uuid4())}), decision_log(), envelope("text")]
)
def test_a_repeat_answers_as_the_first_did_and_writes_nothing_s21(
    server: Server, sent: dict[str, Any]
) -> None:
    """S21: by step_id, by trace and by message_id."""
    first = server.send(sent)
    head = verify(server)["events_verified"]
    assert [server.send(sent).json() for _ in range(3)] == [first.json()] * 3
    assert {line["sequence_number"] for line in server.send_lines([encoded(sent)] * 3)} == {
        first.json()["sequence_number"]
    }
    assert verify(server)["events_verified"] == head


@pytest.mark.parametrize("form", ["decision_log", "envelope"])
def test_the_same_id_with_other_bytes_is_a_conflict_and_told_of_s22(server: Server, form: str) -> None:
    """S22: 409, a security event with the hash, and the first stays as it was."""
    if form == "envelope":
        sent = envelope("text")
        other = sent | {"payload": {"content": "something else"}}
    else:
        sent = decision_log(meta={"step_id": str(uuid.uuid4())})
        other = sent | {"action": {"status": "failure"}}
    first = server.send(sent).json()
    answer = server.send(other)
    assert (answer.status_code, answer.json()["reason"]) == (409, "id_conflict")
    assert "something else" not in answer.text
    events = server.http("admin").get("/v1/audit/tenant", params={"severity_min": 21, "limit": 1}).json()
    assert events["items"][0]["body"]["event_type"] == "security_violation"
    assert events["items"][0]["body"]["reason"] == "id_conflict"
    assert server.http("admin").get(f"/v1/messages/{first['message_id']}").json()["message"] == shown(sent)


def test_sixteen_senders_of_one_id_get_one_row_and_one_answer(server: Server) -> None:
    """S21, S22: concurrently, and among them one with other bytes."""
    step = str(uuid.uuid4())
    same = encoded(decision_log(meta={"step_id": step, "session_id": step}))
    gate = threading.Barrier(16)

    def post(body: bytes) -> httpx2.Response:
        with httpx2.Client(trust_env=False, timeout=30) as client:
            gate.wait()
            headers = {
                "authorization": f"Bearer {server.key('agent')}",
                "content-type": "application/json",
            }
            return client.post(f"{server.url}/v1/messages", content=body, headers=headers)

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(post, [same] * 15 + [same.replace(b"success", b"failure")]))
    codes = [answer.status_code for answer in answers]
    assert codes[:15] == [202] * 15 or codes == [409] * 15 + [202]
    accepted = [answer.json() for answer in answers if answer.status_code == 202]
    assert all(answer == accepted[0] for answer in accepted)
    assert [item["message_id"] for item in archived_in(server, step)] == [accepted[0]["message_id"]]


def test_lines_are_judged_one_by_one_and_answered_in_order_s23(server: Server) -> None:
    """S23: one bad line among a thousand spoils no other."""
    session = str(uuid.uuid4())
    lines = [encoded(decision_log(meta={"session_id": session, "step_id": f"n{n}"})) for n in range(1000)]
    lines[499] = b'{"meta": '
    lines[700] = encoded(decision_log(action={"status": "done"}))
    lines[800] = lines[799]
    answers = server.send_lines(lines)
    codes = {n: answer["code"] for n, answer in enumerate(answers)}
    assert {n: code for n, code in codes.items() if code != 202} == {499: 400, 700: 422}
    assert answers[800] == answers[799]
    steps = [answer["step_id"] for answer in answers if answer["code"] == 202]
    assert steps == [f"n{n if n != 800 else 799}" for n in range(1000) if n not in (499, 700)]
    numbers = [answer["sequence_number"] for answer in answers if answer["code"] == 202]
    assert numbers == sorted(numbers)
    assert len(archived_in(server, session)) == 997


@pytest.mark.parametrize("name", ["crlf", "no final newline", "blank lines", "gzip", "charset"])
def test_ways_to_write_a_batch(server: Server, name: str) -> None:
    """S23: line ends, blank lines (each answered 400 in its place), gzip and a charset."""
    lines = [encoded(decision_log()) for _ in range(3)]
    body, headers, expected = b"\n".join(lines), dict(NDJSON), [202, 202, 202]
    if name == "crlf":
        body = b"\r\n".join([*lines, b""])
    elif name == "blank lines":
        body, expected = (
            b"\n".join([lines[0], b"", lines[1], b"  ", lines[2], b""]),
            [202, 400, 202, 400, 202],
        )
    elif name == "gzip":
        body, headers = gzip.compress(body), NDJSON | {"content-encoding": "gzip"}
    elif name == "charset":
        headers = {"content-type": "Application/X-NDJSON; charset=utf-8"}
    answer = server.http("agent").post("/v1/messages", content=body, headers=headers)
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert [json.loads(line)["code"] for line in answer.text.splitlines()] == expected


@pytest.mark.parametrize(
    ("name", "code", "reason"),
    [
        ("10 MB message", 413, "too_large"),
        ("just over 1 MiB", 413, "too_large"),
        ("40 MB request", 413, "too_large"),
        ("gzip bomb", 413, "too_large"),
        ("10,001 lines", 413, "too_many_lines"),
        ("cut gzip", 400, "not_gzip"),
        ("no gzip at all", 400, "not_gzip"),
        ("two gzip members", 400, "not_gzip"),
        ("empty batch", 400, "empty"),
    ],
)
def test_a_request_beyond_the_limits_or_unreadable_takes_nothing_s7(
    server: Server, name: str, code: int, reason: str
) -> None:
    """S7, S27: sizes after gunzip; and a gzip body is taken whole or not at all."""
    line = encoded(decision_log())
    headers, body = dict(NDJSON), b""
    if name == "10 MB message":
        headers, body = {"content-type": "application/json"}, b'"' + b"x" * (10 << 20) + b'"'
    elif name == "just over 1 MiB":
        headers, body = {"content-type": "application/json"}, line + b" " * ((1 << 20) + 1 - len(line))
    elif name == "40 MB request":
        body = b"\n" * (40 << 20)
    elif name == "gzip bomb":
        body = gzip.compress(b"\0" * (100 << 20), 9)
        assert len(body) < 1 << 20
    elif name == "10,001 lines":
        body = b"\n".join([b"{}"] * 10_001)
    elif name == "cut gzip":
        body = gzip.compress(line)[:-9]
    elif name == "no gzip at all":
        body = line
    elif name == "two gzip members":
        body = gzip.compress(line + b"\n") + gzip.compress(line)
    if "gzip" in name:
        headers["content-encoding"] = "gzip"
    head = verify(server)["events_verified"]
    answer = server.http("agent").post("/v1/messages", content=body, headers=headers)
    assert (answer.status_code, answer.json()["reason"]) == (code, reason)
    since = server.http("admin").get("/v1/audit/tenant", params={"limit": 20}).json()["items"]
    written = [one["body"] for one in since if one["hash_chain"]["sequence_number"] > head]
    # What the analyst found in earlier messages may be told of at any moment.
    assert [body for body in written if "finding_id" not in body] == []


def test_a_message_of_exactly_1_mib_is_taken(server: Server) -> None:
    line = encoded(decision_log())
    assert server.send(line + b" " * ((1 << 20) - len(line))).status_code == 202


@pytest.mark.parametrize(
    "headers",
    [
        {"content-type": "text/plain"},
        {"content-type": "application/xml"},
        {"content-type": ""},
        {},
        {"content-type": "application/json", "content-encoding": "br"},
    ],
)
def test_a_wrong_content_type_or_encoding_is_answered_415_s27(
    server: Server, headers: dict[str, str]
) -> None:
    """S27."""
    answer = server.http("agent").post("/v1/messages", content=encoded(decision_log()), headers=headers)
    assert answer.status_code == 415


def test_a_client_that_goes_away_leaves_nothing_behind_s28(server: Server) -> None:
    """S28: half a body, a declared length never reached, an open chunk; then silence."""
    session = str(uuid.uuid4())
    body = encoded(decision_log(meta={"session_id": session}))
    head = (
        f"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {server.key('agent')}\r\n"
        "content-type: application/json\r\n"
    ).encode()
    chunk = f"{len(body):x}\r\n".encode() + body + b"\r\n"
    for sent in (
        head + f"content-length: {len(body)}\r\n\r\n".encode() + body[: len(body) // 2],
        head + f"content-length: {len(body) + 10}\r\n\r\n".encode() + body,
        head + b"transfer-encoding: chunked\r\n\r\n" + chunk,
    ):
        with socket.create_connection(("127.0.0.1", server.port)) as gone:
            gone.sendall(sent)
    assert server.send(decision_log()).status_code == 202
    assert archived_in(server, session) == []
    with socket.create_connection(("127.0.0.1", server.port)) as whole:
        whole.sendall(head + b"transfer-encoding: chunked\r\n\r\n" + chunk + b"0\r\n\r\n")
        assert whole.recv(4096).startswith(b"HTTP/1.1 202")
    assert len(archived_in(server, session)) == 1


def test_a_batch_of_thousands_of_sessions_and_agents_is_taken(server: Server) -> None:
    lines = [encoded(decision_log(identity={"agent_id": f"swarm-{n}"})) for n in range(3_000)]
    assert {answer["code"] for answer in server.send_lines(lines)} == {202}
    listed = server.http("admin").get("/v1/sessions", params={"limit": 1000}).json()
    assert len(listed["items"]) == 1000 and listed["next_cursor"]


@pytest.mark.parametrize("year", [1970, 2200, 2261])
def test_a_sender_whose_clock_is_far_off_is_taken_and_its_time_kept_s8(server: Server, year: int) -> None:
    """S8: as text in UTC with nine digits; 1969 and 2262 cannot be held and are faults."""
    answer = server.send(decision_log(meta={"timestamp": f"{year}-06-01T12:00:00.5+02:00"}))
    assert answer.status_code == 202
    event = server.http("admin").get(f"/v1/audit/trace/{answer.json()['session_id']}").json()["items"][0]
    assert event["timestamp"] == f"{year}-06-01T10:00:00.500000000Z"
    for wrong in (1969, 2262):
        assert server.send(decision_log(meta={"timestamp": f"{wrong}-06-01T12:00:00Z"})).status_code == 422


def test_a_full_queue_answers_429_and_took_nothing_s24(tight_server: Server) -> None:
    """S24: with Retry-After; what was answered 429 is nowhere, what was answered 202 is."""
    server, session = tight_server, str(uuid.uuid4())
    headers = {"authorization": f"Bearer {server.key('agent')}", "content-type": "application/json"}

    def post(step: str) -> httpx2.Response:
        body = encoded(decision_log(meta={"session_id": session, "step_id": step}))
        with httpx2.Client(trust_env=False, timeout=30) as client:
            return client.post(f"{server.url}/v1/messages", content=body, headers=headers)

    deadline, rounds = time.monotonic() + 20, 0
    full: list[httpx2.Response] = []
    with ThreadPoolExecutor(16) as pool:
        while not full:
            assert time.monotonic() < deadline, "the queue was never full"
            rounds += 1
            steps = [f"{rounds}-{n}" for n in range(64)]
            answers = dict(zip(steps, pool.map(post, steps), strict=True))
            full = [answer for answer in answers.values() if answer.status_code == 429]
    assert {answer.status_code for answer in answers.values()} == {202, 429}
    assert int(full[0].headers["retry-after"]) >= 1
    assert full[0].json()["reason"] == "queue_full"
    taken = {step for step, answer in answers.items() if answer.status_code == 202}
    assert {item["step_id"] for item in archived_in(server, session)} & answers.keys() == taken


def test_a_folder_belongs_to_one_process_s74(server: Server) -> None:
    """S74: a second gateway on the folder is refused with a sentence and touches nothing."""
    second = observatory("serve", "--data", str(server.folder), "--port", "0")
    assert second.returncode != 0
    assert f"process {server.pid}" in second.stderr + second.stdout
    assert "Traceback" not in second.stderr
    assert server.http("admin").get("/readyz").status_code == 200

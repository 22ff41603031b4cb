"""Refusals do not fill the disk: what a key can make the record hold by being refused, at every endpoint."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from websockets.sync.client import connect

from tests.flows.databases import ALONE
from tests.flows.server import Server
from tests.samples import decision_log
from tests.waiting import until

Json = dict[str, Any]
IN_FULL = ALONE | {"OBSERVATORY_REFUSALS_IN_FULL": "10"}
NDJSON = {"content-type": "application/x-ndjson"}


@pytest.fixture
def strict(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "data", environment=IN_FULL) as running:
        yield running


def new_key(server: Server, **asked: str) -> str:
    key: str = server.http("admin").post("/v1/keys", json={"role": "agent"} | asked).json()["key"]
    return key


def client(server: Server, key: str) -> httpx2.Client:
    headers = {"Authorization": f"Bearer {key}"}
    return httpx2.Client(base_url=server.url, headers=headers, timeout=30, trust_env=False)


def events(server: Server) -> list[Json]:
    found: list[Json] = server.http("admin").get("/v1/audit/tenant", params={"limit": 500}).json()["items"]
    return found


def counts(server: Server) -> Counter[str]:
    return Counter(one["body"]["event_type"] for one in events(server))


def test_a_few_bytes_become_a_few_events_and_not_thirty_thousand_s1160_s1162(strict: Server) -> None:
    """S1160, S1162: every line has its full answer; then 429 before the body is read, for this key alone."""
    bad, good = new_key(strict), new_key(strict)
    packed = gzip.compress(b"{}\n" * 10_000)
    assert len(packed) < 204
    before = counts(strict).total()
    with client(strict, bad) as http:
        headers = NDJSON | {"content-encoding": "gzip"}
        answer = http.post("/v1/messages", content=packed, headers=headers)
        lines = [json.loads(line) for line in answer.text.splitlines()]
        assert len(lines) == 10_000 and {line["code"] for line in lines} == {422}
        assert all(line["faults"] and line["raw_payload_hash"] for line in lines)
        again = http.post("/v1/messages", content=packed, headers=headers)
        assert (again.status_code, again.json()["reason"]) == (429, "only_violations")
        assert 1 <= int(again.headers["retry-after"]) <= 60
        with connect(
            f"{strict.socket_url}/v1/ingest", additional_headers={"Authorization": f"Bearer {bad}"}
        ) as socket:
            socket.send(json.dumps({"id": 1, "message": decision_log()}))
            assert json.loads(socket.recv())["reason"] == "only_violations"
        spans = http.post("/v1/traces", content=b"{}", headers={"content-type": "application/json"})
        assert spans.status_code == 429
    with client(strict, good) as http:
        assert http.post("/v1/messages", json=decision_log()).status_code == 202
    found = counts(strict)
    assert found["schema_violation"] == 10 and found.total() - before < 20
    received = strict.http("admin").get("/v1/violations").json()
    assert received["total"] == 10, "the minute is not over: what is counted is told when it is"


def test_a_line_that_holds_keeps_a_key_welcome_s1162(strict: Server) -> None:
    """S1162: it is the last thousand that count, one behind the other."""
    with client(strict, new_key(strict)) as http:
        lines = [b"{}"] * 999 + [json.dumps(decision_log()).encode()] + [b"{}"] * 999
        for _ in range(2):
            assert http.post("/v1/messages", content=b"\n".join(lines), headers=NDJSON).status_code == 200
            # The same message again is answered as it was, and holds as well.
        one = http.post("/v1/messages", content=b"{}", headers={"content-type": "application/json"})
        assert one.status_code == 422
        after = http.post("/v1/messages", content=b"{}", headers={"content-type": "application/json"})
        assert after.status_code == 429


def test_refused_reads_are_ten_events_and_a_count_after_a_kill_too_s1160(strict: Server) -> None:
    """S1160: what was counted stands in the database, so kill -9 loses none of it; the door says who."""
    key = new_key(strict, agent_id="reader")
    with client(strict, key) as http:
        assert {http.get("/v1/agents").status_code for _ in range(60)} == {403}
        forged = json.dumps(decision_log(identity={"agent_id": "another"})).encode()
        answer = http.post("/v1/messages", content=b"\n".join([forged] * 40), headers=NDJSON)
        assert {json.loads(line)["code"] for line in answer.text.splitlines()} == {403}
    found = counts(strict)
    assert (found["permission_denied"], found["security_violation"]) == (10, 10)
    strict.kill()
    with sqlite3.connect(strict.folder / "observatory.db") as database:  # the minute goes by
        database.execute("UPDATE refusals SET began_ns = began_ns - 61000000000")
    strict.start()
    until(lambda: counts(strict)["refusals_counted"] == 2)
    received = {
        one["body"]["reason"]: one["body"]
        for one in events(strict)
        if one["body"]["event_type"] == "refusals_counted"
    }
    assert {reason: body["count"] for reason, body in received.items()} == {"read": 50, "sender_mismatch": 30}
    assert all(body["root"].startswith("sha256:") and body["in_full"] == 10 for body in received.values())
    assert strict.http("admin").post("/v1/audit/verify", json={}).json()["valid"] is True


def test_violations_that_are_counted_are_in_the_figures_s1161(strict: Server) -> None:
    """S1161, S706: a sum over violations leaves none out."""
    with client(strict, new_key(strict)) as http:
        http.post("/v1/messages", content=b"\n".join([b"{}"] * 200), headers=NDJSON)
    strict.stop()
    with sqlite3.connect(strict.folder / "observatory.db") as database:
        database.execute("UPDATE refusals SET began_ns = began_ns - 61000000000")
    strict.start()
    until(lambda: counts(strict)["refusals_counted"] == 1)
    received = strict.http("admin").get("/v1/violations").json()
    assert received["total"] == 200 and sum(received["counts"]) == 200
    assert sorted(row["count"] for row in received["groups"]) == [10, 190]
    assert sorted({row["count"] for row in received["newest"]}) == [1, 190]


def test_quotas_of_an_agent_are_settings_with_a_clear_refusal_s1163(tmp_path: Path) -> None:
    """S1163: by HTTP, with the figure that was set."""
    few = {"OBSERVATORY_AGENT_REMINDERS": "2"}
    with Server(tmp_path / "data", environment=ALONE | few) as server:

        def remind() -> httpx2.Response:
            asked = {"tool_call": "schedule_reminder", "tool_input": '{"delay_ms": 600000, "payload": {}}'}
            return server.send(decision_log(action=asked))

        assert [remind().status_code for _ in range(2)] == [202, 202]
        refused = remind()
        assert (refused.status_code, refused.json()["reason"]) == (403, "too_many_reminders")
        assert "the limit agent_reminders is 2" in refused.json()["detail"]

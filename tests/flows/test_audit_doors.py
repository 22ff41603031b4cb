"""The audit trail through its four doors: dense, ordered, exact, severity by one table, and verifiable."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3 as sqlite
import uuid
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from observatory.ledger import chain
from observatory.ledger.canonical import jcs
from tests.contract import postgres
from tests.flows.databases import ALONE
from tests.flows.insight import settled
from tests.flows.server import Server
from tests.samples import decision_log, envelope

Json = dict[str, Any]
GENESIS = "sha256:e3753ce47921e354762c3b3c3c0fe1ba4debafea8bbde227acbc56ae0278e0ee"


def events(server: Server, path: str = "/v1/audit/tenant", **query: Any) -> list[Json]:
    answer = server.http("auditor").get(path, params=query)
    assert answer.status_code == 200, answer.text
    items: list[Json] = answer.json()["items"]
    return items


def verify(server: Server, **body: Any) -> Json:
    answer = server.http("auditor").post("/v1/audit/verify", json=body)
    assert answer.status_code == 200, answer.text
    found: Json = answer.json()
    return found


def every_event(server: Server, page: int = 1000) -> list[Json]:
    """All of the tenant, newest first, by cursors."""
    found: list[Json] = []
    cursor: str | None = None
    while True:
        query = {"limit": page} | ({} if cursor is None else {"cursor": cursor})
        answer = server.http("auditor").get("/v1/audit/tenant", params=query).json()
        found += answer["items"]
        cursor = answer["next_cursor"]
        if cursor is None:
            return found


@pytest.mark.req(407, 429, 450, 456, 460)
def test_the_whole_trail_is_dense_and_linked_from_the_seeds_genesis_s41(server: Server) -> None:
    """S41, S42: every number once; each hash is the seed's over the event as served."""
    for _ in range(20):
        server.send(decision_log())
    found = every_event(server)[::-1]
    assert [event["hash_chain"]["sequence_number"] for event in found] == list(range(1, len(found) + 1))
    assert found[0]["hash_chain"]["previous_hash"] == GENESIS
    assert chain.verify_chain(found) == (True, None)
    linked = pairwise(found)
    assert all(b["hash_chain"]["previous_hash"] == a["hash_chain"]["event_hash"] for a, b in linked)


def test_every_event_is_served_in_its_exact_rfc_8785_bytes_s43(server: Server) -> None:
    """S43, S42: no float, no integer beyond 2^53-1; sorted keys, no blanks."""
    server.send(envelope("action_confirmation"))
    body = server.http("auditor").get("/v1/audit/tenant", params={"limit": 50}).content
    items = re.fullmatch(rb'\{"items":\[(.*)\],"next_cursor":("[^"]*"|null)\}', body)
    assert items is not None
    assert b",".join(jcs(event) for event in json.loads(body)["items"]) == items[1]
    assert not re.search(rb":-?\d+\.\d", re.sub(rb'"(\\.|[^"\\])*"', b'""', items[1]))


@pytest.mark.req(489)
def test_a_trace_is_told_oldest_first_s45(server: Server) -> None:
    """S45: with cursors over many pages, and by the session's id in any spelling."""
    session = str(uuid.uuid4())
    sent = [
        server.send(  # each with an intent of its own: a repetition would be told of in between
            decision_log(
                meta={"session_id": session, "step_id": str(n)},
                cognition={"intent": str(n), "entropy_score": None},
            )
        ).json()
        for n in range(7)
    ]
    numbers = [answer["sequence_number"] for answer in sent]
    found: list[int] = []
    cursor: str | None = None
    for _ in range(4):
        query = {"limit": 2} | ({} if cursor is None else {"cursor": cursor})
        page = server.http("viewer").get(f"/v1/audit/trace/{session.upper()}", params=query).json()
        found += [event["hash_chain"]["sequence_number"] for event in page["items"]]
        cursor = page["next_cursor"]
    assert (found, cursor) == (numbers, None)


@pytest.mark.parametrize(
    "path", ["/v1/messages", "/v1/audit/tenant", "/v1/audit/entity/researcher-alpha-9", "/v1/sessions"]
)
def test_lists_are_newest_first_and_say_whether_there_is_more_s45(server: Server, path: str) -> None:
    """S45: page by page gives what one page gives, while new rows keep coming."""
    for _ in range(6):
        server.send(decision_log())
    settled(server)  # sessions also tell what is folded behind the commit
    http = server.http("viewer")
    whole = http.get(path, params={"limit": 6}).json()
    assert len(whole["items"]) == 6
    paged: list[Json] = []
    cursor = None
    for _ in range(3):
        query = {"limit": 2} | ({} if cursor is None else {"cursor": cursor})
        page = http.get(path, params=query).json()
        paged, cursor = paged + page["items"], page["next_cursor"]
        server.send(decision_log())
    assert paged == whole["items"]
    number = "last_sequence_number" if path.endswith("sessions") else "sequence_number"
    order = [item.get(number) or item["hash_chain"]["sequence_number"] for item in paged]
    assert order == sorted(order, reverse=True)


@pytest.mark.parametrize(
    ("path", "query"),
    [
        (path, query)
        for path in (
            "/v1/messages",
            "/v1/sessions",
            "/v1/audit/tenant",
            "/v1/audit/trace/x",
            "/v1/audit/entity/x",
        )
        for query in (
            "limit=0",
            "limit=1001",
            "limit=ten",
            "cursor=zzz",
            "cursor=czk5OTk5OTk5OTk5OTk5OTk5OTk5",
        )
    ]
    + [
        ("/v1/messages", "after=-1"),
        ("/v1/messages", "after=99999999999999999999"),
        ("/v1/audit/tenant", "since=yesterday"),
        ("/v1/audit/tenant", "until=2026-01-01T00:00:00"),
        ("/v1/audit/tenant", "severity_min=0"),
        ("/v1/audit/tenant", "severity_min=25"),
    ],
)
def test_a_question_that_makes_no_sense_is_answered_400(server: Server, path: str, query: str) -> None:
    """S45: with a sentence."""
    answer = server.http("viewer").get(f"{path}?{query}")
    assert answer.status_code == 400 and answer.json()["detail"], answer.text


def test_messages_can_be_read_oldest_first_past_a_number(server: Server) -> None:
    """S45: `after=` catches a reader up."""
    numbers = [server.send(decision_log()).json()["sequence_number"] for _ in range(5)]
    http = server.http("viewer")
    page = http.get("/v1/messages", params={"after": numbers[0], "limit": 2}).json()
    assert [item["sequence_number"] for item in page["items"]] == numbers[1:3]
    more = {"after": numbers[0], "limit": 2, "cursor": page["next_cursor"]}
    assert [item["sequence_number"] for item in http.get("/v1/messages", params=more).json()["items"]] == (
        numbers[3:5]
    )


def test_events_can_be_read_oldest_first_past_a_number_s662(server: Server) -> None:
    """S662: so the neighbours of an event are found by its number."""
    newest = server.http().get("/v1/audit/tenant", params={"limit": 3}).json()["items"]
    numbers = [one["hash_chain"]["sequence_number"] for one in newest]
    received = server.http().get("/v1/audit/tenant", params={"after": numbers[-1] - 1, "limit": 2}).json()
    assert [one["hash_chain"]["sequence_number"] for one in received["items"]] == numbers[:0:-1]
    more = {"after": numbers[-1] - 1, "limit": 2, "cursor": received["next_cursor"]}
    rest = server.http().get("/v1/audit/tenant", params=more).json()["items"]
    assert rest[0]["hash_chain"]["sequence_number"] == numbers[0]
    assert server.http().get("/v1/audit/tenant", params={"after": -1}).status_code == 400


def test_messages_are_filtered_by_session_agent_type_and_state(server: Server) -> None:
    """S45."""
    name, session = f"picky-{uuid.uuid4()}", str(uuid.uuid4())
    server.send(decision_log(identity={"agent_id": name}, meta={"session_id": session, "step_id": "1"}))
    entity = server.http("viewer").get(f"/v1/agents/{name}").json()["entity_id"]
    server.send(envelope("text", sender={"entity_id": entity}, metadata={"session_id": session}))
    for query, count in (
        ({"session_id": session}, 2),
        ({"agent_id": name}, 2),
        ({"agent_id": entity}, 2),
        ({"session_id": session, "message_type": "text"}, 1),
        ({"session_id": session, "state": "forwarded"}, 2),
        ({"session_id": session, "state": "held"}, 0),
    ):
        assert len(server.http("viewer").get("/v1/messages", params=query).json()["items"]) == count, query


@pytest.mark.req(490)
def test_the_tenants_events_are_found_by_time_and_severity_s45(server: Server) -> None:
    """S45: since is inclusive, until exclusive, both with any zone."""
    for moment in ("2031-01-01T00:00:00Z", "2031-01-01T01:00:00Z", "2031-01-01T02:00:00Z"):
        server.send(decision_log(meta={"timestamp": moment}))
    window = {"since": "2031-01-01T00:00:00Z", "until": "2031-01-01T03:00:00+01:00"}
    assert [event["timestamp"][11:16] for event in events(server, **window)] == ["01:00", "00:00"]
    server.send(envelope("status_alert", payload={"severity": "critical"}))
    severe = events(server, severity_min=17)
    assert severe[0]["severity_number"] == 21
    assert min(event["severity_number"] for event in severe) >= 17


@pytest.mark.req(491)
def test_an_entitys_events_are_what_it_sent_and_received(server: Server) -> None:
    """S45: by entity id or by an agent's name."""
    name = f"busy-{uuid.uuid4()}"
    sent = server.send(decision_log(identity={"agent_id": name})).json()["sequence_number"]
    entity = server.http("viewer").get(f"/v1/agents/{name}").json()["entity_id"]
    party = {"entity_id": entity, "entity_type": "agent"}
    got = server.send(envelope("text", recipient=party)).json()["sequence_number"]
    for asked in (name, entity):
        found = events(server, f"/v1/audit/entity/{asked}", limit=100)
        assert [event["hash_chain"]["sequence_number"] for event in found] == [got, sent]
    assert len(events(server, f"/v1/audit/entity/{name}", limit=1)) == 1


@pytest.mark.req(440, 441, 448)
@pytest.mark.parametrize(
    ("sent", "event_type", "number", "text"),
    [
        (decision_log(), "message_delivered", 9, "INFO"),
        (envelope("heartbeat"), "heartbeat", 5, "DEBUG"),
        (envelope("text"), "message_delivered", 9, "INFO"),
        (envelope("status_alert", payload={"severity": "info"}), "message_delivered", 9, "INFO"),
        (envelope("status_alert", payload={"severity": "warning"}), "message_delivered", 13, "WARN"),
        (envelope("status_alert", payload={"severity": "error"}), "message_delivered", 17, "ERROR"),
        (envelope("status_alert", payload={"severity": "critical"}), "message_delivered", 21, "FATAL"),
    ],
)
def test_severities_come_from_one_table_s46(
    server: Server, sent: Json, event_type: str, number: int, text: str
) -> None:
    """S46, S47: a heartbeat is audited as one, all others as delivered; an alert takes its own."""
    session = server.send(sent).json()["session_id"]
    [event] = events(server, f"/v1/audit/trace/{session}")
    assert event["body"]["event_type"] == event_type
    assert (event["severity_number"], event["severity_text"]) == (number, text)


@pytest.mark.req(457, 458, 492, 493)
def test_any_range_verifies_from_the_row_before_it_s44(server: Server) -> None:
    """S44: the seed's five members, and which properties held."""
    found = every_event(server)[::-1]
    head = len(found)
    whole = verify(server, tenant_id="tnt_default", from_sequence=1, to_sequence=None)
    assert whole["valid"] is True and whole["events_verified"] >= head
    assert whole["first_hash"] == found[0]["hash_chain"]["event_hash"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z", whole["verified_at"])
    part = verify(server, from_sequence=3, to_sequence=5)
    assert (part["valid"], part["events_verified"]) == (True, 3)
    assert part["first_hash"] == found[2]["hash_chain"]["event_hash"]
    assert part["last_hash"] == found[4]["hash_chain"]["event_hash"]
    held = {name for name, value in whole["checks"].items() if value}
    assert held >= {"density", "chain", "record", "leaf", "head", "payloads", "log_root", "signature"}


def test_a_range_past_the_record_is_no_proof_s44(server: Server) -> None:
    """S44: a tail that is missing is a break; a range that is none is refused."""
    head = verify(server)["events_verified"]
    beyond = verify(server, to_sequence=head + 1_000)
    assert beyond["valid"] is False and beyond["first_break"]["what"] == "missing_tail"
    http = server.http("auditor")
    for body in (
        {"from_sequence": 5, "to_sequence": 4},
        {"from_sequence": head + 10_000},
        {"from_sequence": 0},
        {"from_sequence": -1},
        {"to_sequence": 1 << 60},
    ):
        assert http.post("/v1/audit/verify", json=body).status_code in (400, 422), body


@pytest.mark.req(324)
def test_a_changed_record_is_found_and_named_after_a_restart_s44(fresh_server: Server) -> None:
    """S44, S40: whoever rewrites the file must first take the triggers away, and is still found."""
    server = fresh_server
    numbers = [server.send(decision_log()).json()["sequence_number"] for _ in range(5)]
    raw = json.dumps(decision_log()).encode()
    server.stop()
    with sqlite.connect(server.folder / "observatory.db") as database:
        key = "SELECT max(key) FROM audit_log WHERE key & 1099511627775 = ?"
        [place] = database.execute(key, (numbers[2],)).fetchone()
        with pytest.raises(sqlite.Error, match="append-only"):
            database.execute("UPDATE audit_log SET severity = 1 WHERE key = ?", (place,))
        for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            database.execute(f"DROP TRIGGER {name}")
        record = bytes(database.execute("SELECT record FROM audit_log WHERE key = ?", (place,)).fetchone()[0])
        database.execute(
            "UPDATE audit_log SET record = ? WHERE key = ?",
            (record.replace(b"serp_search success", b"serp_search failure"), place),
        )
        database.execute("UPDATE payloads SET raw = ? WHERE key = ?", (raw, place + 1))
    database.close()
    server.start()
    result = verify(server)
    assert result["valid"] is False
    assert result["first_break"]["sequence_number"] == numbers[2]
    assert result["first_break"]["sentence"]
    assert result["events_verified"] == numbers[2] - 1
    assert verify(server, to_sequence=numbers[1])["valid"] is True
    later = verify(server, from_sequence=numbers[3])
    assert (later["valid"], later["first_break"]["what"]) == (False, "payload")
    assert later["first_break"]["sequence_number"] == numbers[3]
    assert verify(server, from_sequence=numbers[3])["first_break"] == later["first_break"]
    received = server.http("admin").get("/v1/audit/tenant", params={"severity_min": 21}).json()["items"]
    breaks = [(one["body"]["first_break"], one["body"]["what"]) for one in received]  # S549: each once
    assert breaks == [(numbers[3], "payload"), (numbers[2], result["first_break"]["what"])]


@pytest.mark.req(322, 486, 499)
def test_the_same_doors_stand_on_postgresql_and_sql_reads_what_they_serve_s44(tmp_path: Path) -> None:
    """S44, S20, S70: JSONB columns for direct queries, no other stack; kill -9 loses nothing."""
    with postgres.server() as database:
        url = database.fresh()
        with Server(tmp_path / "data", "--db", url, environment=ALONE) as server:
            sent = [decision_log(), envelope("heartbeat"), decision_log(identity={"agent_id": "other"})]
            answers = [server.send(one).json() for one in sent]
            assert server.send(decision_log(action={"status": "done"})).status_code == 422
            server.restart(kill=True)
            assert [server.send(one).json() for one in sent] == answers
            trail = events(server, f"/v1/audit/trace/{answers[0]['session_id']}")
            query = (
                "SELECT sequence_number, body->>'event_type', attributes->>'av.message.type' "
                "FROM audit_events WHERE tenant_id = $1 AND trace_id = $2 ORDER BY sequence_number"
            )
            rows = postgres.ask(url, query, "tnt_default", trail[0]["trace_id"], tenant="tnt_default")
            assert rows == [(answers[0]["sequence_number"], "message_delivered", "decision_log")]
            assert server.http("admin").get("/readyz").json()["database"] == "postgresql"
            for path in ("/v1/sessions/%00", "/v1/messages?message_type=%00", "/v1/agents/%ED%A0%80"):
                assert server.http("admin").get(path).status_code in (400, 404)
            result = verify(server)
            assert result["valid"] and result["checks"]["head"]


def test_the_digest_of_an_event_is_that_of_the_archived_bytes_s40(server: Server) -> None:
    """S40, S42."""
    raw = json.dumps(decision_log()).encode()
    answer = server.send(raw).json()
    [event] = events(server, f"/v1/audit/trace/{answer['session_id']}")
    assert event["attributes"]["av.message.digest"] == "sha256:" + hashlib.sha256(raw).hexdigest()

"""The seeds' storage schema, with the seeds' own SQL, on the PostgreSQL database of a running gateway.

Everything is sent over HTTP; a second client of the database, which knows nothing of our code, then runs the
statements of the seed as they are printed there.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bench.postgres import ask
from observatory.protocol.clock import from_ns
from tests.contract.peering import PeerLog
from tests.flows.databases import new_database
from tests.flows.server import Server
from tests.flows.test_thoughts import Hand
from tests.samples import decision_log, envelope
from tests.vectors.test_audit_chain import compute_event_hash, verify_chain

Json = dict[str, Any]
TENANT = "tnt_default"
VERSIONS = Path(__file__).parents[2] / "src/observatory/store/migrations/versions"

# name: (type, length, nullable, default), as the seed prints them; ids are prefixed text (ruling 9).
COLUMNS = {
    "audit_event_id": ("text", None, "NO", None),
    "tenant_id": ("text", None, "NO", None),
    "sequence_number": ("bigint", None, "NO", None),
    "timestamp": ("timestamp with time zone", None, "NO", None),
    "observed_timestamp": ("timestamp with time zone", None, "NO", "now()"),
    "trace_id": ("character", 32, "NO", None),
    "span_id": ("character", 16, "NO", None),
    "parent_span_id": ("character", 16, "YES", None),
    "trace_flags": ("smallint", None, "YES", "1"),
    "severity_number": ("smallint", None, "NO", None),
    "severity_text": ("text", None, "NO", None),
    "body": ("jsonb", None, "NO", None),
    "resource": ("jsonb", None, "NO", None),
    "attributes": ("jsonb", None, "NO", None),
    "event_hash": ("text", None, "NO", None),
    "previous_hash": ("text", None, "NO", None),
}
CONVERSATION = "SELECT * FROM audit_events WHERE trace_id = $1 ORDER BY sequence_number ASC"
LAST_DAYS_ERRORS = """SELECT audit_event_id, severity_number FROM audit_events
WHERE tenant_id = $1
  AND severity_number >= 17
  AND timestamp > now() - interval '24 hours'
ORDER BY timestamp DESC"""
CHAIN = """SELECT
    sequence_number,
    event_hash,
    previous_hash,
    LAG(event_hash) OVER (ORDER BY sequence_number) as expected_previous
FROM audit_events
WHERE tenant_id = $1
ORDER BY sequence_number"""


class Database:
    """The gateway's database, asked by a client that knows nothing of the gateway's code."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __call__(self, sql: str, *values: Any) -> list[Any]:
        return ask(self._url, sql, *values)

    def columns(self, table: str) -> dict[str, tuple[Any, ...]]:
        rows = self(
            "SELECT column_name, data_type, character_maximum_length, is_nullable, column_default "
            "FROM information_schema.columns WHERE table_name = $1",
            table,
        )
        return {row[0]: row[1:] for row in rows}


@pytest.fixture(scope="module")
def url(postgres_url: str) -> str:
    return new_database(postgres_url)


@pytest.fixture(scope="module")
def sql(url: str) -> Database:
    return Database(url)


@pytest.fixture(scope="module")
def gateway(url: str, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("seed") / "data"
    with Server(folder, "--db", url, environment={"OBSERVATORY_INSIGHT": "false"}) as running:
        yield running


def served(gateway: Server) -> list[Json]:
    """The whole trail as the API serves it, oldest first."""
    found = gateway.http("admin").get("/v1/audit/tenant", params={"limit": 1000}).json()
    assert found["next_cursor"] is None
    items: list[Json] = found["items"]
    return items[::-1]


@pytest.mark.req(*range(464, 478))
def test_the_seeds_columns_have_its_types_lengths_and_defaults(gateway: Server, sql: Database) -> None:
    found = sql.columns("audit_events")
    assert {name: found.get(name) for name in COLUMNS} == COLUMNS


@pytest.mark.req(462, 463, 478)
def test_the_seeds_keys_hold_in_the_database_itself(gateway: Server, sql: Database) -> None:
    rows = sql(
        "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'audit_events'::regclass"
    )
    assert {
        "PRIMARY KEY (tenant_id, audit_event_id)",
        "UNIQUE (tenant_id, sequence_number)",
        "FOREIGN KEY (tenant_id) REFERENCES tenants(tenant_id)",
    } <= {row[0] for row in rows}


@pytest.mark.req(*range(479, 485))
@pytest.mark.parametrize(
    "index",
    [
        "btree (tenant_id, sequence_number)",
        "btree (trace_id)",
        'btree (tenant_id, "timestamp")',
        "btree (tenant_id, severity_number) WHERE (severity_number >= 17)",
        "gin (body)",
        "gin (attributes)",
    ],
)
def test_the_seeds_index_is_there(gateway: Server, sql: Database, index: str) -> None:
    rows = sql("SELECT indexdef FROM pg_indexes WHERE tablename = 'audit_events'")
    assert [row[0] for row in rows if f" USING {index}" in row[0]], rows


@pytest.mark.req(288, *range(464, 478), 486)
def test_the_conversation_query_gives_what_the_api_serves(gateway: Server, sql: Database) -> None:
    """Every column of every row equals the member that `GET /v1/audit/trace` serves under its name."""
    trace, span = uuid.uuid4().hex, uuid.uuid4().hex[:16]
    first = envelope("text", trace_id=trace, span_id=span)
    for sent in (first, envelope("text", trace_id=trace, parent_span_id=span)):
        assert gateway.send(sent).status_code == 202
    events = gateway.http("admin").get(f"/v1/audit/trace/{trace}").json()["items"]
    names = ", ".join(f'"{name}"' for name in COLUMNS)
    rows = sql(CONVERSATION.replace("*", names), trace)
    assert len(rows) == len(events) >= 2
    for row, event in zip(rows, events, strict=True):
        found = dict(zip(COLUMNS, row, strict=True))
        assert found.pop("tenant_id") == event["resource"]["av.tenant.id"] == TENANT
        for name in ("timestamp", "observed_timestamp"):
            # The column is rounded to the microsecond; the record keeps the nanoseconds that were sent.
            exact = datetime.fromisoformat(event[name])
            assert abs(found.pop(name) - exact) <= timedelta(microseconds=1), name
        for name in ("body", "resource", "attributes"):
            assert json.loads(found.pop(name)) == event[name], name
        chain = event["hash_chain"]
        assert found == {name: event.get(name, chain.get(name)) for name in found}


@pytest.mark.req(482, 487)
def test_the_last_days_errors_are_found_newest_first(gateway: Server, sql: Database) -> None:
    (now,) = sql("SELECT (extract(epoch FROM now()) * 1000000)::bigint")[0]
    sent = {
        hours: envelope(
            "status_alert",
            timestamp=from_ns((now - hours * 3_600_000_000) * 1000),
            payload={"severity": severity},
        )
        for hours, severity in ((25, "critical"), (3, "critical"), (2, "info"), (1, "error"))
    }
    for one in sent.values():
        assert gateway.send(one).status_code == 202
    severe = {
        event["audit_event_id"]: event["body"]["message_id"]
        for event in gateway.http("admin")
        .get("/v1/audit/tenant", params={"severity_min": 17})
        .json()["items"]
    }
    found = [severe[row[0]] for row in sql(LAST_DAYS_ERRORS, TENANT)]
    mine = {one["message_id"] for one in sent.values()}
    assert [one for one in found if one in mine] == [sent[1]["message_id"], sent[3]["message_id"]]


@pytest.mark.req(450, 451, 456, 488)
def test_the_chain_query_shows_each_hash_next_to_the_one_it_must_follow(
    gateway: Server, sql: Database
) -> None:
    for _ in range(3):
        assert gateway.send(decision_log()).status_code == 202
    rows = sql(CHAIN, TENANT)
    assert [row[0] for row in rows] == list(range(1, len(rows) + 1))
    assert rows[0][3] is None
    assert len(rows) > 3 and all(previous == expected for _, _, previous, expected in rows[1:])


@pytest.mark.req(451, 452, 453, 454, 455)
def test_served_events_have_the_hash_that_the_seeds_own_function_computes(gateway: Server) -> None:
    """The two functions printed in the seed, over JSON as any client gets it; what the hash covers changes
    it, what it leaves out does not."""
    to = {"entity_id": f"agt_{uuid.uuid4()}", "entity_type": "agent"}
    assert gateway.send(envelope("text", recipient=to)).status_code == 202
    assert gateway.send(decision_log(cognition={"intent": "Prüfe den Umsatz – 収益"})).status_code == 202
    events = served(gateway)
    assert verify_chain(events) == (True, None)
    assert any(event["attributes"].get("av.recipient.entity_id") for event in events)
    event = events[-1]
    chain = event["hash_chain"]
    assert chain["event_hash"] == compute_event_hash(event, chain["previous_hash"])
    covered: list[Json] = [
        {"timestamp": "2020-01-01T00:00:00.000000000Z"},
        {"trace_id": "0" * 32},
        {"span_id": "0" * 16},
        {"body": event["body"] | {"summary": "x"}},
        {"attributes": event["attributes"] | {"av.sender.entity_id": "agt_else"}},
        {"attributes": event["attributes"] | {"av.recipient.entity_id": "agt_else"}},
        {"hash_chain": chain | {"sequence_number": 1}},
    ]
    for change in covered:
        assert compute_event_hash(event | change, chain["previous_hash"]) != chain["event_hash"], change
    assert compute_event_hash(event, events[0]["hash_chain"]["event_hash"]) != chain["event_hash"]
    left_out: list[Json] = [
        {"observed_timestamp": "2020-01-01T00:00:00.000000000Z"},
        {"attributes": event["attributes"] | {"av.delivery.latency_ms": 1}},
        {"hash_chain": chain | {"event_hash": "x"}},
    ]
    for change in left_out:
        assert compute_event_hash(event | change, chain["previous_hash"]) == chain["event_hash"], change


THOUGHT_COLUMNS = (
    *("content_hash", "chain_hash", "parent_chain_hash", "session_id", "task_id", "type", "content"),
)


@pytest.mark.req(270, *range(280, 287), 288, 290)
def test_thought_records_and_the_tables_they_rest_on_hold_what_the_seed_names(
    gateway: Server, sql: Database
) -> None:
    """Each record is found in SQL under the seed's column names, chained, and its task closes with it."""
    hand = Hand(gateway)
    seal = hand.sealed()
    items = hand.http.get(f"{hand.path}/thoughts").json()["items"]
    names = ", ".join(THOUGHT_COLUMNS)
    rows = sql(
        f"SELECT {names} FROM thought_records WHERE session_id = $1 ORDER BY record_index",
        hand.session_id,
    )
    found = [dict(zip(THOUGHT_COLUMNS, row, strict=True)) for row in rows]
    assert [one["type"] for one in found] == ["plan", "analysis", "decision", "reflection"]
    for one, item in zip(found, items, strict=True):
        assert json.loads(bytes(one.pop("content"))) == item["content"]
        assert one == {name: item[name] for name in one}
    for one in found:
        joined = bytes.fromhex(one["content_hash"][7:] + one["parent_chain_hash"][7:])
        assert one["chain_hash"] == "sha256:" + hashlib.sha256(joined).hexdigest()
    tasks = sql("SELECT state, closed_by FROM thought_tasks WHERE session_id = $1", hand.session_id)
    assert tasks == [("closed", items[-1]["record_id"])], "the reflection closes its task"
    nodes = sql(
        "SELECT encode(hash, 'hex') FROM merkle_nodes WHERE session_id = $1 ORDER BY level DESC LIMIT 1",
        hand.session_id,
    )
    assert nodes == [(seal["root"].removeprefix("sha256:"),)]
    events = sql(
        "SELECT count(*) FROM audit_events WHERE body ->> 'event_type' = 'thought_recorded' "
        "AND body ->> 'session_id' = $1",
        hand.session_id,
    )
    assert events == [(4,)], "the ledger below has one event for each record"


@pytest.mark.req(495)
def test_every_phase_of_the_seed_writes_into_the_same_columns(gateway: Server, sql: Database) -> None:
    """A chat, a room of agents, policy, teams and roles, federation: each adds events, none adds a column."""
    before = sql.columns("audit_events")
    first, second, *later = sorted(VERSIONS.glob("v*.py"))
    assert "audit_events" in first.read_text() and "audit_log" in second.read_text()
    changed = [file.name for file in later if re.search("audit_(events|log)", file.read_text())]
    assert changed == [], "the table is as it was made, whatever came later"
    admin, room = gateway.http("admin"), str(uuid.uuid4())
    assert gateway.send(envelope("text", metadata={"conversation_id": "conv-1"})).status_code == 202
    for agent in ("phase-two-a", "phase-two-b"):
        log = decision_log(identity={"agent_id": agent}, meta={"session_id": room, "step_id": agent})
        assert gateway.send(log).status_code == 202
    rule = {"effect": "deny", "match": {"sender": ["phase-three"]}}
    assert admin.post("/v1/policies", json=rule).status_code == 201
    assert gateway.send(decision_log(identity={"agent_id": "phase-three"})).status_code == 403
    team = {"agent_id": "phase-four", "agent_type": "t", "team_id": "tem_1", "workspace_id": "wsp_1"}
    assert admin.post("/v1/agents", json=team).status_code == 201
    user = admin.post("/v1/users", json={"name": "phase-four", "role": "viewer"}).json()
    assert admin.put(f"/v1/users/{user['user_id']}", json={"role": "auditor"}).status_code == 200
    peer = {"name": "phase-five", "vkey": PeerLog().vkey}
    assert admin.post("/v1/peers", json=peer).status_code == 201
    kinds = {event["body"]["event_type"] for event in served(gateway)}
    assert {
        *("message_delivered", "agent_joined_room", "policy_evaluated", "agent_registered"),
        *("role_changed", "peer_added"),
    } <= kinds
    assert sql.columns("audit_events") == before

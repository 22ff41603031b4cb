"""What the databases themselves enforce and offer: append-only, shredding, the seed's schema."""

from __future__ import annotations

import json
import uuid

import pytest

from observatory.pipeline.ports import MessageFilter
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import HOME_TENANT, Command, SubmissionResult
from tests.contract.conftest import Harness, PostgresHarness
from tests.samples import decision_log


def sent(harness: Harness) -> int:
    (verdict,) = harness.send(decision_log(meta={"step_id": str(uuid.uuid4()), "session_id": "ses-1"}))
    number: int = verdict.answer.sequence_number
    return number


def test_neither_trail_nor_messages_can_be_changed_deleted_or_emptied(harness: Harness) -> None:
    sent(harness)
    before = harness.trail_of()
    for table in (harness.trail, "messages"):
        (column,) = {"audit_log": ["severity"], "audit_events": ["severity_number"], "messages": ["state"]}[
            table
        ]
        assert harness.refuses(f"UPDATE {table} SET {column} = {column}")
        assert harness.refuses(f"DELETE FROM {table}")
        assert harness.refuses(f"TRUNCATE {table} CASCADE")
        assert harness.refuses(f"INSERT OR REPLACE INTO {table} SELECT * FROM {table}")
        assert harness.refuses(f"INSERT INTO {table} SELECT * FROM {table}")
    for statement in ("DELETE FROM audit_events", "UPDATE audit_events SET trace_id = 'x'"):
        assert harness.refuses(statement), "under the seed's name too"
    assert harness.trail_of() == before


def test_a_payload_can_be_shredded_once_by_an_ordered_event_and_changed_in_no_other_way(
    harness: Harness,
) -> None:
    number = sent(harness)
    assert harness.refuses("DELETE FROM payloads")
    assert harness.refuses("TRUNCATE payloads CASCADE")
    assert harness.refuses("UPDATE payloads SET raw = NULL"), "no event ordered it"
    assert harness.refuses("UPDATE payloads SET raw = salt, salt = raw, shredded_by = 9"), "bytes must go"
    harness.sql("UPDATE payloads SET raw = NULL, salt = NULL, shredded_by = 9")
    assert harness.refuses("UPDATE payloads SET shredded_by = 10"), "only once"
    (message,) = harness.read(harness.store.messages(HOME_TENANT, MessageFilter(), 10, True))
    assert (message.sequence_number, message.raw) == (number, None)


def test_what_a_person_put_in_the_place_of_a_message_can_be_undone_or_shredded_only(harness: Harness) -> None:
    """Archived like a message: whose it is, what it replaced and its bytes stay as they were written."""
    number = sent(harness)
    row = {"tenant_id": HOME_TENANT, "sequence_number": number, "message_seq": number, "created_ns": 1}
    write = RowWrite("rewrites", row | {"raw": b"{}", "digest": b"d"})
    harness.submit(
        Command(harness.admin(), harness.now(), lambda uow: SubmissionResult(200, None, [], [write]))
    )
    before = harness.sql("SELECT * FROM rewrites")
    for change in (
        "raw = digest",
        "digest = raw",
        "message_seq = 1",
        "sequence_number = 9",
        "created_ns = 2",
    ):
        assert harness.refuses(f"UPDATE rewrites SET {change}"), change
    assert harness.refuses("DELETE FROM rewrites")
    assert harness.refuses("TRUNCATE rewrites CASCADE")
    assert harness.refuses("INSERT OR REPLACE INTO rewrites SELECT * FROM rewrites")
    assert harness.sql("SELECT * FROM rewrites") == before
    harness.sql("UPDATE rewrites SET undone_ns = 5")
    harness.sql("UPDATE rewrites SET raw = NULL")
    assert harness.refuses("UPDATE rewrites SET raw = digest"), "what is gone stays gone"


# name: (type, length, nullable, default), as the seed writes them; ids are prefixed text by ruling 9.
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


@pytest.mark.req(*range(464, 478))
def test_the_seeds_columns_are_there_with_their_types_lengths_and_defaults(
    pg_harness: PostgresHarness,
) -> None:
    rows = pg_harness.sql(
        "SELECT column_name, data_type, character_maximum_length, is_nullable, column_default "
        "FROM information_schema.columns WHERE table_name = 'audit_events'"
    )
    found = {row[0]: row[1:] for row in rows}
    assert {name: found.get(name) for name in COLUMNS} == COLUMNS


@pytest.mark.req(462, 463, 478, 485)
def test_an_event_has_an_identity_a_tenant_that_exists_and_a_number_of_its_own(
    pg_harness: PostgresHarness,
) -> None:
    rows = pg_harness.sql(
        "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'audit_events'::regclass"
    )
    found = {row[0] for row in rows}
    assert {
        "PRIMARY KEY (tenant_id, audit_event_id)",
        "UNIQUE (tenant_id, sequence_number)",
        "FOREIGN KEY (tenant_id) REFERENCES tenants(tenant_id)",
    } <= found
    assert pg_harness.sql("SELECT tenant_id FROM tenants") == [(HOME_TENANT,)]


@pytest.mark.req(*range(479, 485))
def test_the_seeds_indexes_are_there(pg_harness: PostgresHarness) -> None:
    rows = pg_harness.sql("SELECT indexdef FROM pg_indexes WHERE tablename = 'audit_events'")
    found = " | ".join(row[0] for row in rows)
    for index in (
        "btree (tenant_id, sequence_number)",
        "btree (trace_id)",
        'btree (tenant_id, "timestamp")',
        "btree (tenant_id, severity_number) WHERE (severity_number >= 17)",
        "gin (body)",
        "gin (attributes)",
    ):
        assert index in found


@pytest.mark.req(*range(464, 478))
def test_every_column_of_the_seed_says_what_the_exact_record_says(harness: Harness) -> None:
    sent(harness)
    names = ", ".join(
        name for name in COLUMNS if name not in ("timestamp", "observed_timestamp", "tenant_id")
    )
    rows = harness.sql(f"SELECT {names}, tenant_id, record FROM audit_events ORDER BY sequence_number")
    assert len(rows) == 4
    for row in rows:
        record = json.loads(row[-1])
        assert row[-2] == HOME_TENANT == record["resource"]["av.tenant.id"]
        chain = record["hash_chain"]
        for name, value in zip(names.split(", "), row, strict=False):
            if name in ("body", "resource", "attributes"):
                value = json.loads(value)
            assert value == record.get(name, chain.get(name)), name


def test_times_are_derived_to_the_microsecond_beside_the_exact_text(pg_harness: PostgresHarness) -> None:
    sent(pg_harness)
    rows = pg_harness.sql(
        "SELECT count(*) FROM audit_events WHERE "
        "timestamp <> (convert_from(record, 'UTF8')::jsonb ->> 'timestamp')::timestamptz"
    )
    assert rows == [(0,)]

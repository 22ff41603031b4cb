"""The rows of the decision trail: what the databases hold fast, and what is found past them."""

from __future__ import annotations

from typing import Any

import pytest

from observatory.errors import StatementFailed
from observatory.features.backup.copy import copy_database
from observatory.ledger import thoughts as ledger
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import HOME_TENANT, Command, SubmissionResult
from tests.contract.conftest import OTHER_TENANT, Harness, PostgresHarness, SqliteHarness
from tests.contract.test_relay import events
from tests.contract.test_thoughts import reason, received
from tests.contract.thinking import SESSION, TASK, Thinker


@pytest.fixture
def ann(harness: Harness) -> Thinker:
    return Thinker(harness)


def test_records_and_nodes_cannot_be_changed_deleted_or_emptied_s332(ann: Thinker, harness: Harness) -> None:
    """S332: nor a seal, nor what a session began with."""
    ann.whole()
    before = [harness.sql(f"SELECT * FROM {table}") for table in ("thought_records", "merkle_nodes")]
    for table, column in (("thought_records", "author"), ("merkle_nodes", "hash")):
        assert harness.refuses(f"UPDATE {table} SET {column} = {column}")
        assert harness.refuses(f"DELETE FROM {table}")
        assert harness.refuses(f"TRUNCATE {table} CASCADE")
        assert harness.refuses(f"INSERT OR REPLACE INTO {table} SELECT * FROM {table}")
        assert harness.refuses(f"INSERT INTO {table} SELECT * FROM {table}")
    for change in ("root = NULL", "sealed_ns = NULL", "records = 3", "genesis = 'x'", "caller = 'x'"):
        assert harness.refuses(f"UPDATE thought_sessions SET {change}"), change
    for table in ("thought_sessions", "thought_tasks"):
        assert harness.refuses(f"DELETE FROM {table}")
    assert harness.refuses("UPDATE thought_tasks SET state = 'open'")
    after = [harness.sql(f"SELECT * FROM {table}") for table in ("thought_records", "merkle_nodes")]
    assert after == before


def writing(harness: Harness, *writes: RowWrite) -> None:
    harness.submit(
        Command(harness.admin(), harness.now(), lambda uow: SubmissionResult(200, None, [], list(writes)))
    )


def test_the_database_refuses_what_the_corridor_would_s332(ann: Thinker, harness: Harness) -> None:
    """S332: a record after the seal or out of turn, a second one of an index, a seal before its time, a task
    that is closed by anything but its reflection."""
    ann.start()
    ann.think("plan")
    (row,) = ann.records()
    assert harness.refuses("UPDATE thought_tasks SET state = 'closed'")
    assert harness.refuses(f"UPDATE thought_tasks SET state = 'closed', closed_by = '{row['record_id']}'")
    where = {"tenant_id": HOME_TENANT, "session_id": SESSION}
    seal = RowWrite("thought_sessions", {"sealed_ns": 1, "root": "sha256:00"}, where)
    for write in (
        RowWrite("thought_records", row | {"record_id": "rec_again"}),
        RowWrite("thought_records", row | {"record_index": 1}),
        RowWrite("thought_records", row | {"record_index": 5, "record_id": "r", "sequence_number": 99}),
        RowWrite("thought_records", row | {"record_index": 1, "record_id": "r", "type": "informational"}),
        seal,
    ):
        with pytest.raises(StatementFailed):
            writing(harness, write)
    writing(harness, RowWrite("thought_sessions", {"verified_records": 0}, where))
    with pytest.raises(StatementFailed):
        writing(harness, seal)
    ann.think("analysis", task_id="left")
    ann.verify()
    ann.think("reflection", task_id="left")
    writing(harness, RowWrite("thought_sessions", {"open_tasks": 0}, where))
    with pytest.raises(StatementFailed):
        writing(harness, seal)
    writing(harness, RowWrite("thought_sessions", {"open_tasks": 1}, where))
    ann.close()
    with pytest.raises(StatementFailed):
        writing(harness, RowWrite("thought_records", row | {"record_index": 4, "record_id": "rec_late"}))
    with pytest.raises(StatementFailed):
        writing(harness, RowWrite("merkle_nodes", where | {"level": 9, "node_index": 0, "hash": b"x"}))


# --- what is changed all the same ---


def disarmed(harness: Harness, statement: str) -> None:
    """With every right of whoever runs the database: the triggers are taken away first."""
    if isinstance(harness, SqliteHarness):
        tables = "('thought_records', 'thought_sessions', 'merkle_nodes')"
        for (name,) in harness.sql(
            f"SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name IN {tables}"
        ):
            harness.sql(f"DROP TRIGGER {name}")
    else:
        for table in ("thought_records", "thought_sessions", "merkle_nodes"):
            harness.sql(f"ALTER TABLE {table} DISABLE TRIGGER USER")
    for one in statement.split(";"):
        harness.sql(one)


MOVED = "UPDATE thought_records SET record_index = {} WHERE record_index = {}"
ELSE = "'sha256:" + "0" * 64 + "'"
# Every column of a record, and what somebody could put there.
TAMPERED = {
    "tenant_id": "'tnt_other'",
    "session_id": "'ses_else'",
    "record_index": "7",
    "record_id": "'rec_else'",
    "task_id": "'else'",
    "type": "'plan'",
    "content": "(SELECT content FROM thought_records WHERE record_index = 0)",
    "author": "'usr_else'",
    "created_at": "'2020-01-01T00:00:00.000000000Z'",
    "refs": "'[ ]'",
    "event_ids": "'[\"evt_else\"]'",
    "predecessor_chain_hash": ELSE,
    "content_hash": ELSE,
    "chain_hash": ELSE,
    "parent_chain_hash": ELSE,
    "sequence_number": "1",
    "audit_event_id": "'evt_else'",
    "shredded_by": "1",
}


@pytest.mark.req(307, 308, 309, 311, 312, 313)
def test_a_change_of_any_column_is_found_and_named_s333(ann: Thinker, harness: Harness) -> None:
    """S333: at the record it stands in; a hard failure, and an event of the highest severity."""
    harness.create_tenant(OTHER_TENANT)
    ann.whole()
    columns = [column for column in ann.records()[0] if column in TAMPERED]
    assert set(ann.records()[0]) == set(TAMPERED), "a new column needs its line"
    for column in columns:
        ((content,),) = harness.sql("SELECT content FROM thought_records WHERE record_index = 1")
        disarmed(harness, f"UPDATE thought_records SET {column} = {TAMPERED[column]} WHERE record_index = 1")
        assert ann.verify().answer == {"valid": False, "records": 4, "first_broken_index": 1}, column
        put_back(harness, column, content)
    assert ann.verify().answer["valid"]
    broken = events(harness, "chain_broken")
    assert len(broken) == len(columns) and {event["severity_number"] for event in broken} == {21}
    assert {event["body"]["first_broken_index"] for event in broken} == {1}


def put_back(harness: Harness, column: str, content: Any) -> None:
    """From the event that told of it and from what was asked for: as it was."""
    event = events(harness, "thought_recorded")[1]
    body = event["body"]
    whole = {
        "tenant_id": HOME_TENANT,
        "session_id": SESSION,
        "record_index": 1,
        "record_id": body["record_id"],
        "task_id": TASK,
        "type": "analysis",
        "content": content,
        "author": body["author"],
        "created_at": event["timestamp"],
        "refs": "[]",
        "event_ids": "[]",
        "predecessor_chain_hash": None,
        "content_hash": body["content_hash"],
        "chain_hash": body["chain_hash"],
        "parent_chain_hash": body["parent_chain_hash"],
        "sequence_number": event["hash_chain"]["sequence_number"],
        "audit_event_id": event["audit_event_id"],
        "shredded_by": None,
    }
    where = "chain_hash" if column != "chain_hash" else "content_hash"
    harness.sql(
        f"UPDATE thought_records SET {column} = :value WHERE {where} = :mark",
        value=whole[column],
        mark=whole[where],
    )


@pytest.mark.parametrize(
    ("statement", "index"),
    [
        ("DELETE FROM thought_records WHERE record_index = 3", 3),
        ("DELETE FROM thought_records WHERE record_index = 0", 0),
        (";".join(MOVED.format(*places) for places in ((9, 2), (2, 3), (3, 9))), 2),
        ("UPDATE thought_sessions SET caller = 'usr_else'", 0),
        ("UPDATE thought_sessions SET started_at = '2020-01-01T00:00:00.000000000Z'", 0),
        (f"UPDATE thought_sessions SET genesis = {ELSE}", 0),
        ("UPDATE thought_sessions SET sequence_number = 1", 0),
        (f"UPDATE thought_sessions SET predecessor_chain_hash = {ELSE}", 0),
        (f"UPDATE thought_sessions SET last_chain_hash = {ELSE}", 3),
        (f"UPDATE thought_sessions SET root = {ELSE}", 4),
        ("UPDATE thought_sessions SET records = 5", 4),
    ],
)
def test_what_is_cut_off_swapped_or_begun_otherwise_is_found_s333(
    ann: Thinker, harness: Harness, statement: str, index: int
) -> None:
    """S333: missing, swapped, another beginning, another head, another seal."""
    ann.whole()
    disarmed(harness, statement)
    found = ann.verify().answer
    assert (found["valid"], found["first_broken_index"]) == (False, index)


def test_a_chain_rewritten_whole_does_not_fit_its_events_s333(ann: Thinker, harness: Harness) -> None:
    """S333: content changed and every hash after it computed anew; the audit events still say otherwise."""
    ann.whole()
    disarmed(harness, "UPDATE thought_sessions SET sealed_ns = NULL, root = NULL")
    session, parent = ann.row(), ann.row()["genesis"]
    for row in ann.records():
        content = bytes(row["content"]) if row["record_index"] != 2 else b'{"choice":"stay"}'
        names = ("record_id", "session_id", "task_id", "type", "author", "created_at")
        thought = ledger.Thought(
            **{name: row[name] for name in names}, index=row["record_index"], content=content
        )
        hashes = ledger.link(thought, parent)
        harness.sql(
            "UPDATE thought_records SET content = :content, content_hash = :one, chain_hash = :two, "
            "parent_chain_hash = :parent WHERE record_id = :name",
            content=content,
            one=hashes.content_hash,
            two=hashes.chain_hash,
            parent=parent,
            name=row["record_id"],
        )
        parent = hashes.chain_hash
    harness.sql("UPDATE thought_sessions SET last_chain_hash = :last", last=parent)
    assert session["last_chain_hash"] != parent
    assert ann.verify().answer == {"valid": False, "records": 4, "first_broken_index": 2}


def test_nothing_is_sealed_over_a_broken_chain_s335(ann: Thinker, harness: Harness) -> None:
    """S335: the seal looks itself, and a broken verification undoes the one that passed."""
    ann.start()
    ann.think("plan")
    ann.verify()
    ann.think("reflection")
    disarmed(harness, "UPDATE thought_records SET author = 'usr_else' WHERE record_index = 0")
    assert reason(ann.seal()) == (409, "chain_broken")
    assert len(received(harness, "chain_broken")) == 1
    harness.sql(f"UPDATE thought_records SET author = '{ann.voice.name}'")
    assert reason(ann.seal()) == (409, "not_verified")


def test_a_copy_takes_the_trail_along_and_its_seal_holds_s346(
    sqlite_harness: SqliteHarness, empty_pg: str
) -> None:
    """S346: records before their seal, so that the other database takes them; it goes on there."""
    before = Thinker(sqlite_harness)
    sealed = before.whole().answer
    before.think("plan", session_id="ses_open")
    copy_database(sqlite_harness.url, empty_pg, lambda done, total: None)
    there = PostgresHarness(empty_pg)
    there.open()
    try:
        after = Thinker(there)
        assert after.records() == before.records() and after.row() == before.row()
        assert after.verify().answer == {"valid": True, "records": 4, "first_broken_index": None}
        assert after.seal().answer == sealed
        assert reason(after.think("plan", task_id="late", record_id="rec_late")) == (409, "sealed")
        assert after.think("reflection", session_id="ses_open", record_id="rec_on").answer["index"] == 1
    finally:
        there.end()

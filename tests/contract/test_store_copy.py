"""Moving a house from SQLite to PostgreSQL: the same trail, checked on the way, and one house at a time."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from observatory.errors import StartupError, StatementFailed, StoreError
from observatory.features.backup.copy import copy_database, without_password
from observatory.pipeline.ports import EventFilter, MessageFilter
from observatory.pipeline.state import HOME_TENANT
from observatory.store.migrations.migrate import migrate
from tests.contract import postgres
from tests.contract.conftest import OTHER_TENANT, PostgresHarness, SqliteHarness
from tests.samples import decision_log, envelope


@pytest.fixture
def full(sqlite_harness: SqliteHarness) -> SqliteHarness:
    sqlite_harness.create_tenant(OTHER_TENANT)
    for tenant_id in (HOME_TENANT, OTHER_TENANT):
        for _ in range(3):
            logs = [decision_log(meta={"step_id": str(uuid.uuid4()), "session_id": "s"}) for _ in range(400)]
            sqlite_harness.send(*logs, envelope("text"), tenant_id=tenant_id)
    sqlite_harness.sql(
        "UPDATE payloads SET raw = NULL, shredded_by = 1 WHERE key = (SELECT min(key) FROM payloads)"
    )
    return sqlite_harness


def nothing(done: int, total: int) -> None:
    return None


def test_every_row_arrives_and_the_new_house_goes_on_where_the_old_one_ended(
    full: SqliteHarness, empty_pg: str
) -> None:
    seen: list[tuple[int, int]] = []
    body = decision_log(meta={"step_id": str(uuid.uuid4())})
    answer = full.send(body)[0].answer
    report = copy_database(full.url, empty_pg, lambda done, total: seen.append((done, total)))
    assert (report.tenants, report.messages, report.shredded) == (2, 2407, 1)
    assert seen[-1] == (report.events, report.events) and len(seen) > 2

    there = PostgresHarness(empty_pg)
    there.open()
    try:
        for tenant_id in (HOME_TENANT, OTHER_TENANT):
            assert there.trail_of(tenant_id) == full.trail_of(tenant_id)
            assert there.read(there.store.head(tenant_id)) == full.read(full.store.head(tenant_id))
            for table in ("users", "versions", "agents", "sessions", "members", "tenants"):
                assert there.read(there.store.rows(tenant_id, table)) == full.read(
                    full.store.rows(tenant_id, table)
                )
            messages = MessageFilter()
            assert there.read(there.store.messages(tenant_id, messages, 5000, True)) == full.read(
                full.store.messages(tenant_id, messages, 5000, True)
            )
        entity = EventFilter(entity_id=there.read(there.store.rows(HOME_TENANT, "agents"))[0]["entity_id"])
        assert there.read(there.store.events(HOME_TENANT, entity, 9, True)) == full.read(
            full.store.events(HOME_TENANT, entity, 9, True)
        )
        assert there.send(body)[0].answer == answer, "a repeat answers as in the old house"
        assert there.send(decision_log())[0].code == 202
    finally:
        there.end()


def test_the_old_house_is_closed_for_good_and_names_the_new_one_without_its_password(
    full: SqliteHarness, empty_pg: str
) -> None:
    secret = empty_pg.replace("postgres:@", "postgres:hunter2@")
    copy_database(full.url, secret, nothing)
    with pytest.raises(StartupError, match="was moved to postgresql://postgres@/") as refused:
        migrate(full.url)
    assert "hunter2" not in str(refused.value)
    with pytest.raises(StatementFailed):
        full.send(decision_log())
    with pytest.raises(StartupError, match="was moved"):
        copy_database(full.url, empty_pg, nothing)


def test_an_interrupted_copy_leaves_the_source_open_and_the_target_refused(
    full: SqliteHarness, empty_pg: str, server: postgres.Server
) -> None:
    class Pulled(Exception):
        pass

    def pull(done: int, total: int) -> None:
        raise Pulled

    with pytest.raises(Pulled):
        copy_database(full.url, empty_pg, pull)
    migrate(full.url)
    assert full.send(decision_log())[0].code == 202
    with pytest.raises(StartupError, match="never finished"):
        migrate(empty_pg)
    with pytest.raises(StartupError, match="never finished"):
        copy_database(full.url, empty_pg, nothing)
    another = server.fresh()
    assert copy_database(full.url, another, nothing).tenants == 2
    server.drop(another)


def test_a_copy_cut_off_before_its_very_last_step_is_finished_by_the_next_try(
    full: SqliteHarness, empty_pg: str
) -> None:
    copy_database(full.url, empty_pg, nothing)
    postgres.execute(empty_pg, "INSERT INTO house VALUES ('copying', 'observatory.db')")
    with pytest.raises(StartupError, match="never finished"):
        migrate(empty_pg)
    assert copy_database(full.url, empty_pg, nothing).tenants == 2
    migrate(empty_pg)


@pytest.mark.parametrize("what", ["record", "raw"])
def test_a_source_that_was_tampered_with_is_not_moved(full: SqliteHarness, empty_pg: str, what: str) -> None:
    table, trigger = (
        ("audit_log", "audit_log_no_update") if what == "record" else ("payloads", "payloads_only_shred")
    )
    full.sql(f"DROP TRIGGER {trigger}")
    full.sql(
        f"UPDATE {table} SET {what} = CAST(replace(CAST({what} AS TEXT), 'text', 'tixt') AS BLOB) "
        f"WHERE key = (SELECT max(key) FROM {table})"
    )
    with pytest.raises(StoreError, match="nothing was moved"):
        copy_database(full.url, empty_pg, nothing)
    migrate(full.url)


def test_a_source_whose_last_event_was_cut_off_is_not_moved(full: SqliteHarness, empty_pg: str) -> None:
    full.sql("DROP TRIGGER audit_log_no_delete")
    full.sql("DELETE FROM audit_log WHERE key = (SELECT max(key) FROM audit_log)")
    with pytest.raises(StoreError, match="nothing was moved"):
        copy_database(full.url, empty_pg, nothing)
    migrate(full.url)


def test_only_an_existing_sqlite_house_is_copied_and_only_into_an_empty_database(
    sqlite_harness: SqliteHarness, pg_harness: PostgresHarness, tmp_path: Path
) -> None:
    with pytest.raises(StartupError, match="already holds an Observatory"):
        copy_database(sqlite_harness.url, pg_harness.url, nothing)
    with pytest.raises(StartupError, match="there is no database"):
        copy_database(f"sqlite:///{tmp_path}/none.db", pg_harness.url, nothing)
    with pytest.raises(StartupError, match="SQLite"):
        copy_database(pg_harness.url, pg_harness.url, nothing)
    with pytest.raises(StartupError, match="postgresql://"):
        copy_database(sqlite_harness.url, sqlite_harness.url, nothing)
    assert not (tmp_path / "none.db").exists()


def test_a_target_with_tables_of_another_program_is_refused(
    sqlite_harness: SqliteHarness, empty_pg: str
) -> None:
    postgres.execute(empty_pg, "CREATE TABLE orders (id int)")
    with pytest.raises(StartupError, match="another program"):
        copy_database(sqlite_harness.url, empty_pg, nothing)


def test_a_copy_needs_no_superuser(full: SqliteHarness, owned_pg: str) -> None:
    assert copy_database(full.url, owned_pg, nothing).tenants == 2
    there = PostgresHarness(owned_pg)
    there.open()
    assert there.trail_of(OTHER_TENANT) == full.trail_of(OTHER_TENANT)
    there.end()


def test_passwords_are_taken_out_of_urls() -> None:
    assert without_password("postgresql://u:p@h:5432/d?x=1") == "postgresql://u@h:5432/d?x=1"
    assert without_password("postgresql://h/d") == "postgresql://h/d"

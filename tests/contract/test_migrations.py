"""A database is brought to this version whole or not at all, and one that is not ours is left alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from observatory.errors import StartupError
from observatory.pipeline.state import HOME_TENANT
from observatory.protocol.identity import mint
from observatory.store.migrations.migrate import REVISIONS, migrate
from tests.contract import postgres
from tests.contract.conftest import Harness, PostgresHarness, SqliteHarness
from tests.samples import decision_log

HEAD = REVISIONS[-1]  # their order is the one they were made in, not that of their names


@pytest.fixture(params=["sqlite", "postgres"])
def bare(request: pytest.FixtureRequest, tmp_path: Path) -> Harness:
    """A house over a database nobody has touched yet; not opened."""
    if request.param == "sqlite":
        return SqliteHarness(tmp_path / "data" / "observatory.db")
    return PostgresHarness(request.getfixturevalue("empty_pg"))


def revision(harness: Harness) -> Any:
    return harness.sql("SELECT version_num FROM alembic_version")[0][0]


def write(harness: Harness, statement: str) -> None:
    """Past the store, with the operator's rights."""
    if isinstance(harness, SqliteHarness):
        harness.path.parent.mkdir(parents=True, exist_ok=True)
        harness.sql(statement)
    else:
        postgres.execute(harness.url, statement)


def test_a_fresh_database_becomes_a_house_and_a_second_look_changes_nothing(bare: Harness) -> None:
    assert migrate(bare.url)[0] is None
    assert revision(bare) == HEAD
    assert migrate(bare.url) == (HEAD, None)
    bare.open()
    bare.create_tenant(HOME_TENANT)
    assert bare.send(decision_log())[0].code == 202
    bare.end()


def test_a_house_of_the_first_version_keeps_its_rows_and_gets_the_law_s72(bare: Harness) -> None:
    migrate(bare.url, "0001")
    assert revision(bare) == "0001"
    write(bare, "INSERT INTO tenants (tenant_id, display_name, created_ns) VALUES ('tnt_old', 'Old', 1)")
    present, copy = migrate(bare.url)
    assert (present, revision(bare)) == ("0001", HEAD)
    assert bare.sql("SELECT tenant_id FROM tenants") == [("tnt_old",)]
    if isinstance(bare, SqliteHarness):
        assert copy == bare.path.with_name("observatory.db.before-0001")
        kept = SqliteHarness(copy)
        assert revision(kept) == "0001"
        assert kept.sql("SELECT tenant_id FROM tenants") == [("tnt_old",)]
        assert copy.stat().st_mode == bare.path.stat().st_mode


def test_a_verification_of_before_is_made_again_where_no_seal_stands_s619(bare: Harness) -> None:
    """S619: it has no event that could be named; under a seal, and of all else, nothing is touched."""
    migrate(bare.url, "0012")
    write(bare, "INSERT INTO tenants (tenant_id, display_name, created_ns) VALUES ('tnt_old', 'Old', 1)")
    for name, sealed in (("ses_open", "NULL"), ("ses_sealed", "7")):
        write(
            bare,
            "INSERT INTO thought_sessions (tenant_id, session_id, session_no, caller, opened_by, intent, "
            "task_id, started_at, genesis, sequence_number, proof_grade, records, open_tasks, "
            "last_chain_hash, verified_records, sealed_ns) "
            f"VALUES ('tnt_old', '{name}', 0, 'c', 'o', 'i', 't', 's', 'g', 1, 1, 3, 0, 'h', 2, {sealed})",
        )
    migrate(bare.url)
    found = bare.sql("SELECT session_id, intent, verified_records FROM thought_sessions ORDER BY session_id")
    assert [tuple(row) for row in found] == [("ses_open", "i", None), ("ses_sealed", "i", 2)]


def test_a_reminder_of_before_learns_which_message_asked_for_it_s791(bare: Harness) -> None:
    """S791: by its id, with its runs and letters; where that message was shredded, what it carries goes."""
    migrate(bare.url, "0013")
    write(bare, "INSERT INTO tenants (tenant_id, display_name, created_ns) VALUES ('tnt_old', 'Old', 1)")
    head = "tenant_id, tenant_no, sequence_number, event_hash, sessions, agents, access_version"
    write(
        bare,
        f"INSERT INTO chain_heads ({head}, rulebook_version) VALUES ('tnt_old', 3, 9, 'h', 1, 1, 1, 1)",
    )
    names = {number: mint("job_", 1, number) for number in (7, 0xABCDEF0123)}
    for job_id, asked in [*((name, "'agt_1'") for name in names.values()), ("job_mine", "NULL")]:
        write(
            bare,
            "INSERT INTO jobs (tenant_id, job_id, name, kind, zone, target_kind, target_name, intent, "
            "payload, misfire, overlap, jitter_s, grace_s, max_tries, state, version, failures, runs, "
            "open_runs, queued, asked_by, created_ns, created_by, updated_ns, updated_by) VALUES "
            f"('tnt_old', '{job_id}', '{job_id}', 'once', 'UTC', 'agent', 'a', 'reminder', 'words', "
            f"'skip', 'allow', 0, 1, 1, 'active', 1, 0, 0, 0, 0, {asked}, 1, 'u', 1, 'u')",
        )
        write(
            bare,
            "INSERT INTO job_runs (tenant_id, job_id, scheduled_for, run_id, epoch, state, attempt, manual, "
            f"body, created_ns, created_by) VALUES ('tnt_old', '{job_id}', 1, 'run_{job_id}', 1, 'dead', 1, "
            "0, 'words', 1, 'u')",
        )
        write(
            bare,
            "INSERT INTO dead_letters (tenant_id, letter_id, kind, source_id, source_name, subject_id, "
            f"reason, preview, state, created_ns) VALUES ('tnt_old', 'dlt_{job_id}', 'job', '{job_id}', 'n', "
            "'s', 'r', 'words', 'dead', 1)",
        )
    if isinstance(bare, SqliteHarness):
        write(bare, f"INSERT INTO payloads (key, shredded_by) VALUES ({3 << 40 | 7}, 8)")
    else:
        write(bare, "INSERT INTO payloads (tenant_id, sequence_number, shredded_by) VALUES ('tnt_old', 7, 8)")
    migrate(bare.url)
    for table, text in (("jobs", "payload"), ("job_runs", "body"), ("dead_letters", "preview")):
        found = {row[0]: row[1] for row in bare.sql(f"SELECT asked_seq, {text} FROM {table}")}
        assert found.keys() == {*names, None}
        assert "words" not in found.pop(7) and set(found.values()) == {"words"}, table


def test_a_failure_in_the_middle_leaves_the_old_schema_whole(bare: Harness) -> None:
    migrate(bare.url, "0001")
    table = bare.trail
    write(bare, f"CREATE INDEX {table}_severe ON {table} (tenant_{'no' if table == 'audit_log' else 'id'})")
    catalogue = (
        "SELECT name FROM sqlite_master ORDER BY 1"
        if isinstance(bare, SqliteHarness)
        else "SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY 1"
    )
    before = bare.sql(catalogue)
    with pytest.raises(StartupError, match="nothing was changed"):
        migrate(bare.url)
    assert bare.sql(catalogue) == before
    assert revision(bare) == "0001"
    write(bare, f"DROP INDEX {table}_severe")
    migrate(bare.url)
    assert revision(bare) == HEAD


def test_a_newer_database_is_refused_s72(bare: Harness) -> None:
    migrate(bare.url)
    write(bare, "UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(StartupError, match="newer Observatory"):
        migrate(bare.url)
    assert revision(bare) == "9999"


def test_a_database_of_another_program_is_refused_and_left_as_it_was(bare: Harness) -> None:
    write(bare, "CREATE TABLE orders (id INTEGER)")
    with pytest.raises(StartupError, match="another program"):
        migrate(bare.url)
    assert bare.sql("SELECT count(*) FROM orders") == [(0,)]
    assert bare.refuses("SELECT * FROM alembic_version")


@pytest.mark.parametrize(
    ("mark", "sentence"), [("moved_to", "was moved to elsewhere"), ("copying", "never finished")]
)
def test_a_database_that_was_moved_or_half_copied_is_refused_s72(
    bare: Harness, mark: str, sentence: str
) -> None:
    migrate(bare.url)
    write(bare, f"INSERT INTO house (name, value) VALUES ('{mark}', 'elsewhere')")
    with pytest.raises(StartupError, match=sentence):
        migrate(bare.url)


def test_two_programs_starting_at_once_migrate_once(bare: Harness) -> None:
    program = (
        "import sys; from observatory.store.migrations.migrate import migrate; print(migrate(sys.argv[1])[0])"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", program, bare.url], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    found = [process.communicate(timeout=60)[0].strip() for process in running]
    assert sorted(found) == [HEAD, HEAD, "None"]


def test_a_file_that_is_no_database_is_refused_with_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("this is not a database " * 100)
    with pytest.raises(StartupError, match="cannot be opened"):
        migrate(f"sqlite:///{path}")
    assert path.read_text().startswith("this is not")


def test_a_server_that_is_away_is_refused_with_a_sentence() -> None:
    with pytest.raises(StartupError, match="cannot be reached"):
        migrate("postgresql://nobody@/none?host=/tmp/no-such-folder")


def test_a_migrated_house_has_every_table_and_column_the_store_names(harness: Harness) -> None:
    from observatory.store import tables

    own = tables.SQLITE if isinstance(harness, SqliteHarness) else tables.POSTGRES
    for table in (*tables.SHARED.tables.values(), *own.tables.values()):
        harness.sql(f"SELECT {', '.join(column.name for column in table.c)} FROM {table.name}")

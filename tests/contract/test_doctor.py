"""What `observatory doctor` finds in a database, on both of them: settings read back, and what waits."""

from __future__ import annotations

import time

import pytest

from observatory.features.doctor import database_checks as doctor_database
from observatory.features.doctor.database_checks import CheckResult, database
from observatory.settings import Settings
from observatory.store.migrations.migrate import REVISIONS
from tests.contract.conftest import Harness, PostgresHarness

READ_BACK = {
    "sqlite": {"SQLite", "pragmas", "space for a backup"},
    "postgres": {"synchronous_commit", "fsync", "full_page_writes", "database clock", "row security"},
}


def found(harness: Harness, is_running: bool = True) -> dict[str, CheckResult]:
    return {one.check: one for one in database(Settings(db=harness.url), is_running)}


def problems(harness: Harness, is_running: bool = True) -> set[str]:
    return {name for name, one in found(harness, is_running).items() if not one.ok}


def test_a_sound_database_is_found_sound_and_what_waits_in_it_is_told_s597(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S597: each problem with what to do."""
    whole = found(harness)
    assert problems(harness) == set()
    kind = "postgres" if isinstance(harness, PostgresHarness) else "sqlite"
    assert READ_BACK[kind] | {"database", "leases", "dead letters"} == whole.keys()
    assert f"schema {REVISIONS[-1]}" in whole["database"].found
    long_ago = time.time_ns() - 3_600 * 10**9
    harness.sql(f"INSERT INTO leases VALUES ('scheduler', 'gateway-1', 7, {long_ago}, {long_ago})")
    harness.sql(
        "INSERT INTO dead_letters (tenant_id, letter_id, kind, source_id, source_name, subject_id, reason, "
        "preview, state, created_ns) "
        f"VALUES ('tnt_default', 'dlq_1', 'job', 'j', 'j', 's', 'r', '', 'dead', {long_ago})"
    )
    late = {"leases"} if kind == "postgres" else set()  # on SQLite only the gateway knows until when
    assert problems(harness) == {"dead letters", *late}
    assert problems(harness, is_running=False) == {"dead letters"}, "nobody leads where nothing runs"
    ill = found(harness)
    assert "scheduler: gateway-1 (epoch 7" in ill["leases"].found
    assert "observatory dead-letters" in ill["dead letters"].do
    monkeypatch.setattr(doctor_database, "REVISIONS", (*REVISIONS, "9999"))
    assert "this program has 9999" in found(harness)["database"].found
    assert "observatory migrate" in found(harness)["database"].do


def test_a_database_that_cannot_be_asked_is_a_problem_and_no_crash_s597(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("ill")
    path = folder / "x#1%41?.db"  # in a URI each of these would mean something
    path.write_bytes(b"nonsense" * 1_000)
    for url in (f"sqlite:///{path}", f"postgresql://nobody@/none?host={folder}"):
        [ill] = [one for one in database(Settings(db=url), False) if not one.ok]
        assert ill.check == "database" and ill.do
    assert list(folder.iterdir()) == [path], "nothing was made beside it"

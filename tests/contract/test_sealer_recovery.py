"""The sealer after a kill, a restored backup, a lost mark or another key: it never signs less than it did."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from observatory.ledger import note
from observatory.pipeline.state import HOME_TENANT
from observatory.runtime.log_key import LogMark
from tests.contract.conftest import Harness, SqliteHarness
from tests.contract.sealing import NAME, LogSealer, log_sealer_of, say, true_root, verifier


@pytest.fixture
def log_sealer(harness: Harness, tmp_path: Path) -> LogSealer:
    return log_sealer_of(harness, tmp_path)


def test_killed_after_the_mark_it_goes_on_from_the_record_s358(log_sealer: LogSealer) -> None:
    """S358: what was about to be signed is a beginning of the record, and is signed or passed over."""
    harness = log_sealer.harness
    log_sealer.look()
    say(harness, 5)
    size = len(harness.trail_of())
    for mark in (size - 2, size):  # killed with the mark written, and nothing kept
        log_sealer.sealer.marks.advance(
            {HOME_TENANT: LogMark(f"{NAME}/{HOME_TENANT}", mark, true_root(harness, mark))}
        )
        log_sealer.again()
    assert log_sealer.sealed().size == size
    assert log_sealer.sealer.refused == {}


def test_a_mark_far_ahead_of_what_was_kept_is_reached_in_one_step_s358(
    log_sealer: LogSealer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S358: nothing below it is signed on the way."""
    monkeypatch.setattr("observatory.features.transparency.worker.PAGE", 10)
    say(log_sealer.harness, 60)
    mark = LogMark(f"{NAME}/{HOME_TENANT}", 50, true_root(log_sealer.harness, 50))
    log_sealer.sealer.marks.advance({HOME_TENANT: mark})
    log_sealer.again()
    assert log_sealer.sealed().size == len(log_sealer.harness.trail_of())
    rows = log_sealer.harness.read(log_sealer.harness.store.rows(HOME_TENANT, "checkpoints"))
    assert min(row["size"] for row in rows) == 50


def test_killed_after_it_was_kept_it_goes_on_s358(log_sealer: LogSealer) -> None:
    """S358: the first look of the next process signs nothing twice."""
    say(log_sealer.harness, 700)
    kept = log_sealer.sealed()
    log_sealer.again()
    log_sealer.look()
    assert log_sealer.checkpoint() == kept and not log_sealer.sealer.refused
    say(log_sealer.harness)
    assert log_sealer.sealed().size == kept.size + 1


def restored(log_sealer: LogSealer, tmp_path: Path) -> None:
    """The database as it was some events ago; the key's folder as it is now."""
    harness = log_sealer.harness
    assert isinstance(harness, SqliteHarness)
    say(harness, 3)
    log_sealer.look()
    harness.close()
    copy = tmp_path / "backup.db"
    shutil.copyfile(harness.path, copy)
    harness.open()
    log_sealer.again()
    say(harness, 4)
    log_sealer.look()
    harness.close()
    shutil.copyfile(copy, harness.path)
    harness.open()


@pytest.mark.parametrize("later", [0, 10], ids=["shorter", "as long, another history"])
def test_a_restored_backup_is_not_signed_s359(
    sqlite_harness: SqliteHarness, tmp_path: Path, later: int
) -> None:
    """S359: neither while it is shorter than what was signed, nor when it has grown past it differently."""
    (tmp_path / "keys").mkdir()
    log_sealer = LogSealer(sqlite_harness, tmp_path / "keys")
    restored(log_sealer, tmp_path)
    if later:
        say(sqlite_harness, later)
    before = log_sealer.checkpoint()
    log_sealer.again()
    log_sealer.look()
    refusal = log_sealer.sealer.refused[HOME_TENANT]
    assert refusal.kind == "rollback" and "--accept-rollback" in refusal.sentence
    assert log_sealer.checkpoint() == before
    assert log_sealer.sealer.unsigned_age_s > 0


def test_an_accepted_rollback_is_recorded_and_gone_on_from_s360(
    sqlite_harness: SqliteHarness, tmp_path: Path
) -> None:
    """S360: once; the event tells what was signed and what there is, and a later start needs no flag."""
    (tmp_path / "keys").mkdir()
    log_sealer = LogSealer(sqlite_harness, tmp_path / "keys")
    restored(log_sealer, tmp_path)
    lost = log_sealer.sealer.marks.load()[HOME_TENANT]
    log_sealer.again(accepts=True)
    kept = log_sealer.sealed()
    (event,) = [one for one in sqlite_harness.trail_of() if b"rollback_accepted" in one.record]
    assert f'"signed_size":{lost.size}'.encode() in event.record and b'"severity_number":21' in event.record
    assert kept.size == len(sqlite_harness.trail_of()) and kept.root == true_root(sqlite_harness, kept.size)
    log_sealer.again()
    say(sqlite_harness)
    assert log_sealer.sealed().size == kept.size + 1 and not log_sealer.sealer.refused


def test_a_record_rolled_back_while_the_gateway_runs_is_seen_s359(
    sqlite_harness: SqliteHarness, tmp_path: Path
) -> None:
    """S359: without a restart; though it grows past what was signed before anybody looks."""
    (tmp_path / "keys").mkdir()
    harness, log_sealer = sqlite_harness, LogSealer(sqlite_harness, tmp_path / "keys")
    say(harness, 3)
    log_sealer.look()
    size, event_hash = harness.read(harness.store.head(HOME_TENANT))
    say(harness, 2)
    log_sealer.look()
    for table in ("audit_log", "messages", "checkpoints"):
        harness.sql(f"DROP TRIGGER {table}_no_delete")
    harness.sql("DROP TRIGGER payloads_no_delete")
    for table in ("audit_log", "messages", "payloads"):
        harness.sql(f"DELETE FROM {table} WHERE key & 1048575 > {size}")
    harness.sql(f"DELETE FROM checkpoints WHERE size > {size}")
    harness.sql(f"UPDATE chain_heads SET sequence_number = {size}, event_hash = '{event_hash}'")
    say(harness, 10)
    log_sealer.look()
    assert log_sealer.sealer.refused[HOME_TENANT].kind == "rollback"
    kept = log_sealer.checkpoint()
    assert kept is not None and kept.size == size


def test_without_what_was_signed_last_nothing_is_gone_on_from_s359(log_sealer: LogSealer) -> None:
    """S359: somebody removed the file beside the key."""
    log_sealer.look()
    log_sealer.sealer.marks.path.unlink()
    log_sealer.again()
    say(log_sealer.harness)
    log_sealer.look()
    assert log_sealer.sealer.refused[HOME_TENANT].kind == "marks"
    log_sealer.again(accepts=True)
    assert log_sealer.sealed().size == len(log_sealer.harness.trail_of())


def test_another_key_does_not_go_on_with_the_log_s361(log_sealer: LogSealer, tmp_path: Path) -> None:
    """S361: nor no key at all; a lost one is followed by a new one only when that is accepted."""
    harness = log_sealer.harness
    kept = log_sealer.sealed()
    say(harness)
    log_sealer.start(None)
    log_sealer.look()
    assert log_sealer.sealer.refused[HOME_TENANT].kind == "key" and log_sealer.checkpoint() == kept
    log_sealer.path.unlink()
    log_sealer.again()
    log_sealer.look()
    assert log_sealer.sealer.refused[HOME_TENANT].kind == "key" and log_sealer.checkpoint() == kept
    log_sealer.again(accepts=True)
    new = log_sealer.sealed()
    note.open(new.note, [verifier(log_sealer)])
    assert len(harness.read(harness.store.rows(HOME_TENANT, "log_keys"))) == 2
    assert any(b"rollback_accepted" in event.record for event in harness.trail_of())


def test_a_mark_of_another_log_is_refused_until_it_is_accepted_s1064(log_sealer: LogSealer) -> None:
    """S1064: whoever changes the name in the marks does not turn the check off; accepting it is on record."""
    say(log_sealer.harness, 3)
    kept = log_sealer.sealed()
    path = log_sealer.path.with_name("log.key.signed")
    path.write_bytes(path.read_bytes().replace(NAME.encode(), b"log.example/other"))
    log_sealer.again()
    log_sealer.look()
    refusal = log_sealer.sealer.refused[HOME_TENANT]
    assert refusal.kind == "marks" and "another name" in refusal.sentence and "log_name" in refusal.sentence
    say(log_sealer.harness, 3)
    log_sealer.look()
    assert log_sealer.checkpoint() == kept, "nothing more is signed"
    log_sealer.again(accepts=True)
    assert log_sealer.sealed().size > kept.size and not log_sealer.sealer.refused
    (event,) = [one for one in log_sealer.harness.trail_of() if b"rollback_accepted" in one.record]
    assert b'"reason":"marks"' in event.record
    mark = log_sealer.sealer.marks.of(HOME_TENANT)
    assert mark is not None and mark.origin == f"{NAME}/{HOME_TENANT}"

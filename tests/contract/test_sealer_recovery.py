"""The sealer after a kill, a restored backup, a lost mark or another key: it never signs less than it did."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from observatory.features.transparency.log_key import Mark
from observatory.ledger import note
from observatory.pipeline.state import HOME_TENANT
from tests.contract.conftest import House, SqliteHouse
from tests.contract.sealing import NAME, Desk, desk_of, say, true_root, verifier


@pytest.fixture
def desk(house: House, tmp_path: Path) -> Desk:
    return desk_of(house, tmp_path)


def test_killed_after_the_mark_it_goes_on_from_the_record_s358(desk: Desk) -> None:
    """S358: what was about to be signed is a beginning of the record, and is signed or passed over."""
    house = desk.house
    desk.look()
    say(house, 5)
    size = len(house.trail_of())
    for mark in (size - 2, size):  # killed with the mark written, and nothing kept
        desk.sealer.marks.advance({HOME_TENANT: Mark(f"{NAME}/{HOME_TENANT}", mark, true_root(house, mark))})
        desk.again()
    assert desk.sealed().size == size
    assert desk.sealer.refused == {}


def test_a_mark_far_ahead_of_what_was_kept_is_reached_in_one_step_s358(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S358: nothing below it is signed on the way."""
    monkeypatch.setattr("observatory.features.transparency.worker.PAGE", 10)
    say(desk.house, 60)
    mark = Mark(f"{NAME}/{HOME_TENANT}", 50, true_root(desk.house, 50))
    desk.sealer.marks.advance({HOME_TENANT: mark})
    desk.again()
    assert desk.sealed().size == len(desk.house.trail_of())
    rows = desk.house.read(desk.house.store.rows(HOME_TENANT, "checkpoints"))
    assert min(row["size"] for row in rows) == 50


def test_killed_after_it_was_kept_it_goes_on_s358(desk: Desk) -> None:
    """S358: the first look of the next process signs nothing twice."""
    say(desk.house, 700)
    kept = desk.sealed()
    desk.again()
    desk.look()
    assert desk.checkpoint() == kept and not desk.sealer.refused
    say(desk.house)
    assert desk.sealed().size == kept.size + 1


def restored(desk: Desk, tmp_path: Path) -> None:
    """The database as it was some events ago; the key's folder as it is now."""
    house = desk.house
    assert isinstance(house, SqliteHouse)
    say(house, 3)
    desk.look()
    house.close()
    copy = tmp_path / "backup.db"
    shutil.copyfile(house.path, copy)
    house.open()
    desk.again()
    say(house, 4)
    desk.look()
    house.close()
    shutil.copyfile(copy, house.path)
    house.open()


@pytest.mark.parametrize("later", [0, 10], ids=["shorter", "as long, another history"])
def test_a_restored_backup_is_not_signed_s359(sqlite_house: SqliteHouse, tmp_path: Path, later: int) -> None:
    """S359: neither while it is shorter than what was signed, nor when it has grown past it differently."""
    (tmp_path / "keys").mkdir()
    desk = Desk(sqlite_house, tmp_path / "keys")
    restored(desk, tmp_path)
    if later:
        say(sqlite_house, later)
    before = desk.checkpoint()
    desk.again()
    desk.look()
    refusal = desk.sealer.refused[HOME_TENANT]
    assert refusal.kind == "rollback" and "--accept-rollback" in refusal.sentence
    assert desk.checkpoint() == before
    assert desk.sealer.unsigned_age_s > 0


def test_an_accepted_rollback_is_recorded_and_gone_on_from_s360(
    sqlite_house: SqliteHouse, tmp_path: Path
) -> None:
    """S360: once; the event tells what was signed and what there is, and a later start needs no flag."""
    (tmp_path / "keys").mkdir()
    desk = Desk(sqlite_house, tmp_path / "keys")
    restored(desk, tmp_path)
    lost = desk.sealer.marks.load()[HOME_TENANT]
    desk.again(accepts=True)
    kept = desk.sealed()
    (event,) = [one for one in sqlite_house.trail_of() if b"rollback_accepted" in one.record]
    assert f'"signed_size":{lost.size}'.encode() in event.record and b'"severity_number":21' in event.record
    assert kept.size == len(sqlite_house.trail_of()) and kept.root == true_root(sqlite_house, kept.size)
    desk.again()
    say(sqlite_house)
    assert desk.sealed().size == kept.size + 1 and not desk.sealer.refused


def test_a_record_rolled_back_while_the_gateway_runs_is_seen_s359(
    sqlite_house: SqliteHouse, tmp_path: Path
) -> None:
    """S359: without a restart; though it grows past what was signed before anybody looks."""
    (tmp_path / "keys").mkdir()
    house, desk = sqlite_house, Desk(sqlite_house, tmp_path / "keys")
    say(house, 3)
    desk.look()
    size, event_hash = house.read(house.store.head(HOME_TENANT))
    say(house, 2)
    desk.look()
    for table in ("audit_log", "messages", "checkpoints"):
        house.sql(f"DROP TRIGGER {table}_no_delete")
    house.sql("DROP TRIGGER payloads_no_delete")
    for table in ("audit_log", "messages", "payloads"):
        house.sql(f"DELETE FROM {table} WHERE key & 1048575 > {size}")
    house.sql(f"DELETE FROM checkpoints WHERE size > {size}")
    house.sql(f"UPDATE chain_heads SET sequence_number = {size}, event_hash = '{event_hash}'")
    say(house, 10)
    desk.look()
    assert desk.sealer.refused[HOME_TENANT].kind == "rollback"
    kept = desk.checkpoint()
    assert kept is not None and kept.size == size


def test_without_what_was_signed_last_nothing_is_gone_on_from_s359(desk: Desk) -> None:
    """S359: somebody removed the file beside the key."""
    desk.look()
    desk.sealer.marks.path.unlink()
    desk.again()
    say(desk.house)
    desk.look()
    assert desk.sealer.refused[HOME_TENANT].kind == "marks"
    desk.again(accepts=True)
    assert desk.sealed().size == len(desk.house.trail_of())


def test_another_key_does_not_go_on_with_the_log_s361(desk: Desk, tmp_path: Path) -> None:
    """S361: nor no key at all; a lost one is followed by a new one only when that is accepted."""
    house = desk.house
    kept = desk.sealed()
    say(house)
    desk.start(None)
    desk.look()
    assert desk.sealer.refused[HOME_TENANT].kind == "key" and desk.checkpoint() == kept
    desk.path.unlink()
    desk.again()
    desk.look()
    assert desk.sealer.refused[HOME_TENANT].kind == "key" and desk.checkpoint() == kept
    desk.again(accepts=True)
    new = desk.sealed()
    note.open(new.note, [verifier(desk)])
    assert len(house.read(house.store.rows(HOME_TENANT, "log_keys"))) == 2
    assert any(b"rollback_accepted" in event.record for event in house.trail_of())


def test_a_mark_of_another_log_is_refused_until_it_is_accepted_s1064(desk: Desk) -> None:
    """S1064: whoever changes the name in the marks does not turn the check off; accepting it is on record."""
    say(desk.house, 3)
    kept = desk.sealed()
    path = desk.path.with_name("log.key.signed")
    path.write_bytes(path.read_bytes().replace(NAME.encode(), b"log.example/other"))
    desk.again()
    desk.look()
    refusal = desk.sealer.refused[HOME_TENANT]
    assert refusal.kind == "marks" and "another name" in refusal.sentence and "log_name" in refusal.sentence
    say(desk.house, 3)
    desk.look()
    assert desk.checkpoint() == kept, "nothing more is signed"
    desk.again(accepts=True)
    assert desk.sealed().size > kept.size and not desk.sealer.refused
    (event,) = [one for one in desk.house.trail_of() if b"rollback_accepted" in one.record]
    assert b'"reason":"marks"' in event.record
    mark = desk.sealer.marks.of(HOME_TENANT)
    assert mark is not None and mark.origin == f"{NAME}/{HOME_TENANT}"

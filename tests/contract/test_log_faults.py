"""The sealer among others' faults: a bent log is refused by itself, and no race of gateways loses a key."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from observatory.errors import StoreError
from observatory.features.transparency.log_key import Keyring, Mark, UnderWay
from observatory.features.transparency.types_log import LogBroken
from observatory.ledger import note
from observatory.pipeline.state import HOME_TENANT
from tests.contract.conftest import OTHER_TENANT, House, SqliteHouse
from tests.contract.sealing import NAME, Desk, desk_of, say


@pytest.fixture
def desk(house: House, tmp_path: Path) -> Desk:
    return desk_of(house, tmp_path)


def ring_of(desk: Desk) -> Keyring:
    ring = desk.sealer.keyring
    assert ring is not None
    return ring


def is_all_signed(desk: Desk, tenant_id: str = HOME_TENANT) -> bool:
    kept = desk.checkpoint(tenant_id)
    return kept is not None and kept.size == desk.house.read(desk.house.store.head(tenant_id))[0]


def signed_by(desk: Desk) -> list[set[str]]:
    """The keys' ids under each checkpoint, oldest first."""
    rows = desk.house.read(desk.house.store.rows(HOME_TENANT, "checkpoints"))
    rows.sort(key=lambda row: int(row["size"]))
    return [{line.key_id.hex() for line in note.split(bytes(row["note"]))[1]} for row in rows]


def is_bridged(desk: Desk) -> bool:
    """Whether each key that came to sign did so the first time beside the one before it."""
    keys = desk.house.read(desk.house.store.rows(HOME_TENANT, "log_keys"))
    ids = [str(row["key_id"]) for row in sorted(keys, key=lambda row: int(row["since"]))]
    steps = signed_by(desk)
    return all({old, new} in steps for old, new in pairwise(ids))


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("checkpoints", "root"),
        ("checkpoints", "note"),
        ("checkpoints", "signed_ns"),
        ("log_keys", "public_key"),
        ("log_keys", "since"),
    ],
)
def test_a_bent_cell_of_one_tenant_leaves_the_others_signed_s374(
    sqlite_house: SqliteHouse, tmp_path: Path, table: str, column: str
) -> None:
    """S374: the bent log is refused as broken, with a sentence."""
    house, desk = sqlite_house, desk_of(sqlite_house, tmp_path)
    house.create_tenant(OTHER_TENANT)
    say(house, 2, OTHER_TENANT)
    desk.look()
    house.sql(f"DROP TRIGGER {table}_no_update")
    house.sql(f"UPDATE {table} SET {column} = 'x' WHERE tenant_id = '{OTHER_TENANT}'")
    desk.again()
    say(house, 1, OTHER_TENANT)
    say(house)
    desk.look()
    assert is_all_signed(desk) and desk.sealer.refused.keys() == {OTHER_TENANT}
    refusal = desk.sealer.refused[OTHER_TENANT]
    assert refusal.kind == "broken" and "restore the database" in refusal.sentence


class Away:
    """Witnesses that cannot be asked for one tenant, until they can."""

    is_away = True

    async def heads(self, tenant_id: str) -> list[Mark]:
        if self.is_away and tenant_id == OTHER_TENANT:
            raise StoreError("its heads cannot be read")
        return []

    async def forgo(self, tenant_id: str) -> None:
        raise AssertionError


def test_a_tenant_that_has_to_wait_holds_up_no_other_s374(sqlite_house: SqliteHouse, tmp_path: Path) -> None:
    """S374: and is signed as soon as it can be."""
    house, desk, witnesses = sqlite_house, desk_of(sqlite_house, tmp_path), Away()
    house.create_tenant(OTHER_TENANT)
    desk.sealer.ask(witnesses)
    desk.look()
    assert is_all_signed(desk) and desk.checkpoint(OTHER_TENANT) is None and not desk.sealer.refused
    witnesses.is_away = False
    desk.look()
    assert is_all_signed(desk, OTHER_TENANT)


def test_a_second_rotation_waits_for_the_first_ones_checkpoint_s364(
    sqlite_house: SqliteHouse, tmp_path: Path
) -> None:
    """S364: it is refused, and the file left as it was; then it may come."""
    house, desk = sqlite_house, desk_of(sqlite_house, tmp_path)
    desk.look()
    house.read(desk.sealer.rotate(house.admin()))
    before = desk.path.read_bytes()
    with pytest.raises(UnderWay, match="wait for its checkpoint"):
        house.read(desk.sealer.rotate(house.admin()))
    assert desk.path.read_bytes() == before
    desk.look()
    house.read(desk.sealer.rotate(house.admin()))
    desk.look()
    assert is_all_signed(desk) and is_bridged(desk) and len(signed_by(desk)) == 3


def test_a_rotation_goes_by_the_key_in_the_file_s364(sqlite_house: SqliteHouse, tmp_path: Path) -> None:
    """S364: another gateway's rotation is over, and this one has not looked since."""
    house, first = sqlite_house, desk_of(sqlite_house, tmp_path)
    first.look()
    second = Desk(house, first.path.parent)
    second.look()
    house.read(first.sealer.rotate(house.admin()))
    first.look()
    house.read(second.sealer.rotate(house.admin()))
    second.look()
    say(house)
    first.look()
    assert not first.sealer.refused and not second.sealer.refused
    assert is_all_signed(first) and is_bridged(first)
    assert ring_of(first).public_key == ring_of(second).public_key


def test_a_key_that_is_not_in_force_is_followed_by_none_s364(
    sqlite_house: SqliteHouse, tmp_path: Path
) -> None:
    """S364: somebody put another one in its place; no record tells of a key that nothing leads to."""
    house, desk = sqlite_house, desk_of(sqlite_house, tmp_path)
    desk.look()
    desk.path.unlink()
    Keyring.make(desk.path, "")
    with pytest.raises(LogBroken, match="not the one in force"):
        house.read(desk.sealer.rotate(house.admin()))
    assert len(house.read(house.store.rows(HOME_TENANT, "log_keys"))) == 1


def test_a_checkpoint_over_a_rotation_needs_the_new_keys_signature_s364(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S364: whoever read the key's file before the rotation does not sign across it alone."""
    house = desk.house
    desk.look()
    late = Desk(house, desk.path.parent)
    late.look()
    say(house)
    watch = late.sealer._watch
    awake = watch.awake
    told: list[str] = []

    async def after_a_rotation() -> list[tuple[str, int]]:
        if not told:  # the late one has looked at the file, and now at the record
            told.append(await desk.sealer.rotate(house.admin()))
        return await awake()

    monkeypatch.setattr(watch, "awake", after_a_rotation)
    house.read(late.sealer.look())
    assert len(signed_by(desk)) == 1, "nothing was kept"
    desk.look()
    say(house)
    late.look()
    assert told and is_all_signed(desk) and is_bridged(desk)


def test_a_rollback_is_accepted_once_a_start_s360(sqlite_house: SqliteHouse, tmp_path: Path) -> None:
    """S360: what is lost later, under the same process, is not accepted by the flag it was started with."""
    house, desk = sqlite_house, desk_of(sqlite_house, tmp_path)
    say(house, 3)
    desk.look()
    desk.again(accepts=True)
    for refused in (False, True):
        mark = desk.sealer.marks.load()[HOME_TENANT]
        desk.sealer.marks.advance({HOME_TENANT: Mark(mark.origin, mark.size + 50, b"\1" * 32)})
        say(house)
        desk.sealer.reopen(HOME_TENANT)
        desk.look()
        assert (HOME_TENANT in desk.sealer.refused) is refused
    assert sum(b"rollback_accepted" in event.record for event in house.trail_of()) == 1


def test_a_key_that_was_followed_says_the_way_out_s361(sqlite_house: SqliteHouse, tmp_path: Path) -> None:
    """S361: the new key is lost and the old one was put back; it goes on only under a third."""
    house, desk = sqlite_house, desk_of(sqlite_house, tmp_path)
    desk.look()
    old = desk.path.read_bytes()
    house.read(desk.sealer.rotate(house.admin()))
    desk.look()
    desk.path.write_bytes(old)
    desk.again(accepts=True)
    say(house)
    desk.look()
    assert "move the old key file away first" in desk.sealer.refused[HOME_TENANT].sentence
    desk.path.unlink()
    desk.again(accepts=True)
    desk.look()
    assert is_all_signed(desk)
    note.open(desk.sealed().note, [note.Verifier(f"{NAME}/{HOME_TENANT}", ring_of(desk).public_key)])

"""The sealer among others' faults: a bent log is refused by itself, and no race of gateways loses a key."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from observatory.errors import StoreError
from observatory.features.transparency.types_log import LogBroken
from observatory.ledger import note
from observatory.pipeline.state import HOME_TENANT
from observatory.runtime.log_key import Keyring, LogMark, RotationInProgress
from tests.contract.conftest import OTHER_TENANT, Harness, SqliteHarness
from tests.contract.sealing import NAME, LogSealer, log_sealer_of, say


@pytest.fixture
def log_sealer(harness: Harness, tmp_path: Path) -> LogSealer:
    return log_sealer_of(harness, tmp_path)


def ring_of(log_sealer: LogSealer) -> Keyring:
    ring = log_sealer.sealer.keyring
    assert ring is not None
    return ring


def is_all_signed(log_sealer: LogSealer, tenant_id: str = HOME_TENANT) -> bool:
    kept = log_sealer.checkpoint(tenant_id)
    return (
        kept is not None and kept.size == log_sealer.harness.read(log_sealer.harness.store.head(tenant_id))[0]
    )


def signed_by(log_sealer: LogSealer) -> list[set[str]]:
    """The keys' ids under each checkpoint, oldest first."""
    rows = log_sealer.harness.read(log_sealer.harness.store.rows(HOME_TENANT, "checkpoints"))
    rows.sort(key=lambda row: int(row["size"]))
    return [{line.key_id.hex() for line in note.split(bytes(row["note"]))[1]} for row in rows]


def is_bridged(log_sealer: LogSealer) -> bool:
    """Whether each key that came to sign did so the first time beside the one before it."""
    keys = log_sealer.harness.read(log_sealer.harness.store.rows(HOME_TENANT, "log_keys"))
    ids = [str(row["key_id"]) for row in sorted(keys, key=lambda row: int(row["since"]))]
    steps = signed_by(log_sealer)
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
    sqlite_harness: SqliteHarness, tmp_path: Path, table: str, column: str
) -> None:
    """S374: the bent log is refused as broken, with a sentence."""
    harness, log_sealer = sqlite_harness, log_sealer_of(sqlite_harness, tmp_path)
    harness.create_tenant(OTHER_TENANT)
    say(harness, 2, OTHER_TENANT)
    log_sealer.look()
    harness.sql(f"DROP TRIGGER {table}_no_update")
    harness.sql(f"UPDATE {table} SET {column} = 'x' WHERE tenant_id = '{OTHER_TENANT}'")
    log_sealer.again()
    say(harness, 1, OTHER_TENANT)
    say(harness)
    log_sealer.look()
    assert is_all_signed(log_sealer) and log_sealer.sealer.refused.keys() == {OTHER_TENANT}
    refusal = log_sealer.sealer.refused[OTHER_TENANT]
    assert refusal.kind == "broken" and "restore the database" in refusal.sentence


class Away:
    """Witnesses that cannot be asked for one tenant, until they can."""

    is_away = True

    async def heads(self, tenant_id: str) -> list[LogMark]:
        if self.is_away and tenant_id == OTHER_TENANT:
            raise StoreError("its heads cannot be read")
        return []

    async def forgo(self, tenant_id: str) -> None:
        raise AssertionError


def test_a_tenant_that_has_to_wait_holds_up_no_other_s374(
    sqlite_harness: SqliteHarness, tmp_path: Path
) -> None:
    """S374: and is signed as soon as it can be."""
    harness, log_sealer, witnesses = sqlite_harness, log_sealer_of(sqlite_harness, tmp_path), Away()
    harness.create_tenant(OTHER_TENANT)
    log_sealer.sealer.ask(witnesses)
    log_sealer.look()
    assert (
        is_all_signed(log_sealer)
        and log_sealer.checkpoint(OTHER_TENANT) is None
        and not log_sealer.sealer.refused
    )
    witnesses.is_away = False
    log_sealer.look()
    assert is_all_signed(log_sealer, OTHER_TENANT)


def test_a_second_rotation_waits_for_the_first_ones_checkpoint_s364(
    sqlite_harness: SqliteHarness, tmp_path: Path
) -> None:
    """S364: it is refused, and the file left as it was; then it may come."""
    harness, log_sealer = sqlite_harness, log_sealer_of(sqlite_harness, tmp_path)
    log_sealer.look()
    harness.read(log_sealer.sealer.rotate(harness.admin()))
    before = log_sealer.path.read_bytes()
    with pytest.raises(RotationInProgress, match="wait for its checkpoint"):
        harness.read(log_sealer.sealer.rotate(harness.admin()))
    assert log_sealer.path.read_bytes() == before
    log_sealer.look()
    harness.read(log_sealer.sealer.rotate(harness.admin()))
    log_sealer.look()
    assert is_all_signed(log_sealer) and is_bridged(log_sealer) and len(signed_by(log_sealer)) == 3


def test_a_rotation_goes_by_the_key_in_the_file_s364(sqlite_harness: SqliteHarness, tmp_path: Path) -> None:
    """S364: another gateway's rotation is over, and this one has not looked since."""
    harness, first = sqlite_harness, log_sealer_of(sqlite_harness, tmp_path)
    first.look()
    second = LogSealer(harness, first.path.parent)
    second.look()
    harness.read(first.sealer.rotate(harness.admin()))
    first.look()
    harness.read(second.sealer.rotate(harness.admin()))
    second.look()
    say(harness)
    first.look()
    assert not first.sealer.refused and not second.sealer.refused
    assert is_all_signed(first) and is_bridged(first)
    assert ring_of(first).public_key == ring_of(second).public_key


def test_a_key_that_is_not_in_force_is_followed_by_none_s364(
    sqlite_harness: SqliteHarness, tmp_path: Path
) -> None:
    """S364: somebody put another one in its place; no record tells of a key that nothing leads to."""
    harness, log_sealer = sqlite_harness, log_sealer_of(sqlite_harness, tmp_path)
    log_sealer.look()
    log_sealer.path.unlink()
    Keyring.make(log_sealer.path, "")
    with pytest.raises(LogBroken, match="not the current one"):
        harness.read(log_sealer.sealer.rotate(harness.admin()))
    assert len(harness.read(harness.store.rows(HOME_TENANT, "log_keys"))) == 1


def test_a_checkpoint_over_a_rotation_needs_the_new_keys_signature_s364(
    log_sealer: LogSealer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S364: whoever read the key's file before the rotation does not sign across it alone."""
    harness = log_sealer.harness
    log_sealer.look()
    late = LogSealer(harness, log_sealer.path.parent)
    late.look()
    say(harness)
    watch = late.sealer._watch
    awake = watch.awake
    received: list[str] = []

    async def after_a_rotation() -> list[tuple[str, int]]:
        if not received:  # the late one has looked at the file, and now at the record
            received.append(await log_sealer.sealer.rotate(harness.admin()))
        return await awake()

    monkeypatch.setattr(watch, "awake", after_a_rotation)
    harness.read(late.sealer.look())
    assert len(signed_by(log_sealer)) == 1, "nothing was kept"
    log_sealer.look()
    say(harness)
    late.look()
    assert received and is_all_signed(log_sealer) and is_bridged(log_sealer)


def test_a_rollback_is_accepted_once_a_start_s360(sqlite_harness: SqliteHarness, tmp_path: Path) -> None:
    """S360: what is lost later, under the same process, is not accepted by the flag it was started with."""
    harness, log_sealer = sqlite_harness, log_sealer_of(sqlite_harness, tmp_path)
    say(harness, 3)
    log_sealer.look()
    log_sealer.again(accepts=True)
    for refused in (False, True):
        mark = log_sealer.sealer.marks.load()[HOME_TENANT]
        log_sealer.sealer.marks.advance({HOME_TENANT: LogMark(mark.origin, mark.size + 50, b"\1" * 32)})
        say(harness)
        log_sealer.sealer.reopen(HOME_TENANT)
        log_sealer.look()
        assert (HOME_TENANT in log_sealer.sealer.refused) is refused
    assert sum(b"rollback_accepted" in event.record for event in harness.trail_of()) == 1


def test_a_key_that_was_followed_says_the_way_out_s361(sqlite_harness: SqliteHarness, tmp_path: Path) -> None:
    """S361: the new key is lost and the old one was put back; it goes on only under a third."""
    harness, log_sealer = sqlite_harness, log_sealer_of(sqlite_harness, tmp_path)
    log_sealer.look()
    old = log_sealer.path.read_bytes()
    harness.read(log_sealer.sealer.rotate(harness.admin()))
    log_sealer.look()
    log_sealer.path.write_bytes(old)
    log_sealer.again(accepts=True)
    say(harness)
    log_sealer.look()
    assert "move the old key file away first" in log_sealer.sealer.refused[HOME_TENANT].sentence
    log_sealer.path.unlink()
    log_sealer.again(accepts=True)
    log_sealer.look()
    assert is_all_signed(log_sealer)
    note.open(
        log_sealer.sealed().note, [note.Verifier(f"{NAME}/{HOME_TENANT}", ring_of(log_sealer).public_key)]
    )

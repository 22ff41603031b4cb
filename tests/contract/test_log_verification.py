"""What `POST /v1/audit/verify` says of the log on both databases, when somebody went past every trigger."""

from __future__ import annotations

from pathlib import Path

import pytest

from observatory.features.verification.log_root import LogCheck
from observatory.features.verification.routes import VerifyAnswer, VerifyRequest, verify_range
from observatory.ledger import note
from observatory.pipeline.state import HOME_TENANT
from tests.contract.conftest import House, SqliteHouse
from tests.contract.sealing import NAME, Desk, desk_of
from tests.samples import decision_log

ORIGIN = f"{NAME}/{HOME_TENANT}"
THIEF = note.Signer(ORIGIN, bytes(32))


@pytest.fixture
def desk(house: House, tmp_path: Path) -> Desk:
    """300 events, signed at 100 and at the end."""
    made = desk_of(house, tmp_path)
    for count in (99, 200):
        house.send(*(decision_log() for _ in range(count)))
        made.look()
    return made


def verified(desk: Desk, first: int = 1, last: int | None = None) -> VerifyAnswer:
    log = LogCheck(desk.sealer, HOME_TENANT)
    asked = VerifyRequest(from_sequence=first, to_sequence=last)
    return desk.house.read(verify_range(desk.house.store, log, HOME_TENANT, asked))


def held(answer: VerifyAnswer) -> tuple[bool, bool | None, bool | None]:
    return answer.valid, answer.checks["log_root"], answer.checks["signature"]


def hexed(house: House, value: bytes) -> str:
    return f"x'{value.hex()}'" if isinstance(house, SqliteHouse) else f"decode('{value.hex()}', 'hex')"


def tamper(house: House, table: str, change: str) -> None:
    if isinstance(house, SqliteHouse):
        house.sql(f"DROP TRIGGER IF EXISTS {table}_no_update")
    else:
        house.sql(f"ALTER TABLE {table} DISABLE TRIGGER USER")
    house.sql(f"UPDATE {table} SET {change}")


def test_root_and_signature_hold_over_any_range_that_a_checkpoint_ends_in_s371(desk: Desk) -> None:
    """S371: and nothing is claimed of one in which none does."""
    size = len(desk.house.trail_of())
    rows = desk.house.read(desk.house.store.rows(HOME_TENANT, "checkpoints"))
    first = min(row["size"] for row in rows)
    for start, end in ((1, None), (1, first), (2, first + 5), (first, size), (257, None), (size, size)):
        assert held(verified(desk, start, end)) == (True, True, True), (start, end)
    assert held(verified(desk, first + 1, size - 1)) == (True, None, None)
    desk.house.send(decision_log())
    assert held(verified(desk)) == (True, True, True), "what is not signed yet is no break"


def test_a_settled_hash_that_was_changed_is_named_s371(desk: Desk) -> None:
    """S371: though the leaves still give the root."""
    tamper(desk.house, "log_nodes", f"hash = {hexed(desk.house, bytes(32))} WHERE level = 1")
    found = verified(desk)
    assert held(found) == (False, False, None) and found.first_break is not None
    assert found.first_break.what == "log" and "hash 0 of level 1" in found.first_break.sentence


def test_a_root_that_was_changed_is_named_s371(desk: Desk) -> None:
    """S371."""
    tamper(desk.house, "checkpoints", f"root = {hexed(desk.house, bytes(32))}")
    found = verified(desk, last=200)
    assert held(found) == (False, False, None) and found.first_break is not None
    assert found.first_break.what == "log"


@pytest.mark.parametrize("signer", [None, THIEF], ids=["garbage", "another key"])
def test_a_checkpoint_that_no_key_of_the_log_signed_is_named_s371(
    desk: Desk, signer: note.Signer | None
) -> None:
    """S371: whatever its text says."""
    kept = desk.checkpoint()
    assert kept is not None
    text = note.checkpoint(ORIGIN, kept.size, kept.root)
    forged = b"garbage" if signer is None else note.sign(text, [signer])
    tamper(desk.house, "checkpoints", f"note = {hexed(desk.house, forged)}")
    found = verified(desk)
    assert held(found) == (False, True, False) and found.first_break is not None
    assert found.first_break.what == "signature"


def test_a_checkpoint_of_another_tenant_is_not_this_ones_s371(desk: Desk) -> None:
    """S371: rightly signed, for another log."""
    kept, ring = desk.checkpoint(), desk.sealer.keyring
    assert kept is not None and ring is not None
    other = f"{NAME}/tnt_other"
    foreign = note.sign(note.checkpoint(other, kept.size, kept.root), ring.signers(other, both=False))
    tamper(desk.house, "checkpoints", f"note = {hexed(desk.house, foreign)}")
    assert held(verified(desk)) == (False, True, False)


def test_who_rewrites_everything_and_its_keys_is_seen_by_what_was_noted_s371(desk: Desk) -> None:
    """S371, S359: record, log and keys fit together, and are not what was signed."""
    mark = desk.sealer.marks.load()[HOME_TENANT]
    desk.sealer.marks.reset(HOME_TENANT, type(mark)(mark.origin, mark.size, bytes(32)))
    found = verified(desk)
    assert held(found) == (False, False, True) and found.first_break is not None
    assert found.first_break.what == "log" and "signed last" in found.first_break.sentence
    assert held(verified(desk, last=150)) == (True, True, True), "only who asks to the head is told"
    desk.sealer.marks.reset(HOME_TENANT, type(mark)(mark.origin, mark.size + 900, mark.root))
    found = verified(desk)
    assert found.first_break is not None and "the record ends at" in found.first_break.sentence

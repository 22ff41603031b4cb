"""What `POST /v1/audit/verify` says of the log on both databases, when somebody went past every trigger."""

from __future__ import annotations

from pathlib import Path

import pytest

from observatory.features.transparency.queries_log_check import LogCheck
from observatory.features.verification.routes import VerifyAnswer, VerifyRequest, verify_range
from observatory.ledger import note
from observatory.pipeline.state import HOME_TENANT
from tests.contract.conftest import Harness, SqliteHarness
from tests.contract.sealing import NAME, LogSealer, log_sealer_of
from tests.samples import decision_log

ORIGIN = f"{NAME}/{HOME_TENANT}"
THIEF = note.Signer(ORIGIN, bytes(32))


@pytest.fixture
def log_sealer(harness: Harness, tmp_path: Path) -> LogSealer:
    """300 events, signed at 100 and at the end."""
    made = log_sealer_of(harness, tmp_path)
    for count in (99, 200):
        harness.send(*(decision_log() for _ in range(count)))
        made.look()
    return made


def verified(log_sealer: LogSealer, first: int = 1, last: int | None = None) -> VerifyAnswer:
    log = LogCheck(log_sealer.sealer, HOME_TENANT)
    asked = VerifyRequest(from_sequence=first, to_sequence=last)
    return log_sealer.harness.read(verify_range(log_sealer.harness.store, log, HOME_TENANT, asked))


def held(answer: VerifyAnswer) -> tuple[bool, bool | None, bool | None]:
    return answer.valid, answer.checks["log_root"], answer.checks["signature"]


def hexed(harness: Harness, value: bytes) -> str:
    return f"x'{value.hex()}'" if isinstance(harness, SqliteHarness) else f"decode('{value.hex()}', 'hex')"


def tamper(harness: Harness, table: str, change: str) -> None:
    if isinstance(harness, SqliteHarness):
        harness.sql(f"DROP TRIGGER IF EXISTS {table}_no_update")
    else:
        harness.sql(f"ALTER TABLE {table} DISABLE TRIGGER USER")
    harness.sql(f"UPDATE {table} SET {change}")


def test_root_and_signature_hold_over_any_range_that_a_checkpoint_ends_in_s371(log_sealer: LogSealer) -> None:
    """S371: and nothing is claimed of one in which none does."""
    size = len(log_sealer.harness.trail_of())
    rows = log_sealer.harness.read(log_sealer.harness.store.rows(HOME_TENANT, "checkpoints"))
    first = min(row["size"] for row in rows)
    for start, end in ((1, None), (1, first), (2, first + 5), (first, size), (257, None), (size, size)):
        assert held(verified(log_sealer, start, end)) == (True, True, True), (start, end)
    assert held(verified(log_sealer, first + 1, size - 1)) == (True, None, None)
    log_sealer.harness.send(decision_log())
    assert held(verified(log_sealer)) == (True, True, True), "what is not signed yet is no break"


def test_a_settled_hash_that_was_changed_is_named_s371(log_sealer: LogSealer) -> None:
    """S371: though the leaves still give the root."""
    tamper(log_sealer.harness, "log_nodes", f"hash = {hexed(log_sealer.harness, bytes(32))} WHERE level = 1")
    found = verified(log_sealer)
    assert held(found) == (False, False, None) and found.first_break is not None
    assert found.first_break.what == "log" and "hash 0 of level 1" in found.first_break.sentence


def test_a_root_that_was_changed_is_named_s371(log_sealer: LogSealer) -> None:
    """S371."""
    tamper(log_sealer.harness, "checkpoints", f"root = {hexed(log_sealer.harness, bytes(32))}")
    found = verified(log_sealer, last=200)
    assert held(found) == (False, False, None) and found.first_break is not None
    assert found.first_break.what == "log"


@pytest.mark.parametrize("signer", [None, THIEF], ids=["garbage", "another key"])
def test_a_checkpoint_that_no_key_of_the_log_signed_is_named_s371(
    log_sealer: LogSealer, signer: note.Signer | None
) -> None:
    """S371: whatever its text says."""
    kept = log_sealer.checkpoint()
    assert kept is not None
    text = note.checkpoint(ORIGIN, kept.size, kept.root)
    forged = b"garbage" if signer is None else note.sign(text, [signer])
    tamper(log_sealer.harness, "checkpoints", f"note = {hexed(log_sealer.harness, forged)}")
    found = verified(log_sealer)
    assert held(found) == (False, True, False) and found.first_break is not None
    assert found.first_break.what == "signature"


def test_a_checkpoint_of_another_tenant_is_not_this_ones_s371(log_sealer: LogSealer) -> None:
    """S371: rightly signed, for another log."""
    kept, ring = log_sealer.checkpoint(), log_sealer.sealer.keyring
    assert kept is not None and ring is not None
    other = f"{NAME}/tnt_other"
    foreign = note.sign(note.checkpoint(other, kept.size, kept.root), ring.signers(other, both=False))
    tamper(log_sealer.harness, "checkpoints", f"note = {hexed(log_sealer.harness, foreign)}")
    assert held(verified(log_sealer)) == (False, True, False)


def test_who_rewrites_everything_and_its_keys_is_seen_by_what_was_noted_s371(log_sealer: LogSealer) -> None:
    """S371, S359: record, log and keys fit together, and are not what was signed."""
    mark = log_sealer.sealer.marks.load()[HOME_TENANT]
    log_sealer.sealer.marks.reset(HOME_TENANT, type(mark)(mark.origin, mark.size, bytes(32)))
    found = verified(log_sealer)
    assert held(found) == (False, False, True) and found.first_break is not None
    assert found.first_break.what == "log" and "signed last" in found.first_break.sentence
    assert held(verified(log_sealer, last=150)) == (True, True, True), "only who asks to the head is told"
    log_sealer.sealer.marks.reset(HOME_TENANT, type(mark)(mark.origin, mark.size + 900, mark.root))
    found = verified(log_sealer)
    assert found.first_break is not None and "the record ends at" in found.first_break.sentence

"""The sealer on both databases: what it signs is the record, once, and never less than before."""

from __future__ import annotations

import shutil
from base64 import b64decode
from pathlib import Path

import pytest

from observatory.errors import StatementFailed
from observatory.features.transparency import commands as checkpoints
from observatory.features.transparency import worker as sealer
from observatory.ledger import merkle, note
from observatory.ledger.tiles import TileNode
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import HOME_TENANT, Command, SubmissionResult
from observatory.runtime.log_key import Keyring, LogMark, LogMarks
from tests.contract.conftest import OTHER_TENANT, Harness, PostgresHarness, SqliteHarness
from tests.contract.sealing import NAME, LogSealer, log_sealer_of, say, true_root, verifier


@pytest.fixture
def log_sealer(harness: Harness, tmp_path: Path) -> LogSealer:
    return log_sealer_of(harness, tmp_path)


@pytest.mark.req(461)
def test_a_checkpoint_is_the_root_of_the_committed_record_signed_s356(log_sealer: LogSealer) -> None:
    """S356: origin, size and root; each look goes on from the one before, and a quiet record stays so."""
    harness = log_sealer.harness
    for count in (1, 3, 300, 0):
        if count:
            say(harness, count)
        kept = log_sealer.sealed()
        head, _ = harness.read(harness.store.head(HOME_TENANT))
        assert (kept.size, kept.root) == (head, true_root(harness, head))
        text, names = note.open(kept.note, [verifier(log_sealer)])
        assert names == [f"{NAME}/{HOME_TENANT}"]
        assert note.parse_checkpoint(text) == (f"{NAME}/{HOME_TENANT}", head, kept.root)
    rows = sorted(harness.read(harness.store.rows(HOME_TENANT, "checkpoints")), key=lambda row: row["size"])
    assert [row["previous_size"] for row in rows] == [0, *(row["size"] for row in rows[:-1])]
    assert len(rows) == 3, "nothing new, nothing signed"
    ((level, position, stored),) = [
        (row["level"], row["position"], bytes(row["hash"]))
        for row in harness.read(harness.store.rows(HOME_TENANT, "log_nodes"))
    ]
    assert (level, position, stored) == (1, 0, true_root(harness, 256))


def test_each_tenant_has_a_log_of_its_own_s351(log_sealer: LogSealer) -> None:
    """S351: one key, and names that tell them apart."""
    harness = log_sealer.harness
    harness.create_tenant(OTHER_TENANT)
    say(harness, 2, OTHER_TENANT)
    log_sealer.look()
    mine, theirs = log_sealer.checkpoint(), log_sealer.checkpoint(OTHER_TENANT)
    assert mine is not None and theirs is not None
    assert (mine.size, theirs.size) == (1, len(harness.trail_of(OTHER_TENANT)))
    note.open(theirs.note, [verifier(log_sealer, OTHER_TENANT)])
    with pytest.raises(note.BadNote, match="no known key"):
        note.open(theirs.note, [verifier(log_sealer)])
    store, event = harness.store, harness.trail_of(OTHER_TENANT)[1]
    assert harness.read(store.event(OTHER_TENANT, 2)) == event
    assert harness.read(store.hashes(OTHER_TENANT, 0, 1, 1)) == event.leaf_hash
    for foreign in (HOME_TENANT, "tnt_nowhere"):
        assert (
            harness.read(store.event(foreign, 2)) is None
            and harness.read(store.hashes(foreign, 0, 1, 9)) == b""
        )
    assert harness.read(store.checkpoint("tnt_nowhere")) is None
    for table in ("checkpoints", "log_nodes", "log_keys"):
        seen = harness.read(harness.store.rows(HOME_TENANT, table))
        assert {row["tenant_id"] for row in seen} <= {HOME_TENANT}


def test_sealing_adds_no_event_and_so_comes_to_rest_s357(log_sealer: LogSealer) -> None:
    """S357: the record is as long after it as before."""
    before = log_sealer.harness.trail_of()
    log_sealer.look()
    log_sealer.look()
    assert log_sealer.harness.trail_of() == before
    assert log_sealer.sealed().size == len(before)


def test_proofs_of_any_event_at_any_signed_size_hold_s353(log_sealer: LogSealer) -> None:
    """S353, S354: out of stored hashes; over the edges of tiles, and of older sizes too."""
    harness = log_sealer.harness
    say(harness, 260)
    first = log_sealer.sealed()
    say(harness, 300)
    last = log_sealer.sealed()
    tree, leaves = log_sealer.sealer.tree, [event.leaf_hash for event in harness.trail_of()]
    for size in (first.size, last.size):
        root = merkle.root(leaves[:size])
        assert harness.read(tree.root(HOME_TENANT, size)) == root
        for index in (0, 1, 254, 255, 256, size - 1):
            proof = harness.read(tree.inclusion(HOME_TENANT, index, size))
            assert merkle.verify_inclusion(leaves[index], index, size, proof, root)
    proof = harness.read(tree.consistency(HOME_TENANT, first.size, last.size))
    assert merkle.verify_consistency(first.size, last.size, first.root, last.root, proof)


def test_who_comes_second_leaves_a_tenant_to_the_faster_one_and_takes_it_when_that_is_gone_s362(
    log_sealer: LogSealer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S362: two gateways do not read each other's work again and again; nor is anything left unsigned."""
    harness, clock = log_sealer.harness, [1_000.0]
    monkeypatch.setattr("observatory.features.transparency.worker.time.monotonic", lambda: clock[0])
    second = LogSealer(harness, log_sealer.path.parent)
    log_sealer.look()
    second.look()
    say(harness)
    log_sealer.look()
    say(harness)
    known = log_sealer.checkpoint()
    harness.read(second.sealer.look(is_patient=True))  # finds that the first one was here
    harness.read(second.sealer.look(is_patient=True))
    assert log_sealer.checkpoint() == known
    clock[0] += sealer.THEIRS_S  # and the first one says nothing more
    while harness.read(second.sealer.look(is_patient=True)):
        pass
    found = log_sealer.checkpoint()
    assert found is not None and found.size == len(harness.trail_of())


def test_two_sealers_make_one_line_of_checkpoints_s362(log_sealer: LogSealer, tmp_path: Path) -> None:
    """S362: key and marks shared or copied; of two that seal the same step one is written."""
    harness = log_sealer.harness
    log_sealer.look()
    other = tmp_path / "other"
    shutil.copytree(log_sealer.path.parent, other)
    copied, shared = LogSealer(harness, other), LogSealer(harness, log_sealer.path.parent)
    for turn in (copied, log_sealer, shared, copied, shared, log_sealer):
        say(harness, 2)
        turn.look()
        turn.look()
    assert log_sealer.sealed().size == len(harness.trail_of())
    rows = sorted(harness.read(harness.store.rows(HOME_TENANT, "checkpoints")), key=lambda row: row["size"])
    assert [row["previous_size"] for row in rows] == [0, *(row["size"] for row in rows[:-1])]
    assert [bytes(row["root"]) for row in rows] == [true_root(harness, row["size"]) for row in rows]
    assert not (log_sealer.sealer.refused or copied.sealer.refused or shared.sealer.refused)


def test_of_two_drafts_behind_one_checkpoint_the_second_is_refused_s362(log_sealer: LogSealer) -> None:
    """S362: by the act under the lock; and by the database, whoever writes."""
    harness, kept = log_sealer.harness, log_sealer.sealed()
    say(harness, 3)
    keeper = harness.admin()
    drafts = [
        checkpoints.CheckpointDraft(kept.size, kept.size + more, bytes(32), b"n", ()) for more in (2, 1, 9)
    ]
    codes = [
        harness.submit(checkpoints.store_checkpoint(keeper, draft, harness.now()))[0].code for draft in drafts
    ]
    assert codes == [200, 409, 409]
    both = [checkpoints.store_checkpoint(keeper, draft, harness.now()) for draft in drafts[:2]]
    assert [verdict.code for verdict in harness.submit(*both)] == [409, 409]
    row = {"tenant_id": HOME_TENANT, "size": kept.size + 1, "previous_size": kept.size, "root": bytes(32)}
    write = RowWrite("checkpoints", row | {"note": b"", "signed_ns": 1})
    with pytest.raises(StatementFailed):
        harness.submit(
            Command(keeper, harness.now(), lambda log_sealer: SubmissionResult(200, None, writes=[write]))
        )


def test_the_database_lets_nothing_of_the_log_be_changed_s363(log_sealer: LogSealer) -> None:
    """S363: with every right the operator of the database has."""
    say(log_sealer.harness, 260)
    log_sealer.look()
    for table, column in (("checkpoints", "signed_ns"), ("log_nodes", "position"), ("log_keys", "since")):
        assert log_sealer.harness.sql(f"SELECT count(*) FROM {table} WHERE 1 = :one", one=1)[0][0] > 0
        assert log_sealer.harness.refuses(f"UPDATE {table} SET {column} = 0"), table
        assert log_sealer.harness.refuses(f"DELETE FROM {table}"), table
        if isinstance(log_sealer.harness, PostgresHarness):
            assert log_sealer.harness.refuses(f"TRUNCATE {table}"), table


def tampered(harness: Harness, table: str, statement: str) -> None:
    """Past every trigger."""
    if isinstance(harness, SqliteHarness):
        harness.sql(f"DROP TRIGGER IF EXISTS {table}_no_update")
        harness.sql(statement)
    else:
        harness.sql(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        harness.sql(statement)


@pytest.mark.parametrize("table", ["log_nodes", "leaves"])
def test_hashes_that_were_changed_are_found_on_start_s358(log_sealer: LogSealer, table: str) -> None:
    """S358: the stored hashes no longer give the signed root, and nothing more is signed."""
    harness = log_sealer.harness
    say(harness, 300)
    kept = log_sealer.sealed()
    zeros = "zeroblob(32)" if isinstance(harness, SqliteHarness) else "decode(repeat('00', 32), 'hex')"
    if table == "log_nodes":
        tampered(harness, "log_nodes", f"UPDATE log_nodes SET hash = {zeros} WHERE level = 1")
    elif isinstance(harness, SqliteHarness):
        tampered(
            harness, harness.trail, f"UPDATE audit_log SET leaf_hash = {zeros} WHERE key & 1048575 = 280"
        )
    else:
        tampered(
            harness, harness.trail, f"UPDATE audit_events SET leaf_hash = {zeros} WHERE sequence_number = 280"
        )
    log_sealer.again(accepts=True)
    say(harness)
    log_sealer.look()
    assert log_sealer.sealer.refused[HOME_TENANT].kind == "broken"
    assert log_sealer.checkpoint() == kept


def test_a_new_key_signs_beside_the_old_one_once_s364(log_sealer: LogSealer) -> None:
    """S364: both under the next checkpoint, then the new one alone; the old private key is dropped."""
    harness, who = log_sealer.harness, log_sealer.harness.admin()
    harness.create_tenant(OTHER_TENANT)
    log_sealer.look()
    old = verifier(log_sealer)
    vkey = harness.read(log_sealer.sealer.rotate(who))
    new = note.Verifier.from_vkey(vkey)
    assert new.public_key != old.public_key and log_sealer.path.read_bytes().count(b"BEGIN") == 2
    kept = log_sealer.sealed()
    for known in (old, new):
        note.open(kept.note, [known])
    for tenant_id in (HOME_TENANT, OTHER_TENANT):
        (event,) = [one for one in harness.trail_of(tenant_id) if b"log_key_rotated" in one.record]
        assert event.sequence_number <= harness.read(harness.store.head(tenant_id))[0]
    log_sealer.look()
    assert log_sealer.path.read_bytes().count(b"BEGIN") == 1
    say(harness)
    after = log_sealer.sealed()
    note.open(after.note, [new])
    with pytest.raises(note.BadNote, match="no known key"):
        note.open(after.note, [old])
    keys = sorted(harness.read(harness.store.rows(HOME_TENANT, "log_keys")), key=lambda row: row["since"])
    assert [bytes(row["public_key"]) for row in keys] == [old.public_key, new.public_key]


def test_killed_in_the_middle_of_a_rotation_it_is_ended_on_start_s364(log_sealer: LogSealer) -> None:
    """S364: the file holds both keys, and no record tells of the new one yet."""
    log_sealer.look()
    old = verifier(log_sealer)
    ring = Keyring.open(log_sealer.path, "")
    assert ring is not None
    ring.rotate()
    log_sealer.again()
    say(log_sealer.harness)
    log_sealer.look()
    rows = log_sealer.harness.read(log_sealer.harness.store.rows(HOME_TENANT, "checkpoints"))
    both = [row for row in rows if bytes(row["note"]).count("— ".encode()) == 2]
    assert len(both) == 1
    note.open(bytes(both[0]["note"]), [old])
    assert log_sealer.path.read_bytes().count(b"BEGIN") == 1


def test_a_key_changed_by_another_process_is_read_anew_s364(log_sealer: LogSealer) -> None:
    """S364: a gateway that shares the file follows."""
    log_sealer.look()
    running, other = log_sealer.sealer, LogSealer(log_sealer.harness, log_sealer.path.parent)
    other.look()
    log_sealer.harness.read(other.sealer.rotate(log_sealer.harness.admin()))
    other.look()
    other.look()
    say(log_sealer.harness)
    log_sealer.sealer = running
    kept = log_sealer.sealed()
    assert kept.size == len(log_sealer.harness.trail_of())
    note.open(kept.note, [verifier(other)])


def test_marks_never_go_back_s359(tmp_path: Path) -> None:
    """S359: not even by another process; the file is its owner's alone and whole at any moment."""
    marks = LogMarks(tmp_path / "log.key.signed")
    root = bytes(range(32))
    marks.advance({"tnt_a": LogMark("a", 5, root), "tnt_b": LogMark("b", 1, root)})
    for worse in (LogMark("a", 4, root), LogMark("a", 5, bytes(32))):
        with pytest.raises(Exception, match="already signed"):
            LogMarks(marks.path).advance({"tnt_b": LogMark("b", 9, root), "tnt_a": worse})
    assert marks.load() == {"tnt_a": LogMark("a", 5, root), "tnt_b": LogMark("b", 1, root)}
    assert marks.path.stat().st_mode & 0o777 == 0o600
    assert b64decode(LogMark("a", 5, root).root_text) == root


def test_a_log_is_caught_up_with_in_portions_s356(
    log_sealer: LogSealer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S356: an imported record, or one sealed for the first time."""
    monkeypatch.setattr("observatory.features.transparency.worker.PAGE", 100)
    say(log_sealer.harness, 300)
    assert log_sealer.sealed().root == true_root(log_sealer.harness, len(log_sealer.harness.trail_of()))
    assert len(log_sealer.harness.read(log_sealer.harness.store.rows(HOME_TENANT, "checkpoints"))) == 4
    assert TileNode(1, 0, b"") < TileNode(1, 1, b"")

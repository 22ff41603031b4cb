"""The sealer on both databases: what it signs is the record, once, and never less than before."""

from __future__ import annotations

import shutil
from base64 import b64decode
from pathlib import Path

import pytest

from observatory.errors import StatementFailed
from observatory.features.transparency import commands as checkpoints
from observatory.features.transparency import worker as sealer
from observatory.features.transparency.log_key import Keyring, Mark, Marks
from observatory.ledger import merkle, note
from observatory.ledger.tiles import Node
from observatory.pipeline.rows import Write
from observatory.pipeline.state import HOME_TENANT, Act, Verdict
from tests.contract.conftest import OTHER_TENANT, House, PostgresHouse, SqliteHouse
from tests.contract.sealing import NAME, Desk, desk_of, say, true_root, verifier


@pytest.fixture
def desk(house: House, tmp_path: Path) -> Desk:
    return desk_of(house, tmp_path)


@pytest.mark.req(461)
def test_a_checkpoint_is_the_root_of_the_committed_record_signed_s356(desk: Desk) -> None:
    """S356: origin, size and root; each look goes on from the one before, and a quiet record stays so."""
    house = desk.house
    for count in (1, 3, 300, 0):
        if count:
            say(house, count)
        kept = desk.sealed()
        head, _ = house.read(house.store.head(HOME_TENANT))
        assert (kept.size, kept.root) == (head, true_root(house, head))
        text, names = note.open(kept.note, [verifier(desk)])
        assert names == [f"{NAME}/{HOME_TENANT}"]
        assert note.parse_checkpoint(text) == (f"{NAME}/{HOME_TENANT}", head, kept.root)
    rows = sorted(house.read(house.store.rows(HOME_TENANT, "checkpoints")), key=lambda row: row["size"])
    assert [row["previous_size"] for row in rows] == [0, *(row["size"] for row in rows[:-1])]
    assert len(rows) == 3, "nothing new, nothing signed"
    ((level, position, stored),) = [
        (row["level"], row["position"], bytes(row["hash"]))
        for row in house.read(house.store.rows(HOME_TENANT, "log_nodes"))
    ]
    assert (level, position, stored) == (1, 0, true_root(house, 256))


def test_each_tenant_has_a_log_of_its_own_s351(desk: Desk) -> None:
    """S351: one key, and names that tell them apart."""
    house = desk.house
    house.create_tenant(OTHER_TENANT)
    say(house, 2, OTHER_TENANT)
    desk.look()
    mine, theirs = desk.checkpoint(), desk.checkpoint(OTHER_TENANT)
    assert mine is not None and theirs is not None
    assert (mine.size, theirs.size) == (1, len(house.trail_of(OTHER_TENANT)))
    note.open(theirs.note, [verifier(desk, OTHER_TENANT)])
    with pytest.raises(note.BadNote, match="no known key"):
        note.open(theirs.note, [verifier(desk)])
    store, event = house.store, house.trail_of(OTHER_TENANT)[1]
    assert house.read(store.event(OTHER_TENANT, 2)) == event
    assert house.read(store.hashes(OTHER_TENANT, 0, 1, 1)) == event.leaf_hash
    for foreign in (HOME_TENANT, "tnt_nowhere"):
        assert (
            house.read(store.event(foreign, 2)) is None and house.read(store.hashes(foreign, 0, 1, 9)) == b""
        )
    assert house.read(store.checkpoint("tnt_nowhere")) is None
    for table in ("checkpoints", "log_nodes", "log_keys"):
        seen = house.read(house.store.rows(HOME_TENANT, table))
        assert {row["tenant_id"] for row in seen} <= {HOME_TENANT}


def test_sealing_adds_no_event_and_so_comes_to_rest_s357(desk: Desk) -> None:
    """S357: the record is as long after it as before."""
    before = desk.house.trail_of()
    desk.look()
    desk.look()
    assert desk.house.trail_of() == before
    assert desk.sealed().size == len(before)


def test_proofs_of_any_event_at_any_signed_size_hold_s353(desk: Desk) -> None:
    """S353, S354: out of stored hashes; over the edges of tiles, and of older sizes too."""
    house = desk.house
    say(house, 260)
    first = desk.sealed()
    say(house, 300)
    last = desk.sealed()
    tree, leaves = desk.sealer.tree, [event.leaf_hash for event in house.trail_of()]
    for size in (first.size, last.size):
        root = merkle.root(leaves[:size])
        assert house.read(tree.root(HOME_TENANT, size)) == root
        for index in (0, 1, 254, 255, 256, size - 1):
            proof = house.read(tree.inclusion(HOME_TENANT, index, size))
            assert merkle.verify_inclusion(leaves[index], index, size, proof, root)
    proof = house.read(tree.consistency(HOME_TENANT, first.size, last.size))
    assert merkle.verify_consistency(first.size, last.size, first.root, last.root, proof)


def test_who_comes_second_leaves_a_tenant_to_the_faster_one_and_takes_it_when_that_is_gone_s362(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S362: two gateways do not read each other's work again and again; nor is anything left unsigned."""
    house, clock = desk.house, [1_000.0]
    monkeypatch.setattr("observatory.features.transparency.worker.time.monotonic", lambda: clock[0])
    second = Desk(house, desk.path.parent)
    desk.look()
    second.look()
    say(house)
    desk.look()
    say(house)
    known = desk.checkpoint()
    house.read(second.sealer.look(is_patient=True))  # finds that the first one was here
    house.read(second.sealer.look(is_patient=True))
    assert desk.checkpoint() == known
    clock[0] += sealer.THEIRS_S  # and the first one says nothing more
    while house.read(second.sealer.look(is_patient=True)):
        pass
    found = desk.checkpoint()
    assert found is not None and found.size == len(house.trail_of())


def test_two_sealers_make_one_line_of_checkpoints_s362(desk: Desk, tmp_path: Path) -> None:
    """S362: key and marks shared or copied; of two that seal the same step one is written."""
    house = desk.house
    desk.look()
    other = tmp_path / "other"
    shutil.copytree(desk.path.parent, other)
    copied, shared = Desk(house, other), Desk(house, desk.path.parent)
    for turn in (copied, desk, shared, copied, shared, desk):
        say(house, 2)
        turn.look()
        turn.look()
    assert desk.sealed().size == len(house.trail_of())
    rows = sorted(house.read(house.store.rows(HOME_TENANT, "checkpoints")), key=lambda row: row["size"])
    assert [row["previous_size"] for row in rows] == [0, *(row["size"] for row in rows[:-1])]
    assert [bytes(row["root"]) for row in rows] == [true_root(house, row["size"]) for row in rows]
    assert not (desk.sealer.refused or copied.sealer.refused or shared.sealer.refused)


def test_of_two_drafts_behind_one_checkpoint_the_second_is_refused_s362(desk: Desk) -> None:
    """S362: by the act under the lock; and by the database, whoever writes."""
    house, kept = desk.house, desk.sealed()
    say(house, 3)
    keeper = house.admin()
    drafts = [checkpoints.Draft(kept.size, kept.size + more, bytes(32), b"n", ()) for more in (2, 1, 9)]
    codes = [house.submit(checkpoints.seal(keeper, draft, house.now()))[0].code for draft in drafts]
    assert codes == [200, 409, 409]
    both = [checkpoints.seal(keeper, draft, house.now()) for draft in drafts[:2]]
    assert [verdict.code for verdict in house.submit(*both)] == [409, 409]
    row = {"tenant_id": HOME_TENANT, "size": kept.size + 1, "previous_size": kept.size, "root": bytes(32)}
    write = Write("checkpoints", row | {"note": b"", "signed_ns": 1})
    with pytest.raises(StatementFailed):
        house.submit(Act(keeper, house.now(), lambda desk: Verdict(200, None, writes=[write])))


def test_the_database_lets_nothing_of_the_log_be_changed_s363(desk: Desk) -> None:
    """S363: with every right the operator of the database has."""
    say(desk.house, 260)
    desk.look()
    for table, column in (("checkpoints", "signed_ns"), ("log_nodes", "position"), ("log_keys", "since")):
        assert desk.house.sql(f"SELECT count(*) FROM {table} WHERE 1 = :one", one=1)[0][0] > 0
        assert desk.house.refuses(f"UPDATE {table} SET {column} = 0"), table
        assert desk.house.refuses(f"DELETE FROM {table}"), table
        if isinstance(desk.house, PostgresHouse):
            assert desk.house.refuses(f"TRUNCATE {table}"), table


def tampered(house: House, table: str, statement: str) -> None:
    """Past every trigger."""
    if isinstance(house, SqliteHouse):
        house.sql(f"DROP TRIGGER IF EXISTS {table}_no_update")
        house.sql(statement)
    else:
        house.sql(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        house.sql(statement)


@pytest.mark.parametrize("table", ["log_nodes", "leaves"])
def test_hashes_that_were_changed_are_found_on_start_s358(desk: Desk, table: str) -> None:
    """S358: the stored hashes no longer give the signed root, and nothing more is signed."""
    house = desk.house
    say(house, 300)
    kept = desk.sealed()
    zeros = "zeroblob(32)" if isinstance(house, SqliteHouse) else "decode(repeat('00', 32), 'hex')"
    if table == "log_nodes":
        tampered(house, "log_nodes", f"UPDATE log_nodes SET hash = {zeros} WHERE level = 1")
    elif isinstance(house, SqliteHouse):
        tampered(house, house.trail, f"UPDATE audit_log SET leaf_hash = {zeros} WHERE key & 1048575 = 280")
    else:
        tampered(
            house, house.trail, f"UPDATE audit_events SET leaf_hash = {zeros} WHERE sequence_number = 280"
        )
    desk.again(accepts=True)
    say(house)
    desk.look()
    assert desk.sealer.refused[HOME_TENANT].kind == "broken"
    assert desk.checkpoint() == kept


def test_a_new_key_signs_beside_the_old_one_once_s364(desk: Desk) -> None:
    """S364: both under the next checkpoint, then the new one alone; the old private key is dropped."""
    house, who = desk.house, desk.house.admin()
    house.create_tenant(OTHER_TENANT)
    desk.look()
    old = verifier(desk)
    vkey = house.read(desk.sealer.rotate(who))
    new = note.Verifier.from_vkey(vkey)
    assert new.public_key != old.public_key and desk.path.read_bytes().count(b"BEGIN") == 2
    kept = desk.sealed()
    for known in (old, new):
        note.open(kept.note, [known])
    for tenant_id in (HOME_TENANT, OTHER_TENANT):
        (event,) = [one for one in house.trail_of(tenant_id) if b"log_key_rotated" in one.record]
        assert event.sequence_number <= house.read(house.store.head(tenant_id))[0]
    desk.look()
    assert desk.path.read_bytes().count(b"BEGIN") == 1
    say(house)
    after = desk.sealed()
    note.open(after.note, [new])
    with pytest.raises(note.BadNote, match="no known key"):
        note.open(after.note, [old])
    keys = sorted(house.read(house.store.rows(HOME_TENANT, "log_keys")), key=lambda row: row["since"])
    assert [bytes(row["public_key"]) for row in keys] == [old.public_key, new.public_key]


def test_killed_in_the_middle_of_a_rotation_it_is_ended_on_start_s364(desk: Desk) -> None:
    """S364: the file holds both keys, and no record tells of the new one yet."""
    desk.look()
    old = verifier(desk)
    ring = Keyring.open(desk.path, "")
    assert ring is not None
    ring.rotate()
    desk.again()
    say(desk.house)
    desk.look()
    rows = desk.house.read(desk.house.store.rows(HOME_TENANT, "checkpoints"))
    both = [row for row in rows if bytes(row["note"]).count("— ".encode()) == 2]
    assert len(both) == 1
    note.open(bytes(both[0]["note"]), [old])
    assert desk.path.read_bytes().count(b"BEGIN") == 1


def test_a_key_changed_by_another_process_is_read_anew_s364(desk: Desk) -> None:
    """S364: a gateway that shares the file follows."""
    desk.look()
    running, other = desk.sealer, Desk(desk.house, desk.path.parent)
    other.look()
    desk.house.read(other.sealer.rotate(desk.house.admin()))
    other.look()
    other.look()
    say(desk.house)
    desk.sealer = running
    kept = desk.sealed()
    assert kept.size == len(desk.house.trail_of())
    note.open(kept.note, [verifier(other)])


def test_marks_never_go_back_s359(tmp_path: Path) -> None:
    """S359: not even by another process; the file is its owner's alone and whole at any moment."""
    marks = Marks(tmp_path / "log.key.signed")
    root = bytes(range(32))
    marks.advance({"tnt_a": Mark("a", 5, root), "tnt_b": Mark("b", 1, root)})
    for worse in (Mark("a", 4, root), Mark("a", 5, bytes(32))):
        with pytest.raises(Exception, match="reaches further"):
            Marks(marks.path).advance({"tnt_b": Mark("b", 9, root), "tnt_a": worse})
    assert marks.load() == {"tnt_a": Mark("a", 5, root), "tnt_b": Mark("b", 1, root)}
    assert marks.path.stat().st_mode & 0o777 == 0o600
    assert b64decode(Mark("a", 5, root).root_text) == root


def test_a_log_is_caught_up_with_in_portions_s356(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """S356: an imported record, or one sealed for the first time."""
    monkeypatch.setattr("observatory.features.transparency.worker.PAGE", 100)
    say(desk.house, 300)
    assert desk.sealed().root == true_root(desk.house, len(desk.house.trail_of()))
    assert len(desk.house.read(desk.house.store.rows(HOME_TENANT, "checkpoints"))) == 4
    assert Node(1, 0, b"") < Node(1, 1, b"")

"""A house in one file and back, on both databases: of one moment, whole or not at all, and verified."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import uuid
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from observatory.cli import unfinished_files as unfinished
from observatory.cli.terminal import CommandFailed
from observatory.errors import StoreError
from observatory.features.backup import backup_file, snapshot
from observatory.features.backup.cli import backup, restore
from observatory.pipeline.ports import EventFilter, MessageFilter
from observatory.pipeline.state import HOME_TENANT
from observatory.store import tables
from observatory.store.sqlite import connect
from tests.contract.conftest import OTHER_TENANT, Harness, PostgresHarness, SqliteHarness
from tests.contract.sealing import log_sealer_of
from tests.samples import decision_log, envelope

KEY = b"-----BEGIN PRIVATE KEY-----\nof a test, never read\n-----END PRIVATE KEY-----\n"
Bend = Callable[[Path], None]


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("DATA", "DB", "CONFIG", "LOG_KEY"):
        monkeypatch.delenv(f"OBSERVATORY_{name}", raising=False)


def lived(harness: Harness, folder: Path) -> Harness:
    """Two tenants, sessions, a rewritten row, a shredded one, and a signed log."""
    harness.create_tenant(OTHER_TENANT)
    for tenant_id in (HOME_TENANT, OTHER_TENANT):
        logs = [
            decision_log(meta={"step_id": str(uuid.uuid4()), "session_id": f"s{n % 3}"}) for n in range(40)
        ]
        harness.send(*logs, envelope("text"), tenant_id=tenant_id)
    folder.mkdir(mode=0o700)
    log_sealer_of(harness, folder).sealed()
    return harness


def kept(harness: Harness, folder: Path, name: str = "house.backup") -> Path:
    """A backup of it, its key beside."""
    key = folder / "log.key"
    if not key.exists():
        key.write_bytes(KEY)
        key.chmod(0o600)
    path = folder.parent / name
    backup(to=path, data=str(folder), db=harness.url)
    return path


def same(here: Harness, there: Harness) -> None:
    """Every row of every table that is a tenant's, and every answer the archive gives."""
    for tenant_id in (HOME_TENANT, OTHER_TENANT):
        assert there.trail_of(tenant_id) == here.trail_of(tenant_id)
        for table in tables.OWNED:
            mine, theirs = (h.read(h.store.rows(tenant_id, table)) for h in (here, there))
            for row in (*mine, *theirs):
                row.pop("tenant_no", None)  # a number of the database, not of the house
            assert sorted(map(repr, theirs)) == sorted(map(repr, mine)), table
        all_messages = MessageFilter(), 5_000, True
        assert there.read(there.store.messages(tenant_id, *all_messages)) == here.read(
            here.store.messages(tenant_id, *all_messages)
        )
        session = here.read(here.store.rows(tenant_id, "sessions", session_id="s1"))[0]
        traced = EventFilter(trace_id=session["trace_id"]), 500, False
        found = here.read(here.store.events(tenant_id, *traced))
        assert found and there.read(there.store.events(tenant_id, *traced)) == found


def test_a_backup_is_restored_into_either_database_whatever_it_came_from_s586_s588(
    harness: Harness, tmp_path: Path, empty_pg: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lived(harness, tmp_path / "old")
    path = kept(harness, tmp_path / "old")
    assert "with the log's private key" in capsys.readouterr().out
    assert path.stat().st_mode & 0o077 == 0
    restore(from_=path, data=str(tmp_path / "new"), workers=1)
    received = capsys.readouterr()
    assert "82 messages' bytes" in received.out and "--accept-rollback" in received.err
    assert (tmp_path / "new/log.key").read_bytes() == (tmp_path / "old/log.key").read_bytes()
    assert sorted(one.name for one in (tmp_path / "new").iterdir()) == ["lock", "log.key", "observatory.db"]
    lite = SqliteHarness(tmp_path / "new/observatory.db")
    lite.open()
    there = PostgresHarness(empty_pg)
    try:
        same(harness, lite)
        assert lite.send(decision_log())[0].code == 202, "the chain goes on"
        restore(from_=path, data=str(tmp_path / "beside"), db=empty_pg, workers=1)
        there.open()
        same(harness, there)
        with pytest.raises(CommandFailed, match="not empty"):
            restore(from_=path, data=str(tmp_path / "new"))
    finally:
        lite.end()
        there.end()


def test_what_is_committed_meanwhile_is_in_no_part_of_it_s585(
    harness: Harness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S585: one moment, and it does not begin anew because somebody writes."""
    lived(harness, tmp_path / "old")
    monkeypatch.setattr(snapshot, "PAGES", 20)
    monkeypatch.setattr(snapshot, "BATCH", 20)
    head = harness.read(harness.store.head(HOME_TENANT))
    steps = []

    def meanwhile(done: int, total: int) -> None:
        steps.append(done)
        with ThreadPoolExecutor(1) as elsewhere:  # the copy may run in a loop of its own
            assert elsewhere.submit(harness.send, decision_log()).result()[0].code == 202

    snapshot.snapshot(harness.url, tmp_path / "copy.db", meanwhile)
    assert len(steps) >= 3 and steps == sorted(steps)
    assert harness.read(harness.store.head(HOME_TENANT))[0] >= head[0] + 3
    _, [mine, _] = snapshot.look(tmp_path / "copy.db")
    assert (mine.events, mine.event_hash, mine.messages) == (*head, 41)
    found = sqlite3.connect(tmp_path / "copy.db").execute("PRAGMA integrity_check").fetchone()
    assert found == ("ok",)


# --- what is not whole, not ours or not true is put nowhere ---


def repacked(path: Path, change: Callable[[dict[str, Any], dict[str, bytes]], None]) -> None:
    """Written anew by somebody who knows the form."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members.pop("manifest.json"))
    change(manifest, members)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        archive.writestr("manifest.json", json.dumps(manifest))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-500])


def cut_in_half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def other_bytes(path: Path) -> None:
    repacked(
        path, lambda manifest, members: members.update({"observatory.db": members["observatory.db"][:-1]})
    )


def other_heads(path: Path) -> None:
    repacked(path, lambda manifest, members: manifest["tenants"][0].update(events=1))


def other_form(path: Path) -> None:
    repacked(path, lambda manifest, members: manifest.update(format="observatory-backup/2"))


def from_the_future(path: Path) -> None:
    repacked(path, lambda manifest, members: manifest.update(schema="9999"))


def stowaway(path: Path) -> None:
    repacked(path, lambda manifest, members: members.update({"../../evil": b"x"}))


def listed_stowaway(path: Path) -> None:
    def change(manifest: dict[str, Any], members: dict[str, bytes]) -> None:
        members["../evil"] = b""
        manifest["files"]["../evil"] = {"bytes": 0, "sha256": "e3b0c44298fc1c149afbf4c8996fb924"}

    repacked(path, change)


def no_manifest(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("observatory.db", b"x")


def no_database(path: Path) -> None:
    def change(manifest: dict[str, Any], members: dict[str, bytes]) -> None:
        members["observatory.db"] = b"no database at all" * 100
        described(manifest, members)

    repacked(path, change)


def described(manifest: dict[str, Any], members: dict[str, bytes]) -> None:
    import hashlib

    content = members["observatory.db"]
    manifest["files"]["observatory.db"] = {
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def one_word_changed(path: Path) -> None:
    """By somebody who knows every form, and has not the key."""

    def change(manifest: dict[str, Any], members: dict[str, bytes]) -> None:
        bent = path.with_suffix(".db")
        bent.write_bytes(members["observatory.db"])
        connection = connect(bent)
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute("UPDATE payloads SET raw = X'7b7d' WHERE key = (SELECT min(key) FROM payloads)")
        connection.execute("PRAGMA journal_mode=DELETE")
        connection.close()
        members["observatory.db"] = bent.read_bytes()
        described(manifest, members)

    repacked(path, change)


BENT: dict[str, tuple[Bend, str]] = {
    "cut short": (cut, "not a backup, or it is truncated"),
    "cut in half": (cut_in_half, "not a backup, or it is truncated"),
    "a bit flipped": (flip, "is damaged|does not match its manifest"),
    "other bytes": (other_bytes, "does not match its manifest"),
    "other heads": (other_heads, "heads in this backup do not match its manifest"),
    "another form": (other_form, "this program reads observatory-backup/1"),
    "a newer schema": (from_the_future, "made by a newer Observatory"),
    "a file too many": (stowaway, "holds other files"),
    "a file too many, listed": (listed_stowaway, "holds other files"),
    "no manifest": (no_manifest, "holds no readable manifest"),
    "no database": (no_database, "not a database of an Observatory"),
    "one word changed": (one_word_changed, "is broken; nothing was restored"),
    "text": (lambda path: path.write_text("nothing of the kind"), "not a backup"),  # type: ignore[dict-item]
}


@pytest.fixture
def whole(sqlite_harness: SqliteHarness, tmp_path: Path) -> Path:
    lived(sqlite_harness, tmp_path / "old")
    return kept(sqlite_harness, tmp_path / "old")


def test_what_was_bent_is_restored_nowhere_s587(whole: Path, tmp_path: Path) -> None:
    """S587: each for its own reason, told in one sentence."""
    content = whole.read_bytes()
    restore(from_=whole, check=True, workers=1)
    for name, (bend, received) in BENT.items():
        whole.write_bytes(content)
        bend(whole)
        target = tmp_path / "target"
        with pytest.raises(Exception, match=received) as refused:
            restore(from_=whole, data=str(target), workers=1)
        assert refused.type.__module__.startswith("observatory"), (name, refused)
        assert not list(target.glob("*.db*")) and not (target / "log.key").exists(), name
        assert not (tmp_path / "evil").exists() and not (tmp_path.parent / "evil").exists()
    whole.write_bytes(content)
    digest = backup_file.digest_of(whole)
    with pytest.raises(CommandFailed, match="does not have that digest"):
        restore(from_=whole, data=str(tmp_path / "target"), digest="sha256:" + "0" * 64)
    odd = tmp_path / "a #1%41?"  # in a URI each of these would mean something
    restore(from_=whole, data=str(odd), digest=f"sha256:{digest}", workers=1)
    assert (odd / "observatory.db").exists() and not (tmp_path / "a ").exists()


def test_a_backup_goes_over_nothing_and_a_key_that_is_there_stays_s584(
    whole: Path, sqlite_harness: SqliteHarness, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = whole.read_bytes()
    with pytest.raises(CommandFailed, match="already exists and is not overwritten"):
        backup(to=whole, data=str(tmp_path / "old"))
    with pytest.raises(CommandFailed, match="does not exist"):
        backup(to=tmp_path / "nowhere/x", data=str(tmp_path / "old"), db=sqlite_harness.url)
    assert whole.read_bytes() == content
    backup(to=tmp_path, data=str(tmp_path / "old"), db=sqlite_harness.url, without_key=True)
    [named] = tmp_path.glob("observatory-*.backup")
    assert zipfile.ZipFile(named).namelist() == ["observatory.db", "manifest.json"]
    assert not [one.name for one in tmp_path.iterdir() if one.name.startswith(".")]
    kept_apart = tmp_path / "target/log.key"
    kept_apart.parent.mkdir(mode=0o700)
    kept_apart.write_bytes(b"another")
    kept_apart.with_name("log.key.signed").write_bytes(b"{}")
    restore(from_=whole, data=str(tmp_path / "target"), workers=1)
    assert "was not changed" in capsys.readouterr().err
    assert kept_apart.read_bytes() == b"another"


UNDER_WAY = """
import os, resource, signal, sys
from pathlib import Path
from observatory.features.backup import backup_file
from observatory.features.backup.cli import backup
db, data, to = sys.argv[1:]
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
def room(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
pack = backup_file.write
def packed_on_a_full_disk(*given):
    room(4_000)
    return pack(*given)
def tried():
    try:
        backup(to=Path(to), data=data, db=db)
    except BaseException as error:
        print(type(error).__name__, error, os.listdir(Path(to).parent), flush=True)
room(4_000)
tried()
room(resource.RLIM_INFINITY)
backup_file.write = packed_on_a_full_disk
tried()
room(resource.RLIM_INFINITY)
backup_file.write = pack
for kind in (signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
    backup_file.digest_of = lambda path: os.kill(os.getpid(), kind)
    tried()
"""


def test_what_ends_half_way_leaves_nothing_under_its_name_s584(
    sqlite_harness: SqliteHarness, tmp_path: Path
) -> None:
    """S584, S1065: with a disk that is full while it is copied, while it is packed; told to end; and killed:
    what the killed one left is gone with the next."""
    lived(sqlite_harness, tmp_path / "old")
    path = tmp_path / "to/house.backup"
    path.parent.mkdir()
    run = subprocess.run(
        [sys.executable, "-c", UNDER_WAY, sqlite_harness.url, str(tmp_path / "old"), str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == -9, run.stderr
    copied, packed, told_to_end, hung_up = run.stdout.splitlines()
    assert told_to_end.split() == ["KeyboardInterrupt", "[]"] == hung_up.split()
    assert copied.startswith("StoreError the copy ended at SQLite") and copied.endswith(" []")
    assert packed.startswith(f"CommandFailed {path} could not be written") and packed.endswith(" []")
    assert not path.exists() and list(path.parent.iterdir()), "what was killed lies beside, under no name"
    with unfinished.file(path) as others, unfinished.folder(path.parent) as theirs:
        (path.parent / ".notes.partial").write_text("a person's own")
        backup(to=path, data=str(tmp_path / "old"), db=sqlite_harness.url)
        left = {one.name for one in path.parent.iterdir()}
    assert left == {path.name, ".notes.partial", others.name, theirs.name}, "what others still make is left"
    unfinished.clear(path.parent)
    assert {one.name for one in path.parent.iterdir()} == {path.name, ".notes.partial"}


def test_a_database_that_is_none_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_bytes(b"nonsense" * 1_000)
    with pytest.raises(StoreError, match="the copy ended at SQLite"):
        snapshot.snapshot(f"sqlite:///{tmp_path / 'x.db'}", tmp_path / "y.db", lambda done, total: None)
    with pytest.raises(CommandFailed, match="does not exist"):
        restore(from_=tmp_path / "none")

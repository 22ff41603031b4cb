"""`observatory verify --data` and `doctor`: a lost tail, a rewritten history, bad pages."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from observatory.ledger import note
from observatory.ledger.canonical import jcs
from observatory.ledger.chain import ChainHead, link
from observatory.ledger.verify_log import TreeSpan
from observatory.ledger.verify_note import Key, read_key
from tests.flows.databases import ALONE
from tests.flows.server import Server, observatory
from tests.flows.trail.outside import lines, verified
from tests.waiting import until

TENANT = "tnt_default"
CUT = 40


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Signed several times and stopped: the checkpoint that a forger goes back to is there."""
    folder = tmp_path_factory.mktemp("signed") / "data"
    with Server(folder, environment=ALONE) as server:
        for _ in range(3):
            server.send_lines(lines(40))
            until(lambda: server.http().get("/v1/audit/log").json()["unsigned"] == 0)
    return folder


def open_database(folder: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(folder / "observatory.db", isolation_level=None)
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        connection.execute(f"DROP TRIGGER {name}")
    return connection


def base_of(connection: sqlite3.Connection) -> int:
    number = connection.execute("SELECT tenant_no FROM chain_heads WHERE tenant_id = ?", (TENANT,))
    return int(number.fetchone()[0]) << 40


def set_head(connection: sqlite3.Connection, number: int) -> None:
    key = base_of(connection) + number
    record = connection.execute("SELECT record FROM audit_log WHERE key = ?", (key,)).fetchone()[0]
    connection.execute(
        "UPDATE chain_heads SET sequence_number = ?, event_hash = ? WHERE tenant_id = ?",
        (number, json.loads(record)["hash_chain"]["event_hash"], TENANT),
    )


def lose_tail(connection: sqlite3.Connection, checkpoint: bool = True) -> None:
    """Back to an older signed checkpoint: rows, messages, hashes and checkpoints past it are gone."""
    sizes = connection.execute("SELECT size FROM checkpoints WHERE tenant_id = ? ORDER BY size", (TENANT,))
    size = sizes.fetchall()[0][0] if checkpoint else CUT
    base = base_of(connection)
    for table in ("audit_log", "messages", "payloads"):
        connection.execute(f"DELETE FROM {table} WHERE key > ? AND key < ?", (base + size, base + (1 << 40)))
    connection.execute("DELETE FROM checkpoints WHERE tenant_id = ? AND size > ?", (TENANT, size))
    set_head(connection, size)


def lose_tail_unsigned(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM checkpoints WHERE tenant_id = ?", (TENANT,))
    connection.execute("DELETE FROM log_keys WHERE tenant_id = ?", (TENANT,))
    lose_tail(connection, checkpoint=False)


def rewrite(connection: sqlite3.Connection, signs: bool = True) -> None:
    """Another history of the same length: every hash made again, and signed by a key of the forger's."""
    base, head, span = base_of(connection), ChainHead.genesis(), TreeSpan()
    rows = connection.execute(
        "SELECT key, record FROM audit_log WHERE key > ? AND key < ? ORDER BY key", (base, base + (1 << 40))
    ).fetchall()
    for key, raw in rows:
        event = json.loads(raw)
        del event["hash_chain"]
        if key - base == CUT:
            event["body"]["summary"] = "it was never so"
        event["resource"] = json.loads(jcs(event["resource"]))
        made = link(head, event, TENANT)
        connection.execute(
            "UPDATE audit_log SET record = ?, leaf_hash = ? WHERE key = ?", (made.record, made.leaf_hash, key)
        )
        head = made.head
        span.extend([made.leaf_hash])
    old = connection.execute("SELECT note FROM checkpoints WHERE tenant_id = ?", (TENANT,)).fetchone()[0]
    origin = bytes(old).split(b"\n")[0].decode()
    signer = note.Signer(origin, Ed25519PrivateKey.generate())
    text = note.checkpoint(origin, len(rows), span.root() or b"")
    connection.execute("DELETE FROM checkpoints WHERE tenant_id = ?", (TENANT,))
    if signs:
        columns = "tenant_id, size, previous_size, root, note, signed_ns"
        connection.execute(
            f"INSERT INTO checkpoints ({columns}) VALUES (?, ?, 0, ?, ?, 1)",
            (TENANT, len(rows), span.root(), note.sign(text, [signer])),
        )
        key = read_key(signer.vkey)
        assert isinstance(key, Key)
        public = key.public
        connection.execute("UPDATE log_keys SET public_key = ? WHERE tenant_id = ?", (public, TENANT))
    set_head(connection, len(rows))


def rewrite_unsigned(connection: sqlite3.Connection) -> None:
    rewrite(connection, signs=False)


def drop_a_checkpoint(connection: sqlite3.Connection) -> None:
    connection.execute(
        "DELETE FROM checkpoints WHERE size = (SELECT min(size) FROM checkpoints WHERE tenant_id = ?)",
        (TENANT,),
    )


def bend_a_checkpoint(connection: sqlite3.Connection) -> None:
    connection.execute(
        "UPDATE checkpoints SET root = zeroblob(32) "
        "WHERE size = (SELECT min(size) FROM checkpoints WHERE tenant_id = ?)",
        (TENANT,),
    )


def lose_the_tenant(connection: sqlite3.Connection) -> None:
    for table in ("chain_heads", "checkpoints"):
        connection.execute(f"DELETE FROM {table} WHERE tenant_id = ?", (TENANT,))
    connection.execute("INSERT INTO chain_heads SELECT 'tnt_x', 9, 0, '', 0, 0, 0, 0")


CRIMES: dict[str, tuple[Callable[[sqlite3.Connection], None], str]] = {
    "the tail is lost, back to an older checkpoint": (lose_tail, "missing_tail"),
    "the tail is lost, and nothing says it was signed": (lose_tail_unsigned, "missing_tail"),
    "the history is rewritten and signed by another key": (rewrite, "signature"),
    "the history is rewritten and not signed": (rewrite_unsigned, "consistency"),
    "a stored checkpoint is gone": (drop_a_checkpoint, "checkpoints"),
    "a stored checkpoint has another root": (bend_a_checkpoint, "checkpoints"),
    "the tenant is gone": (lose_the_tenant, "missing_tail"),
}


@pytest.mark.req(324, 457)
@pytest.mark.parametrize("crime", CRIMES)
def test_what_the_marks_and_stored_checkpoints_say_is_missing_or_another_is_broken_s1060(
    signed: Path, tmp_path: Path, crime: str
) -> None:
    """S1060: chain, leaves and head fit in every case; `doctor` says the same."""
    folder = shutil.copytree(signed, tmp_path / "data")
    commit, what = CRIMES[crime]
    connection = open_database(folder)
    commit(connection)
    connection.close()
    code, found = verified("--data", str(folder))
    broken = next(tenant for tenant in found["tenants"] if tenant["tenant_id"] == TENANT)
    assert code == 2 and not found["valid"]
    assert broken["first_break"]["what"] == what and broken["checks"][what] is False, broken
    run = observatory("doctor", "--data", str(folder), "--json")
    record = {one["check"]: one for one in json.loads(run.stdout)}[f"record of {TENANT}"]
    assert run.returncode == 1 and not record["ok"]
    assert broken["first_break"]["sentence"] in record["found"]


def test_what_is_whole_holds_by_the_key_and_the_marks_beside_it_s1060(signed: Path) -> None:
    """S1060."""
    code, found = verified("--data", str(signed))
    (tenant,) = found["tenants"]
    assert code == 0 and set(tenant["checks"].values()) == {True} and tenant["own_key"]
    received = observatory("verify", "--data", str(signed)).stdout
    assert "by the key next to the database" in received
    pages = {one["check"]: one for one in doctor(signed)}
    assert pages["database pages"]["found"] == "quick_check: ok"
    assert "events verified" in pages[f"record of {TENANT}"]["found"]


def test_what_nothing_outside_speaks_for_is_not_checked_and_never_held_s1061(
    signed: Path, tmp_path: Path
) -> None:
    """S1061: in text, in JSON and by the doctor; a checkpoint that was kept speaks for the tail again."""
    folder = shutil.copytree(signed, tmp_path / "data")
    (folder / "log.key.signed").unlink()
    code, found = verified("--data", str(folder))
    (tenant,) = found["tenants"]
    assert code == 0 and tenant["checks"]["missing_tail"] is None and tenant["checks"]["consistency"] is None
    text = observatory("verify", "--data", str(folder)).stdout
    assert "missing_tail not checked" in text and "missing_tail ok" not in text
    record = {one["check"]: one for one in doctor(folder)}[f"record of {TENANT}"]
    assert "not checked: consistency, missing_tail" in record["found"]
    connection = open_database(folder)
    kept = connection.execute("SELECT note FROM checkpoints WHERE tenant_id = ? ORDER BY size", (TENANT,))
    (tmp_path / "kept").write_bytes(kept.fetchall()[0][0])
    connection.close()
    _, found = verified("--data", str(folder), "--tenant", TENANT, "--checkpoint", str(tmp_path / "kept"))
    assert found["tenants"][0]["checks"]["missing_tail"] is True
    by_db = ("--db", f"sqlite:///{signed / 'observatory.db'}", "--tenant", TENANT)
    run = observatory("verify", *by_db, "--json", environment={"OBSERVATORY_DATA": str(tmp_path / "none")})
    assert json.loads(run.stdout)["tenants"][0]["checks"]["missing_tail"] is None


def test_marks_that_are_damaged_end_the_check_s1060(signed: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(signed, tmp_path / "data")
    (folder / "log.key.signed").write_bytes(b"{")
    run = observatory("verify", "--data", str(folder))
    assert run.returncode == 1 and "is damaged" in run.stderr and "Traceback" not in run.stderr


def test_of_another_log_the_marks_are_refused_s1060(signed: Path, tmp_path: Path) -> None:
    """S1060: a changed origin must not turn the check off."""
    folder = shutil.copytree(signed, tmp_path / "data")
    path = folder / "log.key.signed"
    marks = json.loads(path.read_bytes())
    marks[TENANT]["origin"] = "example.com/another"
    path.write_text(json.dumps(marks))
    code, found = verified("--data", str(folder))
    assert code == 2 and "another log" in found["tenants"][0]["first_break"]["sentence"]


def doctor(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(observatory("doctor", "--data", str(folder), "--json").stdout)
    return found


def corrupt(path: Path, pages: range, seed: int) -> None:
    """Pages overwritten with noise, as a bad disk does."""
    noise = random.Random(seed)
    with path.open("r+b") as file:
        file.seek(16)
        size = int.from_bytes(file.read(2), "big")
        for page in pages:
            file.seek(page * size)
            file.write(noise.randbytes(size))


@pytest.mark.parametrize("seed", range(8))
def test_malformed_pages_are_a_sentence_and_never_valid_s1062(
    signed: Path, tmp_path: Path, seed: int
) -> None:
    """S1062: `verify` never raises, and never says valid of what it cannot read."""
    folder = shutil.copytree(signed, tmp_path / "data")
    path = folder / "observatory.db"
    some, count = random.Random(seed), path.stat().st_size // 4096
    first = some.randrange(1, count)
    corrupt(path, range(first, min(first + some.choice((1, 5, 60)), count)), seed)
    run = observatory("verify", "--data", str(folder))
    assert run.returncode in (1, 2) and "Traceback" not in run.stderr, run.stderr
    found = observatory("doctor", "--data", str(folder), "--json")
    assert found.returncode == 1 and "Traceback" not in found.stderr, found.stderr
    pages = {one["check"]: one for one in json.loads(found.stdout)}
    assert any(not one["ok"] for name, one in pages.items() if "database" in name), pages


def test_a_gateway_that_met_a_malformed_page_is_not_ready_s1063(tmp_path: Path) -> None:
    """S1063: and stays so, although other pages can be read."""
    folder = tmp_path / "data"
    with Server(folder, environment=ALONE | {"INSIGHT": "false"}) as server:
        server.send_lines(lines(400))
        assert server.http().get("/readyz").status_code == 200
        server.stop()
        path = folder / "observatory.db"
        connection = sqlite3.connect(path)
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'payloads'").fetchone()
        connection.close()
        corrupt(path, range(root - 1, root), 7)
        server.start()
        assert server.http().get("/readyz").status_code == 200, "nobody has read that page yet"
        item = server.http().get("/v1/messages", params={"limit": 1})
        assert item.status_code == 503
        for _ in range(2):
            ready = server.http().get("/readyz")
            assert ready.status_code == 503 and "malformed" in ready.json()["detail"]

"""A live gateway, an export and a database against what was signed: what their own chains cannot tell."""

from __future__ import annotations

import json
import shutil
import sqlite3
from hashlib import sha256
from pathlib import Path

import pytest

from observatory.cli.terminal import CommandFailed
from observatory.cli.verify import log_root as log_check
from observatory.cli.verify.log_root import LogClaim, TrustedInputs
from observatory.features.verification.cli import verify
from observatory.ledger import note
from observatory.ledger.verify_log import TreeSpan
from tests.flows.databases import ALONE
from tests.flows.server import Server, observatory
from tests.flows.trail.outside import HOME, bend, lines, refused, verified
from tests.flows.trail.telling import FOREIGN_KEY, Json, RecordedTrail
from tests.samples import decision_log
from tests.waiting import until


def test_a_gateway_is_checked_by_all_it_shows_and_by_a_checkpoint_kept_s390(
    received: RecordedTrail, tmp_path: Path
) -> None:
    """S390, S391, S392."""
    kept = tmp_path / "kept"
    kept.write_text(received.log["checkpoint"])
    received.tenant.send(decision_log())
    source = (received.tenant.url, "--key", received.tenant.key("auditor"), "--vkey", received.vkey)
    code, found = verified(*source, "--checkpoint", str(kept))
    checks = found["tenants"][0]["checks"]
    assert code == 0 and found["tenants"][0]["pinned"], found
    for name in (
        "density",
        "chain",
        "record",
        "head",
        "log_root",
        "signature",
        "consistency",
        "missing_tail",
    ):
        assert checks[name] is True, name
    lines_kept = received.log["checkpoint"].splitlines(keepends=True)
    kept.write_text("".join([lines_kept[0], lines_kept[1], "A" * 43 + "=\n", *lines_kept[3:]]))
    assert "--checkpoint:" in refused("verify", *source, "--checkpoint", str(kept))
    code, found = verified(*source[:3], "--checkpoint", str(kept))
    assert code == 2 and found["tenants"][0]["first_break"]["what"] == "consistency"
    code, found = verified(*source[:3], "--vkey", FOREIGN_KEY)
    assert code == 2 and found["tenants"][0]["checks"]["signature"] is False


def test_an_export_holds_its_checkpoint_and_a_shortened_one_is_found_s391(
    received: RecordedTrail, tmp_path: Path
) -> None:
    """S391: the manifest written anew, the chain whole: only what was signed tells of the missing tail."""
    out = tmp_path / "trail.jsonl"
    source = ("--url", received.tenant.url, "--key", received.tenant.key("auditor"))
    until(lambda: received.tenant.http("admin").get("/v1/audit/log").json()["unsigned"] == 0)
    assert observatory("export", *source, "--out", str(out)).returncode == 0
    code, found = verified(str(out), "--vkey", received.vkey)
    assert code == 0 and found["tenants"][0]["checks"]["log_root"] is True
    path = out.with_name(out.name + ".manifest.json")
    manifest = json.loads(path.read_text())
    assert manifest["checkpoint"] and manifest["vkeys"] == [received.vkey]
    cut(out, manifest)
    path.write_text(json.dumps(manifest))
    code, found = verified(str(out), "--vkey", received.vkey)
    (tenant,) = found["tenants"]
    assert code == 2 and tenant["checks"]["chain"] and tenant["checks"]["head"]
    assert (
        tenant["first_break"]["what"] == "missing_tail" and "were signed" in tenant["first_break"]["sentence"]
    )


def cut(out: Path, manifest: Json) -> None:
    kept = out.read_bytes().splitlines(keepends=True)[:-1]
    out.write_bytes(b"".join(kept))
    entry = json.loads(kept[-1])
    last = json.loads(entry["record"])["hash_chain"]
    manifest |= {
        "events": len(kept),
        "to_sequence": len(kept),
        "last_hash": last["event_hash"],
        "head": {"sequence_number": len(kept), "event_hash": last["event_hash"]},
        "bytes": out.stat().st_size,
        "sha256": "sha256:" + sha256(out.read_bytes()).hexdigest(),
        "messages": sum(json.loads(line)["message"] is not None for line in kept),
    }


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose gateway has signed everything and stopped."""
    folder = tmp_path_factory.mktemp("signed") / "data"
    with Server(folder, environment=ALONE) as server:
        server.send_lines(lines(30))
        until(lambda: server.http().get("/v1/audit/log").json()["unsigned"] == 0)
    return folder


def test_a_database_whose_log_was_cut_or_rewritten_is_found_s391(signed: Path, tmp_path: Path) -> None:
    """S391, S392: chain, leaves and head fit; what was signed does not."""
    code, found = verified("--data", str(signed), "--tenant", "tnt_default")
    checks = found["tenants"][0]["checks"]
    assert code == 0 and checks["log_root"] and checks["signature"] and checks["missing_tail"]
    size = found["tenants"][0]["signed_size"]
    shorter = shutil.copytree(signed, tmp_path / "shorter")
    behind(shorter, size - 5)
    code, found = verified("--data", str(shorter), "--tenant", "tnt_default", "--no-payloads")
    (tenant,) = found["tenants"]
    assert code == 2 and tenant["checks"]["head"] is True and tenant["checks"]["chain"] is True
    assert tenant["first_break"]["what"] == "missing_tail", tenant
    forged = shutil.copytree(signed, tmp_path / "forged")
    bend(
        forged, f"UPDATE checkpoints SET note = replace(CAST(note AS TEXT), '{size}', '{size - 1}') {NEWEST}"
    )
    code, found = verified("--data", str(forged), "--tenant", "tnt_default", "--no-payloads")
    assert code == 2 and found["tenants"][0]["checks"]["signature"] is False
    for bent in ("note = x'00'", "note = 7"):
        other = shutil.copytree(signed, tmp_path / bent[7:])
        bend(other, f"UPDATE checkpoints SET {bent} {NEWEST}")
        code, found = verified("--data", str(other), "--tenant", "tnt_default", "--no-payloads")
        assert code == 2 and found["tenants"][0]["first_break"]["what"] == "signature"


def test_a_database_from_before_there_was_a_log_is_checked_without_one_s391(
    signed: Path, tmp_path: Path
) -> None:
    """S391: and nothing is claimed of what is not there."""
    old = shutil.copytree(signed, tmp_path / "old")
    connection = sqlite3.connect(old / "observatory.db", isolation_level=None)
    connection.execute("DROP TABLE checkpoints")
    connection.execute("DROP TABLE log_keys")
    connection.close()
    (old / "log.key.signed").unlink()
    code, found = verified("--data", str(old), "--tenant", "tnt_default", "--no-payloads")
    checks = found["tenants"][0]["checks"]
    assert code == 0 and checks["chain"] is True
    assert [checks[name] for name in ("log_root", "signature", "missing_tail")] == [None] * 3
    code, found = verified("--data", str(old), "--tenant", "tnt_default", "--vkey", FOREIGN_KEY)
    assert code == 2 and "nothing here is signed" in found["tenants"][0]["first_break"]["sentence"]


def test_a_pinned_key_asks_for_what_it_signed_s387() -> None:
    """S387: nothing signed, or a root that cannot be made of what is there, is a break."""
    signer = note.Signer("log.example/tnt_x", b"\7" * 32)
    leaves, whole = [b"\1" * 32] * 3, TreeSpan()
    whole.extend(leaves)
    signed = note.sign(note.checkpoint(signer.name, 3, whole.root() or b""), [signer]).decode()
    claim, pinned = (
        log_check.export_claim(signed, [signer.vkey]),
        log_check.trusted_inputs([signer.vkey], None),
    )
    part = TreeSpan(1)
    part.extend(leaves[1:])
    assert log_check.check_log(claim, pinned, {3: whole}, 3).first_break is None
    for spans in ({}, {3: part}):
        assert log_check.check_log(claim, TrustedInputs(), spans, 3).first_break is None
        broken = log_check.check_log(claim, pinned, spans, 3).first_break
        assert broken is not None and broken.what == "log_root" and "compared with" in broken.sentence
    broken = log_check.check_log(LogClaim(), pinned, {}, 3).first_break
    assert broken is not None and broken.what == "signature"
    assert log_check.check_log(LogClaim(), TrustedInputs(), {}, 3).first_break is None


@pytest.mark.parametrize("part", [{"from_": 2}, {"to": 3}, {"url": "http://127.0.0.1:1"}])
def test_what_is_pinned_is_held_against_the_whole_log_or_not_at_all_s387(part: Json, tmp_path: Path) -> None:
    """S387: of a part, and of a gateway's own word, it would prove nothing."""
    for kept in ({"vkey": [FOREIGN_KEY]}, {"checkpoint": tmp_path / "kept"}):
        with pytest.raises(CommandFailed, match="the whole log"):
            verify(**part, **kept)


NEWEST = (
    "WHERE tenant_id = 'tnt_default' AND size = "
    "(SELECT max(size) FROM checkpoints WHERE tenant_id = 'tnt_default')"
)


def behind(folder: Path, number: int) -> None:
    """The record as if nothing past this number had ever been: rows gone, and the head set back to it."""
    connection = sqlite3.connect(folder / "observatory.db", isolation_level=None)
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        connection.execute(f"DROP TRIGGER {name}")
    connection.execute(f"DELETE FROM audit_log WHERE key > {HOME} + {number} AND key < 2 * {HOME}")
    raw = connection.execute(f"SELECT record FROM audit_log WHERE key = {HOME} + {number}").fetchone()[0]
    event_hash = json.loads(raw)["hash_chain"]["event_hash"]
    connection.execute(
        "UPDATE chain_heads SET sequence_number = ?, event_hash = ? WHERE tenant_id = 'tnt_default'",
        (number, event_hash),
    )
    connection.close()

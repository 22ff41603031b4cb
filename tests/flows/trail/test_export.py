"""`observatory export`: every byte, whole or not at all; cut, bent and broken exports are told apart."""

from __future__ import annotations

import gzip
import json
import shutil
import sqlite3
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from tests.flows.server import Server, observatory
from tests.flows.trail.outside import ROW, bend, lines, manifest_of, refused, verified


def test_an_export_brings_back_every_byte(lived: Path, exported: Path) -> None:
    entries = [json.loads(line) for line in exported.read_text("utf-8").splitlines()]
    manifest = json.loads(manifest_of(exported).read_text())
    assert [entry["sequence_number"] for entry in entries] == list(range(1, manifest["events"] + 1))
    connection = sqlite3.connect(lived / "observatory.db")
    rows = connection.execute(
        "SELECT a.record, p.raw FROM audit_log a LEFT JOIN payloads p USING (key) WHERE tenant_no = "
        "(SELECT tenant_no FROM chain_heads WHERE tenant_id = 'tnt_default') ORDER BY key"
    ).fetchall()
    connection.close()
    assert [entry["record"].encode() for entry in entries] == [bytes(record) for record, _ in rows]
    raws = [entry["message"]["raw"].encode() if entry["message"] else None for entry in entries]
    assert raws == [raw for _, raw in rows]
    assert manifest["messages"] == 62 and manifest["head"]["event_hash"] == manifest["last_hash"]


def test_an_export_verifies_and_says_so(exported: Path) -> None:
    code, found = verified("--export", str(exported))
    (tenant,) = found["tenants"]
    held = {name for name, value in tenant["checks"].items() if value}
    assert code == 0 and held >= {"density", "chain", "record", "leaf", "payloads", "head"}
    assert tenant["payloads_checked"] == 62


def test_an_auditor_exports_through_the_gateway_and_an_operator_may_not(
    fresh_server: Server, tmp_path: Path
) -> None:
    server = fresh_server  # the shared one has tens of thousands of events
    server.send(b"  " + lines(1)[0] + b" \n")  # archived with its blanks, shown without
    server.send_lines(lines(20))
    out = tmp_path / "part.jsonl.gz"
    source = ("--url", server.url, "--key", server.key("auditor"))
    run = observatory("export", *source, "--from", "3", "--out", str(out))
    assert run.returncode == 0, run.stderr
    assert verified("--export", str(out))[0] == 0
    first = json.loads(gzip.decompress(out.read_bytes()).splitlines()[0])
    assert first["sequence_number"] == 3
    stored = observatory(
        "export", "--data", str(server.folder), "--from", "3", "--out", str(tmp_path / "b.jsonl")
    )
    assert stored.returncode == 0
    assert json.loads((tmp_path / "b.jsonl").read_text().splitlines()[0])["record"] == first["record"]
    other = ("--url", server.url, "--key", server.key("operator"), "--out", str(tmp_path / "no.jsonl"))
    assert "may not export" in refused("export", *other)


def test_an_export_is_never_overwritten_and_never_left_half(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out" / "trail.jsonl"
    words = ("export", "--data", str(data), "--out", str(out))
    assert "does not exist" in refused(*words)
    out.parent.mkdir()
    bend(data, f"DELETE FROM audit_log {ROW}")
    assert "found event 91 where event 90 must be" in refused(*words)
    assert list(out.parent.iterdir()) == []
    out.write_text("precious")
    assert "already exists" in refused(*words)
    assert out.read_text() == "precious"


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-400])


def _flip(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(bytes(raw))


def _forge(path: Path) -> None:
    """Last line and manifest's digest taken away together: only the counts and the chain's end still tell."""
    kept = b"".join(path.read_bytes().splitlines(keepends=True)[:-1])
    path.write_bytes(kept)
    manifest = json.loads(manifest_of(path).read_text())
    manifest |= {"bytes": len(kept), "sha256": "sha256:" + sha256(kept).hexdigest()}
    manifest_of(path).write_text(json.dumps(manifest))


SPOILT: list[tuple[Callable[[Path], object], str]] = [
    (_cut, "truncated"),
    (_flip, "SHA-256 differs"),
    (_forge, "the manifest says"),
    (lambda path: manifest_of(path).unlink(), "an export is two files"),
    (lambda path: manifest_of(path).write_text("{}"), "not the manifest of an export"),
]


@pytest.mark.parametrize(("spoil", "word"), SPOILT, ids=[word for _, word in SPOILT])
def test_a_spoilt_export_is_refused_before_anything_is_written(
    exported: Path, tmp_path: Path, spoil: Callable[[Path], object], word: str
) -> None:
    """S81."""
    path = Path(shutil.copy(exported, tmp_path))
    shutil.copy(manifest_of(exported), tmp_path)
    spoil(path)
    assert word in refused("verify", "--export", str(path))
    assert word in refused("import", "--in", str(path), "--data", str(tmp_path / "new"))
    assert not (tmp_path / "new").exists()

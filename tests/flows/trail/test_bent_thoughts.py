"""A thought that was bent is found by every command that verifies: of a folder, an export and a backup."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.flows.answered_thoughts import thought_of
from tests.flows.databases import ALONE
from tests.flows.server import Server, observatory
from tests.flows.trail.outside import bend, manifest_of, verified

SEALED, OPEN = "ses_sealed", "ses_open"
FIRST = f"WHERE session_id = '{SEALED}' AND record_index = 0"
SET = "UPDATE thought_records SET"


@pytest.fixture(scope="module")
def thought(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A session that was sealed, one that is open, and one of which words were shredded."""
    folder = tmp_path_factory.mktemp("thought") / "data"
    with Server(folder, environment=ALONE) as server:
        http = server.http("admin")
        for session_id in (SEALED, OPEN, "ses_shredded"):
            begun = {"intent": f"Ship {session_id}", "task_id": session_id, "session_id": session_id}
            assert http.post("/v1/thought-sessions", json=begun).status_code == 201
            for kind in ("plan", "analysis"):
                body = thought_of(kind, session_id)
                kept = http.post(f"/v1/sessions/{session_id}/thoughts", json=body)
                assert kept.status_code == 201, kept.text
        path = f"/v1/sessions/{SEALED}"
        assert http.post(f"{path}/thoughts/verify").json()["valid"]
        assert http.post(f"{path}/thoughts", json=thought_of("reflection", SEALED)).status_code == 201
        assert http.post(f"{path}/seal").status_code == 200
        order = {"reason": "asked for", "confirm": "ses_shredded"}
        gone = http.post("/v1/sessions/ses_shredded/thoughts/shred", json=order)
        assert gone.status_code == 200, gone.text
    return folder


BENT: dict[str, str] = {
    "words": f"{SET} content = replace(CAST(content AS TEXT), 'look', 'skip') {FIRST}",
    "another spelling of the words": f"{SET} content = content || ' ' {FIRST}",
    "words that vanish": f"{SET} content = x'' {FIRST}",
    "words that vanish, with a false order": f"{SET} content = x'', shredded_by = 3 {FIRST}",
    "author": f"{SET} author = 'agt_x' {FIRST}",
    "type": f"{SET} type = 'decision' {FIRST}",
    "time": f"{SET} created_at = '2026-01-01T00:00:00.000000Z' {FIRST}",
    "task": f"{SET} task_id = 'tsk_x' {FIRST}",
    "record id": f"{SET} record_id = 'rec_x' {FIRST}",
    "references": f"{SET} refs = '[\"rec_x\"]' {FIRST}",
    "events": f"{SET} event_ids = '[\"evt_x\"]' {FIRST}",
    "predecessor": f"{SET} predecessor_chain_hash = content_hash {FIRST}",
    "content hash": f"{SET} content_hash = chain_hash {FIRST}",
    "chain hash": f"{SET} chain_hash = content_hash {FIRST}",
    "event": f"{SET} audit_event_id = 'evt_x' {FIRST}",
    "a record is gone": f"DELETE FROM thought_records {FIRST}",
    "the open end is gone": f"DELETE FROM thought_records WHERE session_id = '{OPEN}' AND record_index = 1",
    "intent": f"UPDATE thought_sessions SET intent = 'x' WHERE session_id = '{SEALED}'",
    "a session is gone": f"DELETE FROM thought_sessions WHERE session_id = '{OPEN}'",
}


@pytest.mark.req(324)
@pytest.mark.parametrize("what", BENT)
def test_a_bent_thought_is_found_by_verify_s1220(thought: Path, tmp_path: Path, what: str) -> None:
    """S1220: and by no other check, so it was valid everywhere but by MCP."""
    folder = shutil.copytree(thought, tmp_path / "data")
    bend(folder, BENT[what])
    code, found = verified("--data", str(folder), "--tenant", "tnt_default")
    (tenant,) = found["tenants"]
    assert code == 2 and tenant["first_break"]["what"] == "thoughts", tenant
    assert tenant["checks"]["thoughts"] is False and tenant["checks"]["payloads"] is True
    assert "Ship" not in json.dumps(found) and "trajectory" not in json.dumps(found)


def test_whole_thoughts_hold_in_folder_export_and_backup_s1220(thought: Path, tmp_path: Path) -> None:
    """S1220: shredded ones too; what no words came with is not checked."""
    code, found = verified("--data", str(thought))
    assert code == 0 and found["tenants"][0]["checks"]["thoughts"] is True
    for more, held in (((), True), (("--no-payloads",), None)):
        out = tmp_path / f"trail{len(more)}.jsonl"
        assert observatory("export", "--data", str(thought), "--out", str(out), *more).returncode == 0
        code, found = verified(str(out))
        assert code == 0 and found["tenants"][0]["checks"]["thoughts"] is held
    backup = tmp_path / "backup"
    assert observatory("backup", "--data", str(thought), "--to", str(backup)).returncode == 0
    run = observatory("restore", "--from", str(backup), "--check")
    assert run.returncode == 0 and "thoughts" in run.stdout, run.stderr


def reworded(line: dict[str, Any]) -> None:
    line["words"] = line["words"].replace("look", "skip")


def blank(line: dict[str, Any]) -> None:
    line["words"] += " "


def wordless(line: dict[str, Any]) -> None:
    del line["words"]


@pytest.mark.parametrize("change", [reworded, blank, wordless], ids=lambda change: change.__name__)
def test_a_bent_thought_in_an_export_is_found_by_verify_s1220(
    thought: Path, tmp_path: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    """S1220: what `import` refuses is not called valid."""
    out = tmp_path / "trail.jsonl"
    assert observatory("export", "--data", str(thought), "--out", str(out)).returncode == 0
    lines = [json.loads(line) for line in out.read_bytes().splitlines()]
    change(next(line for line in lines if "look" in (line.get("words") or "")))
    data = b"".join(json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in lines)
    out.write_bytes(data)
    manifest = json.loads(manifest_of(out).read_text())
    manifest |= {"bytes": len(data), "sha256": "sha256:" + hashlib.sha256(data).hexdigest()}
    manifest_of(out).write_text(json.dumps(manifest))
    code, found = verified(str(out))
    assert code == 2 and found["tenants"][0]["first_break"]["what"] == "thoughts"
    run = observatory("import", "--in", str(out), "--data", str(tmp_path / "new"))
    assert run.returncode == 1 and "nothing was imported" in run.stderr


def test_a_bent_thought_in_a_backup_is_found_by_restore_check_s1220(thought: Path, tmp_path: Path) -> None:
    """S1220."""
    folder, backup = shutil.copytree(thought, tmp_path / "data"), tmp_path / "backup"
    bend(folder, BENT["words"])
    assert observatory("backup", "--data", str(folder), "--to", str(backup)).returncode == 0
    run = observatory("restore", "--from", str(backup), "--check")
    assert run.returncode == 1 and "is broken" in run.stderr and "thought" in run.stderr.lower()

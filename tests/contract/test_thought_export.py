"""The decision trail through an export and an import: words travel beside their events and are checked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from observatory.cli.terminal import CommandFailed
from observatory.features.backup.cli_export import export
from observatory.features.backup.cli_import import import_
from tests.contract.conftest import Harness, SqliteHarness
from tests.contract.test_relay import SESSION as MESH
from tests.contract.test_relay import new_message
from tests.contract.test_thoughts import reason
from tests.contract.thinking import SESSION, Thinker

TABLES = ("thought_sessions", "thought_records", "thought_tasks", "merkle_nodes")


def lived(harness: Harness) -> Thinker:
    """Sealed and ended, gone on with in a session of the mesh, and one that a record opened."""
    ann = Thinker(harness)
    ann.whole()
    ann.end()
    harness.send(new_message("1"))
    ann.start(MESH, None, after=SESSION)
    first = ann.think("plan", session_id=MESH).answer["record_id"]
    ann.think("decision", session_id=MESH, references=(first,), audit_event_ids=("evt_1",))
    ann.verify(MESH)
    ann.think("analysis", session_id=None, task_id="alone")
    ann.start("ses_named")
    return ann


def rows_of(harness: Harness, table: str) -> list[tuple[Any, ...]]:
    columns = list(harness.read(harness.store.rows("tnt_default", table))[0])
    order = ", ".join(columns[1:4])
    found = harness.sql(f"SELECT {', '.join(columns)} FROM {table} ORDER BY {order}")
    return [tuple(bytes(cell) if isinstance(cell, memoryview) else cell for cell in row) for row in found]


def test_an_import_has_every_thought_and_seal_and_goes_on_s346(harness: Harness, tmp_path: Path) -> None:
    """S346: from either database; the chain verifies there, a sealed session stays sealed."""
    ann, out = lived(harness), tmp_path / "trail.jsonl"
    export(out=out, db=harness.url)
    path = tmp_path / "new" / "observatory.db"
    import_(in_=out, data=str(path.parent), db=f"sqlite:///{path}")
    there = SqliteHarness(path)
    there.open()
    try:
        for table in TABLES:
            assert rows_of(there, table) == rows_of(harness, table), table
        ben = Thinker(there)
        assert ben.verify().answer == {"valid": True, "records": 4, "first_broken_index": None}
        assert reason(ben.think("plan", task_id="late", record_id="rec_late")) == (409, "sealed")
        assert ben.think("reflection", session_id=MESH, record_id="rec_on").answer["index"] == 2
        assert ben.seal(MESH).code == 200, "it was verified in the old house"
        assert ann.row(MESH)["sealed_ns"] is None
    finally:
        there.end()


def edited(out: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """A line changed, and the manifest made to fit the file."""
    lines = [json.loads(line) for line in out.read_bytes().splitlines()]
    for line in lines:
        change(line)
    data = b"".join(json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in lines)
    out.write_bytes(data)
    manifest = out.with_name(out.name + ".manifest.json")
    received = json.loads(manifest.read_text())
    received |= {"bytes": len(data), "sha256": "sha256:" + hashlib.sha256(data).hexdigest()}
    manifest.write_text(json.dumps(received))


@pytest.mark.parametrize("kind", ["thought_recorded", "thought_session_started"])
@pytest.mark.parametrize("gone", [False, True], ids=["changed", "left out"])
def test_words_that_are_not_those_told_of_are_not_imported_s346(
    sqlite_harness: SqliteHarness, tmp_path: Path, kind: str, gone: bool
) -> None:
    """S346: and whose session's words were left out has none: its events stay what they are."""
    lived(sqlite_harness)
    out, path = tmp_path / "trail.jsonl", tmp_path / "new" / "observatory.db"
    export(out=out, db=sqlite_harness.url)

    def change(line: dict[str, Any]) -> None:
        if json.loads(line["record"])["body"]["event_type"] == kind:
            words = line.pop("words")
            line |= {} if gone else {"words": words + " "}

    edited(out, change)
    target: dict[str, Any] = {"data": str(path.parent), "db": f"sqlite:///{path}"}
    if (kind, gone) == ("thought_session_started", True):
        import_(in_=out, **target)
        there = SqliteHarness(path)
        assert [there.sql(f"SELECT count(*) FROM {table}") for table in TABLES] == [[(0,)]] * 4
        return
    with pytest.raises(CommandFailed, match="nothing was imported"):
        import_(in_=out, **target)


def test_without_payloads_no_word_leaves_the_house(sqlite_harness: SqliteHarness, tmp_path: Path) -> None:
    """S346"""
    lived(sqlite_harness)
    out = tmp_path / "trail.jsonl"
    export(out=out, db=sqlite_harness.url, payloads=False)
    text = out.read_text()
    assert "nothing speaks against it" not in text and "Ship it" not in text and '"words"' not in text

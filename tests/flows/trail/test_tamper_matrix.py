"""The tamper matrix on a real folder: every table and column that shows what happened, edited by hand.

Each edit is made in a copy, with triggers dropped, and must be found by `observatory verify --state`. Columns
come from the declarations, so a table that is declared is tried; docs/guides/prove-it.md names each.
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from observatory.cli.verify.rows import open_trail
from observatory.features.verification import cli_state as state_check
from observatory.features.verification.cli import verify
from observatory.features.verification.cli_state import FOLDED, check
from observatory.features.verification.state_inbox import DECISION, DELIVERY
from observatory.pipeline.row_statements import STATED_TABLES
from tests.flows.databases import ALONE
from tests.flows.server import Server, observatory
from tests.flows.trail import busy

GUIDE = Path(__file__).parents[3] / "docs/guides/prove-it.md"
MESSAGES = (
    "message_id", "step_id", "session_no", "message_type", "state", "parents", "parent_inferred", "dedupe",
    "digest", "entropy",
)  # fmt: skip
THOUGHTS = (
    "session_id", "record_index", "record_id", "task_id", "type", "content", "author", "created_at", "refs",
    "event_ids", "content_hash", "chain_hash", "parent_chain_hash", "sequence_number", "audit_event_id",
)  # fmt: skip
EVENTS = ("record", "leaf_hash", "severity", "ts_ns", "sender_key", "recipient_key", "session_key")
# Columns of each table; the first ones of a declaration are its key.
TABLES: dict[str, tuple[str, ...]] = {
    "audit_log": EVENTS,
    "messages": MESSAGES,
    "payloads": ("raw",),
    "thought_records": THOUGHTS,
    "decisions": DECISION,
    "deliveries": DELIVERY,
    **{name: one.key + one.columns + one.rough for name, one in FOLDED.items()},
    **{name: one.key + one.columns for name, one in STATED_TABLES.items()},
}
BY_RECORD = {"audit_log", "messages", "payloads", "thought_records"}  # found by the record's own checks
# Empty on every folder that has no analyst: made by `test_rules_of_insight…` in their own suite.
ABSENT = {"fact_marks", "reconciliations", "saved_views"}
# An edit of these alone may say the same: another spelling of a list, a text of which only ids are compared.
SPARED = {
    ("api_keys", "scopes"), ("deliveries", "body"), ("messages", "parents"), ("messages", "parent_inferred"),
}  # fmt: skip


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("lived")
    with Server(base / "data", environment=ALONE) as server:
        busy.lead(server, base / "own")
    return base / "data"


@pytest.fixture(scope="module")
def disarmed(lived: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = shutil.copytree(lived, tmp_path_factory.mktemp("disarmed") / "data")
    disarm(folder / "observatory.db")
    return folder


@pytest.fixture
def data(lived: Path, tmp_path: Path) -> Path:
    return shutil.copytree(lived, tmp_path / "data")


def found(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[dict[str, Any]]]:
    code = verify(data=str(folder), state=True, workers=1, json=True)
    return code, json.loads(capsys.readouterr().out)["tenants"]


def what(tenants: list[dict[str, Any]]) -> str:
    """The first difference of any tenant: of the record, else of the rows."""
    for tenant in tenants:
        if tenant["first_break"] is not None:
            return str(tenant["first_break"]["sentence"])
        if tenant["state"] is not None and not tenant["state"]["held"]:
            return str(tenant["state"]["sentence"])
    return ""


class Bench:
    """One copy that is edited again and again, and put back each time."""

    def __init__(self, lived: Path, folder: Path) -> None:
        self.whole, self.folder = lived, shutil.copytree(lived, folder)

    def differs(self) -> bool:
        url = f"sqlite:///{self.folder / 'observatory.db'}"
        trail = open_trail(url)
        tenants = [head.tenant_id for head in trail.heads()]
        trail.close()
        return not all(check(url, tenant).held for tenant in tenants)

    def connect(self) -> sqlite3.Connection:
        for part in ("observatory.db-wal", "observatory.db-shm"):
            (self.folder / part).unlink(missing_ok=True)
        shutil.copyfile(self.whole / "observatory.db", self.folder / "observatory.db")
        connection = sqlite3.connect(self.folder / "observatory.db", isolation_level=None)
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("PRAGMA ignore_check_constraints=ON")
        return connection


def disarm(path: Path) -> None:
    """No trigger and no index stands in the way of an edit any more."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous=OFF")
    made = "SELECT type, name FROM sqlite_master WHERE type IN ('trigger', 'index') AND sql IS NOT NULL"
    for kind, name in connection.execute(made).fetchall():
        connection.execute(f"DROP {kind} {name}")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def other(value: object) -> object:
    if isinstance(value, int | float):
        return value + 1_000
    if isinstance(value, bytes):
        return bytes([value[0] ^ 1]) + value[1:] if value else b"x"
    return "x" if value is None else f"{value}x"


def chosen(table: str) -> str:
    """Rows that are declared, in a session of agents, and messages whose scores were not shredded."""
    tests = {
        "knobs": f"name IN {tuple(sorted(STATED_TABLES['knobs'].only))}",
        "sessions": "session_no > 0",
        "members": "session_no > 0",
        "messages": "key < 2 << 40",
        "payloads": "raw IS NOT NULL",
    }
    return tests.get(table, "1")


def place(connection: sqlite3.Connection, table: str) -> str:
    """What names one row: its primary key, in SQL."""
    keys = [row[1] for row in connection.execute(f"PRAGMA table_info({table})") if row[5]]
    return " || '/' || ".join(keys or ["rowid"])


def edits(connection: sqlite3.Connection, table: str, column: str) -> Iterator[tuple[object, object]]:
    """One row with a value in this column and, if there is one, one without."""
    key = place(connection, table)
    for test in ("IS NOT NULL", "IS NULL"):
        sql = f"SELECT {key}, {column} FROM {table} WHERE {column} {test} AND {chosen(table)} LIMIT 1"
        row = connection.execute(sql).fetchone()
        if row is not None:
            yield row[0], other(row[1])


@pytest.mark.req(324, 458)
@pytest.mark.parametrize("table", sorted(set(TABLES) - ABSENT))
def test_every_column_that_shows_what_happened_is_found_when_edited_s1222(
    disarmed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], table: str
) -> None:
    """S1222: a value exchanged, put where none was, a row removed, and a row added."""
    bench, missed = Bench(disarmed, tmp_path / "data"), list[str]()

    def tried(name: str, connection: sqlite3.Connection, by_command: bool = True) -> None:
        connection.close()
        if by_command:
            code, tenants = found(bench.folder, capsys)
            is_found = code == 2 and what(tenants) != ""
        else:  # what the command calls; a process of its own for each column would take minutes
            is_found = bench.differs()
        if not is_found:
            missed.append(f"{table}: {name}")

    connection = bench.connect()
    assert connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0], "the folder has no such row"
    for column in TABLES[table]:
        for row, value in list(edits(connection, table, column)):
            connection.close()
            connection = bench.connect()
            key = place(connection, table)
            connection.execute(f"UPDATE {table} SET {column} = ? WHERE {key} = ?", (value, row))
            if (table, column) not in SPARED:
                tried(f"{column} = {str(value)[:40]}", connection, table in BY_RECORD)
        connection.close()
        connection = bench.connect()
    key = place(connection, table)
    connection.execute(
        f"DELETE FROM {table} WHERE {key} = (SELECT max({key}) FROM {table} WHERE {chosen(table)})"
    )
    tried("a row is gone", connection)
    connection = bench.connect()
    if added(connection, table):
        tried("a row too many", connection)
    assert missed == []


def added(connection: sqlite3.Connection, table: str) -> bool:
    """A copy of the newest row under a key of its own; False where a row cannot stand twice by its shape."""
    names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    own = (
        ("key", *TABLES[table][:1])
        if table in STATED_TABLES or table in FOLDED
        else ("key", "sequence_number")
    )
    own += ("key_hash", "public_id", "record_id", "record_index", "decision_id", "task_key", "node_index")
    key = place(connection, table)
    row = connection.execute(f"SELECT * FROM {table} ORDER BY {key} DESC LIMIT 1").fetchone()
    values = [other(value) if name in own else value for name, value in zip(names, row, strict=True)]
    try:
        connection.execute(f"INSERT INTO {table} VALUES ({','.join('?' * len(names))})", values)
    except sqlite3.IntegrityError:
        return False
    return table not in ("knobs", "tenants")


def test_the_guide_names_the_command_for_every_edit_s1222() -> None:
    """S1222: docs/guides/prove-it.md holds the matrix, and every declared table stands in it."""
    text = GUIDE.read_text("utf-8")
    matrix = text[text.index("## Which edit is found by which command") :]
    named = set(re.findall(r"`([a-z_]+)`", matrix))
    tables = {"audit_events" if name == "audit_log" else name for name in TABLES}
    assert tables <= named, tables - named


def test_what_the_windows_show_holds_in_a_folder_that_has_lived_s1221(lived: Path) -> None:
    """S1221: both tenants, every table that is declared, and what is not proven is said."""
    run = observatory("verify", "--data", str(lived), "--state", "--json")
    assert run.returncode == 0, run.stdout
    tenants = json.loads(run.stdout)["tenants"]
    tables = set[str]().union(*(tenant["state"]["tables"] for tenant in tenants))
    assert set(TABLES) - tables <= ABSENT | {"audit_log", "payloads", "thought_records"}
    assert not any(
        "commands stated their rows" in one for tenant in tenants for one in tenant["state"]["not_checked"]
    )
    text = observatory("verify", "--data", str(lived), "--state").stdout
    assert "state ok" in text and "not checked" in text and "given_ns" in text


GHOST = "INSERT INTO tenants (tenant_id, display_name, created_ns) VALUES ('tnt_ghost', 'x', 1)"
IMPORTED = (
    "INSERT INTO knobs (tenant_id, name, value, updated_ns, updated_by) "
    "SELECT tenant_id, 'imported', sequence_number, 1, 'sys_import' FROM chain_heads"
)
BODY = "UPDATE deliveries SET body = replace(body, {}, {})"
BY_HAND: dict[str, tuple[str, ...]] = {
    "a tenant without a record": (GHOST,),
    "a key of a tenant without a record": ("UPDATE api_keys SET tenant_id = 'tnt_ghost'",),
    "rules that are gone, as if imported": (IMPORTED, "DELETE FROM policies"),
    "inboxes that are gone, as if imported": (IMPORTED, "DELETE FROM deliveries", "DELETE FROM decisions"),
    "a yes that was a no": (BODY.format("'\"rejected\"'", "'\"approved\"'"),),
    "other content under a yes": (BODY.format("'\"content\":null'", "'\"content\":{\"rm\":1}'"),),
    "who stopped it": (BODY.format("'usr_'", "'usr_x'") + " WHERE kind = 'hold'",),
    "another answer": (BODY.format("'approve'", "'deny'") + " WHERE kind = 'decision'",),
    "whose decision it is": ("UPDATE decisions SET agent_no = agent_no + 1",),
    "two messages that changed places": (
        "UPDATE messages SET key = -1 WHERE key = (SELECT min(key) FROM messages)",
        "UPDATE messages SET key = (SELECT min(key) FROM payloads) "
        "WHERE key = (SELECT max(key) FROM messages)",
        "UPDATE messages SET key = (SELECT max(key) FROM payloads) WHERE key = -1",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BY_HAND)
def test_what_is_edited_across_rows_is_found_s1306(disarmed: Path, tmp_path: Path, name: str) -> None:
    """S1306."""
    bench = Bench(disarmed, tmp_path / "data")
    connection = bench.connect()
    touched = [connection.execute(statement).rowcount for statement in BY_HAND[name]]
    assert all(touched)
    connection.close()
    assert bench.differs()


def test_rows_from_before_acts_stated_them_are_no_difference_s1305(
    lived: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S1305: the same folder, read as a record in which no event states a row."""
    monkeypatch.setattr(state_check, "ATTRIBUTE", "av.unknown")
    url = f"sqlite:///{lived / 'observatory.db'}"
    reports = [check(url, head.tenant_id) for head in open_trail(url).heads()]
    assert [one.sentence for one in reports] == [None, None]
    assert all("before commands stated their rows" in one.not_checked[0] for one in reports)


def test_a_difference_names_place_and_values_and_no_secret_s1221(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """S1221."""
    connection = sqlite3.connect(data / "observatory.db")
    (user,) = connection.execute("SELECT user_id FROM users WHERE role = 'auditor' LIMIT 1").fetchone()
    connection.execute("UPDATE users SET role = 'admin' WHERE user_id = ?", (user,))
    connection.commit()
    code, tenants = found(data, capsys)
    sentence = f"users {user}: role: the record says auditor, the row admin"
    assert code == 2 and what(tenants) == sentence
    run = observatory("verify", "--data", str(data), "--state")
    assert run.returncode == 2 and f"STATE DIFFERS: {sentence}" in run.stdout
    assert observatory("verify", "--data", str(data)).returncode == 0, "nothing else finds it"
    connection.execute("UPDATE users SET role = 'auditor' WHERE user_id = ?", (user,))
    connection.execute("UPDATE api_keys SET key_hash = x'00' WHERE rowid = (SELECT max(rowid) FROM api_keys)")
    connection.commit()
    connection.close()
    _, tenants = found(data, capsys)
    assert "key_hash: the record says sha256:" in what(tenants) and "the row sha256:" in what(tenants)


def test_state_is_of_a_whole_database_s1221(data: Path) -> None:
    """S1221."""
    run = observatory("verify", "--data", str(data), "--state", "--from", "5")
    assert run.returncode == 1 and "whole database" in run.stderr


def test_a_running_gateway_is_read_as_of_one_moment_s1221(tmp_path: Path) -> None:
    """S1221: while messages come, holds open and close and inboxes fill."""
    with Server(tmp_path / "data", environment=ALONE) as server:
        for _ in range(3):
            busy.waiting(server, "live")
            run = observatory("verify", "--data", str(server.folder), "--state")
            assert run.returncode == 0, run.stdout

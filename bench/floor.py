"""The floor: the very rows of a run, inserted by one plain connection and nothing else.

Same driver, schema (by the store's own migration), pragmas, disk and batch size; rows prebuilt; one
executemany a table, one transaction a batch. What the gateway adds on top of this is its own cost.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from observatory.store.keys import entity_key
from observatory.store.migrations.migrate import migrate
from observatory.store.sqlite import PRAGMAS, connect

BIG = ("audit_log", "messages", "payloads")
Row = tuple[Any, ...]


class Rows:
    """Everything a run wrote, in sequence order, as the tables hold it."""

    def __init__(self, source: Path) -> None:
        base = connect(source, read_only=True)
        self.tables: dict[str, list[Row]] = {}
        self.columns: dict[str, list[str]] = {}
        names = (*BIG, "tenants", "chain_heads", "sessions", "agents", "members")
        for name in names:
            cursor = base.execute(f"SELECT * FROM {name}" + (" ORDER BY 1" if name in BIG else ""))
            self.tables[name] = cursor.fetchall()
            self.columns[name] = [column[0] for column in cursor.description]
        base.close()
        self.tenant_id = self.tables["tenants"][0][0]

    def place(self, table: str, column: str) -> int:
        return self.columns[table].index(column)

    def by(self, table: str, *columns: str) -> dict[Any, Row]:
        places = [self.place(table, column) for column in columns]
        if len(places) == 1:
            return {row[places[0]]: row for row in self.tables[table]}
        return {tuple(row[place] for place in places): row for row in self.tables[table]}


class Batch:
    """One transaction's statements with their rows, ready to run."""

    def __init__(self) -> None:
        self.many: list[tuple[str, list[Row]]] = []
        self.messages = 0


def _insert(table: str, width: int, verb: str = "INSERT") -> str:
    return f"{verb} INTO {table} VALUES ({','.join('?' * width)})"


def prebuild(rows: Rows, size: int) -> Iterator[Batch]:
    """Sessions, agents and members are written by every batch that touches them, as the store does it."""
    sessions, agents = rows.by("sessions", "session_no"), rows.by("agents", "agent_no")
    members = rows.by("members", "session_no", "agent_no")
    place = rows.place("agents", "entity_id")
    agent_of = {entity_key(rows.tenant_id, row[place]): number for number, row in agents.items()}
    sender = rows.place("audit_log", "sender_key")
    session = rows.place("messages", "session_no")
    audit = {row[0]: row for row in rows.tables["audit_log"]}
    payloads = {row[0]: row for row in rows.tables["payloads"]}
    seen: set[int] = set()
    cells = [
        rows.place("sessions", name)
        for name in ("last_seq", "last_ns", "messages", "held", "agents", "cost", "tenant_id", "session_id")
    ]
    head = rows.by("chain_heads", "tenant_id")[rows.tenant_id]
    done = 0
    received = [row for key, row in audit.items() if key not in payloads]
    messages = rows.tables["messages"]
    for start in range(0, len(messages), size):
        part = messages[start : start + size]
        batch = Batch()
        batch.messages = len(part)
        # Events without a message (of the first start) go with the first batch.
        events = (received if not done else []) + [audit[row[0]] for row in part]
        pairs = {(row[session], agent_of.get(audit[row[0]][sender])) for row in part}
        touched = {pair[0] for pair in pairs}
        fresh = touched - seen
        seen |= fresh
        batch.many = [
            (_insert("audit_log", len(events[0])), sorted(events)),
            (_insert("messages", len(part[0])), part),
            (_insert("payloads", 4), [payloads[row[0]] for row in part]),
            (
                _insert("agents", len(rows.columns["agents"]), "INSERT OR REPLACE"),
                [agents[number] for number in {pair[1] for pair in pairs} if number is not None],
            ),
            (
                "UPDATE sessions SET last_seq=?, last_ns=?, messages=?, held=?, agents=?, cost=? "
                "WHERE tenant_id=? AND session_id=?",
                [tuple(sessions[number][cell] for cell in cells) for number in touched - fresh],
            ),
            (_insert("sessions", len(rows.columns["sessions"])), [sessions[number] for number in fresh]),
            (
                _insert("members", len(rows.columns["members"]), "INSERT OR REPLACE"),
                [members[pair] for pair in pairs if pair in members],
            ),
            (
                "UPDATE chain_heads SET sequence_number=?, event_hash=?, sessions=?, agents=?, "
                "access_version=?, rulebook_version=? WHERE tenant_id=?",
                [(*head[2:], rows.tenant_id)],
            ),
        ]
        batch.many = [(sql, values) for sql, values in batch.many if values]
        done += len(part)
        yield batch


def floor(source: Path, target: Path, batch_size: int) -> tuple[float, float]:
    """Messages a second, and CPU seconds a message, of the bare rows of `source` in the new file `target`."""
    rows = Rows(source)
    migrate(f"sqlite:///{target}")
    connection = connect(target)
    for table in ("tenants", "chain_heads"):
        width = len(rows.columns[table])
        connection.executemany(_insert(table, width), rows.tables[table])
    batches = list(prebuild(rows, batch_size))
    cursor = connection.cursor()
    began, spent = time.perf_counter(), time.process_time()
    for batch in batches:
        cursor.execute("BEGIN IMMEDIATE")
        for sql, values in batch.many:
            cursor.executemany(sql, values)
        cursor.execute("COMMIT")
    took, spent = time.perf_counter() - began, time.process_time() - spent
    count = sum(batch.messages for batch in batches)
    found = connection.execute("SELECT count(*) FROM messages").fetchone()[0]
    connection.close()
    if found != count:
        raise RuntimeError(f"the floor wrote {found} of {count} messages")
    return count / took, spent / count


def describe(path: Path) -> tuple[dict[str, Any], list[str]]:
    """Pragmas as a connection of the store reads them back, and the schema of the tables written to."""
    connection = connect(path)
    pragmas = {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in (*PRAGMAS, "page_size")}
    pragmas["sqlite"] = sqlite3.sqlite_version
    names = "','".join((*BIG, "sessions", "agents", "members", "chain_heads"))
    found = connection.execute(
        f"SELECT sql FROM sqlite_master WHERE tbl_name IN ('{names}') AND sql IS NOT NULL ORDER BY rowid"
    ).fetchall()
    connection.close()
    return pragmas, [" ".join(row[0].split()) for row in found]

"""The record as an outsider sees it: rows straight from the database, and locks as the kernel reports them.

Uses none of the gateway's reading code; the chain is checked by the independent verifier.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

from bench.postgres import ask
from observatory.ledger.verify import GENESIS, ChainCheck, Row

TENANT = "tnt_default"
SEQUENCE = (1 << 40) - 1
PAGE = 5_000
# https://www.sqlite.org/walformat.html, "WAL Locks": the lock bytes of the -shm file start at 120,
# and the first of them is WAL_WRITE_LOCK.
WAL_WRITE_LOCK = 120


# (sequence_number, message_id, step_id, SHA-256 of the archived bytes)
Message = tuple[int, str, str, bytes]


class Evidence(Protocol):
    """`after` is a sequence number; rows come in order of theirs."""

    def head(self) -> tuple[int, str]: ...
    def events(self, after: int) -> Iterator[Row]: ...
    def messages(self, after: int) -> Iterator[Message]: ...

    def has_open_write(self, pid: int) -> bool:
        """Whether the frozen process `pid` stands inside a write transaction."""
        ...


def _hashed(rows: Iterator[tuple[Any, ...]]) -> Iterator[Message]:
    return ((number, message_id, step, sha256(raw).digest()) for number, message_id, step, raw in rows)


class SqliteEvidence:
    def __init__(self, path: Path) -> None:
        self._path = path

    def _rows(self, sql: str, after: int) -> Iterator[tuple[object, ...]]:
        connection = sqlite3.connect(f"file:{self._path}?mode=ro", uri=True)
        try:
            number = connection.execute(
                "SELECT tenant_no FROM chain_heads WHERE tenant_id=?", (TENANT,)
            ).fetchone()
            low, high = number[0] << 40 | after, number[0] << 40 | SEQUENCE
            while True:
                page = connection.execute(sql + f" LIMIT {PAGE}", (low, high)).fetchall()
                yield from ((row[0] & SEQUENCE, *row[1:]) for row in page)
                if len(page) < PAGE:
                    return
                low = page[-1][0]
        finally:
            connection.close()

    def head(self) -> tuple[int, str]:
        connection = sqlite3.connect(f"file:{self._path}?mode=ro", uri=True)
        sql = "SELECT sequence_number, event_hash FROM chain_heads WHERE tenant_id=?"
        found: tuple[int, str] = connection.execute(sql, (TENANT,)).fetchone()
        connection.close()
        return found

    def events(self, after: int) -> Iterator[Row]:
        sql = "SELECT key, record, leaf_hash FROM audit_log WHERE key>? AND key<=? ORDER BY key"
        return self._rows(sql, after)  # type: ignore[return-value]

    def messages(self, after: int) -> Iterator[Message]:
        sql = (
            "SELECT m.key, m.message_id, m.step_id, p.raw FROM messages m JOIN payloads p ON p.key = m.key "
            "WHERE m.key>? AND m.key<=? ORDER BY m.key"
        )
        return _hashed(self._rows(sql, after))

    def has_open_write(self, pid: int) -> bool:
        memory = self._path.with_name(self._path.name + "-shm")
        inode = str(memory.stat().st_ino)
        for line in Path("/proc/locks").read_text().splitlines():
            # 7: POSIX  ADVISORY  WRITE 4711 fe:00:131 120 120; waiting ones have an arrow in front
            words = line.split()
            if "->" in words or len(words) < 8 or words[1] != "POSIX" or words[3] != "WRITE":
                continue
            first, last = int(words[6]), WAL_WRITE_LOCK if words[7] == "EOF" else int(words[7])
            mine = words[4] == str(pid) and words[5].rpartition(":")[2] == inode
            if mine and first <= WAL_WRITE_LOCK <= last:
                return True
        return False


class PostgresEvidence:
    def __init__(self, url: str) -> None:
        self._url = url

    def head(self) -> tuple[int, str]:
        sql = "SELECT sequence_number, event_hash FROM chain_heads WHERE tenant_id=$1"
        found: tuple[int, str] = ask(self._url, sql, TENANT)[0]
        return found

    def _rows(self, columns: str, table: str, after: int) -> Iterator[tuple[object, ...]]:
        sql = (
            f"SELECT {columns} FROM {table} WHERE tenant_id=$1 AND sequence_number>$2 ORDER BY 1 LIMIT {PAGE}"
        )
        while page := ask(self._url, sql, TENANT, after):
            yield from page
            after = page[-1][0]

    def events(self, after: int) -> Iterator[Row]:
        return self._rows("sequence_number, record, leaf_hash", "audit_events", after)  # type: ignore[return-value]

    def messages(self, after: int) -> Iterator[Message]:
        columns = "sequence_number, message_id, step_id, raw"
        joined = "messages JOIN payloads USING (tenant_id, sequence_number)"
        return _hashed(self._rows(columns, joined, after))

    def has_open_write(self, pid: int) -> bool:
        # backend_xid is given at the first write: a mere reader has none. The gateway stands still, so a
        # backend that was working has ended its statement and waits, or will never be asked to commit.
        sql = (
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'observatory' "
            "AND xact_start IS NOT NULL AND backend_xid IS NOT NULL"
        )
        return bool(ask(self._url, sql)[0][0])


def check_chain(evidence: Evidence, after: tuple[int, str] = (0, GENESIS)) -> tuple[tuple[int, str], str]:
    """The verified head and a sentence when something broke ('' when all held)."""
    # The head first: a worker may append between two readings, and what it appends is checked the next time.
    head = evidence.head()
    check = ChainCheck(TENANT, *after)
    check.feed(event for event in evidence.events(after[0]) if event[0] <= head[0])
    found = check.result(head)
    broken = "" if found.valid else found.first_break.sentence if found.first_break else "not valid"
    return (found.last_sequence, found.last_hash or found.after_hash), broken

"""Rows as the record says they must be, stored on disk beyond what fits into memory.

An anonymous SQLite database of this process: it is not visible to others, and nothing is left behind.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import msgspec

Row = dict[str, Any]
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Row).decode


class ExpectedRows:
    def __init__(self) -> None:
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.execute("PRAGMA cache_size=-32000")
        self._database.execute("PRAGMA journal_mode=OFF")
        self._database.execute("BEGIN")
        self._database.execute(
            "CREATE TABLE rows (name TEXT, key TEXT, row BLOB, seen INTEGER DEFAULT 0, "
            "PRIMARY KEY (name, key)) WITHOUT ROWID"
        )

    def get(self, name: str, *key: object) -> Row | None:
        stored = self._database.execute(
            "SELECT row FROM rows WHERE name = ? AND key = ?", (name, _key(key))
        ).fetchone()
        return None if stored is None else _decode(stored[0])

    def put(self, name: str, row: Row, *key: object) -> None:
        self._database.execute(
            "INSERT INTO rows (name, key, row) VALUES (?, ?, ?) "
            "ON CONFLICT (name, key) DO UPDATE SET row = excluded.row",
            (name, _key(key), _encode(row)),
        )

    def merge(self, name: str, row: Row, *key: object) -> None:
        self.put(name, (self.get(name, *key) or {}) | row, *key)

    def drop(self, name: str, *key: object) -> Row | None:
        row = self.get(name, *key)
        self._database.execute("DELETE FROM rows WHERE name = ? AND key = ?", (name, _key(key)))
        return row

    def see(self, name: str, *key: object) -> Row | None:
        """Like `get`, and marks the row as present."""
        row = self.get(name, *key)
        if row is not None:
            self._database.execute(
                "UPDATE rows SET seen = seen + 1 WHERE name = ? AND key = ?", (name, _key(key))
            )
        return row

    def is_seen(self, name: str, *key: object) -> bool:
        sql = "SELECT seen FROM rows WHERE name = ? AND key = ?"
        stored = self._database.execute(sql, (name, _key(key))).fetchone()
        return stored is not None and stored[0] > 0

    def seen(self, name: str) -> Iterator[tuple[str, Row, int]]:
        """All rows, with how often each was seen."""
        sql = "SELECT key, row, seen FROM rows WHERE name = ? ORDER BY key"
        for key, row, count in self._database.execute(sql, (name,)):
            yield key, _decode(row), count

    def unseen(self, name: str) -> Iterator[tuple[str, Row]]:
        sql = "SELECT key, row FROM rows WHERE name = ? AND seen = 0 ORDER BY key"
        for key, row in self._database.execute(sql, (name,)):
            yield key, _decode(row)

    def close(self) -> None:
        self._database.close()


def _key(parts: tuple[object, ...]) -> str:
    return " ".join(map(str, parts))

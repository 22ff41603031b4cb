"""Reads a stored trail directly from the database: read-only, page by page, with plain sqlite3 or asyncpg.

Used by `verify` and `export`, also in worker processes, so nothing heavy is imported here and none of the
writer's code is used. Pages are short transactions, so that a running gateway's WAL can be checkpointed.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote

from observatory.cli.terminal import CommandFailed
from observatory.ledger.export import ExportedMessage, ExportEntry
from observatory.protocol.clock import from_ns

# 250 to 4,000 rows cost the same CPU within the noise; small pages keep memory and transactions short.
PAGE = 500
PAYLOAD_PAGE = 250
SEQ_BITS = 40

LAST_NS = 9_214_646_400_000_000_000  # the year 2262
DIFFERS = "differs"  # a value that no member of a record has
PG_TEXTS = (
    "audit_event_id", "trace_id", "span_id", "parent_span_id", "trace_flags", "severity_number",
    "severity_text", "event_hash", "previous_hash", "sender_key", "recipient_key",
)  # fmt: skip

Row = tuple[int, bytes, bytes]


class TrailHead(NamedTuple):
    """`last_row` is the highest number stored, which must be the head's."""

    tenant_id: str
    sequence_number: int
    event_hash: str
    last_row: int


class ArchivedEvent(NamedTuple):
    """An event with its archived message; without a message row `digest` is None."""

    sequence_number: int
    record: bytes
    leaf_hash: bytes
    digest: bytes | None
    raw: bytes | None
    shredded_by: int | None
    has_payload: bool
    # Content with which a person replaced a held message; its event has the hash.
    rewritten: bytes | None = None
    # Columns next to the record, by the names of the record's members; None when there are none to check.
    columns: dict[str, Any] | None = None


class StoredLog(NamedTuple):
    """The newest signed checkpoint, and the public keys that signed this log, the newest first."""

    note: bytes | None = None
    keys: tuple[bytes, ...] = ()


class CheckpointRow(NamedTuple):
    """A stored checkpoint: its row's columns and its note."""

    size: int
    previous_size: int
    root: bytes
    note: bytes


class StoredThoughtRows(NamedTuple):
    """Some thought events, and stored rows by the number of their event."""

    records: dict[int, bytes]
    sessions: dict[int, tuple[bytes, int | None]]  # intent, the event that shredded it
    thoughts: dict[int, tuple[Any, ...]]  # columns as in `THOUGHT`


class TrailReader(Protocol):
    """One open database. Numbers are inclusive."""

    def heads(self) -> list[TrailHead]: ...

    def record(self, tenant_id: str, number: int) -> bytes | None: ...

    def rows(self, tenant_id: str, start: int, end: int) -> Iterator[list[Row]]: ...

    def stored(self, tenant_id: str, start: int, end: int) -> Iterator[list[ArchivedEvent]]: ...

    def entries(self, tenant_id: str, start: int, end: int) -> Iterator[list[ExportEntry]]: ...

    def log(self, tenant_id: str) -> StoredLog:
        """Empty for a database from before the log existed."""

    def checkpoints(self, tenant_id: str, end: int) -> Iterator[list[CheckpointRow]]:
        """All up to this size, the smallest first."""

    def thinking(self, tenant_id: str, events: list[int], start: int, end: int) -> StoredThoughtRows:
        """These events, and every thought or session row whose number is within the span."""

    def freeze(self) -> None:
        """From here on everything is read from one snapshot."""

    def table(self, tenant_id: str, name: str, columns: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
        """Every row of a small table; nothing if this database has no such table."""

    def strays(self, names: Iterable[str]) -> list[tuple[str, str]]:
        """Tables with a row of a tenant that has no record, and that tenant; on PostgreSQL only rows that a
        tenant-bound role may see."""

    def archived(self, tenant_id: str) -> tuple[int, int]:
        """Number of rows in messages and in payloads, also past the head."""

    def messages(self, tenant_id: str, start: int, end: int) -> dict[int, tuple[Any, ...]]:
        """The columns that `entries` leaves out of a message's row: its dedupe key and its score."""

    def close(self) -> None: ...


def open_trail(url: str) -> TrailReader:
    if url.startswith("sqlite:///"):
        return SqliteTrail(Path(url.removeprefix("sqlite:///")))
    if url.startswith(("postgres://", "postgresql://")):
        return PostgresTrail(url)
    raise CommandFailed("a database URL must begin with sqlite:/// or postgresql://")


def malformed_page(url: str) -> str | None:
    """What SQLite reports about the first malformed page; PostgreSQL has no such check."""
    if not url.startswith("sqlite:///"):
        return None
    path = Path(url.removeprefix("sqlite:///"))
    try:
        connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=10)
        try:
            result = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
        finally:
            connection.close()
    except sqlite3.Error as error:
        return str(error)
    return None if result == "ok" else " ".join(result.split())[:200]


def _spans(start: int, end: int, page: int) -> Iterator[tuple[int, int]]:
    for low in range(start, end + 1, page):
        yield low, min(end, low + page - 1)


def _paged(ask: Callable[[int], list[Any]]) -> Iterator[list[CheckpointRow]]:
    low = 0
    while page := [CheckpointRow(*row) for row in ask(low)]:
        yield page
        low = page[-1].size


def _entry(row: Any, rewrites: dict[int, bytes | None], words: dict[int, bytes]) -> ExportEntry:
    number, record, leaf = row[0], row[1], row[2]
    if not (isinstance(record, bytes) and isinstance(leaf, bytes) and isinstance(row[11], bytes | None)):
        raise CommandFailed(f"event {number} is no longer stored as bytes; run `observatory verify`")
    if row[3] is None:
        return ExportEntry(number, record, leaf, rewritten=rewrites.get(number), words=words.get(number))
    message = ExportedMessage(
        message_id=row[3],
        session_id=row[4],
        step_id=row[5],
        message_type=row[6],
        state=row[7],
        parents=tuple(row[8].split("\n")) if row[8] else (),
        parent_inferred=bool(row[9]),
        warnings=tuple(json.loads(row[10])) if row[10] else (),
        raw=row[11],
        shredded_by=row[12],
    )
    return ExportEntry(number, record, leaf, message)


def _lite_columns(row: Any) -> dict[str, Any]:
    """The columns that queries use, as the record must have them; contradictions are marked as differing."""
    severity, ts_ns, sender, recipient, is_tenants, trace_id, is_messages = row
    found = {"severity_number": severity, "sender_key": sender, "recipient_key": recipient}
    found["timestamp"] = from_ns(ts_ns) if type(ts_ns) is int and 0 <= ts_ns < LAST_NS else ts_ns
    if trace_id is not None:
        found["trace_id"] = trace_id
    else:
        found["session_key"] = DIFFERS  # no session has that number
    if not is_tenants:
        found["tenant_no"] = DIFFERS
    if not is_messages:
        found["session_key"] = DIFFERS
    return found


def _pg_columns(row: Any) -> dict[str, Any]:
    """PostgreSQL rounds times to microseconds, so the database compares them with its own rounding."""
    found = {name: row[name] for name in PG_TEXTS}
    found |= {name: json.loads(row[name]) for name in ("body", "resource", "attributes")}
    return found | {name: DIFFERS for name in ("timestamp", "observed_timestamp") if not row[f"same_{name}"]}


def _stored_log(notes: list[Any], keys: list[Any]) -> StoredLog:
    """A tampered column may hold anything; a value that is not bytes is no note and no key."""
    note = notes[0][0] if notes else None
    public_keys = [row[0] for row in keys if isinstance(row[0], bytes)]
    return StoredLog(note if isinstance(note, bytes | None) else b"", tuple(public_keys))


class SqliteTrail:
    def __init__(self, path: Path) -> None:
        if not path.exists():
            raise CommandFailed(f"there is no database at {path}; give its folder with --data")
        self._path = path
        try:
            self._connection = sqlite3.connect(
                f"file:{quote(str(path))}?mode=ro", uri=True, isolation_level=None, timeout=10
            )
            self._connection.execute("PRAGMA query_only=1")
            self._connection.execute("PRAGMA mmap_size=1073741824")
            found = self._ask("SELECT tenant_id, tenant_no FROM chain_heads")
        except sqlite3.Error as error:
            raise CommandFailed(f"{path} cannot be read as an Observatory database: {error}") from None
        self._numbers: dict[str, int] = dict(found)

    def _ask(self, sql: str, values: tuple[Any, ...] = ()) -> list[Any]:
        try:
            rows: list[Any] = self._connection.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise CommandFailed(f"the database {self._path} cannot be read: {error}") from None
        return rows

    def _base(self, tenant_id: str) -> int:
        return self._numbers[tenant_id] << SEQ_BITS

    def heads(self) -> list[TrailHead]:
        return [TrailHead(*row) for row in self._ask(_LITE_HEADS)]

    def record(self, tenant_id: str, number: int) -> bytes | None:
        found = self._ask("SELECT record FROM audit_log WHERE key = ?", (self._base(tenant_id) + number,))
        return bytes(found[0][0]) if found else None

    def rows(self, tenant_id: str, start: int, end: int) -> Iterator[list[Row]]:
        base = self._base(tenant_id)
        for low, high in _spans(start, end, PAGE):
            yield self._ask(_LITE_ROWS, (base, base + low, base + high))

    def stored(self, tenant_id: str, start: int, end: int) -> Iterator[list[ArchivedEvent]]:
        base = self._base(tenant_id)
        for low, high in _spans(start, end, PAYLOAD_PAGE):
            new = dict(self._ask(_LITE_REWRITES, (tenant_id, low, high)))
            found = self._ask(_LITE_STORED, (base, tenant_id, base + low, base + high))
            yield [
                ArchivedEvent(*row[:7])._replace(rewritten=new.get(row[0]), columns=_lite_columns(row[7:]))
                for row in found
            ]

    def entries(self, tenant_id: str, start: int, end: int) -> Iterator[list[ExportEntry]]:
        base = self._base(tenant_id)
        for low, high in _spans(start, end, PAYLOAD_PAGE):
            new = dict(self._ask(_LITE_REWRITES, (tenant_id, low, high)))
            found = self._ask(_LITE_ENTRIES, (base, tenant_id, base + low, base + high))
            words = self._words(tenant_id, low, high)
            yield [_entry(row, new, words) for row in found]

    def _words(self, tenant_id: str, low: int, high: int) -> dict[int, bytes]:
        """Content of thoughts; empty for a database from before thoughts existed."""
        if not self._ask(_LITE_THOUGHTS):
            return {}
        return dict(self._ask(_LITE_WORDS, (tenant_id, low, high) * 2))

    def log(self, tenant_id: str) -> StoredLog:
        if len(self._ask(_LITE_LOG)) != 2:
            return StoredLog()
        notes = self._ask(_CHECKPOINT.replace("$1", "?"), (tenant_id,))
        keys = self._ask(_LOG_KEYS.replace("$1", "?"), (tenant_id,))
        return _stored_log(notes, keys)

    def checkpoints(self, tenant_id: str, end: int) -> Iterator[list[CheckpointRow]]:
        return _paged(lambda low: self._ask(_lite(_CHECKPOINTS), (tenant_id, low, end)))

    def thinking(self, tenant_id: str, events: list[int], start: int, end: int) -> StoredThoughtRows:
        if not self._ask(_LITE_THOUGHTS):
            return StoredThoughtRows({}, {}, {})
        base, own = self._base(tenant_id), (tenant_id, start, end)
        keys = json.dumps([base + number for number in events])
        sql = "SELECT key - ?, record FROM audit_log WHERE key IN (SELECT value FROM json_each(?))"
        records = self._ask(sql, (base, keys))
        sessions = self._ask(_lite(_SESSIONS.format("CAST(intent AS BLOB)")), own)
        return _thinking(records, sessions, self._ask(_lite(_THOUGHTS), own))

    def freeze(self) -> None:
        self._ask("BEGIN")
        self._ask("SELECT 1 FROM chain_heads")

    def table(self, tenant_id: str, name: str, columns: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
        if self._ask("SELECT 1 FROM sqlite_master WHERE name = ?", (name,)):
            try:
                yield from self._connection.execute(_rows_of(name, columns).replace("$1", "?"), (tenant_id,))
            except sqlite3.Error as error:
                raise CommandFailed(f"the table {name} cannot be read: {error}") from None

    def strays(self, names: Iterable[str]) -> list[tuple[str, str]]:
        have = {row[0] for row in self._ask("SELECT name FROM sqlite_master WHERE type = 'table'")}
        return [(name, row[0]) for name in names if name in have for row in self._ask(_STRAY.format(name))]

    def archived(self, tenant_id: str) -> tuple[int, int]:
        base = self._base(tenant_id)
        span = (base, base + (1 << SEQ_BITS))
        messages = self._ask("SELECT count(*) FROM messages WHERE key > ? AND key < ?", span)
        payloads = self._ask("SELECT count(*) FROM payloads WHERE key > ? AND key < ?", span)
        return messages[0][0], payloads[0][0]

    def messages(self, tenant_id: str, start: int, end: int) -> dict[int, tuple[Any, ...]]:
        base = self._base(tenant_id)
        sql = "SELECT key - ?, dedupe, entropy FROM messages WHERE key BETWEEN ? AND ?"
        return {row[0]: row[1:] for row in self._ask(sql, (base, base + start, base + end))}

    def close(self) -> None:
        self._connection.close()


class PostgresTrail:
    """The same over asyncpg, with its own event loop; every transaction sets the tenant (RLS)."""

    def __init__(self, url: str) -> None:
        try:
            import asyncpg
        except ImportError:
            raise CommandFailed(
                "PostgreSQL needs the extra: pip install 'hypervisor-observatory[postgres]'"
            ) from None
        import asyncio

        self._errors = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError, EOFError)
        self._loop = asyncio.new_event_loop()
        dsn = "postgresql://" + url.partition("://")[2]
        try:
            self._connection = self._loop.run_until_complete(asyncpg.connect(dsn, timeout=10))
        except (*self._errors, ValueError) as error:
            self._loop.close()
            raise CommandFailed(f"PostgreSQL cannot be reached: {error}") from None

    def _ask(self, tenant_id: str, sql: str, *values: Any) -> list[Any]:
        async def ask() -> list[Any]:
            async with self._connection.transaction(readonly=True):
                naming = "SELECT set_config('app.tenant', $1, true), set_config('app.presented', '', true)"
                await self._connection.execute(naming, tenant_id)
                return list(await self._connection.fetch(sql, *values))

        try:
            return self._loop.run_until_complete(ask())
        except self._errors as error:
            raise CommandFailed(f"the PostgreSQL database cannot be read: {error}") from None

    def heads(self) -> list[TrailHead]:
        found = self._ask("tnt_default", "SELECT tenant_id FROM chain_heads ORDER BY tenant_no")
        return [TrailHead(*self._ask(row[0], _PG_HEAD, row[0])[0]) for row in found]

    def record(self, tenant_id: str, number: int) -> bytes | None:
        sql = "SELECT record FROM audit_events WHERE tenant_id = $1 AND sequence_number = $2"
        found = self._ask(tenant_id, sql, tenant_id, number)
        return bytes(found[0][0]) if found else None

    def rows(self, tenant_id: str, start: int, end: int) -> Iterator[list[Row]]:
        for low, high in _spans(start, end, PAGE):
            yield [tuple(row) for row in self._ask(tenant_id, _PG_ROWS, tenant_id, low, high)]

    def stored(self, tenant_id: str, start: int, end: int) -> Iterator[list[ArchivedEvent]]:
        for low, high in _spans(start, end, PAYLOAD_PAGE):
            new = {row[0]: row[1] for row in self._ask(tenant_id, _PG_REWRITES, tenant_id, low, high)}
            found = self._ask(tenant_id, _PG_STORED, tenant_id, low, high)
            yield [
                ArchivedEvent(*tuple(row)[:7])._replace(rewritten=new.get(row[0]), columns=_pg_columns(row))
                for row in found
            ]

    def entries(self, tenant_id: str, start: int, end: int) -> Iterator[list[ExportEntry]]:
        for low, high in _spans(start, end, PAYLOAD_PAGE):
            new = {row[0]: row[1] for row in self._ask(tenant_id, _PG_REWRITES, tenant_id, low, high)}
            words = self._words(tenant_id, low, high)
            found = self._ask(tenant_id, _PG_ENTRIES, tenant_id, low, high)
            yield [_entry(row, new, words) for row in found]

    def _words(self, tenant_id: str, low: int, high: int) -> dict[int, bytes]:
        if self._ask(tenant_id, "SELECT to_regclass('thought_records')")[0][0] is None:
            return {}
        return {row[0]: row[1] for row in self._ask(tenant_id, _PG_WORDS, tenant_id, low, high)}

    def log(self, tenant_id: str) -> StoredLog:
        if None in self._ask(tenant_id, _PG_LOG)[0]:
            return StoredLog()
        notes = self._ask(tenant_id, _CHECKPOINT, tenant_id)
        return _stored_log(notes, self._ask(tenant_id, _LOG_KEYS, tenant_id))

    def checkpoints(self, tenant_id: str, end: int) -> Iterator[list[CheckpointRow]]:
        return _paged(lambda low: self._ask(tenant_id, _CHECKPOINTS, tenant_id, low, end))

    def thinking(self, tenant_id: str, events: list[int], start: int, end: int) -> StoredThoughtRows:
        sql = (
            "SELECT sequence_number, record FROM audit_events "
            "WHERE tenant_id = $1 AND sequence_number = ANY($2)"
        )
        records = self._ask(tenant_id, sql, tenant_id, events)
        own = (tenant_id, start, end)
        sessions = self._ask(tenant_id, _SESSIONS.format("convert_to(intent, 'UTF8')"), *own)
        return _thinking(records, sessions, self._ask(tenant_id, _THOUGHTS, *own))

    def freeze(self) -> None:
        """Every query from here on is a savepoint of this transaction."""
        self._loop.run_until_complete(
            self._connection.transaction(isolation="repeatable_read", readonly=True).start()
        )

    def table(self, tenant_id: str, name: str, columns: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
        if self._ask(tenant_id, "SELECT to_regclass($1)", name)[0][0] is not None:
            yield from map(tuple, self._ask(tenant_id, _rows_of(name, columns), tenant_id))

    def strays(self, names: Iterable[str]) -> list[tuple[str, str]]:
        have = self._ask("", "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
        known = {row[0] for row in have}
        return [
            (name, row[0]) for name in names if name in known for row in self._ask("", _STRAY.format(name))
        ]

    def archived(self, tenant_id: str) -> tuple[int, int]:
        messages = self._ask(tenant_id, "SELECT count(*) FROM messages WHERE tenant_id = $1", tenant_id)
        payloads = self._ask(tenant_id, "SELECT count(*) FROM payloads WHERE tenant_id = $1", tenant_id)
        return messages[0][0], payloads[0][0]

    def messages(self, tenant_id: str, start: int, end: int) -> dict[int, tuple[Any, ...]]:
        sql = (
            "SELECT sequence_number, dedupe, entropy FROM messages "
            "WHERE tenant_id = $1 AND sequence_number BETWEEN $2 AND $3"
        )
        return {row[0]: tuple(row)[1:] for row in self._ask(tenant_id, sql, tenant_id, start, end)}

    def close(self) -> None:
        self._loop.run_until_complete(self._connection.close())
        self._loop.close()


def _lite(sql: str) -> str:
    return sql.replace("$1", "?").replace("$2", "?").replace("$3", "?")


def _rows_of(name: str, columns: tuple[str, ...]) -> str:
    """Table and column names come from this code, never from input."""
    return f"SELECT {', '.join(columns)} FROM {name} WHERE tenant_id = $1"  # noqa: S608


def _thinking(records: list[Any], sessions: list[Any], thoughts: list[Any]) -> StoredThoughtRows:
    return StoredThoughtRows(
        {row[0]: bytes(row[1]) for row in records},
        {row[0]: (row[1], row[2]) for row in sessions},
        {row[0]: tuple(row)[1:] for row in thoughts},
    )


THOUGHT = (
    "session_id", "record_index", "record_id", "task_id", "type", "author", "created_at", "refs", "event_ids",
    "predecessor_chain_hash", "content", "content_hash", "parent_chain_hash", "chain_hash", "shredded_by",
    "audit_event_id",
)  # fmt: skip
_THOUGHTS = (
    "SELECT sequence_number, session_id, record_index, record_id, task_id, type, author, created_at, refs, "
    "event_ids, predecessor_chain_hash, content, content_hash, parent_chain_hash, chain_hash, shredded_by, "
    "audit_event_id FROM thought_records WHERE tenant_id = $1 AND sequence_number BETWEEN $2 AND $3"
)
_SESSIONS = (
    "SELECT sequence_number, {}, intent_shredded_by FROM thought_sessions "
    "WHERE tenant_id = $1 AND sequence_number BETWEEN $2 AND $3"
)
# One statement, one snapshot: a running gateway cannot move the head between its two reads.
_LITE_HEADS = """
SELECT h.tenant_id, h.sequence_number, h.event_hash, coalesce((SELECT max(a.key) FROM audit_log a
    WHERE a.key > h.tenant_no << 40 AND a.key < (h.tenant_no + 1) << 40), 0) & 1099511627775
FROM chain_heads h ORDER BY h.tenant_no"""
_LITE_ROWS = "SELECT key - ?, record, leaf_hash FROM audit_log WHERE key BETWEEN ? AND ? ORDER BY key"
_LITE_STORED = """
SELECT a.key - ?, a.record, a.leaf_hash, m.digest, p.raw, p.shredded_by, p.key IS NOT NULL,
    a.severity, a.ts_ns, a.sender_key, a.recipient_key, a.tenant_no = a.key >> 40, s.trace_id,
    m.session_no IS NULL OR m.session_no = a.session_key & 1099511627775
FROM audit_log a LEFT JOIN messages m ON m.key = a.key LEFT JOIN payloads p ON p.key = a.key
LEFT JOIN sessions s ON s.tenant_id = ? AND s.session_no = a.session_key & 1099511627775
WHERE a.key BETWEEN ? AND ? ORDER BY a.key"""
# Empty bytes stand for shredded content.
_LITE_REWRITES = (
    "SELECT sequence_number, coalesce(raw, x'') FROM rewrites "
    "WHERE tenant_id = ? AND sequence_number BETWEEN ? AND ?"
)
_PG_REWRITES = (
    "SELECT sequence_number, coalesce(raw, ''::bytea) FROM rewrites "
    "WHERE tenant_id = $1 AND sequence_number BETWEEN $2 AND $3"
)
_LITE_ENTRIES = """
SELECT a.key - ?, a.record, a.leaf_hash, m.message_id, s.session_id, m.step_id, m.message_type, m.state,
    m.parents, m.parent_inferred, m.warnings, p.raw, p.shredded_by
FROM audit_log a LEFT JOIN messages m ON m.key = a.key LEFT JOIN payloads p ON p.key = a.key
LEFT JOIN sessions s ON s.tenant_id = ? AND s.session_no = m.session_no
WHERE a.key BETWEEN ? AND ? ORDER BY a.key"""
_PG_HEAD = """
SELECT h.tenant_id, h.sequence_number, h.event_hash, coalesce((SELECT max(a.sequence_number)
    FROM audit_events a WHERE a.tenant_id = h.tenant_id), 0) FROM chain_heads h WHERE h.tenant_id = $1"""
_PG_ROWS = """
SELECT sequence_number, record, leaf_hash FROM audit_events
WHERE tenant_id = $1 AND sequence_number BETWEEN $2 AND $3 ORDER BY sequence_number"""
_PG_STORED = """
SELECT a.sequence_number, a.record, a.leaf_hash, m.digest, p.raw, p.shredded_by, p.tenant_id IS NOT NULL,
    a.audit_event_id, a.trace_id, a.span_id, a.parent_span_id, a.trace_flags, a.severity_number,
    a.severity_text, a.event_hash, a.previous_hash, a.sender_key, a.recipient_key, a.body, a.resource,
    a.attributes, (convert_from(a.record, 'UTF8')::jsonb ->> 'timestamp')::timestamptz = a.timestamp
        AS same_timestamp,
    (convert_from(a.record, 'UTF8')::jsonb ->> 'observed_timestamp')::timestamptz = a.observed_timestamp
        AS same_observed_timestamp
FROM audit_events a LEFT JOIN messages m USING (tenant_id, sequence_number)
LEFT JOIN payloads p USING (tenant_id, sequence_number)
WHERE a.tenant_id = $1 AND a.sequence_number BETWEEN $2 AND $3 ORDER BY a.sequence_number"""
_PG_ENTRIES = """
SELECT a.sequence_number, a.record, a.leaf_hash, m.message_id, s.session_id, m.step_id, m.message_type,
    m.state, m.parents, m.parent_inferred, m.warnings, p.raw, p.shredded_by
FROM audit_events a LEFT JOIN messages m USING (tenant_id, sequence_number)
LEFT JOIN payloads p USING (tenant_id, sequence_number)
LEFT JOIN sessions s ON s.tenant_id = a.tenant_id AND s.session_no = m.session_no
WHERE a.tenant_id = $1 AND a.sequence_number BETWEEN $2 AND $3 ORDER BY a.sequence_number"""
_LITE_THOUGHTS = "SELECT 1 FROM sqlite_master WHERE name = 'thought_records'"
_LITE_WORDS = """
SELECT sequence_number, content FROM thought_records WHERE tenant_id = ? AND sequence_number BETWEEN ? AND ?
UNION ALL SELECT sequence_number, CAST(intent AS BLOB) FROM thought_sessions
WHERE tenant_id = ? AND sequence_number BETWEEN ? AND ?"""
_PG_WORDS = """
SELECT sequence_number, content FROM thought_records
WHERE tenant_id = $1 AND sequence_number BETWEEN $2 AND $3
UNION ALL SELECT sequence_number, convert_to(intent, 'UTF8') FROM thought_sessions
WHERE tenant_id = $1 AND sequence_number BETWEEN $2 AND $3"""
_LITE_LOG = "SELECT name FROM sqlite_master WHERE type = 'table' AND name IN ('checkpoints', 'log_keys')"
_PG_LOG = "SELECT to_regclass('checkpoints'), to_regclass('log_keys')"
_STRAY = "SELECT tenant_id FROM {} WHERE tenant_id NOT IN (SELECT tenant_id FROM chain_heads) LIMIT 1"
_CHECKPOINT = "SELECT note FROM checkpoints WHERE tenant_id = $1 ORDER BY size DESC LIMIT 1"
_CHECKPOINTS = (
    "SELECT size, previous_size, root, note FROM checkpoints "
    "WHERE tenant_id = $1 AND size > $2 AND size <= $3 ORDER BY size LIMIT 500"
)
_LOG_KEYS = "SELECT public_key FROM log_keys WHERE tenant_id = $1 ORDER BY since DESC"

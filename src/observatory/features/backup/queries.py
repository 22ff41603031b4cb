"""Queries that read the record for an export: one set for both databases, mixed into `Reads` (S703)."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import msgspec
from sqlalchemy import Select, and_, select

from observatory.ledger.export import ExportedMessage, ExportEntry
from observatory.store import tables
from observatory.store.fetches import HIGH, LOW, TENANT, Fetches
from observatory.store.shapes import TableShape


class ExportReads(Fetches):
    """The `Exportable` protocol over any store that can `fetch` rows."""

    _shape: TableShape

    async def entries(self, tenant_id: str, first: int, last: int) -> list[ExportEntry]:
        span: dict[str, Any] = {"tenant": tenant_id, "low": first, "high": last}
        rows = await self.fetch(tenant_id, self._entries, **span)
        by_number: list[dict[int, bytes]] = []
        for query in (_REWRITES, _THOUGHTS, _INTENTS):
            found = await self.fetch(tenant_id, query, **span)
            # Empty bytes: it was shredded.
            by_number.append({row[0]: _bytes(row[1]) for row in found})
        rewrites, thoughts, intents = by_number
        return [_entry(row, rewrites, thoughts | intents) for row in rows]

    @cached_property
    def _entries(self) -> Select[Any]:
        shape, messages, sessions = self._shape, self._shape.messages, tables.sessions
        in_session = and_(sessions.c.tenant_id == TENANT, sessions.c.session_no == messages.c.session_no)
        joined = (
            shape.events.outerjoin(messages, shape.same_row(messages))
            .outerjoin(shape.payloads, shape.same_row(shape.payloads))
            .outerjoin(sessions, in_session)
        )
        query = select(
            shape.sequence(),
            shape.events.c.record,
            shape.events.c.leaf_hash,
            messages.c.message_id,
            sessions.c.session_id,
            messages.c.step_id,
            messages.c.message_type,
            messages.c.state,
            messages.c.parents,
            messages.c.parent_inferred,
            messages.c.warnings,
            shape.payloads.c.raw,
            shape.payloads.c.shredded_by,
        ).select_from(joined)
        return query.where(*shape.between(TENANT, LOW, HIGH)).order_by(shape.order())


def _numbered_column(table: Any, column: str) -> Select[Any]:
    numbers = table.c.sequence_number
    query = select(numbers, table.c[column]).where(table.c.tenant_id == TENANT)
    return query.where(numbers >= LOW, numbers <= HIGH)


_REWRITES = _numbered_column(tables.rewrites, "raw")
_THOUGHTS = _numbered_column(tables.thought_records, "content")
_INTENTS = _numbered_column(tables.thought_sessions, "intent")


def _bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value or b"")


def _entry(row: Any, rewrites: dict[int, bytes], words: dict[int, bytes]) -> ExportEntry:
    number, record, leaf = row[0], bytes(row[1]), bytes(row[2])
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
        warnings=tuple(msgspec.json.decode(row[10])) if row[10] else (),
        raw=None if row[11] is None else bytes(row[11]),
        shredded_by=row[12],
    )
    return ExportEntry(number, record, leaf, message)


RECORD_QUERIES = (ExportReads,)

"""Queries of sessions with an alarm, and of the contents of given messages."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

from sqlalchemy import ColumnElement, Select, literal_column, select

from observatory.features.inbox.queries import number_column
from observatory.store import tables
from observatory.store.fetches import LIMIT, TENANT, Fetches, portions
from observatory.store.lists import among_numbers
from observatory.store.shapes import TableShape

# Spelled exactly as in the partial indexes, so that they are used.
SEVERE: ColumnElement[bool] = literal_column("severity <> 'normal'")
LOOPING: ColumnElement[bool] = literal_column("loop_ns IS NOT NULL")
SESSION = tuple(column.name for column in tables.sessions.c)
# The topology map reads these ten times a second.
ALARMED = tuple(
    select(tables.sessions)
    .where(tables.sessions.c.tenant_id == TENANT, test)
    .order_by(tables.sessions.c.session_no.desc())
    .limit(LIMIT)
    for test in (SEVERE, LOOPING)
)


class AlarmReads(Fetches):
    """The `Alarms` port over any store that can `fetch` rows."""

    _shape: TableShape

    async def alarmed(self, tenant_id: str, limit: int) -> list[dict[str, Any]]:
        found = {}
        for rows in await self.fetch_each(tenant_id, ALARMED, tenant=tenant_id, most=limit):
            for row in rows:
                session = dict(zip(SESSION, row, strict=True))
                found[session["session_no"]] = session
        return sorted(found.values(), key=lambda row: -row["last_seq"])[:limit]

    async def contents(self, tenant_id: str, numbers: Iterable[int]) -> dict[int, tuple[str, bytes | None]]:
        found: dict[int, tuple[str, bytes | None]] = {}
        for portion in portions(numbers):
            for row in await self.fetch(tenant_id, self._named, tenant=tenant_id, numbers=portion):
                found[row[0]] = row[1], None if row[2] is None else bytes(row[2])
        return found

    @cached_property
    def _named(self) -> Select[Any]:
        messages, payloads = self._shape.messages, self._shape.payloads
        same = [messages.c[name] == payloads.c[name] for name in ("key",) if name in messages.c] or [
            messages.c[name] == payloads.c[name] for name in ("tenant_id", "sequence_number")
        ]
        query = select(number_column(messages), messages.c.message_type, payloads.c.raw)
        return query.where(among_numbers(messages), *same)

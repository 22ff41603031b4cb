"""Sessions that are talked about: those in an alarm, and the last words of those that may be stuck."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import ColumnElement, literal_column, select

from observatory.store import tables
from observatory.store.fetches import LIMIT, TENANT, Fetches
from observatory.store.inbox import _among, _number_column, _parts
from observatory.store.shapes import Shape

# Numbers of one query.
NAMED = 500
# Spelled as the partial indexes spell it, so that they are used.
SEVERE: ColumnElement[bool] = literal_column("severity <> 'normal'")
LOOPING: ColumnElement[bool] = literal_column("loop_ns IS NOT NULL")
# The map asks ten times a second.
ALARMED = tuple(
    select(tables.sessions)
    .where(tables.sessions.c.tenant_id == TENANT, test)
    .order_by(tables.sessions.c.session_no.desc())
    .limit(LIMIT)
    for test in (SEVERE, LOOPING)
)


class AlarmReads(Fetches):
    """The `Alarms` port over any store that can `fetch` rows."""

    _shape: Shape

    async def alarmed(self, tenant_id: str, limit: int) -> list[dict[str, Any]]:
        found = {}
        for newest in ALARMED:
            for row in await self.fetch(tenant_id, newest, tenant=tenant_id, most=limit):
                found[row._mapping["session_no"]] = dict(row._mapping)
        return sorted(found.values(), key=lambda row: -row["last_seq"])[:limit]

    async def contents(self, tenant_id: str, numbers: Iterable[int]) -> dict[int, tuple[str, bytes | None]]:
        messages, payloads = self._shape.messages, self._shape.payloads
        same = [messages.c[name] == payloads.c[name] for name in ("key",) if name in messages.c] or [
            messages.c[name] == payloads.c[name] for name in ("tenant_id", "sequence_number")
        ]
        found: dict[int, tuple[str, bytes | None]] = {}
        for part in _parts(numbers, NAMED):
            query = select(_number_column(messages), messages.c.message_type, payloads.c.raw)
            named = query.where(_among(messages, part), *same)
            for row in await self.fetch(tenant_id, named, tenant=tenant_id):
                found[row[0]] = row[1], None if row[2] is None else bytes(row[2])
        return found

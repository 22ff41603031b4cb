"""The sessions and agents a span of new messages touched; the same on both databases, mixed into `Reads`.

Found by the numbers of the span, so it costs what the span holds and not what the tenant does. Each is one
query without lists of values, so that it is made up and planned once. SQLite gives all rows as one: its
driver takes the interpreter's lock again for every row, and beside a busy loop each time is a wait.
"""

from __future__ import annotations

from typing import Any

import msgspec
from sqlalchemy import Float, Select, case, func, select

from observatory.insight.live import Rows
from observatory.store import tables
from observatory.store.fetches import Fetches
from observatory.store.shapes import Shape

_packed = msgspec.json.Decoder(list[list[Any]]).decode


class LiveReads(Fetches):
    """The `Touches` protocol over any store that can `fetch` rows."""

    _shape: Shape
    dialect: str

    async def sessions_touched(self, tenant_id: str, after: int, until: int) -> Rows:
        sessions = tables.sessions
        query = select(sessions).where(
            sessions.c.tenant_id == tenant_id,
            sessions.c.session_no.in_(self._spoken(tenant_id, after, until)),
        )
        return await self._rows_of(tenant_id, query)

    async def agents_touched(self, tenant_id: str, after: int, until: int) -> Rows:
        agents, members = tables.agents, tables.members.c
        # One that went on since has a later number than the span; one that did not has its own in it.
        numbers = select(members.agent_no).where(
            members.tenant_id == tenant_id,
            members.session_no.in_(self._spoken(tenant_id, after, until)),
            members.last_seq > after,
        )
        query = select(agents).where(agents.c.tenant_id == tenant_id, agents.c.agent_no.in_(numbers))
        return await self._rows_of(tenant_id, query)

    async def sessions_lately(self, tenant_id: str, limit: int) -> Rows:
        sessions = tables.sessions
        query = select(sessions).where(sessions.c.tenant_id == tenant_id, sessions.c.messages > 0)
        return await self._rows_of(tenant_id, query.order_by(sessions.c.last_seq.desc()).limit(limit))

    async def everyone(self, tenant_id: str) -> tuple[Rows, Rows]:
        agents, pulses = tables.agents, tables.pulses
        return (
            await self._rows_of(tenant_id, select(agents).where(agents.c.tenant_id == tenant_id)),
            await self._rows_of(tenant_id, select(pulses).where(pulses.c.tenant_id == tenant_id)),
        )

    def _spoken(self, tenant_id: str, after: int, until: int) -> Select[Any]:
        shape, messages = self._shape, self._shape.messages
        return (
            select(messages.c.session_no)
            .select_from(shape.events.join(messages, shape.same_row(messages)))
            .where(*shape.in_tenant(tenant_id, after, until + 1))
        )

    async def _rows_of(self, tenant_id: str, query: Select[Any]) -> Rows:
        if self.dialect != "sqlite":
            return [dict(row._mapping) for row in await self.fetch(tenant_id, query)]
        found = query.subquery()
        names = [column.name for column in found.c]
        floats = [place for place, column in enumerate(found.c) if isinstance(column.type, Float)]
        # As text: SQLite writes a number into JSON with 15 digits, and a score may have 17.
        values = [
            case((column.is_not(None), func.printf("%!.17g", column))) if place in floats else column
            for place, column in enumerate(found.c)
        ]
        packed = select(func.json_group_array(func.json_array(*values))).select_from(found)
        made = []
        for row in _packed((await self.fetch(tenant_id, packed))[0][0]):
            for place in floats:
                row[place] = None if row[place] is None else float(row[place])
            made.append(dict(zip(names, row, strict=True)))
        return made

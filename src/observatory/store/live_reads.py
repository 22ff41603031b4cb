"""The sessions and agents changed by a range of new messages; the same on both databases, mixed into `Reads`.

Selected by sequence numbers, so the cost depends on the range and not on the tenant. Each is one query
without lists of values, built and planned once: building one took as long as executing it. SQLite returns all
rows as one: its driver reacquires the interpreter lock for every row, and each time waits for a busy event
loop.
"""

from __future__ import annotations

import asyncio
from functools import cached_property
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Float, Select, case, func, select

from observatory.derived.live_rows import Rows
from observatory.store import tables
from observatory.store.fetches import HIGH, LIMIT, LOW, TENANT, Fetches
from observatory.store.shapes import TableShape

MAX_INLINE_CHARS = 200_000  # characters; longer texts are parsed in a thread, not to block the event loop


class PreparedQuery(NamedTuple):
    """A prebuilt query; its parameter values are passed each time."""

    query: Select[Any]
    names: list[str]
    floats: list[int]

    def unpacked(self, text: str) -> Rows:
        rows = []
        for row in _packed(text):
            for place in self.floats:
                row[place] = None if row[place] is None else float(row[place])
            rows.append(dict(zip(self.names, row, strict=True)))
        return rows


_packed = msgspec.json.Decoder(list[list[Any]]).decode


class LiveReads(Fetches):
    """The `Touches` protocol over any store that can `fetch` rows."""

    _shape: TableShape
    dialect: str

    async def sessions_touched(self, tenant_id: str, after: int, until: int) -> Rows:
        return await self._rows_of(tenant_id, self._touched_sessions, low=after + 1, high=until)

    async def agents_touched(self, tenant_id: str, after: int, until: int) -> Rows:
        return await self._rows_of(tenant_id, self._touched_agents, low=after + 1, high=until)

    async def sessions_lately(self, tenant_id: str, limit: int) -> Rows:
        return await self._rows_of(tenant_id, self._newest_sessions, most=limit)

    async def everyone(self, tenant_id: str) -> tuple[Rows, Rows]:
        return (
            await self._rows_of(tenant_id, self._all_agents),
            await self._rows_of(tenant_id, self._all_pulses),
        )

    @cached_property
    def _touched_sessions(self) -> PreparedQuery:
        sessions = tables.sessions
        return self._asked(
            select(sessions).where(sessions.c.tenant_id == TENANT, sessions.c.session_no.in_(self._spoken))
        )

    @cached_property
    def _touched_agents(self) -> PreparedQuery:
        agents, members = tables.agents, tables.members.c
        # An agent active since then has a later number than the range; others have theirs in it.
        numbers = select(members.agent_no).where(
            members.tenant_id == TENANT, members.session_no.in_(self._spoken), members.last_seq >= LOW
        )
        return self._asked(select(agents).where(agents.c.tenant_id == TENANT, agents.c.agent_no.in_(numbers)))

    @cached_property
    def _newest_sessions(self) -> PreparedQuery:
        sessions = tables.sessions
        query = select(sessions).where(sessions.c.tenant_id == TENANT, sessions.c.messages > 0)
        return self._asked(query.order_by(sessions.c.last_seq.desc()).limit(LIMIT))

    @cached_property
    def _all_agents(self) -> PreparedQuery:
        return self._asked(select(tables.agents).where(tables.agents.c.tenant_id == TENANT))

    @cached_property
    def _all_pulses(self) -> PreparedQuery:
        return self._asked(select(tables.pulses).where(tables.pulses.c.tenant_id == TENANT))

    @property
    def _spoken(self) -> Select[Any]:
        shape, messages = self._shape, self._shape.messages
        return (
            select(messages.c.session_no)
            .select_from(shape.events.join(messages, shape.same_row(messages)))
            .where(*shape.between(TENANT, LOW, HIGH))
        )

    def _asked(self, query: Select[Any]) -> PreparedQuery:
        """The query with its column names, and the indexes of columns that SQLite returns as text."""
        names = [column.name for column in query.selected_columns]
        if self.dialect != "sqlite":
            return PreparedQuery(query, names, [])
        found = query.subquery()
        floats = [place for place, column in enumerate(found.c) if isinstance(column.type, Float)]
        # As text: SQLite writes a number into JSON with 15 digits, and a score may have 17.
        values = [
            case((column.is_not(None), func.printf("%!.17g", column))) if place in floats else column
            for place, column in enumerate(found.c)
        ]
        packed = select(func.json_group_array(func.json_array(*values))).select_from(found)
        return PreparedQuery(packed, names, floats)

    async def _rows_of(self, tenant_id: str, asked: PreparedQuery, **values: Any) -> Rows:
        found = await self.fetch(tenant_id, asked.query, tenant=tenant_id, **values)
        if self.dialect != "sqlite":
            return [dict(row._mapping) for row in found]
        text = found[0][0]
        return (
            asked.unpacked(text)
            if len(text) < MAX_INLINE_CHARS
            else await asyncio.to_thread(asked.unpacked, text)
        )

"""Reads of the session table's lines; the same on both databases, mixed into the derived store."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import select

from observatory.features.sessions.types_lines import SessionLine, key_of
from observatory.store.derived_tables import session_lines
from observatory.store.fetches import LIMIT, LOW, TENANT, Fetches, portions
from observatory.store.lists import any_of

_COLUMNS = tuple(session_lines.c[name] for name in SessionLine._fields)
_SINCE = (
    select(*_COLUMNS)
    .where(session_lines.c.tenant_id == TENANT, session_lines.c.turn > LOW)
    .order_by(session_lines.c.turn)
    .limit(LIMIT)
)


class LineReads(Fetches):
    """The `Lines` protocol over any derived store that can `fetch` rows."""

    async def session_lines(self, tenant_id: str, sessions: Collection[int]) -> dict[int, SessionLine]:
        found: dict[int, SessionLine] = {}
        for some in portions(sorted(sessions)):
            query = select(*_COLUMNS).where(
                session_lines.c.tenant_id == tenant_id,
                any_of(session_lines.c.session_no, some),
            )
            found |= {row[0]: SessionLine(*row) for row in await self.fetch(tenant_id, query)}
        return found

    async def session_lines_since(self, tenant_id: str, turn: int, limit: int) -> list[SessionLine]:
        [found] = await self.fetch_each(tenant_id, (_SINCE,), tenant=tenant_id, low=turn, most=limit)
        return [SessionLine._make(row) for row in found]

    async def sessions_about(self, tenant_id: str, text: str, limit: int) -> list[int]:
        """A walk through the tenant's goals, newest first, until there are enough."""
        query = (
            select(session_lines.c.session_no)
            .where(session_lines.c.tenant_id == tenant_id)
            .where(session_lines.c.goal_key.contains(key_of(text), autoescape=True))
            .order_by(session_lines.c.turn.desc())
            .limit(limit)
        )
        return [row[0] for row in await self.fetch(tenant_id, query)]

"""Reads of the session table's lines; the same on both databases, mixed into the derived store."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import select

from observatory.insight.session_lines import SessionLine, key_of
from observatory.store.derived_tables import session_lines
from observatory.store.fetches import Fetches, portions

_COLUMNS = tuple(session_lines.c[name] for name in SessionLine._fields)


class LineReads(Fetches):
    """The `Lines` protocol over any derived store that can `fetch` rows."""

    async def session_lines(self, tenant_id: str, sessions: Collection[int]) -> dict[int, SessionLine]:
        found: dict[int, SessionLine] = {}
        for some in portions(sorted(sessions)):
            query = select(*_COLUMNS).where(
                session_lines.c.tenant_id == tenant_id,
                session_lines.c.session_no.in_(some),
            )
            found |= {row[0]: SessionLine(*row) for row in await self.fetch(tenant_id, query)}
        return found

    async def session_lines_since(self, tenant_id: str, turn: int, limit: int) -> list[SessionLine]:
        query = (
            select(*_COLUMNS)
            .where(session_lines.c.tenant_id == tenant_id, session_lines.c.turn > turn)
            .order_by(session_lines.c.turn)
            .limit(limit)
        )
        return [SessionLine._make(row) for row in await self.fetch_plain(tenant_id, query)]

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

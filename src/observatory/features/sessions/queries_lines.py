"""Queries of the session table's derived columns, the same on both databases."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import select

from observatory.derived.tables import session_lines
from observatory.features.sessions.types_lines import SessionLine, key_of
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
        lines: dict[int, SessionLine] = {}
        for portion in portions(sorted(sessions)):
            query = select(*_COLUMNS).where(
                session_lines.c.tenant_id == tenant_id,
                any_of(session_lines.c.session_no, portion),
            )
            lines |= {row[0]: SessionLine(*row) for row in await self.fetch(tenant_id, query)}
        return lines

    async def session_lines_since(self, tenant_id: str, turn: int, limit: int) -> list[SessionLine]:
        [rows] = await self.fetch_each(tenant_id, (_SINCE,), tenant=tenant_id, low=turn, most=limit)
        return [SessionLine._make(row) for row in rows]

    async def sessions_about(self, tenant_id: str, text: str, limit: int) -> list[int]:
        """Scans the tenant's goals, newest first, until there are enough."""
        query = (
            select(session_lines.c.session_no)
            .where(session_lines.c.tenant_id == tenant_id)
            .where(session_lines.c.goal_key.contains(key_of(text), autoescape=True))
            .order_by(session_lines.c.turn.desc())
            .limit(limit)
        )
        return [row[0] for row in await self.fetch(tenant_id, query)]

"""Who cannot go on: agents paused by a person, and those of whose messages some are held."""

from __future__ import annotations

from sqlalchemy import ColumnElement, and_, func, literal_column, select

from observatory.insight.traffic import Halted
from observatory.store import tables
from observatory.store.fetches import Fetches
from observatory.store.standstill import OPEN

# Spelled as the partial index spells it, so that it is used.
PAUSED: ColumnElement[bool] = literal_column("paused_ns IS NOT NULL")


class FleetReads(Fetches):
    """The `Halts` protocol over any store that can `fetch` rows."""

    async def halted(self, tenant_id: str, limit: int) -> list[Halted]:
        members, sessions, holds = tables.members, tables.sessions, tables.holds
        paused = (
            select(members.c.agent_no, sessions.c.session_id, members.c.paused_ns)
            .select_from(
                members.join(
                    sessions,
                    and_(
                        sessions.c.tenant_id == members.c.tenant_id,
                        sessions.c.session_no == members.c.session_no,
                    ),
                )
            )
            .where(members.c.tenant_id == tenant_id, PAUSED)
            .order_by(members.c.paused_ns)
            .limit(limit)
        )
        found = [Halted(row[0], "paused", row[1], row[2], 1) for row in await self.fetch(tenant_id, paused)]
        grouped = (
            select(holds.c.agent_no, holds.c.cause, func.min(holds.c.held_ns), func.count())
            .where(holds.c.tenant_id == tenant_id, OPEN)
            .group_by(holds.c.agent_no, holds.c.cause)
            .limit(limit)
        )
        return found + [
            Halted(row[0], row[1], "", row[2], row[3]) for row in await self.fetch(tenant_id, grouped)
        ]

"""What kill-switches hold, read in one set of queries for both databases: how far one reaches, what waits."""

from __future__ import annotations

from sqlalchemy import ColumnElement, and_, distinct, func, literal_column, or_, select

from observatory.ports import Reach
from observatory.store import tables
from observatory.store.fetches import Fetches

# Spelled as the partial index spells it, so that it is used.
OPEN: ColumnElement[bool] = literal_column("holds.state = 'held'")


class Standstill(Fetches):
    """Part of every store that can `fetch` rows."""

    async def reach(self, tenant_id: str, **agents: str) -> Reach:
        fleet, members, holds, heads = tables.agents, tables.members, tables.holds, tables.chain_heads
        tests = [fleet.c[column] == value for column, value in agents.items()]
        mine = select(fleet.c.agent_no).where(fleet.c.tenant_id == tenant_id, *tests)
        held = select(func.count()).where(
            holds.c.tenant_id == tenant_id, OPEN, or_(holds.c.cause == "kill", holds.c.cause == "order")
        )
        if agents:
            held = held.where(holds.c.agent_no.in_(mine))
            sessions = select(func.count(distinct(members.c.session_no))).where(
                members.c.tenant_id == tenant_id, members.c.agent_no.in_(mine)
            )
        else:  # everything there is; messages of people too
            sessions = select(heads.c.sessions).where(heads.c.tenant_id == tenant_id)
        query = select(
            select(func.count()).select_from(mine.subquery()).scalar_subquery(),
            sessions.scalar_subquery(),
            held.scalar_subquery(),
        )
        found = (await self.fetch(tenant_id, query))[0]
        return Reach(found[0] or 0, found[1] or 0, found[2] or 0)

    async def waiting(self, tenant_id: str) -> list[tuple[str, int]]:
        holds, members, sessions = tables.holds, tables.members, tables.sessions
        joined = holds.join(
            sessions, and_(sessions.c.tenant_id == tenant_id, sessions.c.session_no == holds.c.session_no)
        ).outerjoin(
            members,
            and_(
                members.c.tenant_id == tenant_id,
                members.c.session_no == holds.c.session_no,
                members.c.agent_no == holds.c.agent_no,
            ),
        )
        query = (
            select(sessions.c.session_id, func.count())
            .select_from(joined)
            .where(holds.c.tenant_id == tenant_id, OPEN, holds.c.gate != 1, members.c.paused_ns.is_(None))
            .group_by(sessions.c.session_id)
            .order_by(func.min(holds.c.sequence_number))
        )
        return [(row[0], row[1]) for row in await self.fetch(tenant_id, query)]

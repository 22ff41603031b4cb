"""What kill-switches hold, read in one set of queries for both databases: how far one reaches, what waits."""

from __future__ import annotations

from sqlalchemy import ColumnElement, and_, distinct, func, literal_column, or_, select

from observatory.rows import Obeyed, Reach
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

    async def obeyed(self, tenant_id: str, number: int, most: int, **agents: str) -> Obeyed:
        fleet, orders = tables.agents, tables.deliveries
        mine = [fleet.c.tenant_id == tenant_id, *(fleet.c[name] == value for name, value in agents.items())]
        given = [orders.c.tenant_id == tenant_id, orders.c.sequence_number == number]
        told = select(orders.c.agent_no).where(*given)
        counts = select(
            select(func.count()).select_from(fleet).where(*mine).scalar_subquery(),
            select(func.count()).select_from(orders).where(*given).scalar_subquery(),
            select(func.count(orders.c.acked_ns)).where(*given).scalar_subquery(),
            select(func.count())
            .select_from(fleet)
            .where(*mine, fleet.c.agent_no.not_in(told))
            .scalar_subquery(),
        )
        silent = (
            select(fleet.c.agent_id, fleet.c.last_seen_ns, fleet.c.evicted_ns)
            .join(orders, orders.c.agent_no == fleet.c.agent_no)
            .where(*given, orders.c.acked_ns.is_(None), fleet.c.tenant_id == tenant_id)
            .order_by(fleet.c.evicted_ns.is_not(None), fleet.c.last_seen_ns.desc(), fleet.c.agent_no)
            .limit(most)
        )
        found = (await self.fetch(tenant_id, counts))[0]
        rows = [dict(row._mapping) for row in await self.fetch(tenant_id, silent)]
        return Obeyed(found[0], found[1], found[2], found[3], rows)

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

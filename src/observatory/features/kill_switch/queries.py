"""Reads of kill switches, for both databases: the reach of a scope, acknowledgements, held messages."""

from __future__ import annotations

from sqlalchemy import ColumnElement, and_, distinct, func, literal_column, or_, select

from observatory.pipeline.rows import KillSwitchAcknowledgements, KillSwitchCounts
from observatory.protocol.scopes import matches_target
from observatory.store import tables
from observatory.store.fetches import Fetches
from observatory.store.lists import any_of

# Spelled as in the partial index, so that the index is used.
OPEN: ColumnElement[bool] = literal_column("holds.state = 'held'")


async def spelt(store: Fetches, tenant_id: str, column: str, word: str) -> list[str]:
    """The values of this column of agents that read the same as this word."""
    values = tables.agents.c[column]
    query = select(values).where(tables.agents.c.tenant_id == tenant_id).distinct()
    return [
        row[0]
        for row in await store.fetch(tenant_id, query)
        if matches_target(tenant_id, column, row[0], word)
    ]


class KillSwitchQueries(Fetches):
    """Part of every store that can `fetch` rows."""

    async def spelt(self, tenant_id: str, **agents: str) -> dict[str, list[str]]:
        return {column: await spelt(self, tenant_id, column, word) for column, word in agents.items()}

    async def reach(self, tenant_id: str, **agents: str) -> KillSwitchCounts:
        fleet, members, holds, heads = tables.agents, tables.members, tables.holds, tables.chain_heads
        found = await self.spelt(tenant_id, **agents)
        tests = [any_of(fleet.c[column], values) for column, values in found.items()]
        mine = select(fleet.c.agent_no).where(fleet.c.tenant_id == tenant_id, *tests)
        held = select(func.count()).where(
            holds.c.tenant_id == tenant_id, OPEN, or_(holds.c.cause == "kill", holds.c.cause == "order")
        )
        if agents:
            held = held.where(holds.c.agent_no.in_(mine))
            sessions = select(func.count(distinct(members.c.session_no))).where(
                members.c.tenant_id == tenant_id, members.c.agent_no.in_(mine)
            )
        else:  # the whole tenant; messages of people too
            sessions = select(heads.c.sessions).where(heads.c.tenant_id == tenant_id)
        query = select(
            select(func.count()).select_from(mine.subquery()).scalar_subquery(),
            sessions.scalar_subquery(),
            held.scalar_subquery(),
        )
        counted = (await self.fetch(tenant_id, query))[0]
        return KillSwitchCounts(counted[0] or 0, counted[1] or 0, counted[2] or 0)

    async def acknowledgements(
        self, tenant_id: str, number: int, most: int, **agents: str
    ) -> KillSwitchAcknowledgements:
        fleet, orders = tables.agents, tables.deliveries
        names = await self.spelt(tenant_id, **agents)
        tests = [any_of(fleet.c[name], values) for name, values in names.items()]
        mine = [fleet.c.tenant_id == tenant_id, *tests]
        sent = [orders.c.tenant_id == tenant_id, orders.c.sequence_number == number]
        notified = select(orders.c.agent_no).where(*sent)
        counts = select(
            select(func.count()).select_from(fleet).where(*mine).scalar_subquery(),
            select(func.count()).select_from(orders).where(*sent).scalar_subquery(),
            select(func.count(orders.c.acked_ns)).where(*sent).scalar_subquery(),
            select(func.count())
            .select_from(fleet)
            .where(*mine, fleet.c.agent_no.not_in(notified))
            .scalar_subquery(),
        )
        silent = (
            select(fleet.c.agent_id, fleet.c.last_seen_ns, fleet.c.evicted_ns)
            .join(orders, orders.c.agent_no == fleet.c.agent_no)
            .where(*sent, orders.c.acked_ns.is_(None), fleet.c.tenant_id == tenant_id)
            .order_by(fleet.c.evicted_ns.is_not(None), fleet.c.last_seen_ns.desc(), fleet.c.agent_no)
            .limit(most)
        )
        found = (await self.fetch(tenant_id, counts))[0]
        rows = [dict(row._mapping) for row in await self.fetch(tenant_id, silent)]
        return KillSwitchAcknowledgements(found[0], found[1], found[2], found[3], rows)

    async def waiting(self, tenant_id: str) -> list[tuple[str, int]]:
        holds, members, sessions, agents = tables.holds, tables.members, tables.sessions, tables.agents
        joined = (
            holds.join(
                sessions, and_(sessions.c.tenant_id == tenant_id, sessions.c.session_no == holds.c.session_no)
            )
            .outerjoin(
                members,
                and_(
                    members.c.tenant_id == tenant_id,
                    members.c.session_no == holds.c.session_no,
                    members.c.agent_no == holds.c.agent_no,
                ),
            )
            .outerjoin(agents, and_(agents.c.tenant_id == tenant_id, agents.c.agent_no == holds.c.agent_no))
        )
        query = (
            select(sessions.c.session_id, func.count())
            .select_from(joined)
            .where(holds.c.tenant_id == tenant_id, OPEN, holds.c.gate != 1)
            .where(members.c.paused_ns.is_(None), agents.c.paused_ns.is_(None))
            .group_by(sessions.c.session_id)
            .order_by(func.min(holds.c.sequence_number))
        )
        return [(row[0], row[1]) for row in await self.fetch(tenant_id, query)]


RECORD_QUERIES = (KillSwitchQueries,)

"""Reading what goes between agents: who fell silent, whose work waits for somebody, what each edge carried.

One set of queries for both databases, mixed into `Reads`. Counts are made by the database; only latencies
are read row by row, the newest so many, because neither database has percentiles the other has too.
"""

from __future__ import annotations

from sqlalchemy import ColumnElement, and_, case, func, literal_column, or_, select

from observatory.features.inbox.queries import numbered
from observatory.pipeline.ports import Backlog, EdgeCount, Silent, Stranded
from observatory.store import tables
from observatory.store.fetches import TENANT, Fetches
from observatory.store.shapes import Shape

# Spelled as the partial indexes spell them, so that they are used.
PARKED: ColumnElement[bool] = literal_column("deliveries.state = 'parked'")
PENDING: ColumnElement[bool] = literal_column("deliveries.state = 'pending'")

_told, _gone = tables.deliveries.c, tables.agents.c
# The clock asks every second.
_PARKED = select(_told.address, func.count()).where(_told.tenant_id == TENANT, PARKED).group_by(_told.address)
_LEFT = (
    select(_told.agent_no, _told.address, func.count())
    .where(_told.tenant_id == TENANT, PENDING, _told.kind == "message")
    .where(
        _told.agent_no.in_(
            select(_gone.agent_no).where(_gone.tenant_id == TENANT, _gone.evicted_ns.is_not(None))
        )
    )
    .group_by(_told.agent_no, _told.address)
)


class TrafficReads(Fetches):
    """Part of every store that can `fetch` rows."""

    _shape: Shape

    async def silent(self, tenant_id: str, before_ns: int, limit: int) -> list[Silent]:
        agents, pulses = tables.agents.c, tables.pulses.c
        joined = tables.pulses.join(
            tables.agents, and_(agents.tenant_id == pulses.tenant_id, agents.agent_no == pulses.agent_no)
        )
        query = (
            select(agents.agent_no, agents.entity_id, pulses.heartbeat_ns)
            .select_from(joined)
            .where(pulses.tenant_id == tenant_id, pulses.heartbeat_ns <= before_ns)
            .where(agents.evicted_ns.is_(None))
            .order_by(pulses.heartbeat_ns)
            .limit(limit)
        )
        return [Silent(*row) for row in await self.fetch(tenant_id, query)]

    async def rooms(self, tenant_id: str, agent_no: int) -> list[str]:
        members, sessions = tables.members.c, tables.sessions.c
        joined = tables.members.join(
            tables.sessions,
            and_(sessions.tenant_id == members.tenant_id, sessions.session_no == members.session_no),
        )
        query = (
            select(sessions.session_id)
            .select_from(joined)
            .where(members.tenant_id == tenant_id, members.agent_no == agent_no)
            .where(members.arrived_ns > 0, sessions.agents > 1)
            .order_by(sessions.last_seq.desc())
        )
        return [row[0] for row in await self.fetch(tenant_id, query)]

    async def backlog(self, tenant_id: str) -> list[Backlog]:
        parked, left = await self.fetch_each(tenant_id, (_PARKED, _LEFT), tenant=tenant_id)
        return [*(Backlog(0, *row) for row in parked), *(Backlog(*row) for row in left)]

    async def stranded(
        self, tenant_id: str, agent_no: int, address: str | None, limit: int
    ) -> list[Stranded]:
        told, sessions, messages = tables.deliveries, tables.sessions, self._shape.messages
        joined = told.join(
            sessions,
            and_(sessions.c.tenant_id == told.c.tenant_id, sessions.c.session_no == told.c.session_no),
        ).outerjoin(messages, numbered(messages, told.c.message_seq))
        query = (
            select(
                told.c.sequence_number,
                told.c.agent_no,
                told.c.sender_no,
                told.c.session_no,
                told.c.address,
                told.c.message_seq,
                sessions.c.trace_id,
                messages.c.message_id,
            )
            .select_from(joined)
            .where(told.c.tenant_id == tenant_id, told.c.agent_no == agent_no, told.c.address == address)
            .where(PARKED if agent_no == 0 else PENDING, told.c.kind == "message")
            .order_by(told.c.sequence_number)
            .limit(limit)
        )
        return [Stranded(*row) for row in await self.fetch(tenant_id, query, tenant=tenant_id)]

    async def edges(self, tenant_id: str, since_ns: int, recent_ns: int) -> list[EdgeCount]:
        told = tables.deliveries.c
        waits = or_(told.state == "pending", told.state == "parked")
        query = (
            select(
                told.sender_no,
                told.agent_no,
                told.address,
                func.count(),
                func.sum(case((told.created_ns >= recent_ns, 1), else_=0)),
                func.sum(case((waits, 1), else_=0)),
                func.min(case((waits, told.created_ns), else_=None)),
            )
            .where(told.tenant_id == tenant_id, told.created_ns >= since_ns)
            .where(told.message_seq.is_not(None), told.kind == "message", told.state != "rerouted")
            .group_by(told.sender_no, told.agent_no, told.address)
        )
        found: dict[tuple[int, int, str | None], EdgeCount] = {}
        for sender_no, agent_no, address, *counts in await self.fetch(tenant_id, query):
            # However it was addressed: what was delivered went to its agent.
            key = (sender_no, agent_no, address if agent_no == 0 else None)
            messages, recent, waiting = map(int, counts[:3])
            known = found.get(key)
            oldest = [ns for ns in (counts[3], known.oldest_ns if known else None) if ns is not None]
            found[key] = EdgeCount(
                *key,
                messages + (known.messages if known else 0),
                recent + (known.recent if known else 0),
                waiting + (known.unacknowledged if known else 0),
                min(oldest, default=None),
            )
        return list(found.values())

    async def latencies(self, tenant_id: str, since_ns: int, limit: int) -> list[tuple[int, int, int]]:
        told = tables.deliveries.c
        query = (
            select(told.sender_no, told.agent_no, told.acked_ns - told.created_ns)
            .where(told.tenant_id == tenant_id, told.created_ns >= since_ns)
            .where(told.message_seq.is_not(None), told.kind == "message", told.acked_ns.is_not(None))
            .order_by(told.created_ns.desc())
            .limit(limit)
        )
        return [(row[0], row[1], row[2]) for row in await self.fetch(tenant_id, query)]

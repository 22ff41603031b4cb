"""Queries on traffic between agents: silent agents, waiting work, counts and latencies of each edge.

One set of queries for both databases, mixed into `Reads`. The database does the counting; only latencies
are read row by row, newest first up to a limit, because the two databases share no percentile function.
"""

from __future__ import annotations

from sqlalchemy import ColumnElement, and_, case, func, literal_column, or_, select

from observatory.features.inbox.queries import numbered
from observatory.pipeline.ports import AgentBacklog, BacklogDelivery, SilentAgent, TrafficEdge
from observatory.store import tables
from observatory.store.fetches import TENANT, Fetches
from observatory.store.shapes import TableShape

# Spelled as the partial indexes spell them, so that they are used.
PARKED: ColumnElement[bool] = literal_column("deliveries.state = 'parked'")
PENDING: ColumnElement[bool] = literal_column("deliveries.state = 'pending'")

_delivery, _gone = tables.deliveries.c, tables.agents.c
# The reaper runs these every second.
_PARKED = (
    select(_delivery.address, func.count())
    .where(_delivery.tenant_id == TENANT, PARKED)
    .group_by(_delivery.address)
)
_LEFT = (
    select(_delivery.agent_no, _delivery.address, func.count())
    .where(_delivery.tenant_id == TENANT, PENDING, _delivery.kind == "message")
    .where(
        _delivery.agent_no.in_(
            select(_gone.agent_no).where(_gone.tenant_id == TENANT, _gone.evicted_ns.is_not(None))
        )
    )
    .group_by(_delivery.agent_no, _delivery.address)
)


class DeliveryTrafficReads(Fetches):
    """Part of every store that can `fetch` rows."""

    _shape: TableShape

    async def silent(self, tenant_id: str, before_ns: int, limit: int) -> list[SilentAgent]:
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
        return [SilentAgent(*row) for row in await self.fetch(tenant_id, query)]

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

    async def backlog(self, tenant_id: str) -> list[AgentBacklog]:
        parked, left = await self.fetch_each(tenant_id, (_PARKED, _LEFT), tenant=tenant_id)
        return [*(AgentBacklog(0, *row) for row in parked), *(AgentBacklog(*row) for row in left)]

    async def stranded(
        self, tenant_id: str, agent_no: int, address: str | None, limit: int
    ) -> list[BacklogDelivery]:
        deliveries, sessions, messages = tables.deliveries, tables.sessions, self._shape.messages
        joined = deliveries.join(
            sessions,
            and_(
                sessions.c.tenant_id == deliveries.c.tenant_id,
                sessions.c.session_no == deliveries.c.session_no,
            ),
        ).outerjoin(messages, numbered(messages, deliveries.c.message_seq))
        query = (
            select(
                deliveries.c.sequence_number,
                deliveries.c.agent_no,
                deliveries.c.sender_no,
                deliveries.c.session_no,
                deliveries.c.address,
                deliveries.c.message_seq,
                sessions.c.trace_id,
                messages.c.message_id,
            )
            .select_from(joined)
            .where(
                deliveries.c.tenant_id == tenant_id,
                deliveries.c.agent_no == agent_no,
                deliveries.c.address == address,
            )
            .where(PARKED if agent_no == 0 else PENDING, deliveries.c.kind == "message")
            .order_by(deliveries.c.sequence_number)
            .limit(limit)
        )
        return [BacklogDelivery(*row) for row in await self.fetch(tenant_id, query, tenant=tenant_id)]

    async def edges(self, tenant_id: str, since_ns: int, recent_ns: int) -> list[TrafficEdge]:
        deliveries = tables.deliveries.c
        is_waiting = or_(deliveries.state == "pending", deliveries.state == "parked")
        query = (
            select(
                deliveries.sender_no,
                deliveries.agent_no,
                deliveries.address,
                func.count(),
                func.sum(case((deliveries.created_ns >= recent_ns, 1), else_=0)),
                func.sum(case((is_waiting, 1), else_=0)),
                func.min(case((is_waiting, deliveries.created_ns), else_=None)),
            )
            .where(deliveries.tenant_id == tenant_id, deliveries.created_ns >= since_ns)
            .where(
                deliveries.message_seq.is_not(None),
                deliveries.kind == "message",
                deliveries.state != "rerouted",
            )
            .group_by(deliveries.sender_no, deliveries.agent_no, deliveries.address)
        )
        counts_by_edge: dict[tuple[int, int, str | None], TrafficEdge] = {}
        for sender_no, agent_no, address, *counts in await self.fetch(tenant_id, query):
            # Delivered messages count for their agent, however they were addressed.
            key = (sender_no, agent_no, address if agent_no == 0 else None)
            messages, recent, waiting = map(int, counts[:3])
            known = counts_by_edge.get(key)
            oldest = [ns for ns in (counts[3], known.oldest_ns if known else None) if ns is not None]
            counts_by_edge[key] = TrafficEdge(
                *key,
                messages + (known.messages if known else 0),
                recent + (known.recent if known else 0),
                waiting + (known.unacknowledged if known else 0),
                min(oldest, default=None),
            )
        return list(counts_by_edge.values())

    async def latencies(self, tenant_id: str, since_ns: int, limit: int) -> list[tuple[int, int, int]]:
        deliveries = tables.deliveries.c
        query = (
            select(deliveries.sender_no, deliveries.agent_no, deliveries.acked_ns - deliveries.created_ns)
            .where(deliveries.tenant_id == tenant_id, deliveries.created_ns >= since_ns)
            .where(
                deliveries.message_seq.is_not(None),
                deliveries.kind == "message",
                deliveries.acked_ns.is_not(None),
            )
            .order_by(deliveries.created_ns.desc())
            .limit(limit)
        )
        return [(row[0], row[1], row[2]) for row in await self.fetch(tenant_id, query)]


RECORD_QUERIES = (DeliveryTrafficReads,)

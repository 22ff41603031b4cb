"""Reads for alert rules: their stored states, silent agents, and queues by recipient."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, and_, func, literal_column, or_, select

from observatory.features.alerting.queries_tray import AlertReads
from observatory.features.alerting.types_rows import PendingApprovals, QueuedMessages, QuietAgent
from observatory.features.registry.queries import PARKED, PENDING
from observatory.store import tables
from observatory.store.fetches import Fetches

Row = dict[str, Any]
# Spelled exactly as in the partial indexes, so that they are used.
FIRING: ColumnElement[bool] = literal_column("alert_states.state = 'firing'")
HELD: ColumnElement[bool] = literal_column("holds.state = 'held'")
ASKED: ColumnElement[bool] = literal_column("decisions.state = 'pending'")
LEFT: ColumnElement[bool] = literal_column("dead_letters.state = 'dead'")


class AlertingReads(Fetches):
    """The `AlertingRows` port over any store that can `fetch` rows."""

    async def alert_standings(self, tenant_id: str, since_ns: int, limit: int) -> list[Row]:
        states = tables.alert_states
        mine = states.c.tenant_id == tenant_id
        found: dict[str, Row] = {}
        for query in (
            select(states).where(mine, states.c.updated_ns >= since_ns).order_by(states.c.updated_ns.desc()),
            select(states).where(mine, FIRING).order_by(states.c.raised_seq.desc()),
        ):
            for row in await self.fetch(tenant_id, query.limit(limit)):
                found[row._mapping["state_key"]] = dict(row._mapping)
        return list(found.values())

    async def alerts_open(self, tenant_id: str, before: int | None, limit: int) -> list[Row]:
        states = tables.alert_states
        query = select(states).where(states.c.tenant_id == tenant_id, FIRING)
        if before is not None:
            query = query.where(states.c.raised_seq < before)
        found = await self.fetch(tenant_id, query.order_by(states.c.raised_seq.desc()).limit(limit))
        return [dict(row._mapping) for row in found]

    async def quiet_agents(
        self, tenant_id: str, before_ns: int, gone_ns: int, limit: int
    ) -> list[QuietAgent]:
        agents, pulses = tables.agents.c, tables.pulses.c
        joined = tables.pulses.join(
            tables.agents, and_(agents.tenant_id == pulses.tenant_id, agents.agent_no == pulses.agent_no)
        )
        query = (
            select(
                agents.agent_id,
                agents.agent_type,
                agents.cluster_id,
                pulses.heartbeat_ns,
                agents.evicted_ns,
            )
            .select_from(joined)
            .where(pulses.tenant_id == tenant_id, pulses.heartbeat_ns <= before_ns)
            .where(or_(agents.evicted_ns.is_(None), agents.evicted_ns > gone_ns))
            .order_by(pulses.heartbeat_ns)
            .limit(limit)
        )
        return [QuietAgent(*row) for row in await self.fetch(tenant_id, query)]

    async def queues(self, tenant_id: str) -> list[QueuedMessages]:
        deliveries, agents = tables.deliveries.c, tables.agents.c
        parked = (
            select(deliveries.address, func.count())
            .where(deliveries.tenant_id == tenant_id, PARKED, deliveries.kind == "message")
            .group_by(deliveries.address)
        )
        found = [QueuedMessages(row[0], None, None, row[1]) for row in await self.fetch(tenant_id, parked)]
        joined = tables.deliveries.join(
            tables.agents,
            and_(agents.tenant_id == deliveries.tenant_id, agents.agent_no == deliveries.agent_no),
        )
        held = (
            select(deliveries.address, agents.agent_type, agents.cluster_id, func.count())
            .select_from(joined)
            .where(deliveries.tenant_id == tenant_id, PENDING, deliveries.kind == "message")
            .group_by(deliveries.address, agents.agent_type, agents.cluster_id)
        )
        return found + [QueuedMessages(*row) for row in await self.fetch(tenant_id, held)]

    async def unanswered(self, tenant_id: str) -> PendingApprovals:
        holds, decisions = tables.holds.c, tables.decisions.c
        gates = select(func.count(), func.min(holds.held_ns)).where(
            holds.tenant_id == tenant_id, HELD, holds.gate == 1
        )
        asked = select(func.count(), func.min(decisions.created_ns)).where(
            decisions.tenant_id == tenant_id, ASKED
        )
        first, second = await self.fetch(tenant_id, gates), await self.fetch(tenant_id, asked)
        return PendingApprovals(first[0][0], first[0][1], second[0][0], second[0][1])

    async def letters_waiting(self, tenant_id: str) -> int:
        letters = tables.dead_letters.c
        query = select(func.count()).where(letters.tenant_id == tenant_id, LEFT)
        return int((await self.fetch(tenant_id, query))[0][0])


RECORD_QUERIES = (AlertingReads,)
DERIVED_QUERIES = (AlertReads,)

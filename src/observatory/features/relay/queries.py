"""What is held and what people did about it: reading for doors and clock, the same on both databases."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select

from observatory.store import tables
from observatory.store.fetches import HIGH, LIMIT, TENANT, Fetches

_holds, _sessions, _members = tables.holds.c, tables.sessions.c, tables.members.c
_did, _agents = tables.interventions.c, tables.agents.c
# The clock asks every second.
_GATES_DUE = (
    select(_sessions.session_id, _holds.sequence_number)
    .where(_sessions.tenant_id == _holds.tenant_id, _sessions.session_no == _holds.session_no)
    .where(_holds.tenant_id == TENANT, _holds.state == "held", _holds.gate == 1, _holds.deadline_ns <= HIGH)
    .order_by(_holds.deadline_ns)
    .limit(LIMIT)
)
_PAUSES_ACKNOWLEDGED = (
    select(tables.interventions, _sessions.session_id, _agents.entity_id)
    .where(*(table.tenant_id == TENANT for table in (_did, _members, _sessions, _agents)))
    .where(_members.paused_ns.is_not(None), _did.sequence_number == _members.pause_seq)
    .where(_sessions.session_no == _did.session_no, _agents.agent_no == _did.agent_no)
    .where(_did.session_no > 0, _did.acknowledged_ns.is_not(None), _did.confirmed_ns.is_(None))
    .limit(LIMIT)
)


class HoldReads(Fetches):
    """The `Holds` port over any store that can `fetch` rows."""

    async def holds_page(
        self, tenant_id: str, after: int | None, limit: int, gates_only: bool
    ) -> list[dict[str, Any]]:
        """Open holds in arrival order."""
        holds = tables.holds
        query = select(holds).where(holds.c.tenant_id == tenant_id, holds.c.state == "held")
        if after is not None:
            query = query.where(holds.c.sequence_number > after)
        if gates_only:
            query = query.where(holds.c.gate == 1)
        found = await self.fetch(tenant_id, query.order_by(holds.c.sequence_number).limit(limit))
        return [dict(row._mapping) for row in found]

    async def gates_due(self, tenant_id: str, now_ns: int, limit: int) -> list[tuple[str, int]]:
        """(session id, sequence number) of open gates whose time is over."""
        found = await self.fetch(tenant_id, _GATES_DUE, tenant=tenant_id, high=now_ns, most=limit)
        return [(row[0], row[1]) for row in found]

    async def pauses_acknowledged(self, tenant_id: str, limit: int) -> list[dict[str, Any]]:
        """Pauses in force that their agent has acknowledged and nobody has confirmed yet."""
        found = await self.fetch(tenant_id, _PAUSES_ACKNOWLEDGED, tenant=tenant_id, most=limit)
        return [dict(row._mapping) for row in found]

"""What is held and what people did about it: reading for doors and clock, the same on both databases."""

from __future__ import annotations

from typing import Any

from sqlalchemy import and_, select

from observatory.store import tables
from observatory.store.fetches import Fetches


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
        holds, sessions = tables.holds, tables.sessions
        joined = holds.join(
            sessions,
            and_(sessions.c.tenant_id == holds.c.tenant_id, sessions.c.session_no == holds.c.session_no),
        )
        due = [holds.c.state == "held", holds.c.gate == 1, holds.c.deadline_ns <= now_ns]
        query = select(sessions.c.session_id, holds.c.sequence_number).select_from(joined)
        found = await self.fetch(
            tenant_id,
            query.where(holds.c.tenant_id == tenant_id, *due).order_by(holds.c.deadline_ns).limit(limit),
        )
        return [(row[0], row[1]) for row in found]

    async def pauses_acknowledged(self, tenant_id: str, limit: int) -> list[dict[str, Any]]:
        """Pauses in force that their agent has acknowledged and nobody has confirmed yet."""
        did, members = tables.interventions, tables.members
        sessions, agents = tables.sessions, tables.agents
        mine = [table.c.tenant_id == tenant_id for table in (did, members, sessions, agents)]
        query = (
            select(did, sessions.c.session_id, agents.c.entity_id)
            .where(*mine, members.c.paused_ns.is_not(None), did.c.sequence_number == members.c.pause_seq)
            .where(sessions.c.session_no == did.c.session_no, agents.c.agent_no == did.c.agent_no)
            .where(did.c.acknowledged_ns.is_not(None), did.c.confirmed_ns.is_(None))
        )
        found = await self.fetch(tenant_id, query.limit(limit))
        return [dict(row._mapping) for row in found]

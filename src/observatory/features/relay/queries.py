"""Queries on holds and interventions for routes and workers, the same on both databases."""

from __future__ import annotations

from collections import Counter
from typing import Any

from sqlalchemy import select

from observatory.features.relay.types import hashed
from observatory.http.app_state import AppState
from observatory.pipeline.state import Principal
from observatory.store import tables
from observatory.store.fetches import HIGH, LIMIT, TENANT, Fetches

_holds, _sessions, _members = tables.holds.c, tables.sessions.c, tables.members.c
_interventions, _agents = tables.interventions.c, tables.agents.c
# The worker runs these every second.
_GATES_DUE = (
    select(_sessions.session_id, _holds.sequence_number)
    .where(_sessions.tenant_id == _holds.tenant_id, _sessions.session_no == _holds.session_no)
    .where(_holds.tenant_id == TENANT, _holds.state == "held", _holds.gate == 1, _holds.deadline_ns <= HIGH)
    .order_by(_holds.deadline_ns)
    .limit(LIMIT)
)
_PAUSES_ACKNOWLEDGED = (
    select(tables.interventions, _sessions.session_id, _agents.entity_id)
    .where(*(table.tenant_id == TENANT for table in (_interventions, _members, _sessions, _agents)))
    .where(_members.paused_ns.is_not(None), _interventions.sequence_number == _members.pause_seq)
    .where(_sessions.session_no == _interventions.session_no, _agents.agent_no == _interventions.agent_no)
    .where(
        _interventions.session_no > 0,
        _interventions.acknowledged_ns.is_not(None),
        _interventions.confirmed_ns.is_(None),
    )
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
        rows = await self.fetch(tenant_id, query.order_by(holds.c.sequence_number).limit(limit))
        return [dict(row._mapping) for row in rows]

    async def gates_due(self, tenant_id: str, now_ns: int, limit: int) -> list[tuple[str, int]]:
        """(session id, sequence number) of open gates whose deadline has passed."""
        rows = await self.fetch(tenant_id, _GATES_DUE, tenant=tenant_id, high=now_ns, most=limit)
        return [(row[0], row[1]) for row in rows]

    async def pauses_acknowledged(self, tenant_id: str, limit: int) -> list[dict[str, Any]]:
        """Pauses in force that their agent has acknowledged and that are not confirmed yet."""
        rows = await self.fetch(tenant_id, _PAUSES_ACKNOWLEDGED, tenant=tenant_id, most=limit)
        return [dict(row._mapping) for row in rows]


async def notified_before(
    app: AppState, who: Principal, prompt: str
) -> tuple[dict[tuple[int, int], int], Counter[tuple[int, int]]]:
    """(session, agent) -> the event number of its last notification of this that was not undone; and
    counts."""
    rows = await app.store.rows(who.tenant_id, "interventions", command="inject", after_hash=hashed(prompt))
    notified: dict[tuple[int, int], int] = {}
    for row in rows:
        if row["reversed_ns"] is None:
            pair = (row["session_no"], row["agent_no"])
            notified[pair] = max(notified.get(pair, 0), row["sequence_number"])
    return notified, Counter((row["session_no"], row["agent_no"]) for row in rows)


RECORD_QUERIES = (HoldReads,)

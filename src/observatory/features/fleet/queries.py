"""Reads of agents that are stopped: paused by a person, or with held messages."""

from __future__ import annotations

from sqlalchemy import ColumnElement, and_, func, literal_column, select

from observatory.features.fleet.queries_traffic import MinuteCounterReads
from observatory.features.fleet.types_traffic import Halted
from observatory.features.kill_switch.queries import OPEN
from observatory.store import tables
from observatory.store.fetches import LIMIT, TENANT, Fetches

# Spelled as in the partial index, so that the index is used.
PAUSED: ColumnElement[bool] = literal_column("paused_ns IS NOT NULL")


# The map runs this ten times a second.
_PAUSES = (
    select(tables.members.c.agent_no, tables.sessions.c.session_id, tables.members.c.paused_ns)
    .select_from(
        tables.members.join(
            tables.sessions,
            and_(
                tables.sessions.c.tenant_id == tables.members.c.tenant_id,
                tables.sessions.c.session_no == tables.members.c.session_no,
            ),
        )
    )
    .where(tables.members.c.tenant_id == TENANT, PAUSED)
    .order_by(tables.members.c.paused_ns)
    .limit(LIMIT)
)
# Few agents are paused everywhere, and they come first: none of their messages pass anywhere.
_PAUSED_AGENTS = (
    select(tables.agents.c.agent_no, tables.agents.c.paused_ns)
    .where(tables.agents.c.tenant_id == TENANT, PAUSED)
    .order_by(tables.agents.c.paused_ns)
    .limit(LIMIT)
)
_HOLDS = (
    select(tables.holds.c.agent_no, tables.holds.c.cause, func.min(tables.holds.c.held_ns), func.count())
    .where(tables.holds.c.tenant_id == TENANT, OPEN)
    .group_by(tables.holds.c.agent_no, tables.holds.c.cause)
    .limit(LIMIT)
)


class FleetReads(Fetches):
    """The `Halts` protocol over any store that can `fetch` rows."""

    async def halted(self, tenant_id: str, limit: int) -> list[Halted]:
        queries = _PAUSED_AGENTS, _PAUSES, _HOLDS
        everywhere, paused, held = await self.fetch_each(tenant_id, queries, tenant=tenant_id, most=limit)
        return [
            *(Halted(row[0], "paused", "", row[1], 1) for row in everywhere),
            *(Halted(row[0], "paused", row[1], row[2], 1) for row in paused),
            *(Halted(row[0], row[1], "", row[2], row[3]) for row in held),
        ]


RECORD_QUERIES = (FleetReads,)
DERIVED_QUERIES = (MinuteCounterReads,)

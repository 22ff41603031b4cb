"""Reads for cascades, mixed into `DerivedReads`: whole sessions upstream, and which agents used whose
facts."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import and_, func, select

from observatory.derived.steps import StepReads
from observatory.derived.tables import agent_minutes, links, steps, uses
from observatory.features.cascade.types_rows import LocatedStep, StepSigns, Upstream
from observatory.store.fetches import portions
from observatory.store.lists import any_of


class CascadeReads(StepReads):
    async def spots(
        self, tenant_id: str, *, numbers: Collection[int] = (), keys: Collection[int] = ()
    ) -> list[LocatedStep]:
        found: set[LocatedStep] = set()
        columns = [steps.c[name] for name in LocatedStep._fields]
        asked = ((steps.c.seq, numbers), (steps.c.name_key, keys), (steps.c.span_key, keys))
        for column, values in asked:
            for some in portions(sorted(values)):
                query = select(*columns).where(steps.c.tenant_id == tenant_id, any_of(column, some))
                found.update(LocatedStep(*row) for row in await self.fetch(tenant_id, query))
        return sorted(found)

    async def first_since(self, tenant_id: str, at_ns: int) -> int | None:
        query = select(steps.c.seq).where(steps.c.tenant_id == tenant_id, steps.c.at_ns >= at_ns)
        rows = await self.fetch(tenant_id, query.order_by(steps.c.at_ns).limit(1))
        return rows[0][0] if rows else None

    async def upstream(self, tenant_id: str, sessions: Collection[int], until: int, limit: int) -> Upstream:
        among = sorted(sessions)
        mine = and_(steps.c.tenant_id == tenant_id, any_of(steps.c.session_no, among), steps.c.seq <= until)
        parent = and_(links.c.tenant_id == tenant_id, links.c.seq == steps.c.seq)
        # One row per parent; one row without a parent when it has none.
        columns = [steps.c[name] for name in StepSigns._fields[:-2]]
        query = select(*columns, links.c.parent_key, links.c.kind).where(mine)
        query = query.select_from(steps.outerjoin(links, parent))
        rows = await self.fetch(tenant_id, query.order_by(steps.c.seq.desc()).limit(limit + 1))
        cut, rows = len(rows) > limit, rows[:limit]
        first = rows[-1][0] if rows else 0
        used = and_(uses.c.tenant_id == tenant_id, uses.c.seq == steps.c.seq)
        taken = await self.fetch(
            tenant_id,
            select(uses.c.seq, uses.c.fact_id, uses.c.kind, uses.c.weight)
            .select_from(steps.join(uses, used))
            .where(mine, steps.c.seq >= first)
            .order_by(uses.c.seq.desc())
            .limit(limit),
        )
        return Upstream(list(map(StepSigns._make, rows)), taken, cut or len(taken) >= limit)

    async def taken_from(
        self, tenant_id: str, agents: Collection[int], after: int
    ) -> list[tuple[int, int, int]]:
        query = (
            select(uses.c.from_agent, uses.c.agent_no, func.count())
            .where(uses.c.tenant_id == tenant_id, uses.c.seq >= after)
            .where(uses.c.agent_no != uses.c.from_agent, uses.c.agent_no > 0)
            .group_by(uses.c.from_agent, uses.c.agent_no)
        )
        found: list[tuple[int, int, int]] = []
        for some in portions(sorted(agents)):
            rows = await self.fetch(tenant_id, query.where(any_of(uses.c.from_agent, some)))
            found += [(row[0], row[1], row[2]) for row in rows]
        return found

    async def troubles(
        self, tenant_id: str, agents: Collection[int], first: int, last: int
    ) -> list[tuple[int, int, int, int]]:
        table = agent_minutes.c
        query = select(table.minute, table.agent_no, table.violations, table.alerts).where(
            table.tenant_id == tenant_id,
            table.minute.between(first, last),
            table.violations + table.alerts > 0,
        )
        found: list[tuple[int, int, int, int]] = []
        for some in portions(sorted(agents)):
            rows = await self.fetch(tenant_id, query.where(any_of(table.agent_no, some)))
            found += [(row[0], row[1], row[2], row[3]) for row in rows]
        return sorted(found)


DERIVED_QUERIES = (CascadeReads,)

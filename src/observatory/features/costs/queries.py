"""Reads of spending from minute counters: by agent, session or label, as a grid; and cost discrepancies."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import ColumnElement, Table, and_, func, literal_column, or_, select

from observatory.derived.tables import agent_minutes, gaps, label_minutes, session_minutes, steps
from observatory.features.fleet.queries_traffic import parts
from observatory.features.fleet.types_traffic import Dimension, Gap, Key, SpendingRow
from observatory.store.fetches import Fetches
from observatory.store.lists import any_of


def _source(by: Dimension) -> tuple[Table, ColumnElement[Any], list[ColumnElement[bool]]]:
    """The counters of a dimension, its key column, and the filters that select its rows."""
    if by == "agent":
        return agent_minutes, agent_minutes.c.agent_no, []
    if by == "session":
        return session_minutes, session_minutes.c.session_no, []
    return label_minutes, label_minutes.c.label, [label_minutes.c.kind == by]


def _bucket(table: Table, width: int) -> ColumnElement[Any]:
    """Integer division, the same on both databases. A literal, so that it can be grouped by."""
    return table.c.minute.op("/")(literal_column(str(int(width))))


class CostReads(Fetches):
    async def spent_by(
        self,
        tenant_id: str,
        by: Dimension,
        first: int,
        last: int,
        limit: int,
        after: tuple[float, Key] | None = None,
    ) -> list[SpendingRow]:
        table, key, tests = _source(by)
        cost = func.sum(table.c.cost)
        query = (
            select(key, func.sum(table.c.messages), func.sum(table.c.tokens), cost)
            .where(table.c.tenant_id == tenant_id, table.c.minute.between(first, last), *tests)
            .group_by(key)
            .order_by(cost.desc(), key)
            .limit(limit)
        )
        if after is not None:
            query = query.having(or_(cost < after[0], and_(cost == after[0], key > after[1])))
        rows = await self.fetch(tenant_id, query)
        return [SpendingRow(row[0], int(row[1]), int(row[2]), float(row[3])) for row in rows]

    async def spent_in_all(self, tenant_id: str, first: int, last: int) -> SpendingRow:
        table = session_minutes
        query = select(func.sum(table.c.messages), func.sum(table.c.tokens), func.sum(table.c.cost)).where(
            table.c.tenant_id == tenant_id, table.c.minute.between(first, last)
        )
        row = (await self.fetch(tenant_id, query))[0]
        return SpendingRow("", int(row[0] or 0), int(row[1] or 0), float(row[2] or 0.0))

    async def cells(
        self, tenant_id: str, by: Dimension, keys: Collection[Key], first: int, last: int, width: int = 1
    ) -> list[tuple[Key, int, float]]:
        table, key, tests = _source(by)
        found: list[tuple[Key, int, float]] = []
        for part in parts(list(keys)):
            bucket = _bucket(table, width)
            query = (
                select(key, bucket, func.sum(table.c.cost))
                .where(table.c.tenant_id == tenant_id, table.c.minute.between(first, last), *tests)
                .where(any_of(key, part), table.c.cost > 0)
                .group_by(key, bucket)
            )
            found += [(row[0], row[1], float(row[2])) for row in await self.fetch(tenant_id, query)]
        return found

    async def column_sums(self, tenant_id: str, first: int, last: int, width: int) -> dict[int, float]:
        table = session_minutes
        bucket = _bucket(table, width)
        query = (
            select(bucket, func.sum(table.c.cost))
            .where(table.c.tenant_id == tenant_id, table.c.minute.between(first, last))
            .group_by(bucket)
        )
        return {row[0]: float(row[1]) for row in await self.fetch(tenant_id, query)}

    async def spent_together(
        self, tenant_id: str, since_ns: int, *, session_no: int | None = None, agent_no: int | None = None
    ) -> list[tuple[int, int, float]]:
        cost = func.sum(steps.c.cost)
        query = (
            select(steps.c.session_no, steps.c.agent_no, cost)
            .where(steps.c.tenant_id == tenant_id, steps.c.at_ns >= since_ns, steps.c.cost > 0)
            .group_by(steps.c.session_no, steps.c.agent_no)
            .order_by(cost.desc(), steps.c.session_no, steps.c.agent_no)
            .limit(20)
        )
        if session_no is not None:
            query = query.where(steps.c.session_no == session_no)
        if agent_no is not None:
            query = query.where(steps.c.agent_no == agent_no)
        return [(row[0], row[1], float(row[2])) for row in await self.fetch(tenant_id, query)]

    async def spent_within(
        self, tenant_id: str, since_ns: int, until_ns: int, limit: int, **of: int
    ) -> list[SpendingRow]:
        ((column, number),) = of.items()
        key = steps.c.agent_no if column == "session_no" else steps.c.session_no
        cost = func.sum(steps.c.cost)
        query = (
            select(key, func.count(), func.sum(steps.c.tokens), cost)
            .where(steps.c.tenant_id == tenant_id, steps.c[column] == number)
            .where(steps.c.at_ns >= since_ns, steps.c.at_ns < until_ns)
            .group_by(key)
            .order_by(cost.desc(), key)
            .limit(limit)
        )
        rows = await self.fetch(tenant_id, query)
        return [SpendingRow(row[0], int(row[1]), int(row[2]), float(row[3])) for row in rows]

    async def cost_gaps(
        self,
        tenant_id: str,
        before: int | None,
        limit: int,
        session_no: int | None = None,
        agent_no: int | None = None,
    ) -> list[Gap]:
        query = select(*(gaps.c[name] for name in Gap._fields)).where(gaps.c.tenant_id == tenant_id)
        if before is not None:
            query = query.where(gaps.c.seq < before)
        if session_no is not None:
            query = query.where(gaps.c.session_no == session_no)
        if agent_no is not None:
            query = query.where(gaps.c.agent_no == agent_no)
        rows = await self.fetch(tenant_id, query.order_by(gaps.c.seq.desc()).limit(limit))
        return [Gap(*row) for row in rows]


DERIVED_QUERIES = (CostReads,)

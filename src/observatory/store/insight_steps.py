"""Reads of steps, totals, progress and findings: the derived store's own and the base of others."""

from __future__ import annotations

from collections.abc import Collection

import msgspec
from sqlalchemy import select

from observatory.insight.derived import Progress, StoredFinding
from observatory.store.derived_tables import cursors, findings, steps, totals
from observatory.store.fetches import MOST, Fetches, portions


class StepReads(Fetches):
    async def progress(self, tenant_id: str) -> Progress:
        query = select(cursors.c.name, cursors.c.seq, cursors.c.at_ns).where(cursors.c.tenant_id == tenant_id)
        found = {row[0]: row for row in await self.fetch(tenant_id, query)}
        fold = found.get("fold", ("fold", 0, 0))
        skipped, unread = (found[name][1] if name in found else 0 for name in ("skipped", "unread"))
        return Progress(fold[1], fold[2], skipped, unread)

    async def findings(self, tenant_id: str, after: int, limit: int) -> list[StoredFinding]:
        table = findings
        query = (
            select(
                table.c.finding_id,
                table.c.kind,
                table.c.seq,
                table.c.session_id,
                table.c.agent_id,
                table.c.at_ns,
                table.c.body,
            )
            .where(table.c.tenant_id == tenant_id, table.c.finding_id > after)
            .order_by(table.c.finding_id)
            .limit(limit)
        )
        rows = await self.fetch(tenant_id, query)
        return [
            StoredFinding(row[0], row[1], row[2], row[3], row[4], row[5], msgspec.json.decode(row[6]))
            for row in rows
        ]

    async def totals(
        self, tenant_id: str, sessions: Collection[int], agents: Collection[int]
    ) -> dict[tuple[int, int], tuple[float, int]]:
        """(session, agent) -> its last cumulative figure and the number that reported it."""
        found: dict[tuple[int, int], tuple[float, int]] = {}
        among = sorted(agents)
        for some in portions(sorted(sessions)):
            query = select(totals.c.session_no, totals.c.agent_no, totals.c.total, totals.c.seq).where(
                totals.c.tenant_id == tenant_id, totals.c.session_no.in_(some)
            )
            if len(among) <= MOST:
                query = query.where(totals.c.agent_no.in_(among))
            found |= {(row[0], row[1]): (row[2], row[3]) for row in await self.fetch(tenant_id, query)}
        return found

    async def costs_of(self, tenant_id: str, numbers: Collection[int]) -> dict[int, float]:
        """What steps were found to have cost, by their numbers."""
        if not numbers:
            return {}
        query = select(steps.c.seq, steps.c.cost).where(
            steps.c.tenant_id == tenant_id, steps.c.seq.in_(sorted(numbers))
        )
        return {row[0]: row[1] for row in await self.fetch(tenant_id, query)}

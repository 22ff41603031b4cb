"""Reads of steps, totals, progress and findings: the derived store's own and the base of others."""

from __future__ import annotations

from collections.abc import Collection

import msgspec
from sqlalchemy import select

from observatory.derived.ports import FoldProgress, StoredFinding
from observatory.derived.tables import cursors, findings, steps, totals
from observatory.store.fetches import LIMIT, LOW, MAX_IN_VALUES, TENANT, Fetches, portions
from observatory.store.lists import any_of

# Read several times a second by each caller that waits for the analyst.
PROGRESS = select(cursors.c.name, cursors.c.seq, cursors.c.at_ns).where(cursors.c.tenant_id == TENANT)
FINDINGS = (
    select(
        findings.c.finding_id,
        findings.c.kind,
        findings.c.seq,
        findings.c.session_id,
        findings.c.agent_id,
        findings.c.at_ns,
        findings.c.body,
    )
    .where(findings.c.tenant_id == TENANT, findings.c.finding_id > LOW)
    .order_by(findings.c.finding_id)
    .limit(LIMIT)
)


class StepReads(Fetches):
    async def progress(self, tenant_id: str) -> FoldProgress:
        found = {row[0]: row for row in await self.fetch(tenant_id, PROGRESS, tenant=tenant_id)}
        fold = found.get("fold", ("fold", 0, 0))
        skipped, unread = (found[name][1] if name in found else 0 for name in ("skipped", "unread"))
        return FoldProgress(fold[1], fold[2], skipped, unread)

    async def findings(self, tenant_id: str, after: int, limit: int) -> list[StoredFinding]:
        rows = await self.fetch(tenant_id, FINDINGS, tenant=tenant_id, low=after, most=limit)
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
                totals.c.tenant_id == tenant_id, any_of(totals.c.session_no, some)
            )
            if len(among) <= MAX_IN_VALUES:
                query = query.where(any_of(totals.c.agent_no, among))
            found |= {(row[0], row[1]): (row[2], row[3]) for row in await self.fetch(tenant_id, query)}
        return found

    async def costs_of(self, tenant_id: str, numbers: Collection[int]) -> dict[int, float]:
        """What steps were found to have cost, by their numbers."""
        if not numbers:
            return {}
        query = select(steps.c.seq, steps.c.cost).where(
            steps.c.tenant_id == tenant_id, any_of(steps.c.seq, sorted(numbers))
        )
        return {row[0]: row[1] for row in await self.fetch(tenant_id, query)}

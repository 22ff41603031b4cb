"""Doubts of the derived store: steps whose agent was less sure than somebody asks for, newest first."""

from __future__ import annotations

from sqlalchemy import select

from observatory.store.derived_tables import steps
from observatory.store.fetches import Fetches


class ReviewReads(Fetches):
    async def doubts(self, tenant_id: str, below: float, before: int, limit: int) -> list[int]:
        """Numbers before one; whatever became of these steps since, and whoever has looked at them."""
        query = (
            select(steps.c.seq)
            .where(steps.c.tenant_id == tenant_id, steps.c.confidence < below, steps.c.seq < before)
            .order_by(steps.c.seq.desc())
            .limit(limit)
        )
        return [row[0] for row in await self.fetch(tenant_id, query)]

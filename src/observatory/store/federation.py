"""Reading how far a tenant's log was cosigned."""

from __future__ import annotations

from sqlalchemy import func, select

from observatory.store import tables
from observatory.store.fetches import Fetches


class FederationReads(Fetches):
    """The `FederationRows` port over any store that can `fetch` rows."""

    async def cosigned(self, tenant_id: str, peer_id: str | None = None) -> int:
        table = tables.cosignatures.c
        query = select(func.max(table.size)).where(table.tenant_id == tenant_id)
        if peer_id is not None:
            query = query.where(table.peer_id == peer_id)
        return (await self.fetch(tenant_id, query))[0][0] or 0

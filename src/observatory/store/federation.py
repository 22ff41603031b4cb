"""Reading how far a tenant's log was cosigned, and the checkpoints that lead from key to key."""

from __future__ import annotations

from sqlalchemy import func, select

from observatory.insight.log import Checkpoint, bytes_of, number_of
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

    async def first_over(self, tenant_id: str, number: int) -> Checkpoint | None:
        kept = tables.checkpoints.c
        query = (
            select(kept.size, kept.root, kept.note, kept.signed_ns)
            .where(kept.tenant_id == tenant_id, kept.size >= number)
            .order_by(kept.size)
            .limit(1)
        )
        rows = await self.fetch(tenant_id, query)
        if not rows:
            return None
        size, root, note, signed_ns = rows[0]
        return Checkpoint(number_of(size), bytes_of(root), bytes_of(note), number_of(signed_ns))

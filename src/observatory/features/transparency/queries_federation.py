"""Reading how far a tenant's log was cosigned, and the checkpoints that lead from key to key."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select, func, select

from observatory.features.transparency.types_log import Checkpoint, bytes_of, number_of
from observatory.store import tables
from observatory.store.fetches import Fetches

KEPT = tables.checkpoints.c


class FederationReads(Fetches):
    """The `FederationRows` port over any store that can `fetch` rows."""

    async def cosigned(self, tenant_id: str, peer_id: str | None = None) -> int:
        table = tables.cosignatures.c
        query = select(func.max(table.size)).where(table.tenant_id == tenant_id)
        if peer_id is not None:
            query = query.where(table.peer_id == peer_id)
        return (await self.fetch(tenant_id, query))[0][0] or 0

    async def first_over(self, tenant_id: str, number: int) -> Checkpoint | None:
        query = _kept(tenant_id).where(KEPT.size >= number).order_by(KEPT.size).limit(1)
        return next(map(_checkpoint, await self.fetch(tenant_id, query)), None)

    async def checkpoints(self, tenant_id: str, before: int | None, limit: int) -> list[Checkpoint]:
        query = _kept(tenant_id).order_by(KEPT.size.desc()).limit(limit)
        if before is not None:
            query = query.where(KEPT.size < before)
        return [_checkpoint(row) for row in await self.fetch(tenant_id, query)]


def _kept(tenant_id: str) -> Select[Any]:
    return select(KEPT.size, KEPT.root, KEPT.note, KEPT.signed_ns).where(KEPT.tenant_id == tenant_id)


def _checkpoint(row: Any) -> Checkpoint:
    size, root, note, signed_ns = row
    return Checkpoint(number_of(size), bytes_of(root), bytes_of(note), number_of(signed_ns))

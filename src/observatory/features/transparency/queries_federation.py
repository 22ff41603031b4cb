"""Queries of how far a tenant's log was cosigned, and of its checkpoints."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select, func, select

from observatory.features.transparency.types_log import StoredCheckpoint, bytes_of, number_of
from observatory.store import tables
from observatory.store.fetches import Fetches

_COLUMNS = tables.checkpoints.c


class FederationReads(Fetches):
    """The `FederationRows` port over any store that can `fetch` rows."""

    async def cosigned(self, tenant_id: str, peer_id: str | None = None) -> int:
        table = tables.cosignatures.c
        query = select(func.max(table.size)).where(table.tenant_id == tenant_id)
        if peer_id is not None:
            query = query.where(table.peer_id == peer_id)
        return (await self.fetch(tenant_id, query))[0][0] or 0

    async def first_over(self, tenant_id: str, number: int) -> StoredCheckpoint | None:
        query = _select(tenant_id).where(_COLUMNS.size >= number).order_by(_COLUMNS.size).limit(1)
        return next(map(_checkpoint, await self.fetch(tenant_id, query)), None)

    async def checkpoints(self, tenant_id: str, before: int | None, limit: int) -> list[StoredCheckpoint]:
        query = _select(tenant_id).order_by(_COLUMNS.size.desc()).limit(limit)
        if before is not None:
            query = query.where(_COLUMNS.size < before)
        return [_checkpoint(row) for row in await self.fetch(tenant_id, query)]


def _select(tenant_id: str) -> Select[Any]:
    return select(_COLUMNS.size, _COLUMNS.root, _COLUMNS.note, _COLUMNS.signed_ns).where(
        _COLUMNS.tenant_id == tenant_id
    )


def _checkpoint(row: Any) -> StoredCheckpoint:
    size, root, note, signed_ns = row
    return StoredCheckpoint(number_of(size), bytes_of(root), bytes_of(note), number_of(signed_ns))

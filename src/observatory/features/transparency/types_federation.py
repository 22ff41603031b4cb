"""Store protocol for cosignatures and checkpoints. Implemented by every store; committed rows only."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from observatory.features.transparency.types_log import StoredCheckpoint


@runtime_checkable
class FederationRows(Protocol):
    async def cosigned(self, tenant_id: str, peer_id: str | None = None) -> int:
        """The newest size that has a cosignature, by this peer or by any; 0 when there is none."""

    async def first_over(self, tenant_id: str, number: int) -> StoredCheckpoint | None:
        """The oldest checkpoint that covers the event of this number; None while there is none."""

    async def checkpoints(self, tenant_id: str, before: int | None, limit: int) -> list[StoredCheckpoint]:
        """Checkpoints, newest first; `before` is the size of the previous page's last one."""

    async def rows(self, tenant_id: str, table: str, **where: Any) -> list[dict[str, Any]]: ...

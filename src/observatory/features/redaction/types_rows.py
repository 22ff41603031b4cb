"""What of the archive still has its bytes: asked by those who shred."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class PayloadRows(Protocol):
    """Committed rows only, of the one tenant named."""

    async def payloads_left(
        self, tenant_id: str, after: int, limit: int, session_no: int | None = None
    ) -> list[tuple[int, bytes]]:
        """(number, its event's record) of messages that are neither shredded nor held, oldest first."""

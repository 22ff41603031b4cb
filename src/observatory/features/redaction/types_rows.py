"""Reads of archived messages that still have their bytes, for shredding."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class PayloadRows(Protocol):
    """Committed rows only, of the one tenant named."""

    async def unshredded_payloads(
        self, tenant_id: str, after: int, limit: int, session_no: int | None = None
    ) -> list[tuple[int, bytes]]:
        """(number, its event's record) of messages that are neither shredded nor held, oldest first."""

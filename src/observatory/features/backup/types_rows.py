"""The reads of an export: events as stored, each with its archived message."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from observatory.ledger.export import ExportEntry


@runtime_checkable
class Exportable(Protocol):
    """Committed rows of one tenant."""

    async def entries(self, tenant_id: str, first: int, last: int) -> list[ExportEntry]:
        """Events of these numbers, both included, in order; messages in the state they were archived with."""

"""What an export asks of the record: events as stored, each with what the archive holds beside it."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from observatory.ledger.export import Entry


@runtime_checkable
class Exportable(Protocol):
    """Committed rows of the one tenant named."""

    async def entries(self, tenant_id: str, first: int, last: int) -> list[Entry]:
        """Events of these numbers, both included, in order; messages in the state they were archived with."""

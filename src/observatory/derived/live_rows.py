"""The reads of the live feed: sessions and agents touched by new messages, and all of them.

Committed rows of one tenant. By sequence numbers, never by a clock: a late commit is not missed.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

Rows = list[dict[str, Any]]


@runtime_checkable
class LiveRowReads(Protocol):
    """Implemented by every store. A span is after `after`, up to and including `until`."""

    async def sessions_touched(self, tenant_id: str, after: int, until: int) -> Rows:
        """Rows of `sessions` that have a message in the span, as they are now."""

    async def agents_touched(self, tenant_id: str, after: int, until: int) -> Rows:
        """Rows of `agents` that sent one, as they are now; perhaps a few more of the same sessions."""

    async def sessions_lately(self, tenant_id: str, limit: int) -> Rows:
        """The most recently active sessions, newest first."""

    async def everyone(self, tenant_id: str) -> tuple[Rows, Rows]:
        """All rows of `agents` and of `pulses`."""

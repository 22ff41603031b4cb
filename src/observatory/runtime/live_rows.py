"""What the live feed asks of the record: the sessions and agents that new messages touched, and all of them.

Committed rows of one tenant. By sequence numbers, never by a clock: what commits late is not missed.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

Rows = list[dict[str, Any]]


@runtime_checkable
class Touches(Protocol):
    """Promised by every store. A span is past `after`, up to and with `until`."""

    async def sessions_touched(self, tenant_id: str, after: int, until: int) -> Rows:
        """Rows of `sessions` that have a message in the span, as they are now."""

    async def agents_touched(self, tenant_id: str, after: int, until: int) -> Rows:
        """Rows of `agents` that sent one, as they are now; perhaps a few more of the same sessions."""

    async def sessions_lately(self, tenant_id: str, limit: int) -> Rows:
        """The sessions active last, newest first."""

    async def everyone(self, tenant_id: str) -> tuple[Rows, Rows]:
        """All rows of `agents` and of `pulses`."""

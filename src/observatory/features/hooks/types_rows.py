"""Reads of inbound webhooks. Implemented by every store; committed rows only."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

Row = dict[str, Any]


@runtime_checkable
class HookRows(Protocol):
    async def hook_by_id(self, hook_id: str) -> Row | None:
        """Of any tenant; None when it was removed or never existed. The caller is not known yet."""

    async def calls_page(
        self,
        tenant_id: str,
        before: str | None,
        limit: int,
        hook_id: str | None = None,
        signature: str | None = None,
        outcome: str | None = None,
    ) -> list[Row]:
        """The log, newest first, after a call's id; without body and message."""

    async def calls_taken(self, tenant_id: str, before_ns: int, limit: int) -> list[Row]:
        """Calls accepted no later than that whose message is not known to be archived, oldest first."""

    async def call_bodies(self, tenant_id: str, until_ns: int, limit: int) -> list[str]:
        """Ids of calls no later than that which became no message and still have a body, oldest first."""

    async def rows(self, tenant_id: str, table: str, **where: Any) -> list[Row]: ...

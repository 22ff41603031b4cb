"""The store interface of outbound webhooks: pending deliveries and the log. Committed rows only."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

Row = dict[str, Any]


class PendingDeliveries(NamedTuple):
    """Of one endpoint: how many deliveries are pending, and since when the oldest."""

    many: int
    since_ns: int


@runtime_checkable
class WebhookRows(Protocol):
    async def rows(self, tenant_id: str, table: str, **where: Any) -> list[Row]: ...

    async def deliveries_waiting(self, tenant_id: str) -> dict[str, PendingDeliveries]:
        """By endpoint; removed ones may be included."""

    async def deliveries_first(self, tenant_id: str, endpoint_id: str, limit: int) -> list[Row]:
        """Pending ones, by due time."""

    async def deliveries_old(self, tenant_id: str, endpoint_id: str, before_ns: int, limit: int) -> list[Row]:
        """Pending ones whose round began before then."""

    async def deliveries_page(
        self, tenant_id: str, endpoint_id: str, before: int | None, limit: int, state: str | None = None
    ) -> list[Row]:
        """By the number of their event, newest first."""

    async def deliveries_log(
        self,
        tenant_id: str,
        before: tuple[int, str] | None,
        limit: int,
        endpoint_id: str | None = None,
        state: str | None = None,
        event_type: str | None = None,
    ) -> list[Row]:
        """Of all endpoints, also removed ones, newest first by (created_ns, delivery_id), below `before`."""

"""Reads of pending webhook deliveries, and of the delivery log."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select, func, select, tuple_

from observatory.features.webhooks.types_rows import PendingDeliveries, Row
from observatory.store import tables
from observatory.store.fetches import Fetches


class WebhookReads(Fetches):
    """The `WebhookRows` port over any store that can `fetch` rows."""

    async def deliveries_waiting(self, tenant_id: str) -> dict[str, PendingDeliveries]:
        table = tables.webhook_deliveries.c
        query = (
            select(table.endpoint_id, func.count(), func.min(table.round_ns))
            .where(table.tenant_id == tenant_id, table.state == "waiting")
            .group_by(table.endpoint_id)
        )
        return {row[0]: PendingDeliveries(*row[1:]) for row in await self.fetch(tenant_id, query)}

    async def deliveries_first(self, tenant_id: str, endpoint_id: str, limit: int) -> list[Row]:
        table = tables.webhook_deliveries.c
        query = _of(tenant_id, endpoint_id).where(table.state == "waiting")
        return await self._deliveries(tenant_id, query.order_by(table.next_ns).limit(limit))

    async def deliveries_old(self, tenant_id: str, endpoint_id: str, before_ns: int, limit: int) -> list[Row]:
        table = tables.webhook_deliveries.c
        query = _of(tenant_id, endpoint_id).where(table.state == "waiting", table.round_ns < before_ns)
        return await self._deliveries(tenant_id, query.limit(limit))

    async def deliveries_page(
        self, tenant_id: str, endpoint_id: str, before: int | None, limit: int, state: str | None = None
    ) -> list[Row]:
        table = tables.webhook_deliveries.c
        query = _of(tenant_id, endpoint_id)
        if before is not None:
            query = query.where(table.event_seq < before)
        if state is not None:
            query = query.where(table.state == state)
        return await self._deliveries(tenant_id, query.order_by(table.event_seq.desc()).limit(limit))

    async def deliveries_log(
        self,
        tenant_id: str,
        before: tuple[int, str] | None,
        limit: int,
        endpoint_id: str | None = None,
        state: str | None = None,
        event_type: str | None = None,
    ) -> list[Row]:
        table = tables.webhook_deliveries.c
        query = select(tables.webhook_deliveries).where(table.tenant_id == tenant_id)
        if before is not None:
            query = query.where(tuple_(table.created_ns, table.delivery_id) < tuple_(*before))
        filters = {table.endpoint_id: endpoint_id, table.state: state, table.event_type: event_type}
        query = query.where(*(column == value for column, value in filters.items() if value is not None))
        newest = query.order_by(table.created_ns.desc(), table.delivery_id.desc())
        return await self._deliveries(tenant_id, newest.limit(limit))

    async def _deliveries(self, tenant_id: str, query: Select[Any]) -> list[Row]:
        return [dict(row._mapping) for row in await self.fetch(tenant_id, query)]


def _of(tenant_id: str, endpoint_id: str) -> Select[Any]:
    table = tables.webhook_deliveries
    return select(table).where(table.c.tenant_id == tenant_id, table.c.endpoint_id == endpoint_id)


RECORD_QUERIES = (WebhookReads,)

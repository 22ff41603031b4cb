"""Reads of the alert tray's rows; the same on both databases, mixed into the derived store."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import select

from observatory.derived.tables import alerts
from observatory.features.alerting.types_tray import AlertRow
from observatory.store.fetches import Fetches
from observatory.store.lists import any_of

_COLUMNS = tuple(alerts.c[name] for name in AlertRow._fields)


class AlertReads(Fetches):
    """The `AlertLog` protocol over any derived store that can `fetch` rows."""

    async def alerts(
        self, tenant_id: str, before: int | None, limit: int, kinds: Collection[str]
    ) -> list[AlertRow]:
        query = select(*_COLUMNS).where(
            alerts.c.tenant_id == tenant_id, alerts.c.starts == 1, any_of(alerts.c.kind, sorted(kinds))
        )
        if before is not None:
            query = query.where(alerts.c.seq < before)
        found = await self.fetch(tenant_id, query.order_by(alerts.c.seq.desc()).limit(limit))
        return [AlertRow(*row) for row in found]

    async def alert_ends(
        self, tenant_id: str, after: int, limit: int, kinds: Collection[str]
    ) -> list[AlertRow]:
        query = (
            select(*_COLUMNS)
            .where(alerts.c.tenant_id == tenant_id, alerts.c.starts == 0, alerts.c.seq > after)
            .where(any_of(alerts.c.kind, sorted(kinds)))
            .order_by(alerts.c.seq)
            .limit(limit)
        )
        return [AlertRow(*row) for row in await self.fetch(tenant_id, query)]

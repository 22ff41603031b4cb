"""Reads of inbound webhooks: a hook by its id alone, and the log of calls."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select

from observatory.store import tables
from observatory.store.fetches import Fetches

# The log without the columns that may be long; those are read for one call at a time.
LISTED = [column for column in tables.hook_calls.c if column.name not in ("body", "message")]


class HookReads(Fetches):
    """The `HookRows` port over any store that can `fetch` rows."""

    async def hook_by_id(self, hook_id: str) -> dict[str, Any] | None:
        hooks = tables.hooks
        query = select(hooks).where(hooks.c.hook_id == hook_id, hooks.c.removed_ns.is_(None))
        found = await self.fetch("", query, presented=hook_id)
        return dict(found[0]._mapping) if found else None

    async def calls_page(
        self,
        tenant_id: str,
        before: str | None,
        limit: int,
        hook_id: str | None = None,
        signature: str | None = None,
        outcome: str | None = None,
    ) -> list[dict[str, Any]]:
        calls = tables.hook_calls.c
        query = select(*LISTED).where(calls.tenant_id == tenant_id)
        if before is not None:
            query = query.where(calls.call_id < before)
        filters = {calls.hook_id: hook_id, calls.signature: signature, calls.outcome: outcome}
        query = query.where(*(column == value for column, value in filters.items() if value is not None))
        found = await self.fetch(tenant_id, query.order_by(calls.call_id.desc()).limit(limit))
        return [dict(row._mapping) for row in found]

    async def calls_taken(self, tenant_id: str, before_ns: int, limit: int) -> list[dict[str, Any]]:
        calls = tables.hook_calls
        query = (
            select(calls)
            .where(calls.c.tenant_id == tenant_id, calls.c.outcome == "taken", calls.c.at_ns <= before_ns)
            .order_by(calls.c.call_id)
            .limit(limit)
        )
        return [dict(row._mapping) for row in await self.fetch(tenant_id, query)]

    async def call_bodies(self, tenant_id: str, until_ns: int, limit: int) -> list[str]:
        calls = tables.hook_calls.c
        query = (
            select(calls.call_id)
            .where(
                calls.tenant_id == tenant_id,
                calls.body.is_not(None),
                calls.message_seq.is_(None),
                calls.outcome != "taken",
                calls.at_ns <= until_ns,
            )
            .order_by(calls.at_ns)
            .limit(limit)
        )
        return [row[0] for row in await self.fetch(tenant_id, query)]


RECORD_QUERIES = (HookReads,)

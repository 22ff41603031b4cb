"""Describes shredded messages: when, by whom, why, and by which event their bytes were destroyed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from observatory.http.app_state import AppState
from observatory.pipeline.ports import EventFilter, StoredMessage
from observatory.runtime.publisher import item_of


class ShreddedBy(msgspec.Struct, kw_only=True):
    """On the live channel only the event's number is sent."""

    event: int
    at: str | None = None
    by: str | None = None
    reason: str | None = None


async def items_of(
    app: AppState, tenant_id: str, messages: Sequence[StoredMessage]
) -> list[dict[str, object]]:
    """Messages as they are returned, with the order that shredded them."""
    orders = {one.shredded_by for one in messages if one.shredded_by is not None}
    orders_by_number = {number: await _order(app, tenant_id, number) for number in orders}
    return [
        item_of(one)
        if one.shredded_by is None
        else item_of(one) | {"shredded": orders_by_number[one.shredded_by]}
        for one in messages
    ]


async def _order(app: AppState, tenant_id: str, number: int) -> ShreddedBy:
    where = EventFilter(after=number - 1, before=number + 1)
    found = await app.store.events(tenant_id, where, 1, newest_first=False)
    if not found:
        return ShreddedBy(event=number)
    event: dict[str, Any] = msgspec.json.decode(found[0].record)
    return ShreddedBy(
        event=number,
        at=event["observed_timestamp"],
        by=event["attributes"].get("av.sender.entity_id"),
        reason=event["body"].get("reason"),
    )

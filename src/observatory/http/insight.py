"""How far insight is behind the record: what search, maps and costs show is folded after the commit."""

from __future__ import annotations

from typing import Literal

import msgspec
from litestar import Response, Router, get

from observatory.http.answers import json
from observatory.http.app_state import Call, Here, House
from observatory.http.permissions import need
from observatory.pipeline.ports import EventFilter
from observatory.protocol.clock import from_ns, to_ns


class InsightStatus(msgspec.Struct, kw_only=True):
    """How many numbers of the tenant's record are not folded yet, and how long the first has waited."""

    analyst: Literal["running", "down", "off"]
    restarts: int  # of the analyst since this gateway started
    head: int
    cursor: int
    cursor_at: str | None
    lag_messages: int
    lag_s: float
    skipped: int  # messages a fold failed on
    unread: int  # messages whose content could not be read


class _Event(msgspec.Struct):
    observed_timestamp: str


_event = msgspec.json.Decoder(_Event).decode


@get("/insight/status", summary="How far insight is behind the record", operation_id="insight_status")
async def insight_status(request: Call, house: Here) -> Response[bytes]:
    principal = await need(request, house, "read")
    return json(await status_of(house, principal.tenant_id))


async def status_of(house: House, tenant_id: str) -> InsightStatus:
    """Of one tenant. The cursor is read first: what was committed by then is folded when there is no lag."""
    progress = await house.derived.progress(tenant_id)
    head, _ = await house.store.head(tenant_id)
    lag = max(0, head - progress.seq)
    lag_s = 0.0
    if lag:
        waiting = await house.store.events(tenant_id, EventFilter(after=progress.seq), 1, False)
        since_ns = to_ns(_event(waiting[0].record).observed_timestamp) if waiting else house.clock()
        lag_s = max(0, house.clock() - since_ns) / 1e9
    return InsightStatus(
        analyst="running" if house.analyst.alive else "down" if house.settings.insight else "off",
        restarts=house.analyst.restarts,
        head=head,
        cursor=progress.seq,
        cursor_at=from_ns(progress.at_ns) if progress.at_ns else None,
        lag_messages=lag,
        lag_s=round(lag_s, 3),
        skipped=progress.skipped,
        unread=progress.unread,
    )


insight = Router(path="/v1", route_handlers=[insight_status], tags=["Insight"])

"""How far the derived store has read a tenant's record."""

from __future__ import annotations

from typing import Literal

import msgspec

from observatory.http.app_state import AppState
from observatory.pipeline.ports import EventFilter
from observatory.protocol.clock import from_ns, to_ns


async def status_of(app: AppState, tenant_id: str) -> InsightStatus:
    """The status of one tenant. The cursor is read first, so without lag everything before it is folded."""
    progress = await app.derived.progress(tenant_id)
    head, _ = await app.store.head(tenant_id)
    lag = max(0, head - progress.seq)
    lag_s = 0.0
    if lag:
        waiting = await app.store.events(tenant_id, EventFilter(after=progress.seq), 1, False)
        since_ns = to_ns(decode_event(waiting[0].record).observed_timestamp) if waiting else app.clock()
        lag_s = max(0, app.clock() - since_ns) / 1e9
    return InsightStatus(
        analyst="running" if app.analyst.alive else "down" if app.settings.insight else "off",
        restarts=app.analyst.restarts,
        head=head,
        cursor=progress.seq,
        cursor_at=from_ns(progress.at_ns) if progress.at_ns else None,
        lag_messages=lag,
        lag_s=round(lag_s, 3),
        skipped=progress.skipped,
        unread=progress.unread,
    )


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


class ObservedEvent(msgspec.Struct):
    observed_timestamp: str


decode_event = msgspec.json.Decoder(ObservedEvent).decode

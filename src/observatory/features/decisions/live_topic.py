"""The live topic `waiting`: what waits for a person, and how much (S310).

Gates and decisions are read once a second, reviews every few seconds: they are expensive to find and not
urgent. What the reader may do with an item depends on the caller and is in `GET /v1/waiting`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from observatory.features.decisions.routes_waiting import list_waiting_items, reviews_of
from observatory.http.app_state import AppState
from observatory.pipeline.state import Principal
from observatory.runtime.feed_channel import Record, SourceChanges

MAX_ITEMS = 200
REVIEWS_NS = 5_000_000_000
Row = dict[str, Any]


class WaitingSource:
    def __init__(self, app: AppState, tenant_id: str) -> None:
        self._app = app
        self._who: Principal = app.gateway_principal(tenant_id)
        self._reviews: list[Row] = []
        self._read_ns = 0

    async def look(self, head: int, now_ns: int, again: bool) -> SourceChanges:
        if not again:
            return SourceChanges(())
        if not 0 <= now_ns - self._read_ns < REVIEWS_NS:
            self._reviews, self._read_ns = await reviews_of(self._app, self._who), now_ns
        found = await list_waiting_items(self._app, self._who, MAX_ITEMS, reviews=self._reviews)
        records: list[Record] = [{"kind": "counts", "id": "counts", **found.counts}]
        records += [
            {"kind": "item", "id": f"{one['kind']}:{one['id']}", "item": msgspec.to_builtins(one)}
            for one in found.items
        ]
        return SourceChanges(records, whole=True)

    async def close(self) -> None: ...

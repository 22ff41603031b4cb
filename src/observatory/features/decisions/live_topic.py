"""The topic `waiting`: how much waits for a person, and what (S310).

Gates and decisions are read once a second, reviews every few: they are dear to find and nobody waits.
What a reader may do to an item is its own business and stands in `GET /v1/waiting`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from observatory.features.decisions.routes_waiting import reviews_of, waiting
from observatory.http.app_state import House
from observatory.pipeline.state import Principal
from observatory.runtime.feed_channel import Look, Record

MOST = 200
REVIEWS_NS = 5_000_000_000
Row = dict[str, Any]


class WaitingSource:
    def __init__(self, house: House, tenant_id: str) -> None:
        self._house = house
        self._who: Principal = house.principal_of_house(tenant_id)
        self._reviews: list[Row] = []
        self._read_ns = 0

    async def look(self, head: int, now_ns: int, again: bool) -> Look:
        if not again:
            return Look(())
        if not 0 <= now_ns - self._read_ns < REVIEWS_NS:
            self._reviews, self._read_ns = await reviews_of(self._house, self._who), now_ns
        found = await waiting(self._house, self._who, MOST, reviews=self._reviews)
        made: list[Record] = [{"kind": "counts", "id": "counts", **found.counts}]
        made += [
            {"kind": "item", "id": f"{one['kind']}:{one['id']}", "item": msgspec.to_builtins(one)}
            for one in found.items
        ]
        return Look(made, whole=True)

    async def close(self) -> None: ...

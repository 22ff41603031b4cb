"""The in-process bus: a page of code. It only wakes readers and may lose anything but the latest notice.

Per subscriber and tenant one notice is kept, the newest: notices are levels ("the record reaches n"),
not edges, so a slow subscriber is bounded by the number of tenants and still learns the truth.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from observatory.pipeline.ports import Notice


class MemoryBus:
    def __init__(self) -> None:
        self._subscribers: set[_Inbox] = set()

    def publish(self, notice: Notice) -> None:
        for inbox in self._subscribers:
            inbox.put(notice)

    async def subscribe(self) -> AsyncIterator[Notice]:
        inbox = _Inbox()
        self._subscribers.add(inbox)
        try:
            while True:
                yield await inbox.get()
        finally:
            self._subscribers.discard(inbox)


class _Inbox:
    def __init__(self) -> None:
        self._latest: dict[str, Notice] = {}
        self._ready = asyncio.Event()

    def put(self, notice: Notice) -> None:
        held = self._latest.get(notice.tenant_id)
        if held is None or held.sequence_number < notice.sequence_number:
            self._latest[notice.tenant_id] = notice
            self._ready.set()

    async def get(self) -> Notice:
        await self._ready.wait()
        tenant_id = next(iter(self._latest))
        notice = self._latest.pop(tenant_id)
        if not self._latest:
            self._ready.clear()
        return notice

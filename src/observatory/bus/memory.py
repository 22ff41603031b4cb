"""The in-process bus. It only wakes readers and may lose anything except the latest notice.

Per subscriber and tenant only the newest notice is kept: notices are levels ("the record reaches n"),
not edges, so a slow subscriber's queue is bounded by the number of tenants.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from observatory.pipeline.ports import CommitNotice


class MemoryBus:
    def __init__(self) -> None:
        self._subscribers: set[_Inbox] = set()

    def publish(self, notice: CommitNotice) -> None:
        for inbox in self._subscribers:
            inbox.put(notice)

    async def subscribe(self) -> AsyncIterator[CommitNotice]:
        inbox = _Inbox()
        self._subscribers.add(inbox)
        try:
            while True:
                yield await inbox.get()
        finally:
            self._subscribers.discard(inbox)


class _Inbox:
    def __init__(self) -> None:
        self._latest: dict[str, CommitNotice] = {}
        self._ready = asyncio.Event()

    def put(self, notice: CommitNotice) -> None:
        latest = self._latest.get(notice.tenant_id)
        if latest is None or latest.sequence_number < notice.sequence_number:
            self._latest[notice.tenant_id] = notice
            self._ready.set()

    async def get(self) -> CommitNotice:
        await self._ready.wait()
        tenant_id = next(iter(self._latest))
        notice = self._latest.pop(tenant_id)
        if not self._latest:
            self._ready.clear()
        return notice

"""How far the analyst is behind over all tenants, for `/metrics`.

Law: a scrape costs one query and at most `MAX_TENANTS` small ones, however many tenants there are, and none
of these more often than every few seconds.
"""

from __future__ import annotations

import asyncio
import time

from observatory.derived.ports import FoldStatus
from observatory.errors import NotDurable
from observatory.pipeline.ports import Directory
from observatory.runtime.metrics import Measure

REFRESH_S = 5.0
MAX_TENANTS = 50  # tenants per refresh, the furthest behind first


class InsightLag:
    """The analyst's lag over all tenants; only tenants whose record moved since are queried."""

    def __init__(self, directory: Directory, status: FoldStatus) -> None:
        self._directory, self._status = directory, status
        self._known: dict[str, tuple[int, int, int]] = {}  # tenant -> folded up to, skipped, unread
        self._next, self._refreshing = 0.0, asyncio.Lock()
        self._lag = 0

    async def measures(self) -> list[Measure]:
        """Empty while the lag cannot be read: no figure is better than a wrong one."""
        try:
            async with self._refreshing:  # of simultaneous scrapes one refreshes
                if time.monotonic() >= self._next:
                    await self._refresh()
                    self._next = time.monotonic() + REFRESH_S
        except NotDurable:
            return []
        skipped = sum(known[1] for known in self._known.values())
        unread = sum(known[2] for known in self._known.values())
        return [
            Measure(f"observatory_insight_{name}", "gauge", text, value)
            for name, text, value in (
                ("lag_messages", "Events not folded yet, of the tenant furthest behind", self._lag),
                ("skipped", "Messages a fold failed on", skipped),
                ("unread", "Messages whose content could not be read", unread),
            )
        ]

    async def _refresh(self) -> None:
        heads = await self._directory.heads()
        self._known = {tenant_id: known for tenant_id, known in self._known.items() if tenant_id in heads}
        behind = {
            tenant_id: head - self._known.get(tenant_id, (0,))[0]
            for tenant_id, head in heads.items()
            if self._known.get(tenant_id, (-1,))[0] < head
        }
        for tenant_id in sorted(behind, key=behind.__getitem__, reverse=True)[:MAX_TENANTS]:
            progress = await self._status.progress(tenant_id)
            self._known[tenant_id] = (progress.seq, progress.skipped, progress.unread)
        self._lag = max((heads[name] - known[0] for name, known in self._known.items()), default=0)

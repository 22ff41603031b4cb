"""How far the analyst is behind, of all tenants, for `/metrics`.

Law: a scrape costs one query and at most `ASKED` small ones, however many tenants there are, and none of
these more often than every few seconds.
"""

from __future__ import annotations

import asyncio
import time

from observatory.errors import NotDurable
from observatory.pipeline.ports import Directory
from observatory.runtime.derived import Status
from observatory.runtime.metrics import Measure

AGAIN_S = 5.0
ASKED = 50  # tenants at one look, the furthest behind first


class InsightLag:
    """How far the analyst is behind, of all tenants: asked of those whose record moved since it was there."""

    def __init__(self, directory: Directory, status: Status) -> None:
        self._directory, self._status = directory, status
        self._known: dict[str, tuple[int, int, int]] = {}  # tenant -> folded up to, skipped, unread
        self._next, self._looking = 0.0, asyncio.Lock()
        self._lag = 0

    async def measures(self) -> list[Measure]:
        """Nothing while it cannot be read: no figure is better than a wrong one."""
        try:
            async with self._looking:  # of scrapes that come together one looks
                if time.monotonic() >= self._next:
                    await self._look()
                    self._next = time.monotonic() + AGAIN_S
        except NotDurable:
            return []
        skipped = sum(known[1] for known in self._known.values())
        unread = sum(known[2] for known in self._known.values())
        return [
            Measure(f"observatory_insight_{name}", "gauge", text, value)
            for name, text, value in (
                ("lag_messages", "Numbers not folded yet, of one tenant", self._lag),
                ("skipped", "Messages a fold failed on", skipped),
                ("unread", "Messages whose content could not be read", unread),
            )
        ]

    async def _look(self) -> None:
        heads = await self._directory.heads()
        self._known = {tenant_id: known for tenant_id, known in self._known.items() if tenant_id in heads}
        behind = {
            tenant_id: head - self._known.get(tenant_id, (0,))[0]
            for tenant_id, head in heads.items()
            if self._known.get(tenant_id, (-1,))[0] < head
        }
        for tenant_id in sorted(behind, key=behind.__getitem__, reverse=True)[:ASKED]:
            progress = await self._status.progress(tenant_id)
            self._known[tenant_id] = (progress.seq, progress.skipped, progress.unread)
        self._lag = max((heads[name] - known[0] for name, known in self._known.items()), default=0)

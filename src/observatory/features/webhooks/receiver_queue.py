"""The delivery lane of one endpoint: its queue, rate, parallel attempts and pauses."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Any

from observatory.features.webhooks.retry import BREAK_AT
from observatory.features.webhooks.subscriptions import Subscription
from observatory.runtime.wait_for_wakeup import wait_for_wakeup

AT_ONCE = 4  # parallel attempts per endpoint
Row = dict[str, Any]


class DeliveryLane:
    """In-memory state of one process; the endpoint's row is authoritative."""

    def __init__(self, endpoint: Row) -> None:
        self.endpoint = endpoint
        self.queue: deque[Row] = deque()
        self.busy: set[str] = set()
        self.workers: set[asyncio.Task[None]] = set()
        self.seen: int = endpoint["cursor_seq"]  # how far the record was read; the durable cursor follows
        self.next_ns: int | None = 0  # when something is due; None: nothing pending
        self.subscription = Subscription(endpoint)
        self.is_changed = False  # its subscription changed after `seen`: the cursor must be stored
        self._turn = 0.0
        self.hurt = 0.0  # paused until then because the store failed

    def renew(self, endpoint: Row) -> None:
        if (endpoint["events"], endpoint["filters"]) != (self.endpoint["events"], self.endpoint["filters"]):
            self.subscription = Subscription(endpoint)
            self.is_changed = True
        self.endpoint = endpoint
        self.seen = max(self.seen, endpoint["cursor_seq"])

    def due_at(self, at_ns: int) -> None:
        """Something is due then, unless something is due sooner."""
        self.next_ns = at_ns if self.next_ns is None else min(at_ns, self.next_ns)

    def may_send(self, now_ns: int) -> bool:
        paused = self.endpoint["paused_until_ns"]
        return (
            self.endpoint["state"] == "active"
            and (paused is None or paused <= now_ns)
            and self.hurt <= time.monotonic()
        )

    @property
    def places(self) -> int:
        """After many failures, one probe at a time."""
        return 1 if self.endpoint["failures"] >= BREAK_AT else AT_ONCE

    def is_due(self, now_ns: int) -> bool:
        if self.next_ns is None or len(self.queue) >= AT_ONCE or not self.may_send(now_ns):
            return False
        return self.next_ns <= now_ns and len(self.workers) < self.places

    async def turn(self, ending: asyncio.Event) -> None:
        """Wait for a slot in the endpoint's rate; a burst of one second's worth passes at once."""
        gap = 60.0 / self.endpoint["rate_per_min"]
        now = time.monotonic()
        self._turn = max(self._turn + gap, now - max(1.0, gap) + gap)
        if self._turn > now:
            await wait_for_wakeup(ending, self._turn - now)

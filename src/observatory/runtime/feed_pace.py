"""Rate limit of a feed client: ten frames and ten subscriptions a second (S286)."""

from __future__ import annotations

import asyncio
from collections import deque

FRAMES = 10
GAP_S = 0.1
# A late frame does not delay the next by as much. Else a client would fall behind the polls by the latest of
# all its frames, up to a whole poll, and stay there. Still no second has more than ten frames.
SLACK_S = 0.05


class FramePacer:
    """The pace of one client, across all its subscriptions."""

    def __init__(self) -> None:
        self.due = float("-inf")  # when the next frame may be sent
        self._handed: deque[float] = deque(maxlen=FRAMES)
        self._is_sending = False
        self._subscribed_at = float("-inf")

    def hand(self, now: float) -> None:
        """A frame is handed over to be sent."""
        self._handed.append(now)
        self._is_sending = True
        self.due = max(self.due, now - SLACK_S) + GAP_S
        if len(self._handed) == FRAMES:
            self.due = max(self.due, self._handed[0] + FRAMES * GAP_S)

    def arrive(self, now: float) -> None:
        """The frame was sent, if there is one: the pace counts from the end of sending."""
        if self._is_sending:
            self._is_sending = False
            self._handed[-1] = now
            self.due = max(self.due, now + GAP_S - SLACK_S)

    async def wait_to_subscribe(self) -> None:
        """Wait until the next subscription is allowed; a cancelled wait does not count as one."""
        loop = asyncio.get_running_loop()
        await asyncio.sleep(max(0.0, self._subscribed_at + GAP_S - loop.time()))
        self._subscribed_at = loop.time()

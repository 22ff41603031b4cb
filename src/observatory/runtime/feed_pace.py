"""How often a client of the feed is told something, and heard: ten frames and ten wishes a second (S286)."""

from __future__ import annotations

import asyncio
from collections import deque

FRAMES = 10
GAP_S = 0.1
# A frame that is late does not put off the next by as much. Else a client would fall behind the looks by the
# latest of them all, up to a whole look, and stay there. In no second are there more than ten all the same.
SLACK_S = 0.05


class Pace:
    """Of one client, however often it changes its mind."""

    def __init__(self) -> None:
        self.due = float("-inf")  # the next frame, not before
        self._handed: deque[float] = deque(maxlen=FRAMES)
        self._is_on_its_way = False
        self._wished = float("-inf")

    def hand(self, now: float) -> None:
        """A frame is given away to be sent."""
        self._handed.append(now)
        self._is_on_its_way = True
        self.due = max(self.due, now - SLACK_S) + GAP_S
        if len(self._handed) == FRAMES:
            self.due = max(self.due, self._handed[0] + FRAMES * GAP_S)

    def arrive(self, now: float) -> None:
        """It was sent, if there is one: what took long to send counts from its end."""
        if self._is_on_its_way:
            self._is_on_its_way = False
            self._handed[-1] = now
            self.due = max(self.due, now + GAP_S - SLACK_S)

    async def wish(self) -> None:
        """Waits for the next turn; who is cut off while waiting has had none."""
        loop = asyncio.get_running_loop()
        await asyncio.sleep(max(0.0, self._wished + GAP_S - loop.time()))
        self._wished = loop.time()

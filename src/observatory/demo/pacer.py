"""Paces the story: one message at a time, at a fixed rate for all agents together.

Law: first come, first served; after a stall at most a second is made up for, so a slow machine sees a calm
mesh instead of a flood.
"""

import asyncio
from collections import deque

MAX_BEHIND_S = 1.0
BEGINNING_S, QUICKER = 10.0, 2.5  # a mesh that has just begun fills its map sooner


class Pacer:
    def __init__(self, rate: float, quicker: float = 1.0) -> None:
        """`quicker`: the speed factor of the first seconds."""
        self._every_s = 1 / rate
        self._quicker = quicker
        self._waiting: deque[asyncio.Future[None]] = deque()
        self.said = 0

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    async def turn(self) -> None:
        """Wait for a turn."""
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(mine)
        await mine

    async def run(self) -> None:
        """Give turns, for ever."""
        clock = asyncio.get_running_loop().time
        due = began = clock()
        while True:
            await asyncio.sleep(max(due - clock(), 0.0))
            faster = self._quicker if due - began < BEGINNING_S else 1.0
            due = max(due + self._every_s / faster, clock() - MAX_BEHIND_S)
            while self._waiting:
                one = self._waiting.popleft()
                if not one.done():  # its task was cancelled
                    one.set_result(None)
                    self.said += 1
                    break

"""Waiting to be woken, by an event or by the clock.

Law: who is told to end while waiting ends. `asyncio.wait_for` forgets a cancellation that comes in the same
turn as the event (until Python 3.12): a daemon woken by the last commit went on, and the house that waited
for it was cut off after twenty seconds.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress


async def woken(event: asyncio.Event, within_s: float) -> None:
    """Until the event is set, or so long."""
    with suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            await event.wait()

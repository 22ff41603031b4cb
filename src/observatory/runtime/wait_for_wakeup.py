"""Waits for an event or a timeout, without losing a cancellation.

Law: a waiter that is cancelled ends. `asyncio.wait_for` loses a cancellation that arrives in the same
turn as the event (until Python 3.12): a worker woken by the last commit kept running, and the gateway that
waited for it was cut off after twenty seconds.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress


async def wait_for_wakeup(event: asyncio.Event, within_s: float) -> None:
    """Wait until the event is set, or for `within_s` seconds."""
    with suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            await event.wait()

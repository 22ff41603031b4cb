"""Who is told to end while it is woken ends; a house that stops waits for nobody for ever."""

from __future__ import annotations

import asyncio

import pytest

from observatory.runtime import runner as module
from observatory.runtime.runner import WorkerRunner
from observatory.runtime.wait_for_wakeup import wait_for_wakeup


@pytest.mark.parametrize("turns", range(4))
def test_an_event_and_the_order_to_end_together_end_it(turns: int) -> None:
    """However many turns of the loop lie between them."""

    async def body() -> None:
        event = asyncio.Event()

        async def daemon() -> None:
            while True:
                await wait_for_wakeup(event, 60)
                event.clear()

        task = asyncio.create_task(daemon())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        event.set()
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task}, timeout=5)
        assert task.cancelled()

    asyncio.run(body())


def test_the_clock_wakes_too() -> None:
    asyncio.run(asyncio.wait_for(wait_for_wakeup(asyncio.Event(), 0.001), 5))


def test_a_daemon_that_missed_the_order_to_end_is_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AGAIN_S", 0.01)
    heard = 0

    async def deaf() -> None:
        nonlocal heard
        while heard < 3:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                heard += 1

    async def body() -> None:
        async with asyncio.timeout(10):
            async with WorkerRunner({"deaf": deaf}):
                await asyncio.sleep(0.01)

    asyncio.run(body())
    assert heard == 3

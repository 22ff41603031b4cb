"""The bus wakes readers with levels, not edges: the latest word per tenant is all that is kept."""

from __future__ import annotations

import asyncio

from observatory.bus.memory import MemoryBus
from observatory.ports import Bus, Notice


async def started(bus: Bus) -> tuple[asyncio.Task[Notice], object]:
    """A subscriber that is already waiting for its first notice."""
    stream = bus.subscribe()
    first = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    return first, stream


def test_a_notice_reaches_every_subscriber() -> None:
    async def scene() -> list[Notice]:
        bus = MemoryBus()
        waiting = [(await started(bus))[0] for _ in range(3)]
        bus.publish(Notice("tnt_a", 1))
        return await asyncio.gather(*waiting)

    assert asyncio.run(scene()) == [Notice("tnt_a", 1)] * 3


def test_a_slow_subscriber_holds_one_notice_per_tenant_and_it_is_the_newest() -> None:
    async def scene() -> list[Notice]:
        bus = MemoryBus()
        stream = bus.subscribe()
        first = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        bus.publish(Notice("tnt_a", 1))
        await first
        for number in range(2, 10_000):
            bus.publish(Notice("tnt_a", number))
            bus.publish(Notice("tnt_b", number))
        found = [await anext(stream), await anext(stream)]
        rest = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        assert not rest.done(), "nothing else was kept"
        rest.cancel()
        return found

    assert asyncio.run(scene()) == [Notice("tnt_a", 9_999), Notice("tnt_b", 9_999)]


def test_an_older_notice_never_takes_the_place_of_a_newer_one() -> None:
    async def scene() -> Notice:
        bus = MemoryBus()
        stream = bus.subscribe()
        first = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        bus.publish(Notice("tnt_a", 7))
        bus.publish(Notice("tnt_a", 3))
        return await first

    assert asyncio.run(scene()) == Notice("tnt_a", 7)


def test_a_busy_tenant_does_not_keep_a_quiet_one_waiting() -> None:
    async def scene() -> list[str]:
        bus = MemoryBus()
        stream = bus.subscribe()
        first = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        bus.publish(Notice("tnt_busy", 1))
        bus.publish(Notice("tnt_quiet", 1))
        heard = [(await first).tenant_id]
        bus.publish(Notice("tnt_busy", 2))
        return [*heard, (await anext(stream)).tenant_id]

    assert asyncio.run(scene()) == ["tnt_busy", "tnt_quiet"]


def test_who_leaves_is_forgotten_and_publishing_to_nobody_is_fine() -> None:
    async def scene() -> int:
        bus = MemoryBus()
        bus.publish(Notice("tnt_a", 1))
        stream = bus.subscribe()
        first = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await stream.aclose()  # type: ignore[attr-defined]
        bus.publish(Notice("tnt_a", 2))
        return len(bus._subscribers)

    assert asyncio.run(scene()) == 0

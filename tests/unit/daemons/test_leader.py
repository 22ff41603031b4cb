"""A leader between its own clock and the database's: what it believes of its lease, and when it asks."""

from __future__ import annotations

import asyncio

from observatory.errors import NotDurable
from observatory.pipeline.ports import Lease
from observatory.runtime.leader import Leader


class Leases:
    """One lease. `away`: it cannot be asked."""

    def __init__(self) -> None:
        self.holder: str | None = None
        self.epoch = 0
        self.asked = 0
        self.away = False

    async def hold_lease(self, name: str, holder: str, lease_s: float) -> int | None:
        self.asked += 1
        if self.away:
            raise NotDurable("away")
        if self.holder not in (None, holder):
            return None
        self.epoch += self.holder is None
        self.holder = holder
        return self.epoch

    async def end_lease(self, name: str, holder: str) -> None:
        if self.away:
            raise NotDurable("away")
        if self.holder == holder:
            self.holder = None

    async def lease(self, name: str) -> Lease | None:
        return None

    async def leases(self, beginning: str) -> list[Lease]:
        return []


class Hand:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_leader_asks_seldom_and_never_believes_past_its_lease_s461() -> None:
    """S461: renewed after a third; the database away, it leads on to the end of its lease and no longer."""
    leases, hand = Leases(), Hand()
    one, other = (Leader(leases, "x", 15.0, name, hand) for name in ("one", "other"))

    async def story() -> None:
        assert [await one.lead(), await other.lead(), await one.lead()] == [1, None, 1]
        assert leases.asked == 2, "not again so soon"
        hand.now = 4.9
        assert await one.lead() == 1 and leases.asked == 2
        hand.now = 5.0
        assert await one.lead() == 1 and leases.asked == 3
        leases.away = True
        for hand.now in (10.0, 12.0, 19.9):
            assert await one.lead() == 1
        hand.now = 20.0
        assert await one.lead() is None, "fifteen seconds after it was asked for the last time"
        leases.away = False
        hand.now = 21.0
        assert await one.lead() == 1, "nobody has taken it"
        leases.holder, leases.epoch = "other", 2
        hand.now = 100.0  # it was stopped for longer than its lease
        assert [await one.lead(), await other.lead()] == [None, 2]
        await other.resign()
        await other.resign()
        hand.now = 100.9
        assert await one.lead() is None, "who does not lead asks once a second"
        hand.now = 101.0
        assert await one.lead() == 3

    asyncio.run(story())


def test_a_refused_write_makes_it_ask_at_once_s462() -> None:
    """S462: and one who resigns while the database is away leaves it to the end of its lease."""
    leases, hand = Leases(), Hand()
    one = Leader(leases, "x", 15.0, "one", hand)

    async def story() -> None:
        assert await one.lead() == 1
        leases.holder, leases.epoch = "other", 2
        assert await one.lead() == 1
        one.doubt()
        assert await one.lead() is None
        leases.holder = None
        hand.now = 5.0
        assert await one.lead() == 3
        leases.away = True
        await one.resign()
        assert one.epoch is None and leases.holder == "one"

    asyncio.run(story())


def test_a_lease_that_is_kept_is_freed_at_the_end_s461() -> None:
    """S461: whoever stops lets another lead at once."""
    leases = Leases()
    one = Leader(leases, "x", 15.0, "one")

    async def story() -> None:
        keeping = asyncio.create_task(one.keep())
        await asyncio.sleep(0)
        assert (leases.holder, one.epoch) == ("one", 1)
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        assert leases.holder is None and one.epoch is None

    asyncio.run(story())

"""Leases on both databases: one holder at a time, an epoch that only grows, and a lead that is given up."""

from __future__ import annotations

import asyncio

import pytest

from observatory.features.schedule import commands_firing as firing
from tests.contract.clockwork import Clockwork
from tests.contract.conftest import Harness


@pytest.mark.req(126, 112)
def test_the_lease_is_one_gateways_and_its_epoch_only_grows_s461(harness: Harness) -> None:
    """S461: taken, renewed, lost to another after its time, never got back under the old epoch."""
    store = harness.store
    assert harness.read(store.lease("x")) is None
    assert harness.read(store.hold_lease("x", "a", 30.0)) == 1
    assert harness.read(store.hold_lease("x", "b", 30.0)) is None
    assert harness.read(store.hold_lease("x", "a", 0.0)) == 1, "renewed; and over at once"
    assert harness.read(store.hold_lease("x", "b", 30.0)) == 2
    assert harness.read(store.hold_lease("x", "a", 30.0)) is None
    lease = harness.read(store.lease("x"))
    assert lease is not None and (lease.holder, lease.epoch) == ("b", 2)
    assert 0 <= lease.now_ns - lease.ticked_ns < 5 * 10**9 and lease.expires_ns > lease.now_ns
    harness.read(store.end_lease("x", "a"))
    assert harness.read(store.hold_lease("x", "a", 30.0)) is None, "only its holder ends it"
    harness.read(store.end_lease("x", "b"))
    freed = harness.read(store.lease("x"))
    assert freed is not None and freed.expires_ns == 0, "freed is told apart from run out"
    assert harness.read(store.hold_lease("x", "a", 30.0)) == 3
    assert harness.refuses("UPDATE leases SET epoch = 1 WHERE name = 'x'")
    assert harness.refuses("DELETE FROM leases")


def test_of_many_that_want_a_lease_one_gets_it_s461(harness: Harness) -> None:
    """S461: at the same moment, a hundred times over."""

    async def rush(name: str) -> list[int | None]:
        return list(await asyncio.gather(*(harness.store.hold_lease(name, f"g{i}", 60.0) for i in range(5))))

    for number in range(20):
        assert sorted(filter(None, harness.read(rush(f"rush-{number}")))) == [1]


@pytest.mark.req(126)
def test_a_leader_that_steps_back_leads_again_under_a_higher_epoch_s780(harness: Harness) -> None:
    """S780: not at once; what it still wrote under the old one is refused; another may be faster."""
    one, two = Clockwork(harness), Clockwork(harness)
    assert harness.read(one.leader.lead()) == 1
    harness.read(one.leader.resign(3.0))
    assert one.leader.epoch is None and harness.read(one.leader.lead()) is None, "it does not ask yet"
    lease = harness.read(harness.store.lease(firing.LEASE))
    assert lease is not None and lease.expires_ns <= lease.now_ns
    one.elapsed += 4.0
    assert harness.read(one.leader.lead()) == 2
    assert harness.read(two.leader.lead()) is None
    harness.read(one.leader.resign(3.0))
    two.elapsed += 2.0
    assert harness.read(two.leader.lead()) == 3
    one.elapsed += 4.0
    assert harness.read(one.leader.lead()) is None

"""Who looks by the clock leaves quiet tenants alone, and never one that waits for its time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest

from observatory.features.decisions import worker as deadlines
from observatory.features.policies import commands as rulemaking
from observatory.features.relay import worker as gatekeeper
from observatory.pipeline.committer import Committer
from observatory.pipeline.state import HOME_TENANT, Principal, Submission, Verdict
from observatory.protocol.clock import from_ns
from observatory.protocol.rulebook import Match, PolicyRule
from observatory.runtime.worker_context import AGAIN_S, Home, Watch
from observatory.settings import Settings
from tests.contract.conftest import OTHER_TENANT, House
from tests.samples import decision_log, envelope

HOUR = 3_600 * 10**9


class Keeper:
    """The contract's house as those who look see one; counts what was handed in."""

    def __init__(self, house: House) -> None:
        self._house, self.store, self.settings = house, house.store, Settings()
        self.committer = self
        self.handed_in = 0

    async def submit(self, tenant_id: str, items: Sequence[Submission]) -> list[Verdict]:
        self.handed_in += len(items)
        return await asyncio.to_thread(self._house.submit, *items, tenant_id=tenant_id)

    def principal_of_house(self, tenant_id: str) -> Principal:
        return Principal(tenant_id=tenant_id, role="admin", key_id="sys_gateway")


class Hand:
    """A clock that stands."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def awake(house: House, watch: Watch) -> set[str]:
    return {tenant_id for tenant_id, _ in house.read(watch.awake())}


def test_a_tenant_at_rest_is_left_alone_until_its_record_moves_s313(house: House) -> None:
    """S313: each tenant by itself, and once in a while all the same."""
    house.create_tenant(OTHER_TENANT)
    hand = Hand()
    watch = Watch(house.store, hand)
    for tenant_id, head in house.read(watch.awake()):
        watch.rest(tenant_id, head)
    assert awake(house, watch) == set()
    house.send(decision_log(), tenant_id=OTHER_TENANT)
    assert awake(house, watch) == {OTHER_TENANT}
    hand.now = AGAIN_S
    assert awake(house, watch) == {HOME_TENANT, OTHER_TENANT}


def test_what_moved_while_it_was_looked_at_is_looked_at_again_s313(house: House) -> None:
    """S313: it rests at the head that was told, not at the one there is by then."""
    watch = Watch(house.store, Hand())
    ((tenant_id, head),) = house.read(watch.awake())
    house.send(decision_log())
    watch.rest(tenant_id, head)
    assert awake(house, watch) == {HOME_TENANT}


def test_a_gate_that_waits_for_its_time_is_not_slept_through_s313(house: House) -> None:
    """S313: nothing happens between asking and the deadline, and it ends all the same."""
    keeper, watch = Keeper(house), Watch(house.store, Hand())
    home = cast(Home, keeper)
    match = Match(sender=("*",))
    rule = PolicyRule(rule_id="pol_1", position=0, effect="hold", match=match, deadline_s=3_600)
    house.submit(rulemaking.create_rule(house.admin(), rule, False, house.now()))
    house.read(gatekeeper.answer(home, watch, house.now()))
    assert awake(house, watch) == set()
    (held,) = house.send(decision_log())
    assert held.answer.state == "held"
    house.read(gatekeeper.answer(home, watch, house.now()))
    assert awake(house, watch) == {HOME_TENANT} and keeper.handed_in == 0
    house.read(gatekeeper.answer(home, watch, house.wait(2 * HOUR)))
    assert keeper.handed_in == 1
    house.read(gatekeeper.answer(home, watch, house.now()))
    assert awake(house, watch) == set() and keeper.handed_in == 1


def test_a_decision_that_waits_for_its_time_is_not_slept_through_s313(house: House) -> None:
    """S313: as a gate."""
    keeper, watch = Keeper(house), Watch(house.store, Hand())
    committer = cast(Committer, keeper)
    now = house.now()
    house.read(deadlines.due(house.store, committer, watch, now))
    assert awake(house, watch) == set()
    house.send(envelope("decision_request", payload={"deadline": from_ns(now + HOUR), "auto_action": None}))
    assert house.read(deadlines.due(house.store, committer, watch, now)) == 0
    assert awake(house, watch) == {HOME_TENANT}
    assert house.read(deadlines.due(house.store, committer, watch, house.wait(2 * HOUR))) == 1
    assert house.read(deadlines.due(house.store, committer, watch, house.now())) == 0
    assert awake(house, watch) == set()


def test_the_heads_are_those_of_the_last_commit_whoever_made_it_s793(house: House) -> None:
    """S793: also while they are told from memory; what was told before is not changed by who got it."""
    house.create_tenant(OTHER_TENANT)
    first = house.read(house.store.heads())
    first["tnt_none"] = 7
    assert house.read(house.store.heads()) == {
        tenant: first[tenant] for tenant in (HOME_TENANT, OTHER_TENANT)
    }
    (verdict,) = house.send(decision_log())
    assert verdict.code == 202
    assert house.read(house.store.heads())[HOME_TENANT] == house.read(house.store.head(HOME_TENANT))[0]
    house.sql(f"UPDATE tenants SET disabled_ns = 1 WHERE tenant_id = '{OTHER_TENANT}'")
    assert house.read(house.store.heads()).keys() == {HOME_TENANT}


def test_while_nobody_writes_sqlite_is_not_asked_for_the_heads_s793(
    sqlite_house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S793: and one that cannot tell whether anybody has is asked."""
    asked = []
    fetch = sqlite_house.store.fetch

    async def counted(*given: Any, **more: Any) -> list[Any]:
        asked.append(given)
        return await fetch(*given, **more)

    here = sqlite_house.store._heads_here  # type: ignore[union-attr]

    def counted_here() -> dict[str, int]:  # of a few tenants they are read without a thread
        asked.append(())
        return here()

    monkeypatch.setattr(sqlite_house.store, "fetch", counted)
    monkeypatch.setattr(sqlite_house.store, "_heads_here", counted_here)
    for _ in range(3):
        sqlite_house.read(sqlite_house.store.heads())
    assert len(asked) == 1
    sqlite_house.send(decision_log())
    sqlite_house.read(sqlite_house.store.heads())
    assert len(asked) == 2
    # Another connection counts from elsewhere: alike numbers mean nothing.
    sqlite_house.store._close_noticing()  # type: ignore[union-attr]
    sqlite_house.read(sqlite_house.store.heads())
    assert len(asked) == 3
    monkeypatch.setattr(sqlite_house.store, "_version", lambda: None)
    for _ in range(2):
        sqlite_house.read(sqlite_house.store.heads())
    assert len(asked) == 5

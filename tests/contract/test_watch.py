"""Who looks by the clock leaves quiet tenants alone, and never one that waits for its time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest

from observatory.features.decisions import worker as deadlines
from observatory.features.policies import commands as rulemaking
from observatory.features.relay import worker as gatekeeper
from observatory.pipeline.commit.committer import Committer
from observatory.pipeline.state import HOME_TENANT, Principal, Submission, SubmissionResult
from observatory.protocol.clock import from_ns
from observatory.protocol.tenant_config import Match, PolicyRule
from observatory.runtime.worker_context import AGAIN_S, TenantWatch, WorkerContext
from observatory.settings import Settings
from tests.contract.conftest import OTHER_TENANT, Harness
from tests.samples import decision_log, envelope

HOUR = 3_600 * 10**9


class Keeper:
    """The contract's house as those who look see one; counts what was handed in."""

    def __init__(self, harness: Harness) -> None:
        self._harness, self.store, self.settings = harness, harness.store, Settings()
        self.committer = self
        self.handed_in = 0

    async def submit(self, tenant_id: str, items: Sequence[Submission]) -> list[SubmissionResult]:
        self.handed_in += len(items)
        return await asyncio.to_thread(self._harness.submit, *items, tenant_id=tenant_id)

    def gateway_principal(self, tenant_id: str) -> Principal:
        return Principal(tenant_id=tenant_id, role="admin", key_id="sys_gateway")


class Hand:
    """A clock that stands."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def awake(harness: Harness, watch: TenantWatch) -> set[str]:
    return {tenant_id for tenant_id, _ in harness.read(watch.awake())}


def test_a_tenant_at_rest_is_left_alone_until_its_record_moves_s313(harness: Harness) -> None:
    """S313: each tenant by itself, and once in a while all the same."""
    harness.create_tenant(OTHER_TENANT)
    hand = Hand()
    watch = TenantWatch(harness.store, hand)
    for tenant_id, head in harness.read(watch.awake()):
        watch.rest(tenant_id, head)
    assert awake(harness, watch) == set()
    harness.send(decision_log(), tenant_id=OTHER_TENANT)
    assert awake(harness, watch) == {OTHER_TENANT}
    hand.now = AGAIN_S
    assert awake(harness, watch) == {HOME_TENANT, OTHER_TENANT}


def test_what_moved_while_it_was_looked_at_is_looked_at_again_s313(harness: Harness) -> None:
    """S313: it rests at the head that was told, not at the one there is by then."""
    watch = TenantWatch(harness.store, Hand())
    ((tenant_id, head),) = harness.read(watch.awake())
    harness.send(decision_log())
    watch.rest(tenant_id, head)
    assert awake(harness, watch) == {HOME_TENANT}


def test_a_gate_that_waits_for_its_time_is_not_slept_through_s313(harness: Harness) -> None:
    """S313: nothing happens between asking and the deadline, and it ends all the same."""
    keeper, watch = Keeper(harness), TenantWatch(harness.store, Hand())
    home = cast(WorkerContext, keeper)
    match = Match(sender=("*",))
    rule = PolicyRule(rule_id="pol_1", position=0, effect="hold", match=match, deadline_s=3_600)
    harness.submit(rulemaking.create_rule(harness.admin(), rule, False, harness.now()))
    harness.read(gatekeeper.expire_and_confirm(home, watch, harness.now()))
    assert awake(harness, watch) == set()
    (held,) = harness.send(decision_log())
    assert held.answer.state == "held"
    harness.read(gatekeeper.expire_and_confirm(home, watch, harness.now()))
    assert awake(harness, watch) == {HOME_TENANT} and keeper.handed_in == 0
    harness.read(gatekeeper.expire_and_confirm(home, watch, harness.wait(2 * HOUR)))
    assert keeper.handed_in == 1
    harness.read(gatekeeper.expire_and_confirm(home, watch, harness.now()))
    assert awake(harness, watch) == set() and keeper.handed_in == 1


def test_a_decision_that_waits_for_its_time_is_not_slept_through_s313(harness: Harness) -> None:
    """S313: as a gate."""
    keeper, watch = Keeper(harness), TenantWatch(harness.store, Hand())
    committer = cast(Committer, keeper)
    now = harness.now()
    harness.read(deadlines.due(harness.store, committer, watch, now))
    assert awake(harness, watch) == set()
    harness.send(envelope("decision_request", payload={"deadline": from_ns(now + HOUR), "auto_action": None}))
    assert harness.read(deadlines.due(harness.store, committer, watch, now)) == 0
    assert awake(harness, watch) == {HOME_TENANT}
    assert harness.read(deadlines.due(harness.store, committer, watch, harness.wait(2 * HOUR))) == 1
    assert harness.read(deadlines.due(harness.store, committer, watch, harness.now())) == 0
    assert awake(harness, watch) == set()


def test_the_heads_are_those_of_the_last_commit_whoever_made_it_s793(harness: Harness) -> None:
    """S793: also while they are told from memory; what was told before is not changed by who got it."""
    harness.create_tenant(OTHER_TENANT)
    first = harness.read(harness.store.heads())
    first["tnt_none"] = 7
    assert harness.read(harness.store.heads()) == {
        tenant: first[tenant] for tenant in (HOME_TENANT, OTHER_TENANT)
    }
    (verdict,) = harness.send(decision_log())
    assert verdict.code == 202
    assert (
        harness.read(harness.store.heads())[HOME_TENANT] == harness.read(harness.store.head(HOME_TENANT))[0]
    )
    harness.sql(f"UPDATE tenants SET disabled_ns = 1 WHERE tenant_id = '{OTHER_TENANT}'")
    assert harness.read(harness.store.heads()).keys() == {HOME_TENANT}


def test_while_nobody_writes_sqlite_is_not_asked_for_the_heads_s793(
    sqlite_harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S793: and one that cannot tell whether anybody has is asked."""
    asked = []
    fetch = sqlite_harness.store.fetch

    async def counted(*given: Any, **more: Any) -> list[Any]:
        asked.append(given)
        return await fetch(*given, **more)

    here = sqlite_harness.store._heads_here

    def counted_here() -> dict[str, int]:  # of a few tenants they are read without a thread
        asked.append(())
        return here()

    monkeypatch.setattr(sqlite_harness.store, "fetch", counted)
    monkeypatch.setattr(sqlite_harness.store, "_heads_here", counted_here)
    for _ in range(3):
        sqlite_harness.read(sqlite_harness.store.heads())
    assert len(asked) == 1
    sqlite_harness.send(decision_log())
    sqlite_harness.read(sqlite_harness.store.heads())
    assert len(asked) == 2
    # Another connection counts from elsewhere: alike numbers mean nothing.
    sqlite_harness.store._close_watcher()
    sqlite_harness.read(sqlite_harness.store.heads())
    assert len(asked) == 3
    monkeypatch.setattr(sqlite_harness.store, "_version", lambda: None)
    for _ in range(2):
        sqlite_harness.read(sqlite_harness.store.heads())
    assert len(asked) == 5

"""The way to one receiver: its rate, its pauses, its places."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from observatory.features.webhooks.receiver_queue import AT_ONCE, DeliveryLane
from observatory.features.webhooks.retry import BREAK_AT


def lane(**more: Any) -> DeliveryLane:
    row = {
        "endpoint_id": "whe_1", "events": '["gate_opened"]', "filters": "{}", "cursor_seq": 3,
        "state": "active", "failures": 0, "paused_until_ns": None, "rate_per_min": 600,
    }  # fmt: skip
    return DeliveryLane(row | more)


@pytest.mark.parametrize(("rate", "burst"), [(600, 10), (60_000, 1_000), (60, 1), (6, 1)])
def test_a_rate_is_kept_after_a_burst_of_a_second_s500(rate: int, burst: int) -> None:
    """S500: what comes beyond it waits for its turn; who ends waits no more."""

    async def turns(many: int) -> float:
        ending, one = asyncio.Event(), lane(rate_per_min=rate)
        ending.set()
        began = time.monotonic()
        for _ in range(many):
            await one.turn(ending)
        return one._turn - began

    assert asyncio.run(turns(burst)) < 0.5 * 60 / rate + 0.2
    gap = 60 / rate
    assert 19.5 * gap <= asyncio.run(turns(burst + 20)) <= 20.5 * gap + 0.5


def test_a_lane_sends_when_it_may_and_one_at_a_time_after_many_failures_s499() -> None:
    """S499, S506: not while it is paused or disabled."""
    assert lane().may_send(10) and lane().places == AT_ONCE
    assert lane(failures=BREAK_AT).places == 1
    paused = lane(paused_until_ns=20)
    assert not paused.may_send(19) and paused.may_send(20)
    assert not lane(state="disabled").may_send(10)


def test_a_lane_knows_the_soonest_time_something_is_due_s494() -> None:
    """S494: whoever tells it, in any order; what was looked at is never forgotten."""
    one = lane()
    one.next_ns = None
    for at_ns in (30, 10, 20):
        one.due_at(at_ns)
    assert one.next_ns == 10 and not one.is_due(9) and one.is_due(10)
    one.renew(one.endpoint | {"cursor_seq": 9, "events": '["gate_expired"]'})
    assert one.seen == 9 and "gate_expired" in one.subscription.types
    one.renew(one.endpoint | {"cursor_seq": 4})
    assert one.seen == 9

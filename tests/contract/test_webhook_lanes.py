"""The lanes of webhooks out on both databases: pauses, probes, rates, kills; no receiver holds up another."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from observatory.errors import NotDurable
from observatory.features.webhooks import commands as webhooks
from observatory.features.webhooks.retry import BREAK_AT, S
from observatory.features.webhooks.worker import LOOK_S, DeliveryOutcome
from observatory.pipeline.state import Submission, SubmissionResult
from observatory.protocol.responses import Refused
from tests.contract.conftest import Harness
from tests.contract.webhooking import (
    BAD,
    OK,
    Receiver,
    Sending,
    deliveries,
    endpoint,
    make,
)
from tests.samples import decision_log

SAID = "message_delivered"


def test_a_receiver_that_fails_again_and_again_is_left_alone_and_probed_s499(harness: Harness) -> None:
    """S499: then one at a time; the first success opens its lane again. Another's is not touched."""
    make(harness, SAID)
    other = make(harness, SAID, name="other")
    sending = Sending(harness, receiver := Receiver(BAD))
    harness.send(*(decision_log() for _ in range(BREAK_AT + 3)))
    acts = [webhooks.disable(harness.admin(), other["endpoint_id"], harness.now())]
    harness.submit(*acts)
    sending.look()
    broken = len(receiver.heard)
    assert BREAK_AT <= broken < BREAK_AT + 3 + 1
    harness.send(decision_log())
    sending.look()
    assert len(receiver.heard) == broken, "its pause is everybody's who waits for it"
    sending.wait(29)
    assert len(receiver.heard) == broken
    sending.wait(602)
    assert len(receiver.heard) == broken + 1, "one probe"
    receiver.script = [OK]
    sending.wait(602)
    sending.look()
    assert len(receiver.heard) > broken + 2
    assert endpoint(harness, {"endpoint_id": other["endpoint_id"]})["failures"] == 0


def test_what_a_throttling_receiver_asks_for_is_granted_s495(harness: Harness) -> None:
    """S495: the whole lane waits as long as Retry-After says; then it goes on."""
    make(harness, SAID)
    busy = DeliveryOutcome(False, 429, "the receiver returned 429", 1_000)
    sending = Sending(harness, receiver := Receiver(busy, OK))
    harness.send(decision_log())
    sending.look()
    harness.send(decision_log())
    sending.wait(990)
    assert len(receiver.heard) == 1
    sending.wait(20)
    assert len(receiver.heard) == 3


def test_one_that_hangs_delays_only_itself_and_kills_cost_a_repeat_s500(harness: Harness) -> None:
    """S500, S510: four tries to it at once; what was sent and not written down is sent again, same id."""
    make(harness, SAID, name="slow")
    make(harness, SAID)
    sending = Sending(harness, receiver := Receiver())
    slow = Receiver()
    at_once: list[int] = []

    class Both:
        async def send(self, endpoint: dict, *rest: object) -> DeliveryOutcome:  # type: ignore[type-arg]
            if endpoint["name"] != "slow":
                return await receiver.send(endpoint, *rest)  # type: ignore[arg-type]
            slow.heard.append(("slow", str(rest[0]), b""))
            at_once.append(sum(len(lane.busy) for lane in sending.sender._all()))
            await asyncio.sleep(3_600)
            return OK

    sending.sender.transports["webhook"] = Both()
    harness.send(*(decision_log() for _ in range(8)))

    async def killed() -> None:
        async with asyncio.TaskGroup() as group:
            sending.sender._group = group
            await sending.sender.look(harness.now())
            while len(receiver.heard) < 8 or len(slow.heard) < 4:
                await asyncio.sleep(0)
                await sending.sender.look(harness.now())
            for lane in sending.sender._all():
                for task in lane.workers if lane.endpoint["name"] == "slow" else ():
                    task.cancel()

    harness.read(killed())
    assert len(slow.heard) == 4
    before = {name for _, name, _ in slow.heard}
    sending.again()
    sending.look()
    again = [name for to, name, _ in receiver.heard if to == "slow"]
    assert len(again) == len(set(again)) == 8 and before <= set(again)


def test_a_rate_is_kept_and_figures_are_told_s512(harness: Harness) -> None:
    """S500, S512: a minute's worth is a minute's; waiting, in flight, delivered, failed, dead, the oldest."""
    make(harness, SAID, rate_per_min=60_000)
    sending = Sending(harness, Receiver(BAD, OK))
    harness.send(decision_log(), decision_log())
    sending.look()
    harness.wait(20 * S)
    sending.sender._counted_at.clear()
    sending.look()
    received_ = {
        one.name.removeprefix("observatory_webhooks_"): one.value for one in sending.sender.measures()
    }
    assert (received_["delivered_total"], received_["failed_total"], received_["dead_total"]) == (1, 1, 0)
    assert (received_["waiting"], received_["in_flight"], received_["endpoints"]) == (1, 0, 1)
    assert 19 < received_["oldest_waiting_seconds"] < 40
    assert all(not one.labels for one in sending.sender.measures())


def test_a_backlog_before_one_that_hangs_is_not_asked_for_again_and_again_s500(harness: Harness) -> None:
    """S500: while its places are taken nothing more of it can be begun: the sender rests as ever."""
    make(harness, SAID)
    sending = Sending(harness, receiver := Receiver())
    receiver.hang = asyncio.Event()
    harness.send(*(decision_log() for _ in range(66)))
    rests: list[float] = []

    async def hung() -> None:
        async with asyncio.TaskGroup() as group:
            sending.sender._group = group
            await sending.sender.look(harness.now())
            rests.append(sending.sender._rest_s())
            assert receiver.hang is not None
            receiver.hang.set()

    harness.read(hung())
    assert rests == [LOOK_S]
    sending.look()
    assert len(receiver.heard) == 66


class Follower:
    """Another gateway leads, or none."""

    epoch: int | None = None

    async def lead(self) -> int | None:
        return self.epoch

    async def resign(self) -> None: ...


def test_who_does_not_lead_sends_nothing_s500(harness: Harness) -> None:
    """S500: the lease saves work; what is right does not hang on it."""
    make(harness, SAID)
    sending = Sending(harness, receiver := Receiver(BAD, OK), leader=(leader := Follower()))
    harness.send(decision_log())
    sending.look()
    assert receiver.heard == []
    leader.epoch = 1
    sending.look()
    leader.epoch = None
    sending.wait(40)
    assert len(receiver.heard) == 1 and all(not one.value for one in sending.sender.measures()[:5])
    leader.epoch = 3
    sending.look()
    assert len(receiver.heard) == 2, "who leads again knows at once what waits"


@pytest.mark.parametrize("is_answered", [False, True])
def test_a_try_that_cannot_be_written_down_is_not_repeated_at_once_s510(
    harness: Harness, is_answered: bool
) -> None:
    """S510: the disk is full, say: the receiver is not flooded, and has it again under the same id. The
    corridor raises that, or answers 503."""
    made = make(harness, SAID)
    sending = Sending(harness, receiver := Receiver())
    harness.send(decision_log())
    real, full = sending.submit, [False]

    async def submit(tenant_id: str, items: Sequence[Submission]) -> list[SubmissionResult]:
        if full[0] and is_answered:
            return [SubmissionResult(503, Refused(reason="not_durable")) for _ in items]
        if full[0]:
            raise NotDurable("the disk is full")
        full[0] = True  # after what is to be sent was queued
        return await real(tenant_id, items)

    sending.submit = submit  # type: ignore[method-assign]
    for _ in range(5):
        sending.look()
    assert len(receiver.heard) == 1 and deliveries(harness, made)[0]["attempts"] == 0
    sending.submit = real  # type: ignore[method-assign]
    for lane in sending.sender._all():
        lane.hurt = 0.0
    sending.look()
    assert len({name for _, name, _ in receiver.heard}) == 1 and len(receiver.heard) == 2
    assert deliveries(harness, made)[0]["state"] == "delivered"

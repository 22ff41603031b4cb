"""Group commit: doors hand in parcels, a lane turns what waits into one transaction.

Laws: bounded by count, bytes and time (a full queue answers 429, what waited for too long 503); per tenant in
arrival order; an answer leaves only after the commit; the bus hears only of committed rows. How a lane works
is told in `lane.py`.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from observatory.errors import GatewayStopped
from observatory.pipeline.lane import Lane
from observatory.pipeline.message_event import Service
from observatory.pipeline.ports import Notice, Writer
from observatory.pipeline.request import Judge, Parcel, Part
from observatory.pipeline.state import Submission, Verdict

HALF_OPEN_S = 5.0
EXPIRY_S = 0.5  # how often it is looked for messages that waited for too long, while any wait
# A thread keeps the interpreter for so long when others want it. The writing thread must get it back a few
# times each statement: with Python's 5 ms it would stand in line for longer than it writes.
SWITCH_S = 0.0005


class Counters:
    """What `/metrics` tells of the corridor; written by the lane, read by anyone."""

    def __init__(self) -> None:
        self.batches = 0
        self.committed = 0
        self.refused_batches = 0
        self.not_durable = 0
        self.largest_batch = 0
        self.commit_s = 0.0
        # When nothing could be made durable since the last success; None while all is well.
        self.failed_at: float | None = None


class Committer:
    def __init__(
        self,
        writer: Writer,
        service: Service,
        publish: Callable[[Notice], None],
        *,
        max_messages: int,
        max_bytes: int,
        batch_size: int,
        max_wait_s: float = 0.0,
        clock: Callable[[], int] = time.time_ns,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        """`max_wait_s`: a message that waited for longer is answered 503 and not committed; 0: no limit."""
        self.writer, self.service, self.clock = writer, service, clock
        self.max_messages, self.max_bytes, self.batch_size = max_messages, max_bytes, batch_size
        self.max_wait_s, self._elapsed = max_wait_s, elapsed
        self._expiry: asyncio.TimerHandle | None = None
        self.counters = Counters()
        self._publish = publish
        self._lanes = [Lane(self, number) for number in range(writer.lanes)]
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        sys.setswitchinterval(SWITCH_S)
        for lane in self._lanes:
            lane.start()

    async def stop(self) -> None:
        """Take nothing more, commit what waits, answer it, close."""
        if self._expiry is not None:
            self._expiry.cancel()
        for lane in self._lanes:
            lane.stop()
        for lane in self._lanes:
            await asyncio.to_thread(lane.join)

    @property
    def struggling(self) -> bool:
        """The last transaction tried was not durable, and that was just now.

        After a while the answer is optimistic again: whoever stopped sending because of it must send
        something before anyone can know that the disk has room.
        """
        failed = self.counters.failed_at
        return failed is not None and time.monotonic() - failed < HALF_OPEN_S

    @property
    def waiting(self) -> tuple[int, int]:
        return sum(lane.messages for lane in self._lanes), sum(lane.bytes for lane in self._lanes)

    def enqueue(self, tenant_id: str, items: Sequence[Submission]) -> asyncio.Future[list[Verdict]]:
        """Hand items in at once; the future holds one verdict for each, in order, when all is durable.

        Raises QueueFull or GatewayStopped, and then nothing was taken.
        """
        return self._put(tenant_id, items, [item.size for item in items], None)

    def enqueue_bodies(
        self, tenant_id: str, bodies: Sequence[Any], judge: Judge, sizes: list[int] | None = None
    ) -> asyncio.Future[list[Verdict]]:
        """The same for bodies as they came; the lane judges them. Of what is not bytes the sizes are told."""
        return self._put(tenant_id, bodies, sizes or [len(body) for body in bodies], judge)

    async def submit(self, tenant_id: str, items: Sequence[Submission]) -> list[Verdict]:
        """`enqueue` and wait. A caller that is cancelled loses the answer, never the act."""
        return await asyncio.shield(self.enqueue(tenant_id, items))

    def _put(
        self, tenant_id: str, items: Sequence[Any], sizes: list[int], judge: Judge | None
    ) -> asyncio.Future[list[Verdict]]:
        if self._loop is None:
            raise GatewayStopped("the gateway has not started")
        parcel = Parcel(len(items), self._loop)
        if not items:
            parcel.finish()
            return parcel.future
        now = self._elapsed()
        step = max(1, self.batch_size // 2)
        parts = [
            Part(parcel, i, items[i : i + step], sum(sizes[i : i + step]), judge, now)
            for i in range(0, len(items), step)
        ]
        self._lanes[self.writer.lane(tenant_id)].put(tenant_id, parts)
        if self.max_wait_s and self._expiry is None:
            self._expiry = self._loop.call_later(min(EXPIRY_S, self.max_wait_s), self._expire_again)
        return parcel.future

    def expire(self) -> int:
        """Answer the messages that waited for too long; how many requests were."""
        before, parcels = self._elapsed() - self.max_wait_s, list[Parcel]()
        for lane in self._lanes:
            parcels += lane.expire(before)
        for parcel in parcels:
            parcel.finish()
        return len(parcels)

    def _expire_again(self) -> None:
        self._expiry = None
        self.expire()
        if any(lane.has_messages for lane in self._lanes):
            assert self._loop is not None
            self._expiry = self._loop.call_later(min(EXPIRY_S, self.max_wait_s), self._expire_again)

    def done(self, tenant_id: str, sequence: int, parcels: list[Parcel]) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._announce, tenant_id, sequence, parcels)

    def _announce(self, tenant_id: str, sequence: int, parcels: list[Parcel]) -> None:
        for parcel in parcels:
            parcel.finish()
        if sequence:
            self._publish(Notice(tenant_id, sequence))

"""Group commit: endpoints enqueue requests, a lane turns what waits into one transaction.

Laws: bounded by count, bytes and time (a full queue answers 429, a message that waited too long 503); per
tenant in arrival order; a response is sent only after the commit; only committed rows are published on the
bus. `lane.py` describes how a lane works.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from observatory.errors import GatewayStopped
from observatory.pipeline.commit.lane import CommitLane
from observatory.pipeline.commit.request import BodyParser, Chunk, IngestRequest
from observatory.pipeline.message_event import ServiceInfo
from observatory.pipeline.ports import CommitNotice, Writer
from observatory.pipeline.state import Submission, SubmissionResult
from observatory.pipeline.write_path import WritePath

HALF_OPEN_S = 5.0
EXPIRY_S = 0.5  # interval of the check for expired messages, while any wait
# How long a thread keeps the interpreter when others wait for it. The writer thread needs it back a few
# times for each statement: with Python's 5 ms it would wait for longer than it writes.
SWITCH_S = 0.0005


class CommitCounters:
    """Counters of the write pipeline for `/metrics`; written by the lane, read anywhere."""

    def __init__(self) -> None:
        self.batches = 0
        self.committed = 0
        self.refused_batches = 0
        self.not_durable = 0
        self.largest_batch = 0
        self.commit_s = 0.0
        # When a commit last failed, if none has succeeded since.
        self.failed_at: float | None = None


class Committer:
    def __init__(
        self,
        writer: Writer,
        path: WritePath,
        service: ServiceInfo,
        publish: Callable[[CommitNotice], None],
        *,
        max_messages: int,
        max_bytes: int,
        batch_size: int,
        max_wait_s: float = 0.0,
        clock: Callable[[], int] = time.time_ns,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        """`max_wait_s`: a message that waited for longer is answered 503 and not committed; 0: no limit."""
        self.writer, self.path, self.service, self.clock = writer, path, service, clock
        self.max_messages, self.max_bytes, self.batch_size = max_messages, max_bytes, batch_size
        self.max_wait_s, self._elapsed = max_wait_s, elapsed
        self._expiry: asyncio.TimerHandle | None = None
        self.counters = CommitCounters()
        self._publish = publish
        self._lanes = [CommitLane(self, number) for number in range(writer.lanes)]
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        sys.setswitchinterval(SWITCH_S)
        for lane in self._lanes:
            lane.start()

    async def stop(self) -> None:
        """Accept nothing more, commit and answer what waits, close."""
        if self._expiry is not None:
            self._expiry.cancel()
        for lane in self._lanes:
            lane.stop()
        for lane in self._lanes:
            await asyncio.to_thread(lane.join)

    @property
    def is_store_failing(self) -> bool:
        """Whether the last transaction failed, and that was just now.

        After a while this is False again: clients that stopped sending must send something before the
        gateway can find out that the disk has space again.
        """
        failed = self.counters.failed_at
        return failed is not None and time.monotonic() - failed < HALF_OPEN_S

    @property
    def waiting(self) -> tuple[int, int]:
        return sum(lane.messages for lane in self._lanes), sum(lane.bytes for lane in self._lanes)

    def enqueue(self, tenant_id: str, items: Sequence[Submission]) -> asyncio.Future[list[SubmissionResult]]:
        """Enqueue items; the future returns one result for each, in order, once all are durable.

        Raises QueueFull or GatewayStopped; then nothing was accepted.
        """
        return self._put(tenant_id, items, [item.size for item in items], None)

    def enqueue_bodies(
        self, tenant_id: str, bodies: Sequence[Any], judge: BodyParser, sizes: list[int] | None = None
    ) -> asyncio.Future[list[SubmissionResult]]:
        """The same for raw bodies, which the lane parses. `sizes` is required for bodies that are not
        bytes."""
        return self._put(tenant_id, bodies, sizes or [len(body) for body in bodies], judge)

    async def submit(self, tenant_id: str, items: Sequence[Submission]) -> list[SubmissionResult]:
        """`enqueue` and wait. A caller that is cancelled loses the result; the command is still executed."""
        return await asyncio.shield(self.enqueue(tenant_id, items))

    def _put(
        self, tenant_id: str, items: Sequence[Any], sizes: list[int], judge: BodyParser | None
    ) -> asyncio.Future[list[SubmissionResult]]:
        if self._loop is None:
            raise GatewayStopped("the gateway has not started")
        request = IngestRequest(len(items), self._loop)
        if not items:
            request.finish()
            return request.future
        now = self._elapsed()
        step = max(1, self.batch_size // 2)
        parts = [
            Chunk(request, i, items[i : i + step], sum(sizes[i : i + step]), judge, now)
            for i in range(0, len(items), step)
        ]
        self._lanes[self.writer.lane(tenant_id)].put(tenant_id, parts)
        if self.max_wait_s and self._expiry is None:
            self._expiry = self._loop.call_later(min(EXPIRY_S, self.max_wait_s), self._expire_again)
        return request.future

    def expire(self) -> int:
        """Answer the messages that waited too long; returns the number of requests completed by that."""
        before, requests = self._elapsed() - self.max_wait_s, list[IngestRequest]()
        for lane in self._lanes:
            requests += lane.expire(before)
        for request in requests:
            request.finish()
        return len(requests)

    def _expire_again(self) -> None:
        self._expiry = None
        self.expire()
        if any(lane.has_messages for lane in self._lanes):
            assert self._loop is not None
            self._expiry = self._loop.call_later(min(EXPIRY_S, self.max_wait_s), self._expire_again)

    def done(self, tenant_id: str, sequence: int, requests: list[IngestRequest]) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._announce, tenant_id, sequence, requests)

    def _announce(self, tenant_id: str, sequence: int, requests: list[IngestRequest]) -> None:
        for request in requests:
            request.finish()
        if sequence:
            self._publish(CommitNotice(tenant_id, sequence))

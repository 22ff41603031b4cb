"""Group commit: doors hand in parcels, a thread per lane turns what waits into one transaction.

Laws: bounded (a full queue answers 429, nothing waits unseen); per tenant in arrival order; an answer
leaves only after the commit; the bus hears only of committed rows. A batch the database refuses is
rolled back and run again in halves until the culprit stands alone and is answered by itself.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from observatory.errors import GatewayStopped, NotDurable, QueueFull, StatementFailed
from observatory.gateway.pipeline import Batch
from observatory.gateway.record import Service
from observatory.ports import Notice, Writer
from observatory.protocol.answers import Fault, Refused, Rejected
from observatory.state import Act, Arrival, Breach, Memory, Submission, Verdict

log = logging.getLogger("observatory.gateway")
# For so many tenants a lane keeps what it knows between batches.
KNOWN_TENANTS = 32
HALF_OPEN_S = 5.0


# Reads one body: what goes on to the corridor, or the answer when nothing does.
Judge = Callable[[bytes], Submission | Verdict]
FAILED = Verdict(500, Refused(reason="internal_error", detail="this message was not accepted"))


class Parcel:
    """What one request handed in; its future is answered when every part of it is."""

    def __init__(self, size: int, loop: asyncio.AbstractEventLoop) -> None:
        self.verdicts: list[Verdict | None] = [None] * size
        self.missing = size
        self.future: asyncio.Future[list[Verdict]] = loop.create_future()

    def finish(self) -> None:
        if not self.future.done():  # the client may be gone; its messages are durable all the same
            self.future.set_result([verdict for verdict in self.verdicts if verdict is not None])


class Part:
    """A share of a parcel, small enough for one transaction.

    A door hands in bodies as they came; they are judged here, in the lane's thread. Judged at the door they
    would contend with the lane for the interpreter (a tenth more CPU a message) and hold up every other
    client while a long batch is read.
    """

    __slots__ = ("_items", "_judge", "count", "offset", "parcel", "size")

    def __init__(
        self, parcel: Parcel, offset: int, items: Sequence[Any], size: int, judge: Judge | None
    ) -> None:
        self.parcel, self.offset, self.count, self.size = parcel, offset, len(items), size
        self._items, self._judge = items, judge

    def judged(self) -> list[Submission | Verdict]:
        if self._judge is None:
            return list(self._items)
        try:
            return [self._judge(body) for body in self._items]
        except Exception as error:  # noqa: BLE001 - a defect of ours; the lane must live on
            _tell_defect(error)
            return [FAILED] * self.count


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


class Lane:
    """One queue, one thread, one writer connection."""

    def __init__(self, committer: Committer, number: int) -> None:
        self._committer = committer
        self._number = number
        self._waiting: dict[str, deque[Part]] = {}
        self._turn: deque[str] = deque()
        self._ready = threading.Condition()
        self._stopping = False
        self._known: dict[str, Memory] = {}
        self.messages = 0
        self.bytes = 0
        self._thread = threading.Thread(target=self._work, name=f"lane-{number}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def put(self, tenant_id: str, parts: list[Part]) -> None:
        count = sum(part.count for part in parts)
        size = sum(part.size for part in parts)
        with self._ready:
            if self._stopping:
                raise GatewayStopped("the gateway is stopping")
            full = (
                self.messages + count > self._committer.max_messages
                or self.bytes + size > self._committer.max_bytes
            )
            if full and self.messages:  # an empty queue takes any one parcel the door let through
                raise QueueFull
            self.messages += count
            self.bytes += size
            queue = self._waiting.get(tenant_id)
            if queue is None:
                queue = self._waiting[tenant_id] = deque()
                self._turn.append(tenant_id)
            queue.extend(parts)
            self._ready.notify()

    def stop(self) -> None:
        with self._ready:
            self._stopping = True
            self._ready.notify()

    def join(self) -> None:
        self._thread.join()

    def _take(self) -> tuple[str, list[Part]] | None:
        """The next tenant's waiting parts, up to one batch; None when stopped and empty."""
        with self._ready:
            while not self._turn:
                if self._stopping:
                    return None
                self._ready.wait()
            tenant_id = self._turn.popleft()
            queue, count = self._waiting[tenant_id], 0
            parts: list[Part] = []
            while queue and (not parts or count + queue[0].count <= self._committer.batch_size):
                parts.append(queue.popleft())
                count += parts[-1].count
                self.bytes -= parts[-1].size
            if queue:
                self._turn.append(tenant_id)
            else:
                del self._waiting[tenant_id]
            self.messages -= count
            return tenant_id, parts

    def _work(self) -> None:
        while (taken := self._take()) is not None:
            tenant_id, parts = taken
            judged = [one for part in parts for one in part.judged()]
            items = [one for one in judged if not isinstance(one, Verdict)]
            found, sequence = self._commit(tenant_id, items) if items else ([], 0)
            rest = iter(found)
            verdicts = [one if isinstance(one, Verdict) else next(rest) for one in judged]
            finished, start = [], 0
            for part in parts:
                end = start + part.count
                parcel = part.parcel
                parcel.verdicts[part.offset : part.offset + part.count] = verdicts[start:end]
                parcel.missing -= part.count
                if parcel.missing == 0:
                    finished.append(parcel)
                start = end
            self._committer.done(tenant_id, sequence, finished)
        self._committer.writer.close_lane(self._number)

    def _commit(self, tenant_id: str, items: Sequence[Submission]) -> tuple[list[Verdict], int]:
        """The verdicts, and the head after the last commit (0 when nothing was committed)."""
        committer = self._committer
        batch = Batch(committer.service, tenant_id, items, committer.clock())
        known = self._known.pop(tenant_id, None)  # a failed batch leaves nothing to go on from
        started = time.perf_counter()
        try:
            verdicts, memory = committer.writer.transact(self._number, lambda tx: batch.run(tx, known))
        except NotDurable as error:
            committer.counters.not_durable += 1
            committer.counters.failed_at = time.monotonic()
            log.error("nothing can be made durable: %s", error)
            detail = "the gateway cannot store anything now; nothing was accepted, send it again later"
            return [Verdict(503, Refused(reason="not_durable", detail=detail)) for _ in items], 0
        except Exception as error:  # noqa: BLE001 - a row the database refuses, or a defect of ours: find whose it is
            committer.counters.refused_batches += 1
            if len(items) > 1:
                middle = len(items) // 2
                left, first = self._commit(tenant_id, items[:middle])
                right, second = self._commit(tenant_id, items[middle:])
                return left + right, max(first, second)
            return self._answer_culprit(tenant_id, items[0], error)
        if (kept := memory.settled()) is not None:
            self._known[tenant_id] = kept
            if len(self._known) > KNOWN_TENANTS:  # oldest first: a tenant is put back at the end each time
                del self._known[next(iter(self._known))]
        committer.counters.batches += 1
        committer.counters.failed_at = None
        committer.counters.committed += len(items)
        committer.counters.largest_batch = max(committer.counters.largest_batch, len(items))
        committer.counters.commit_s += time.perf_counter() - started
        return verdicts, memory.head.sequence_number

    def _answer_culprit(
        self, tenant_id: str, item: Submission, error: Exception
    ) -> tuple[list[Verdict], int]:
        if isinstance(error, StatementFailed) and isinstance(item, Arrival):
            digest = "sha256:" + item.message.digest.hex()
            fault = Fault(path="", problem="the database cannot store this message")
            answer = Rejected(reason="not_storable", faults=(fault,), raw_payload_hash=digest)
            breach = Breach(
                principal=item.principal,
                received_ns=item.received_ns,
                agent_id=None,
                capability_version=None,
                reason=fault.problem,
                raw_payload_hash=digest,
                answer=answer,
            )
            return self._commit(tenant_id, [breach])
        if isinstance(error, StatementFailed) and isinstance(item, Act):
            return [Verdict(409, Refused(reason="conflict", detail="this contradicts what is stored"))], 0
        _tell_defect(error)
        return [FAILED], 0


def _tell_defect(error: Exception) -> None:
    """Only the type and place: an error's text may quote a payload."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace else "?"
    log.error("a submission failed: %s at %s", type(error).__name__, place)


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
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self.writer, self.service, self.clock = writer, service, clock
        self.max_messages, self.max_bytes, self.batch_size = max_messages, max_bytes, batch_size
        self.counters = Counters()
        self._publish = publish
        self._lanes = [Lane(self, number) for number in range(writer.lanes)]
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        for lane in self._lanes:
            lane.start()

    async def stop(self) -> None:
        """Take nothing more, commit what waits, answer it, close."""
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
        self, tenant_id: str, bodies: Sequence[bytes], judge: Judge
    ) -> asyncio.Future[list[Verdict]]:
        """The same for bodies as they came; the lane judges them."""
        return self._put(tenant_id, bodies, [len(body) for body in bodies], judge)

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
        step = max(1, self.batch_size // 2)
        parts = [
            Part(parcel, i, items[i : i + step], sum(sizes[i : i + step]), judge)
            for i in range(0, len(items), step)
        ]
        self._lanes[self.writer.lane(tenant_id)].put(tenant_id, parts)
        return parcel.future

    def done(self, tenant_id: str, sequence: int, parcels: list[Parcel]) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._announce, tenant_id, sequence, parcels)

    def _announce(self, tenant_id: str, sequence: int, parcels: list[Parcel]) -> None:
        for parcel in parcels:
            parcel.finish()
        if sequence:
            self._publish(Notice(tenant_id, sequence))

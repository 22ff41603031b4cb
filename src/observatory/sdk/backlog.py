"""`SendBacklog`: the lines still to be sent, in order: leftover spools, own spool, memory.

Rule: everything on disk is older than everything in memory, so moving memory to disk moves all of it, the
batch in flight first. A line is dropped only when it was answered, or when memory *and* disk are full. No
threads and no locks here: the outbox calls it under its own lock.
"""

import logging
from collections import deque
from collections.abc import Sequence
from weakref import WeakValueDictionary

from observatory.sdk.credentials import GatewayCredentials
from observatory.sdk.delivery import Delivery
from observatory.sdk.errors import Lost
from observatory.sdk.spool import Spool
from observatory.sdk.step import Step

log = logging.getLogger("observatory.sdk")
BATCH_BYTES = 4 << 20


class SendBatch:
    """Lines in flight, and the steps that wait for their answers."""

    def __init__(self, lines: list[bytes], steps: Sequence[Step | None], spool: Spool | None) -> None:
        self.lines = lines
        self.steps = steps
        self.spool = spool  # the spool that starts with these lines; None while they are only in memory


class SendBacklog:
    def __init__(self, name: str, credentials: GatewayCredentials, delivery: Delivery) -> None:
        self.name = name
        self.lost = 0
        self.taken_n = self.settled_n = 0
        self.queue: deque[tuple[bytes, Step]] = deque()
        self.disk_failed = False
        self._queued_bytes = 0
        self._credentials = credentials
        self._folder = credentials.data / "spool"
        self._delivery = delivery
        self._flight: SendBatch | None = None
        self._adopted: list[Spool] = []
        self._spool: Spool | None = None
        self._unsynced = False
        # Steps still referenced, by their line's number in the own spool: memory stays bounded.
        self._spooled: WeakValueDictionary[int, Step] = WeakValueDictionary()
        self._spooled_n = self._drained_n = 0

    def find_leftovers(self) -> list[Spool]:
        return Spool.adopt(self._folder, self.name, self._credentials.display_url, self._delivery.spool_bytes)

    def adopt(self, spools: list[Spool]) -> None:
        self._adopted = spools

    @property
    def on_disk(self) -> Spool | None:
        """The next spool to send."""
        for spool in (*self._adopted, self._spool):
            if spool is not None and spool.pending:
                return spool
        return None

    @property
    def has_leftovers(self) -> bool:
        return any(spool.pending for spool in self._adopted)

    @property
    def in_memory(self) -> int:
        flight = self._flight
        return len(self.queue) + (len(flight.lines) if flight is not None and flight.spool is None else 0)

    def put(self, line: bytes, step: Step) -> bool:
        """Queue one line; if memory is full, move it all to disk first. False if disk and memory are full."""
        if self._is_full(line):
            if not self.disk_failed:  # else the sender retries it at intervals: every step would be slow
                self.spill()
            if self._is_full(line):
                self._lose(step)
                return False
        self.taken_n += 1
        self._queued_bytes += len(line)
        self.queue.append((line, step))
        return True

    def _is_full(self, line: bytes) -> bool:
        if not self.queue:  # one line is always accepted, however long
            return False
        return (
            len(self.queue) >= self._delivery.max_queue
            or self._queued_bytes + len(line) > self._delivery.queue_bytes
        )

    def next_batch(self, max_lines: int) -> SendBatch | None:
        """The oldest lines. They stay in the backlog until `take_back`."""
        spool = self.on_disk
        if spool is not None:
            lines = spool.peek(max_lines, BATCH_BYTES)
            numbers = range(self._drained_n, self._drained_n + len(lines))
            steps = [self._spooled.get(n) if spool is self._spool else None for n in numbers]
            self._flight = SendBatch(lines, steps, spool) if lines else None
            return self._flight
        size = 0
        taken: list[tuple[bytes, Step]] = []
        while self.queue and len(taken) < max_lines and size < BATCH_BYTES:
            taken.append(self.queue.popleft())
            size += len(taken[-1][0])
        self._queued_bytes -= size
        lines, steps = [line for line, _ in taken], [step for _, step in taken]
        self._flight = SendBatch(lines, steps, None) if taken else None
        return self._flight

    def take_back(self, n: int) -> None:
        """`n` lines of the batch in flight are settled; the others return to their place."""
        batch, self._flight = self._flight, None
        if batch is None:
            return
        if batch.spool is None:
            rest = zip(batch.lines[n:], batch.steps[n:], strict=True)
            self.queue.extendleft(reversed([(line, step) for line, step in rest if step is not None]))
            self._queued_bytes += sum(map(len, batch.lines[n:]))
            self.settled_n += n
            return
        if n:
            batch.spool.advance(sum(len(line) + 1 for line in batch.lines[:n]))
        if batch.spool is self._spool:
            self._drained_n += n
            self.settled_n += n
        if not batch.spool.pending:
            self._drop(batch.spool)

    def _drop(self, drained: Spool) -> None:
        """Remove a drained file, including the own spool: the next outage starts a new one with its full
        size."""
        if drained is self._spool:
            self._spool, self._unsynced, self.disk_failed = None, False, False
        else:
            self._adopted.remove(drained)
        drained.release()

    def spill(self) -> None:
        """Move memory to the spool as far as it fits: lines in flight first, they are older."""
        flight = self._flight
        try:
            if flight is not None and flight.spool is None:
                if self._to_disk(flight.lines, flight.steps, whole=True) < len(flight.lines):
                    return
                flight.spool = self._spool
            if self.queue:
                lines, steps = [line for line, _ in self.queue], [step for _, step in self.queue]
                for _ in range(self._to_disk(lines, steps)):
                    self._queued_bytes -= len(self.queue.popleft()[0])
        except OSError as exc:
            self._warn(f"cannot be written ({exc.strerror})")
        else:
            self.disk_failed = self.disk_failed and bool(self.queue)

    def _to_disk(self, lines: list[bytes], steps: Sequence[Step | None], whole: bool = False) -> int:
        if self._spool is None:
            room = self._delivery.spool_bytes
            self._spool = Spool.create(self._folder, self.name, self._credentials.display_url, room)
        n = self._spool.fits(lines)
        if n < len(lines):
            self._warn(f"is full ({self._delivery.spool_bytes} bytes)")
        if n == 0 or (whole and n < len(lines)):
            return 0
        self._spool.append(lines[:n])
        self._unsynced = True
        for number, step in enumerate(steps[:n], self._spooled_n):
            if step is not None:
                self._spooled[number] = step
        self._spooled_n += n
        return n

    def to_sync(self) -> Spool | None:
        """The spool that needs a flush to the device; returned once."""
        spool, self._unsynced = self._spool if self._unsynced else None, False
        return spool

    def not_synced(self, spool: Spool, exc: OSError) -> None:
        """The flush failed: it is retried in the next turn."""
        self._unsynced = spool is self._spool
        self._warn(f"cannot be flushed ({exc.strerror})")

    def release(self) -> str:
        """Move everything to disk and close the spools; returns a message about what is left, or an empty
        string."""
        self.spill()
        left = []
        for spool in (*self._adopted, self._spool):
            if spool is None:
                continue
            if spool.pending:
                left.append(str(spool.path))
                try:
                    spool.sync()
                except OSError as exc:
                    self._warn(f"cannot be flushed ({exc.strerror})")
            spool.release()
        self._adopted, self._spool = [], None
        for step in list(self._spooled.values()):
            if step.outcome is None:
                step.settle(None)
        if not left:
            return ""
        return f"messages left in {', '.join(left)}: {self._spooled_n - self._drained_n}"

    def give_up_memory(self) -> int:
        """At the very end, if the disk accepts nothing: lines still in memory are lost, and logged."""
        flight = self._flight
        unsent = flight.steps if flight is not None and flight.spool is None else ()
        left = [*unsent, *(step for _, step in self.queue)]
        self._flight, self._queued_bytes = None, 0
        self.queue.clear()
        for step in left:
            if step is not None:
                self._lose(step)
        return len(left)

    def forget(self) -> None:
        """In a forked child: everything belongs to the parent."""
        for spool in (*self._adopted, self._spool):
            if spool is not None:
                spool.forget()

    def recovered(self) -> None:
        """Lines are being sent again: warn again the next time the disk fills up."""
        self.disk_failed = self.disk_failed and bool(self.queue)

    def _warn(self, how: str) -> None:
        if not self.disk_failed:
            self.disk_failed = True
            room = self._delivery.max_queue - len(self.queue)
            log.warning("%s: the spool in %s %s; messages that still fit in memory before any are lost: %d",
                        self.name, self._folder, how, room)  # fmt: skip

    def _lose(self, step: Step) -> None:
        self.lost += 1
        if self.lost == 1 or self.lost % 1000 == 0:
            log.error("%s: memory and spool are full: messages lost so far: %d", self.name, self.lost)
        step.settle(Lost(f"step {step.step_id} was lost: memory and spool of {self.name} were full"))

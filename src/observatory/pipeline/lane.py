"""One lane: batches of its tenants are thought about in one thread and written in another.

Laws: per tenant in arrival order; one batch is written at a time, and at most one more is thought about
meanwhile; a batch that was thought about without the lock is written only if the chain's head is where the
thinking began, else it is thought about again under the lock. What changes a session, an agent, a member,
a key, the rulebook or a step appends an event, so an unmoved head proves that what was read, or foreseen
from the batch before, is true. A batch the database refuses is run again in halves until the culprit
stands alone and is answered by itself. A message that waits for longer than `queue_wait_s` is refused and
never written; once its batch is handed to the writing it is too late for that.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from observatory.errors import GatewayStopped, NotDurable, QueueFull, StatementFailed
from observatory.pipeline.failures import failed
from observatory.pipeline.piggyback import Rider, Riders
from observatory.pipeline.pipeline import Batch
from observatory.pipeline.ports import Transaction
from observatory.pipeline.request import FAILED, Job, Parcel, Part, tell_defect
from observatory.pipeline.state import Act, Arrival, Memory, Submission, Verdict, Wants
from observatory.protocol.answers import Fault, Refused, Rejected

if TYPE_CHECKING:
    from observatory.pipeline.committer import Committer

log = logging.getLogger("observatory.pipeline")
# For so many tenants a lane keeps what it knows between batches.
KNOWN_TENANTS = 32
# While a batch is written, fewer than this are not begun with: they join the others at its commit.
WORTH = 16
# So much is thought about before it is seen whether the writing is done and waits for more.
STRIDE = 400
# A tenant somebody else appends to as well is run under the lock for a while: foresight would fail again. For
# one batch at first, for twice as many each time it fails once more, half as many each time it holds.
CAUTION = 32


class Lane:
    """One queue, two threads, two connections: one to read ahead, one to write."""

    def __init__(self, committer: Committer, number: int) -> None:
        self._committer = committer
        self._number = number
        self._waiting: dict[str, deque[Part]] = {}
        self._turn: deque[str] = deque()
        lock = threading.Lock()
        self._ready = threading.Condition(lock)  # for the thinking: work waits, or the writing is done
        self._handed = threading.Condition(lock)  # for the writing: a job, or the end
        self._wanted = 1  # so many must wait before the thinking is woken
        self._open: str | None = (
            None  # the tenant whose batch is thought about; its turn is over when that is
        )
        self._writing: Job | None = None
        self._ahead: Job | None = None  # thought about, and not handed to the writing yet
        self._riders = Riders(committer.writer.mixes_tenants)  # acts that add nothing wait here for a batch
        self._stopping = self._over = False
        self._known: dict[str, Memory] = {}
        self._caution: dict[str, int] = {}  # batches still to be run under the lock
        self._failed: dict[str, int] = {}  # how many there were after foresight last failed
        self.messages = 0
        self.bytes = 0
        self._thread = threading.Thread(target=self._work, name=f"lane-{number}", daemon=True)
        self._scribe = threading.Thread(target=self._write_jobs, name=f"lane-{number}-write", daemon=True)

    def start(self) -> None:
        self._scribe.start()
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
            rides = all(part.rides for part in parts)
            if rides:  # with whatever is written next; its tenant has a turn, should nothing be
                self._riders.wait(tenant_id, parts)
            else:
                self.messages += count
                self.bytes += size
                self._waiting.setdefault(tenant_id, deque()).extend(parts)
            if tenant_id != self._open and tenant_id not in self._turn:
                self._turn.append(tenant_id)
            if self.messages >= self._wanted or (rides and self._writing is None):
                self._ready.notify()

    def expire(self, before: float) -> list[Parcel]:
        """Refuse what came before then and is not being written; parcels that are whole by that.

        Acts stay: who hands one in waits for what became of it. A batch that was thought about ahead is
        refused by its own thread, which is woken here.
        """
        with self._ready:
            late = [part for tenant_id in list(self._waiting) for part in self._late(tenant_id, before)]
            job = self._ahead
            if job is not None and job.since is not None and job.since < before:
                job.is_late = True
                self._ready.notify()
        return [part.parcel for part in late if part.refuse()]

    def _late(self, tenant_id: str, before: float) -> list[Part]:
        """Taken out of the queue of a tenant; the lock is held."""
        queue = self._waiting[tenant_id]
        if queue[0].since >= before:  # the oldest
            return []
        late = [part for part in queue if part.since < before and not part.has_acts]
        for part in late:
            self.messages -= part.count
            self.bytes -= part.size
        left = deque(part for part in queue if part.since >= before or part.has_acts)
        if left:
            self._waiting[tenant_id] = left
        else:
            del self._waiting[tenant_id]
        return late

    @property
    def has_messages(self) -> bool:
        """Something waits, or is thought about."""
        return self.messages > 0 or self._ahead is not None

    def stop(self) -> None:
        with self._ready:
            self._stopping = True
            self._ready.notify()

    def join(self) -> None:
        self._thread.join()

    def _work(self) -> None:
        while (job := self._begin()) is not None:
            self._think(job, job.take(self._parts(job, min(STRIDE, self._committer.batch_size))))
            self._grow(job)
            self._hand_over(job)
        with self._ready:
            self._over = True
            self._handed.notify()
        self._scribe.join()
        self._committer.writer.close_lane(self._number)

    def _begin(self) -> Job | None:
        """The tenant whose turn it is; None when stopped and empty."""
        with self._ready:
            while True:
                while not self._turn or (self._writing is not None and self.messages < WORTH):
                    if self._stopping and not self._turn:
                        return None
                    self._wanted = 1 if self._writing is None else WORTH
                    self._ready.wait()
                tenant_id = self._turn.popleft()
                # Its acts may have ridden with another's batch by now.
                if tenant_id in self._waiting or tenant_id in self._riders:
                    self._open = tenant_id
                    self._ahead = Job(tenant_id)
                    return self._ahead

    def _parts(self, job: Job, limit: int) -> list[Part]:
        """What waits of this tenant, up to a limit.

        Acts and messages never share a batch: what is behind an act, as a key's end, is decided after it.
        """
        with self._ready:
            queue = self._waiting.get(job.tenant_id)
            if queue is None:
                return []
            count, parts, acts = 0, list[Part](), (job.parts or queue)[0].has_acts
            while queue and queue[0].has_acts == acts:
                if (parts or job.parts) and count + queue[0].count > limit:
                    break
                parts.append(queue.popleft())
                if job.since is None and not acts:
                    job.since = parts[-1].since
                count += parts[-1].count
                self.bytes -= parts[-1].size
            self.messages -= count
            if not queue:
                del self._waiting[job.tenant_id]
            return parts

    def _think(self, job: Job, items: list[Submission]) -> None:
        """Decide over these without the lock, if that can be done; else the job is left to the lock."""
        if not job.is_ahead or not items:
            return
        if job.parts[0].has_acts:
            job.is_ahead = False
            return
        committer = self._committer
        batch = Batch(committer.service, job.tenant_id, items, committer.clock())
        wants = batch.wants()
        if wants.rows or wants.addresses or wants.releases or wants.waiting:
            # Rare rows, and who is meant by an address: not all that changes these is in the memory before.
            job.is_ahead = False
            return
        try:
            if job.memory is None:
                job.memory = self._look(job, wants)
            else:
                committer.writer.look_more(self._number, job.memory, wants)
            if job.memory is not None:
                more = batch.settle(job.memory)
                if more is not None:
                    committer.writer.look_more(self._number, job.memory, more)
                job.verdicts += batch.think(job.memory, job.changes)
        except Exception:  # noqa: BLE001 - under the lock it is found out whose fault it is, and answered
            job.is_ahead = False

    def _look(self, job: Job, wants: Wants) -> Memory | None:
        with self._ready:
            before = self._writing
            if before is not None and before.tenant_id == job.tenant_id:
                if before.is_followable:
                    job.rests_on = before
                else:
                    self._await_writing(job)
            caution = self._caution.pop(job.tenant_id, 0)
            if caution > 1:
                self._caution[job.tenant_id] = caution - 1
            known = None if caution else self._known.pop(job.tenant_id, None)
        memory = None
        if not caution:
            follows = job.rests_on is not None
            memory = self._committer.writer.look(self._number, job.tenant_id, wants, known, follows)
        job.is_ahead = memory is not None
        job.base = memory.head if memory is not None else None
        return memory

    def _await_writing(self, job: Job) -> None:
        """Until nothing is being written, or the job is too late; the lock is held."""
        self._wanted = self._committer.max_messages + 1
        while self._writing is not None and not job.is_late:
            self._ready.wait()

    def _grow(self, job: Job) -> None:
        """Until the writing is done, think about what came meanwhile: it goes into the same transaction."""
        size = self._committer.batch_size
        while True:
            with self._ready:
                while self._writing is not None and not job.is_late:
                    room = size - len(job.judged)
                    queue = self._waiting.get(job.tenant_id)
                    fits = queue and queue[0].count <= room and not queue[0].has_acts
                    if job.is_ahead and fits and self.messages >= WORTH:
                        break
                    self._wanted = WORTH if job.is_ahead and room > 0 else self._committer.max_messages + 1
                    self._ready.wait()
                else:
                    break
            self._think(job, job.take(self._parts(job, min(room, STRIDE))))
        if not job.is_ahead and not job.is_late:
            job.take(self._parts(job, size - len(job.judged)))

    def _hand_over(self, job: Job) -> None:
        """Build the rows; from here on the memory belongs to the next batch. Nothing is being written now."""
        if self._give_up(job):
            return
        if job.rests_on is not None and not job.rests_on.stands:
            job.is_ahead = False  # it was foreseen from what did not come to be
        job.rests_on = None
        if job.is_ahead and job.memory is not None and job.base is not None:
            try:
                job.finished = self._committer.writer.finish(job.base, job.memory, job.changes)
                job.known = job.memory.settled(keeps_steps=True)
            except Exception:  # noqa: BLE001 - as above: the lock's way finds the culprit
                job.finished = job.known = None
        with self._ready:
            if job.finished is None and job.memory is None:
                job.known = self._known.pop(job.tenant_id, None)
            elif job.known is not None:
                self._remember(job)
            # Its next turn comes after everyone else's who waits by now.
            self._open = None
            if job.tenant_id in self._waiting:
                self._turn.append(job.tenant_id)
            self._writing = job
            self._handed.notify()

    def _give_up(self, job: Job) -> bool:
        """Whether it waited for too long: then it is answered and not written. Else it is written now."""
        with self._ready:
            self._ahead = None
            if not job.is_late:
                return False
            self._open = None
            if job.tenant_id in self._waiting or job.tenant_id in self._riders:
                self._turn.append(job.tenant_id)
        self._committer.done(job.tenant_id, 0, [part.parcel for part in job.parts if part.refuse()])
        return True

    def _remember(self, job: Job) -> None:
        """For the next batch of this tenant; the lock is held."""
        self._known.pop(job.tenant_id, None)
        if job.known is not None:
            self._known[job.tenant_id] = job.known
            if len(self._known) > KNOWN_TENANTS:  # oldest first: a tenant is put back at the end each time
                del self._known[next(iter(self._known))]

    def _write_jobs(self) -> None:
        while True:
            with self._handed:
                while self._writing is None:
                    if self._over:
                        return
                    self._handed.wait()
                job = self._writing
                riders = self._riders.board(job.tenant_id)
            sequence = self._settle(job, riders)
            self._ride_alone([rider for rider in riders if not rider.is_done])
            with self._ready:
                if not job.stands:
                    self._remember(job)
                self._writing = None
                self._ready.notify()
            self._answer(job, sequence, riders)

    def _settle(self, job: Job, riders: list[Rider]) -> int:
        """Make it durable, or find out why not; the head after it (0 when nothing was committed)."""
        writer = self._committer.writer
        started = time.perf_counter()
        if job.finished is not None and job.memory is not None:
            try:
                has_rows = bool(job.changes.audit or job.changes.writes)
                job.stands = not has_rows or writer.write(
                    self._number,
                    job.finished,
                    lambda transaction: self._ride(transaction, riders, job.memory),
                )
            except NotDurable as error:
                job.known, job.verdicts = None, self._not_durable(error, len(job.items))
                return 0
            except Exception:  # noqa: BLE001 - it is found again under the lock, and answered
                log.debug("a batch thought about ahead was refused")
            else:
                for rider in riders if has_rows else ():
                    rider.is_done = True
                if job.stands:
                    if (failed := self._failed.pop(job.tenant_id, 0) // 2) > 1:
                        self._failed[job.tenant_id] = failed
                    self._count(len(job.items), started)
                    return job.memory.head.sequence_number
                self._failed[job.tenant_id] = min(CAUTION, 2 * self._failed.get(job.tenant_id, 1))
                self._caution[job.tenant_id] = self._failed[job.tenant_id] - 1
            job.known = None
        if not job.items:
            return 0
        job.verdicts, sequence, job.known = self._run_locked(job.tenant_id, job.items, job.known)
        return sequence

    def _ride(self, transaction: Transaction, riders: list[Rider], beside: Memory | None = None) -> None:
        for rider in riders:
            rider.decide(self._committer.service, transaction, self._committer.clock(), beside)

    def _ride_alone(self, riders: list[Rider]) -> None:
        """Those whose batch was not written, or who had none: together, and if that fails each by itself."""
        if not riders:
            return
        try:
            self._committer.writer.transact(self._number, lambda transaction: self._ride(transaction, riders))
        except Exception:  # noqa: BLE001 - as above: whose fault it is shows when each is run by itself
            for rider in riders:
                rider.verdicts, _, _ = self._run_locked(rider.tenant_id, rider.items, None)

    def _count(self, messages: int, started: float) -> None:
        counters = self._committer.counters
        counters.batches += 1
        counters.failed_at = None
        counters.committed += messages
        counters.largest_batch = max(counters.largest_batch, messages)
        counters.commit_s += time.perf_counter() - started

    def _not_durable(self, error: NotDurable, count: int) -> list[Verdict]:
        counters = self._committer.counters
        counters.not_durable += 1
        counters.failed_at = time.monotonic()
        log.error("nothing can be made durable: %s", error)
        detail = "the gateway cannot store anything now; nothing was accepted, send it again later"
        return [Verdict(503, Refused(reason="not_durable", detail=detail)) for _ in range(count)]

    def _answer(self, job: Job, sequence: int, riders: list[Rider]) -> None:
        rest = iter(job.verdicts)
        verdicts = [one if isinstance(one, Verdict) else next(rest) for one in job.judged]
        finished, start = [parcel for rider in riders for parcel in rider.answered()], 0
        for part in job.parts:
            if part.answer(verdicts[start : start + part.count]):
                finished.append(part.parcel)
            start += part.count
        self._committer.done(job.tenant_id, sequence, finished)

    def _run_locked(
        self, tenant_id: str, items: Sequence[Submission], known: Memory | None
    ) -> tuple[list[Verdict], int, Memory | None]:
        """The safe way: lock, load, think, save, commit. The verdicts, the head after the last commit (0 when
        nothing was committed) and what the next batch may recall: a failed one leaves nothing."""
        committer = self._committer
        batch = Batch(committer.service, tenant_id, items, committer.clock())
        started = time.perf_counter()
        try:
            verdicts, memory = committer.writer.transact(self._number, lambda tx: batch.run(tx, known))
        except NotDurable as error:
            return self._not_durable(error, len(items)), 0, None
        except Exception as error:  # noqa: BLE001 - a row the database refuses, or a defect of ours: find whose it is
            committer.counters.refused_batches += 1
            if len(items) > 1:
                middle = len(items) // 2
                left, first, kept = self._run_locked(tenant_id, items[:middle], None)
                right, second, kept = self._run_locked(tenant_id, items[middle:], kept)
                return left + right, max(first, second), kept
            return self._answer_culprit(tenant_id, items[0], error)
        self._count(len(items), started)
        return verdicts, memory.head.sequence_number, memory.settled()

    def _answer_culprit(
        self, tenant_id: str, item: Submission, error: Exception
    ) -> tuple[list[Verdict], int, Memory | None]:
        if isinstance(error, StatementFailed) and isinstance(item, Arrival):
            digest = "sha256:" + item.message.digest.hex()
            fault = Fault(path="", problem="the database cannot store this message")
            answer = Rejected(reason="not_storable", faults=(fault,), raw_payload_hash=digest)
            return self._tell_error(tenant_id, item, Verdict(422, answer), fault.problem)
        if isinstance(error, StatementFailed) and isinstance(item, Act):
            refused = Refused(reason="conflict", detail="this contradicts what is stored")
            return [Verdict(409, refused)], 0, None
        tell_defect(error)
        problem = f"a defect of the gateway: {type(error).__name__}"
        return self._tell_error(tenant_id, item, FAILED, problem)

    def _tell_error(
        self, tenant_id: str, item: Submission, verdict: Verdict, problem: str
    ) -> tuple[list[Verdict], int, Memory | None]:
        """On record by hash alone; if that fails too, it is answered all the same."""
        committer = self._committer
        act = failed(item, verdict, problem)
        batch = Batch(committer.service, tenant_id, [act], committer.clock())
        try:
            _, memory = committer.writer.transact(self._number, lambda tx: batch.run(tx, None))
        except Exception as error:  # noqa: BLE001 - as above; nothing more can be done
            log.error("an error could not be recorded: %s", type(error).__name__)
            return [verdict], 0, None
        return [verdict], memory.head.sequence_number, None

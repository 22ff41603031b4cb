"""One lane of the committer: batches are computed in one thread and written in another.

Laws: per tenant in arrival order; one batch is written at a time, and at most one more is computed
meanwhile; a batch computed without the lock is written only if the chain's head is still where the
computation began, else it is computed again under the lock. Every change to a session, an agent, a member,
a key, the tenant's configuration or a step appends an event, so an unchanged head proves that what was read,
or predicted from the previous batch, is current. A batch the database refuses is run again in halves until
the failing submission is alone and is answered individually. A message that waits longer than `queue_wait_s`
is refused and never written, unless its batch has already been handed to the writer thread.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from observatory.errors import GatewayStopped, NotDurable, QueueFull, StatementFailed
from observatory.pipeline.commit.piggyback import Piggyback, PiggybackQueue
from observatory.pipeline.commit.request import INTERNAL_ERROR, Chunk, IngestRequest, WriteBatch, log_defect
from observatory.pipeline.failures import error_command
from observatory.pipeline.pipeline import PipelineBatch
from observatory.pipeline.ports import Transaction
from observatory.pipeline.state import (
    BatchState,
    Command,
    IncomingMessage,
    ReadSet,
    Submission,
    SubmissionResult,
)
from observatory.protocol.responses import Fault, Refused, Rejected

if TYPE_CHECKING:
    from observatory.pipeline.commit.committer import Committer

log = logging.getLogger("observatory.pipeline")
# A lane keeps the batch state of this many tenants between batches.
MAX_CACHED_TENANTS = 32
# While a batch is written, fewer messages than this are not started: they join the others at its commit.
MIN_BATCH = 16
# This many messages are computed before checking whether the writer is done and waits for more.
CHUNK_SIZE = 400
# A tenant another process appends to as well is run under the lock for a while: computing ahead would fail
# again. One batch at first, twice as many after each further failure, half as many after each success.
MAX_LOCKED_BATCHES = 32


class CommitLane:
    """One queue, two threads, two connections: one to read ahead, one to write."""

    def __init__(self, committer: Committer, number: int) -> None:
        self._committer = committer
        self._number = number
        self._waiting: dict[str, deque[Chunk]] = {}
        self._tenant_turns: deque[str] = deque()
        lock = threading.Lock()
        self._ready = threading.Condition(lock)  # wakes the compute thread: work waits, or the write is done
        self._handed = threading.Condition(lock)  # wakes the writer thread: a batch, or the end
        self._wanted = 1  # this many must wait before the compute thread is woken
        self._open: str | None = None  # the tenant whose batch is being computed
        self._writing: WriteBatch | None = None
        self._ahead: WriteBatch | None = None  # computed, and not handed to the writer yet
        self._piggybacks = PiggybackQueue(
            committer.writer.mixes_tenants
        )  # commands without events wait here for a batch
        self._stopping = self._finished = False
        self._known: dict[str, BatchState] = {}
        self._caution: dict[str, int] = {}  # batches still to be run under the lock
        self._failed: dict[str, int] = {}  # how many there were after the last failure
        self.messages = 0
        self.bytes = 0
        self._thread = threading.Thread(target=self._work, name=f"lane-{number}", daemon=True)
        self._writer_thread = threading.Thread(
            target=self._write_batches, name=f"lane-{number}-write", daemon=True
        )

    def start(self) -> None:
        self._writer_thread.start()
        self._thread.start()

    def put(self, tenant_id: str, parts: list[Chunk]) -> None:
        count = sum(part.count for part in parts)
        size = sum(part.size for part in parts)
        with self._ready:
            if self._stopping:
                raise GatewayStopped("the gateway is stopping")
            full = (
                self.messages + count > self._committer.max_messages
                or self.bytes + size > self._committer.max_bytes
            )
            if full and self.messages:  # an empty queue takes any one request that passed the size limits
                raise QueueFull
            can_piggyback = all(part.can_piggyback for part in parts)
            if can_piggyback:  # with the next batch written; its tenant gets a turn in case there is none
                self._piggybacks.wait(tenant_id, parts)
            else:
                self.messages += count
                self.bytes += size
                self._waiting.setdefault(tenant_id, deque()).extend(parts)
            if tenant_id != self._open and tenant_id not in self._tenant_turns:
                self._tenant_turns.append(tenant_id)
            if self.messages >= self._wanted or (can_piggyback and self._writing is None):
                self._ready.notify()

    def expire(self, before: float) -> list[IngestRequest]:
        """Refuse unwritten messages older than `before`; returns the requests completed by that.

        Commands stay: their caller waits for the result. A batch computed ahead is refused by its own
        thread, which is woken here.
        """
        with self._ready:
            late = [part for tenant_id in list(self._waiting) for part in self._late(tenant_id, before)]
            job = self._ahead
            if job is not None and job.since is not None and job.since < before:
                job.is_late = True
                self._ready.notify()
        return [part.request for part in late if part.refuse()]

    def _late(self, tenant_id: str, before: float) -> list[Chunk]:
        """Remove expired chunks from the queue of a tenant; the lock is held."""
        queue = self._waiting[tenant_id]
        if queue[0].since >= before:  # the oldest
            return []
        late = [part for part in queue if part.since < before and not part.has_acts]
        for part in late:
            self.messages -= part.count
            self.bytes -= part.size
        remaining = deque(part for part in queue if part.since >= before or part.has_acts)
        if remaining:
            self._waiting[tenant_id] = remaining
        else:
            del self._waiting[tenant_id]
        return late

    @property
    def has_messages(self) -> bool:
        """Whether something waits or is being computed."""
        return self.messages > 0 or self._ahead is not None

    def stop(self) -> None:
        with self._ready:
            self._stopping = True
            self._ready.notify()

    def join(self) -> None:
        self._thread.join()

    def _work(self) -> None:
        while (job := self._begin()) is not None:
            self._compute(job, job.take(self._parts(job, min(CHUNK_SIZE, self._committer.batch_size))))
            self._extend(job)
            self._hand_over(job)
        with self._ready:
            self._finished = True
            self._handed.notify()
        self._writer_thread.join()
        self._committer.writer.close_lane(self._number)

    def _begin(self) -> WriteBatch | None:
        """An empty batch for the tenant whose turn it is; None when stopped and empty."""
        with self._ready:
            while True:
                while not self._tenant_turns or (self._writing is not None and self.messages < MIN_BATCH):
                    if self._stopping and not self._tenant_turns:
                        return None
                    self._wanted = 1 if self._writing is None else MIN_BATCH
                    self._ready.wait()
                tenant_id = self._tenant_turns.popleft()
                # Its commands may have been committed with another tenant's batch by now.
                if tenant_id in self._waiting or tenant_id in self._piggybacks:
                    self._open = tenant_id
                    self._ahead = WriteBatch(tenant_id)
                    return self._ahead

    def _parts(self, job: WriteBatch, limit: int) -> list[Chunk]:
        """Waiting chunks of this tenant, up to a limit.

        Commands and messages never share a batch: what comes after a command, such as a key's revocation,
        is decided after it.
        """
        with self._ready:
            queue = self._waiting.get(job.tenant_id)
            if queue is None:
                return []
            count, parts, acts = 0, list[Chunk](), (job.parts or queue)[0].has_acts
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

    def _compute(self, job: WriteBatch, items: list[Submission]) -> None:
        """Compute the results without the lock if possible; otherwise the batch is run under the lock."""
        if not job.is_ahead or not items:
            return
        if job.parts[0].has_acts:
            job.is_ahead = False
            return
        committer = self._committer
        batch = PipelineBatch(committer.path, committer.service, job.tenant_id, items, committer.clock())
        read_set = batch.read_set()
        if read_set.rows or read_set.addresses or read_set.releases or read_set.waiting:
            # Rare rows, and the agents of an address: not every change to them is in the previous batch
            # state.
            job.is_ahead = False
            return
        try:
            if job.memory is None:
                job.memory = self._look(job, read_set)
            else:
                committer.writer.read_more(self._number, job.memory, read_set)
            if job.memory is not None:
                more = batch.settle(job.memory)
                if more is not None:
                    committer.writer.read_more(self._number, job.memory, more)
                job.verdicts += batch.think(job.memory, job.changes)
        except Exception:  # noqa: BLE001 - the run under the lock finds the failing item and answers it
            job.is_ahead = False

    def _look(self, job: WriteBatch, read_set: ReadSet) -> BatchState | None:
        with self._ready:
            before = self._writing
            if before is not None and before.tenant_id == job.tenant_id:
                if before.is_followable:
                    job.predecessor = before
                else:
                    self._await_writing(job)
            caution = self._caution.pop(job.tenant_id, 0)
            if caution > 1:
                self._caution[job.tenant_id] = caution - 1
            known = None if caution else self._known.pop(job.tenant_id, None)
        memory = None
        if not caution:
            follows = job.predecessor is not None
            memory = self._committer.writer.look(self._number, job.tenant_id, read_set, known, follows)
        job.is_ahead = memory is not None
        job.base = memory.head if memory is not None else None
        return memory

    def _await_writing(self, job: WriteBatch) -> None:
        """Wait until nothing is being written, or the batch has expired; the lock is held."""
        self._wanted = self._committer.max_messages + 1
        while self._writing is not None and not job.is_late:
            self._ready.wait()

    def _extend(self, job: WriteBatch) -> None:
        """Until the current write is done, compute what arrives meanwhile: it joins the same transaction."""
        size = self._committer.batch_size
        while True:
            with self._ready:
                while self._writing is not None and not job.is_late:
                    capacity = size - len(job.judged)
                    queue = self._waiting.get(job.tenant_id)
                    fits = queue and queue[0].count <= capacity and not queue[0].has_acts
                    if job.is_ahead and fits and self.messages >= MIN_BATCH:
                        break
                    self._wanted = (
                        MIN_BATCH if job.is_ahead and capacity > 0 else self._committer.max_messages + 1
                    )
                    self._ready.wait()
                else:
                    break
            self._compute(job, job.take(self._parts(job, min(capacity, CHUNK_SIZE))))
        if not job.is_ahead and not job.is_late:
            job.take(self._parts(job, size - len(job.judged)))

    def _hand_over(self, job: WriteBatch) -> None:
        """Build the rows; from here on the batch state belongs to the next batch. Nothing is being written
        now."""
        if self._give_up(job):
            return
        if job.predecessor is not None and not job.predecessor.stands:
            job.is_ahead = False  # the batch it was predicted from was not committed as computed
        job.predecessor = None
        if job.is_ahead and job.memory is not None and job.base is not None:
            try:
                job.finished = self._committer.writer.finish(job.base, job.memory, job.changes)
                job.known = job.memory.settled(keeps_steps=True)
            except Exception:  # noqa: BLE001 - as above: the run under the lock finds the failing item
                job.finished = job.known = None
        with self._ready:
            if job.finished is None and job.memory is None:
                job.known = self._known.pop(job.tenant_id, None)
            elif job.known is not None:
                self._remember(job)
            # Its next turn comes after all tenants that wait now.
            self._open = None
            if job.tenant_id in self._waiting:
                self._tenant_turns.append(job.tenant_id)
            self._writing = job
            self._handed.notify()

    def _give_up(self, job: WriteBatch) -> bool:
        """Whether the batch expired: then it is answered and not written. Otherwise it is written now."""
        with self._ready:
            self._ahead = None
            if not job.is_late:
                return False
            self._open = None
            if job.tenant_id in self._waiting or job.tenant_id in self._piggybacks:
                self._tenant_turns.append(job.tenant_id)
        self._committer.done(job.tenant_id, 0, [part.request for part in job.parts if part.refuse()])
        return True

    def _remember(self, job: WriteBatch) -> None:
        """Keep the batch state for the next batch of this tenant; the lock is held."""
        self._known.pop(job.tenant_id, None)
        if job.known is not None:
            self._known[job.tenant_id] = job.known
            if len(self._known) > MAX_CACHED_TENANTS:  # oldest first: a tenant moves to the end each time
                del self._known[next(iter(self._known))]

    def _write_batches(self) -> None:
        while True:
            with self._handed:
                while self._writing is None:
                    if self._finished:
                        return
                    self._handed.wait()
                job = self._writing
                piggybacks = self._piggybacks.board(job.tenant_id)
            sequence = self._settle(job, piggybacks)
            self._run_piggybacks_alone([piggyback for piggyback in piggybacks if not piggyback.is_done])
            with self._ready:
                if not job.stands:
                    self._remember(job)
                self._writing = None
                self._ready.notify()
            self._answer(job, sequence, piggybacks)

    def _settle(self, job: WriteBatch, piggybacks: list[Piggyback]) -> int:
        """Commit the batch, or find out why not; returns the head after it (0 when nothing was committed)."""
        writer = self._committer.writer
        started = time.perf_counter()
        if job.finished is not None and job.memory is not None:
            try:
                has_rows = bool(job.changes.audit or job.changes.writes)
                job.stands = not has_rows or writer.write(
                    self._number,
                    job.finished,
                    lambda transaction: self._run_piggybacks(transaction, piggybacks, job.memory),
                )
            except NotDurable as error:
                job.known, job.verdicts = None, self._not_durable_results(error, len(job.items))
                return 0
            except Exception:  # noqa: BLE001 - it fails again under the lock, and is answered there
                log.debug("a batch computed ahead was refused by the database")
            else:
                for piggyback in piggybacks if has_rows else ():
                    piggyback.is_done = True
                if job.stands:
                    if (failed := self._failed.pop(job.tenant_id, 0) // 2) > 1:
                        self._failed[job.tenant_id] = failed
                    self._count(len(job.items), started)
                    return job.memory.head.sequence_number
                self._failed[job.tenant_id] = min(MAX_LOCKED_BATCHES, 2 * self._failed.get(job.tenant_id, 1))
                self._caution[job.tenant_id] = self._failed[job.tenant_id] - 1
            job.known = None
        if not job.items:
            return 0
        job.verdicts, sequence, job.known = self._run_locked(job.tenant_id, job.items, job.known)
        return sequence

    def _run_piggybacks(
        self, transaction: Transaction, piggybacks: list[Piggyback], state: BatchState | None = None
    ) -> None:
        for piggyback in piggybacks:
            piggyback.decide(
                self._committer.path, self._committer.service, transaction, self._committer.clock(), state
            )

    def _run_piggybacks_alone(self, piggybacks: list[Piggyback]) -> None:
        """Commit those whose batch was not written, or that had none: together, and if that fails one by
        one."""
        if not piggybacks:
            return
        try:
            self._committer.writer.transact(
                self._number, lambda transaction: self._run_piggybacks(transaction, piggybacks)
            )
        except Exception:  # noqa: BLE001 - as above: the failing one is found when each is run alone
            for piggyback in piggybacks:
                piggyback.verdicts, _, _ = self._run_locked(piggyback.tenant_id, piggyback.items, None)

    def _count(self, messages: int, started: float) -> None:
        counters = self._committer.counters
        counters.batches += 1
        counters.failed_at = None
        counters.committed += messages
        counters.largest_batch = max(counters.largest_batch, messages)
        counters.commit_s += time.perf_counter() - started

    def _not_durable_results(self, error: NotDurable, count: int) -> list[SubmissionResult]:
        counters = self._committer.counters
        counters.not_durable += 1
        counters.failed_at = time.monotonic()
        log.error("store unavailable, nothing can be committed: %s", error)
        detail = "the gateway cannot store anything now; nothing was accepted, retry later"
        return [SubmissionResult(503, Refused(reason="not_durable", detail=detail)) for _ in range(count)]

    def _answer(self, job: WriteBatch, sequence: int, piggybacks: list[Piggyback]) -> None:
        rest = iter(job.verdicts)
        verdicts = [one if isinstance(one, SubmissionResult) else next(rest) for one in job.judged]
        finished, start = [request for piggyback in piggybacks for request in piggyback.answered()], 0
        for part in job.parts:
            if part.answer(verdicts[start : start + part.count]):
                finished.append(part.request)
            start += part.count
        self._committer.done(job.tenant_id, sequence, finished)

    def _run_locked(
        self, tenant_id: str, items: Sequence[Submission], known: BatchState | None
    ) -> tuple[list[SubmissionResult], int, BatchState | None]:
        """Lock, load, compute, save, commit. Returns the results, the head after the last commit (0 when
        nothing was committed) and the state the next batch may reuse: a failed batch leaves none."""
        committer = self._committer
        batch = PipelineBatch(committer.path, committer.service, tenant_id, items, committer.clock())
        started = time.perf_counter()
        try:
            verdicts, memory = committer.writer.transact(self._number, lambda tx: batch.run(tx, known))
        except NotDurable as error:
            return self._not_durable_results(error, len(items)), 0, None
        except Exception as error:  # noqa: BLE001 - a row the database refuses, or a bug: find the failing item
            committer.counters.refused_batches += 1
            if len(items) > 1:
                middle = len(items) // 2
                left, first, kept = self._run_locked(tenant_id, items[:middle], None)
                right, second, kept = self._run_locked(tenant_id, items[middle:], kept)
                return left + right, max(first, second), kept
            return self._answer_failed_item(tenant_id, items[0], error)
        self._count(len(items), started)
        return verdicts, memory.head.sequence_number, memory.settled()

    def _answer_failed_item(
        self, tenant_id: str, item: Submission, error: Exception
    ) -> tuple[list[SubmissionResult], int, BatchState | None]:
        if isinstance(error, StatementFailed) and isinstance(item, IncomingMessage):
            digest = "sha256:" + item.message.digest.hex()
            fault = Fault(path="", problem="the database cannot store this message")
            answer = Rejected(reason="not_storable", faults=(fault,), raw_payload_hash=digest)
            return self._record_error(tenant_id, item, SubmissionResult(422, answer), fault.problem)
        if isinstance(error, StatementFailed) and isinstance(item, Command):
            refused = Refused(reason="conflict", detail="this contradicts what is stored")
            return [SubmissionResult(409, refused)], 0, None
        log_defect(error)
        problem = f"a defect of the gateway: {type(error).__name__}"
        return self._record_error(tenant_id, item, INTERNAL_ERROR, problem)

    def _record_error(
        self, tenant_id: str, item: Submission, verdict: SubmissionResult, problem: str
    ) -> tuple[list[SubmissionResult], int, BatchState | None]:
        """Record the error by hash only; if that fails too, it is answered nevertheless."""
        committer = self._committer
        act = error_command(item, verdict, problem)
        batch = PipelineBatch(committer.path, committer.service, tenant_id, [act], committer.clock())
        try:
            _, memory = committer.writer.transact(self._number, lambda tx: batch.run(tx, None))
        except Exception as error:  # noqa: BLE001 - as above; nothing more can be done
            log.error("an error could not be recorded: %s", type(error).__name__)
            return [verdict], 0, None
        return [verdict], memory.head.sequence_number, None

"""`Outbox`: one sender thread that delivers a backlog of messages to the gateway.

Rule: `put` never waits for the network or for a flush to disk; lines are sent in order; a line the gateway
has answered is never sent again, an unanswered line is never dropped. All state is guarded by `changed`;
requests and fsync happen outside it.
"""

import logging
import math
import threading
from collections import deque
from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Protocol
from weakref import WeakSet

from observatory.sdk import lifecycle
from observatory.sdk.answers import Answer
from observatory.sdk.backlog import SendBacklog, SendBatch
from observatory.sdk.client import THREAD_PREFIX, Answered, HttpGateway, Unsent
from observatory.sdk.credentials import GatewayCredentials
from observatory.sdk.delivery import SYSTEM_JITTER, Clock, Delivery, SystemClock, backoff_s
from observatory.sdk.errors import Rejected
from observatory.sdk.receiver import Receiver, close_all
from observatory.sdk.refusals import RefusalLog
from observatory.sdk.step import Step
from observatory.sdk.waiting import Observable

log = logging.getLogger("observatory.sdk")


class GatewayTransport(Protocol):
    """Sends a batch to the gateway and returns its answers."""

    def send(self, lines: Sequence[bytes]) -> Answered | Unsent: ...
    def close(self) -> None: ...


def _gateway(credentials: GatewayCredentials, timeout_s: float) -> GatewayTransport:
    if credentials.is_nats:
        from observatory.sdk.nats_gateway import NatsGateway

        return NatsGateway(credentials, timeout_s)
    return HttpGateway(credentials.url, credentials.key, timeout_s, credentials.trust)


class Outbox(Observable):
    """Delivers the lines of one agent (or of several in one process) to the gateway."""

    def __init__(
        self,
        name: str,
        credentials: GatewayCredentials,
        delivery: Delivery | None = None,
        *,
        on_reject: Callable[[Rejected], None] | None = None,
        clock: Clock | None = None,
        jitter: Callable[[], float] = SYSTEM_JITTER,
    ) -> None:
        self.name = name
        self.credentials = credentials
        self.rejections: deque[Rejected] = deque(maxlen=1000)
        self.closed = False
        self._on_reject = on_reject
        self.delivery = delivery or Delivery()
        self._clock = clock or SystemClock()
        self._jitter = jitter
        self._adopting = True
        self.receivers: WeakSet[Receiver] = (
            WeakSet()
        )  # of the agents that use it: they close and fork with it
        self._reset()
        lifecycle.register(self)
        with self.changed:
            self._start()

    def _reset(self) -> None:
        super().__init__()  # a new lock too: after a fork the old one may be held for ever
        self._backlog = SendBacklog(self.name, self.credentials, self.delivery)
        self._batch_lines = self.delivery.batch_lines
        self._queued_at = self._not_before = self._disk_retry_at = 0.0
        self._away = self._closing = self._patient = False
        self._urgent = 0  # waiting flushes: no lingering
        self._failures = 0
        self.key_refused = False  # the gateway answers but refuses the key
        self._complaint = ""
        self._refusals = RefusalLog(self.name)
        self._thread: threading.Thread | None = None

    # Called by the agent.

    @property
    def lost(self) -> int:
        """Lines dropped because memory and spool were both full."""
        return self._backlog.lost

    @property
    def in_memory(self) -> int:
        """Lines that a kill would lose now: neither answered nor on disk."""
        return self._backlog.in_memory

    @property
    def failures(self) -> int:
        """Consecutive send failures; 0 when the last attempt succeeded."""
        return self._failures

    def put(self, line: bytes, step: Step) -> None:
        """Queue one line. Returns at once, whatever the gateway does."""
        with self.changed:
            if not self._backlog.put(line, step):
                return
            waiting = len(self._backlog.queue)
            if self.closed:  # added while the process ends: directly to disk, sent at the next start
                self._backlog.release()
                self._backlog.give_up_memory()
            elif self._thread is None:
                self._start()
            elif waiting == 1:
                self._queued_at = self._clock.monotonic()
                self.changed.notify_all()
            elif waiting == self.delivery.batch_lines:
                self.changed.notify_all()

    def hurry(self) -> None:
        """Send the queue now, without lingering, and retry an unreachable gateway; a `Retry-After` is still
        respected."""
        with self.changed:
            self._queued_at = -math.inf
            if not self._patient:
                self._not_before = 0.0
            self.changed.notify_all()

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until all lines queued before are answered; False if that takes longer than `timeout`."""
        with self.changed:
            backlog, target = self._backlog, self._backlog.taken_n
            self._urgent += 1
            self.changed.notify_all()

        def done() -> bool:
            return backlog.settled_n >= target and not self._adopting and not backlog.has_leftovers

        try:
            return self.wait_for(done, timeout)
        finally:
            with self.changed:
                self._urgent -= 1

    def wait_for(self, done: Callable[[], bool], timeout: float | None) -> bool:
        """Wait until `done` or closed; returns whether it is done."""
        with self.changed:
            self.changed.wait_for(lambda: done() or self.closed, timeout)
            return done()

    def close(self, timeout: float | None = None) -> bool:
        """Send what can be sent within `timeout`, write the rest to disk; True if nothing is left."""
        close_all(list(self.receivers))
        with self.changed:
            thread, self._closing = self._thread, True
            self.changed.notify_all()
        if thread is not None and thread is not threading.current_thread():
            thread.join(self.delivery.close_timeout_s if timeout is None else timeout)
        with self.changed:
            if self.closed:
                return self._backlog.settled_n >= self._backlog.taken_n
            # Leftovers being adopted right now are locked: the next start must be able to find them.
            self.changed.wait_for(lambda: not self._adopting, self.delivery.close_timeout_s)
            self.closed = True
            left = self._backlog.release()
            lost = self._backlog.give_up_memory()
            self._notify()
        self._refusals.log_rest(self._clock.monotonic())
        if left:
            log.warning("%s: %s; they will be sent at its next start", self.name, left)
        return not left and not lost

    def reset_after_fork(self) -> None:
        """In a forked child: queue and files belong to the parent; the child starts empty."""
        for receiver in list(self.receivers):
            receiver.reset_after_fork()
        self._backlog.forget()
        self._adopting = False
        self._reset()

    # Sender thread.

    def _start(self) -> None:
        self._queued_at = self._clock.monotonic()
        self._thread = threading.Thread(target=self._run, name=f"{THREAD_PREFIX}{self.name}", daemon=True)
        self._thread.start()
        lifecycle.close_with_process(self)

    def _run(self) -> None:
        if self._adopting:
            leftovers = self._backlog.find_leftovers()
            with self.changed:
                self._backlog.adopt(leftovers)
                self._adopting = False
                if self.closed:  # closed before they were found: release them
                    self._backlog.release()
                self.changed.notify_all()
        gateway = _gateway(self.credentials, self.delivery.timeout_s)
        while True:
            try:
                if not self._turn(gateway):
                    break
            except Exception as exc:  # the loop: log, wait, continue; no line is lost
                log.exception("%s: the sender failed; retrying", self.name)
                self._put_off(Unsent(type(exc).__name__))
        gateway.close()

    def _turn(self, gateway: GatewayTransport) -> bool:
        """Wait for work and do one piece of it; False when it is time to stop."""
        backlog = self._backlog
        with self.changed:
            while (pause := self._pause_s()) != 0:
                if self._is_over():
                    return False
                self._clock.wait(self.changed, pause)
            if self._is_over():
                return False
            batch = None
            if self._put_off_s() == 0:
                batch = backlog.next_batch(self._batch_lines)
                self._queued_at = self._clock.monotonic()
            else:
                backlog.spill()
                self._disk_retry_at = self._clock.monotonic() + self.delivery.disk_retry_s
                self.changed.notify_all()
            unsynced = backlog.to_sync()
        if unsynced is not None:
            try:
                unsynced.sync()
            except OSError as exc:
                with self.changed:
                    if not self.closed:  # else `close` has synced and released it
                        backlog.not_synced(unsynced, exc)
        if batch is not None:
            self._handle(batch, gateway.send(batch.lines))
        return True

    def _is_over(self) -> bool:
        has_work = bool(self._backlog.queue) or self._backlog.on_disk is not None
        return self.closed or (self._closing and (self._put_off_s() > 0 or not has_work))

    def _put_off_s(self) -> float:
        return max(self._not_before - self._clock.monotonic(), 0.0)

    def _pause_s(self) -> float | None:
        """How long to wait before the next piece of work; 0: now, None: until something changes."""
        waiting, lingering = len(self._backlog.queue), 0.0
        if 0 < waiting < self.delivery.batch_lines and not (self._urgent or self._closing):
            since = self._clock.monotonic() - self._queued_at
            lingering = max(self.delivery.linger_s - since, 0.0)
        if put_off := self._put_off_s():
            if waiting and self._backlog.disk_failed:
                return min(put_off, max(self._disk_retry_at - self._clock.monotonic(), 0.0))
            return min(put_off, lingering) if waiting and self._away else put_off
        if self._backlog.on_disk is not None:
            return 0.0
        return lingering if waiting else None

    def _handle(self, batch: SendBatch, outcome: Answered | Unsent) -> None:
        match outcome:
            case Answered(answers):
                self._settle(batch, answers[: len(batch.lines)])
            case Unsent(refused=code) if code and len(batch.lines) == 1:
                self._settle(
                    batch, [Answer(code, reason="the gateway refused the request that contained it")]
                )
            case Unsent(refused=code) if code:  # one line is the cause: smaller batches find it
                with self.changed:
                    self._batch_lines = max(len(batch.lines) // 2, 1)
                    if not self.closed:
                        self._backlog.take_back(0)
            case _:
                self._put_off(outcome)

    def _settle(self, batch: SendBatch, answers: list[Answer]) -> None:
        final = list(takewhile(lambda answer: answer.is_final, answers))
        pairs = list(zip(final, batch.steps, strict=False))
        refused = [Rejected(a, step.step_id if step else a.step_id) for a, step in pairs if not a.accepted]
        for rejected in refused:
            self._refusals.note(rejected, self._clock.monotonic())
        with self.changed:
            self.rejections.extend(refused)
            for answer, step in pairs:
                if step is not None:
                    step.settle(answer)
            if self.closed:  # slower than `close` waits; the lines are on disk already
                return
            self._backlog.take_back(len(final))
            self._backlog.recovered()
            if final:
                self._failures, self._away, self._complaint = 0, False, ""
                self.key_refused = False
            self._batch_lines = min(self._batch_lines * 2, self.delivery.batch_lines)
            self._notify()
        self._notify_rejections(refused)
        if len(final) < len(batch.lines):
            self._put_off(Unsent("the gateway could not take every line"))

    def _put_off(self, why: Unsent) -> None:
        """Nothing was accepted: log it once, wait longer each time and, unless the gateway is only busy,
        spool."""
        with self.changed:
            if self.closed:
                return
            self._failures += 1
            self.key_refused = why.key_refused
            self._patient = why.retry_after_s is not None
            self._not_before = self._clock.monotonic() + backoff_s(
                self.delivery, self._failures, why, self._jitter
            )
            self._backlog.take_back(0)
            self._away = self._away or not why.busy
            if self._away:
                self._backlog.spill()
            self._notify()
        if why.reason != self._complaint:
            self._complaint = why.reason
            level = logging.ERROR if why.needs_a_person else logging.WARNING
            log.log(level, "%s: %s; messages are stored and sent later", self.name, why.reason)

    def _notify_rejections(self, refused: list[Rejected]) -> None:
        if self._on_reject is None:
            return
        for rejected in refused:
            try:
                self._on_reject(rejected)
            except Exception:  # user code on this thread: its failure must not stop delivery
                log.exception("%s: on_reject failed", self.name)

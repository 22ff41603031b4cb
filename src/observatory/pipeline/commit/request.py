"""A request in a lane: its chunks, each small enough for one transaction, and the batch they form."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any

from observatory.ledger.chain import ChainHead
from observatory.pipeline.ports import PreparedBatch
from observatory.pipeline.state import BatchState, Command, Submission, SubmissionResult, TransactionChanges
from observatory.protocol.responses import Refused

log = logging.getLogger("observatory.pipeline")
# Parses one body: a submission for the pipeline, or the result when it is refused.
BodyParser = Callable[[Any], Submission | SubmissionResult]
TOO_LATE = SubmissionResult(
    503,
    Refused(
        reason="waited_too_long",
        detail="this waited longer than queue_wait_s and timed out; it was not accepted, send it again",
    ),
)
INTERNAL_ERROR = SubmissionResult(
    500, Refused(reason="internal_error", detail="this message was not accepted")
)


class IngestRequest:
    """The submissions of one request; its future resolves when every chunk is answered."""

    def __init__(self, size: int, loop: asyncio.AbstractEventLoop) -> None:
        self.verdicts: list[SubmissionResult | None] = [None] * size
        self.missing = size
        self.future: asyncio.Future[list[SubmissionResult]] = loop.create_future()

    def finish(self) -> None:
        if not self.future.done():  # the client may be gone; its messages are durable nevertheless
            self.future.set_result([verdict for verdict in self.verdicts if verdict is not None])


class Chunk:
    """A part of a request, small enough for one transaction.

    Endpoints enqueue raw bodies; they are parsed here, in the lane's thread. Parsing them in the endpoint
    would contend with the lane for the interpreter (10 % more CPU per message) and block every other
    client while a long batch is parsed.
    """

    __slots__ = (
        "_items",
        "_judge",
        "can_piggyback",
        "count",
        "has_acts",
        "offset",
        "request",
        "since",
        "size",
    )

    def __init__(
        self,
        request: IngestRequest,
        offset: int,
        items: Sequence[Any],
        size: int,
        judge: BodyParser | None,
        since: float,
    ) -> None:
        self.request, self.offset, self.count, self.size = request, offset, len(items), size
        self._items, self._judge, self.since = items, judge, since
        self.has_acts = judge is None and any(type(item) is Command for item in items)
        self.can_piggyback = self.has_acts and all(
            type(item) is Command and item.can_piggyback for item in items
        )

    def answer(self, verdicts: Sequence[SubmissionResult]) -> bool:
        """Store the results; returns whether the request is complete."""
        self.request.verdicts[self.offset : self.offset + self.count] = verdicts
        self.request.missing -= self.count
        return self.request.missing == 0

    def refuse(self) -> bool:
        """Refuse it because it waited too long; returns whether the request is complete."""
        return self.answer([TOO_LATE] * self.count)

    def judged(self) -> list[Submission | SubmissionResult]:
        if self._judge is None:
            return list(self._items)
        try:
            return [self._judge(body) for body in self._items]
        except Exception as error:  # noqa: BLE001 - a bug; the lane must keep running
            log_defect(error)
            return [INTERNAL_ERROR] * self.count


class WriteBatch:
    """A batch in progress: taken from the queue, parsed, computed ahead if possible, then committed."""

    __slots__ = (
        "base", "changes", "finished", "is_ahead", "is_late", "items", "judged", "known", "memory", "parts",
        "predecessor", "since", "stands", "tenant_id", "verdicts",
    )  # fmt: skip

    def __init__(self, tenant_id: str) -> None:
        self.tenant_id = tenant_id
        self.parts: list[Chunk] = []
        self.judged: list[Submission | SubmissionResult] = []
        self.items: list[Submission] = []
        # False: it is run under the lock, and what was computed ahead is discarded.
        self.is_ahead = True
        self.predecessor: WriteBatch | None = (
            None  # the batch that was still being written when this one began
        )
        self.memory: BatchState | None = None
        self.base: ChainHead | None = None
        self.changes = TransactionChanges()
        self.verdicts: list[SubmissionResult] = []
        self.finished: PreparedBatch | None = None
        self.known: BatchState | None = None  # what the next batch may reuse
        self.stands = False  # committed as it was computed
        self.since: float | None = None  # when its oldest message arrived; None for commands
        self.is_late = False  # it is not written: its messages waited too long

    def take(self, parts: list[Chunk]) -> list[Submission]:
        judged = [one for part in parts for one in part.judged()]
        items = [one for one in judged if not isinstance(one, SubmissionResult)]
        self.parts += parts
        self.judged += judged
        self.items += items
        return items

    @property
    def is_followable(self) -> bool:
        """Whether its batch state shows all its changes; a rare row is visible only once it is committed."""
        return self.finished is not None and self.known is not None and not self.changes.writes


def log_defect(error: Exception) -> None:
    """Log only the type and location: an error's text may quote a payload."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    location = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace else "?"
    log.error("a submission failed: %s at %s", type(error).__name__, location)

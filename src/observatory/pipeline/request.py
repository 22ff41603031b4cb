"""What a request hands to its lane, in shares small enough for one transaction, and the batch they become."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any

from observatory.ledger.chain import Head
from observatory.pipeline.ports import Finished
from observatory.pipeline.state import Act, Changes, Memory, Submission, Verdict
from observatory.protocol.answers import Refused

log = logging.getLogger("observatory.pipeline")
# Reads one body: what goes on to the corridor, or the answer when nothing does.
Judge = Callable[[Any], Submission | Verdict]
TOO_LATE = Verdict(
    503,
    Refused(
        reason="waited_too_long",
        detail="this waited for longer than queue_wait_s; it was not accepted and will not be, send it again",
    ),
)
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

    __slots__ = ("_items", "_judge", "count", "has_acts", "offset", "parcel", "rides", "since", "size")

    def __init__(
        self,
        parcel: Parcel,
        offset: int,
        items: Sequence[Any],
        size: int,
        judge: Judge | None,
        since: float,
    ) -> None:
        self.parcel, self.offset, self.count, self.size = parcel, offset, len(items), size
        self._items, self._judge, self.since = items, judge, since
        self.has_acts = judge is None and any(type(item) is Act for item in items)
        self.rides = self.has_acts and all(type(item) is Act and item.rides for item in items)

    def answer(self, verdicts: Sequence[Verdict]) -> bool:
        """Whether its parcel is whole now."""
        self.parcel.verdicts[self.offset : self.offset + self.count] = verdicts
        self.parcel.missing -= self.count
        return self.parcel.missing == 0

    def refuse(self) -> bool:
        """It waited for too long. Whether its parcel is whole now."""
        return self.answer([TOO_LATE] * self.count)

    def judged(self) -> list[Submission | Verdict]:
        if self._judge is None:
            return list(self._items)
        try:
            return [self._judge(body) for body in self._items]
        except Exception as error:  # noqa: BLE001 - a defect of ours; the lane must live on
            tell_defect(error)
            return [FAILED] * self.count


class Job:
    """A batch on its way: taken, judged, thought about if that can be done ahead, then settled."""

    __slots__ = (
        "base", "changes", "finished", "is_ahead", "is_late", "items", "judged", "known", "memory", "parts",
        "rests_on", "since", "stands", "tenant_id", "verdicts",
    )  # fmt: skip

    def __init__(self, tenant_id: str) -> None:
        self.tenant_id = tenant_id
        self.parts: list[Part] = []
        self.judged: list[Submission | Verdict] = []
        self.items: list[Submission] = []
        # False: it is run under the lock, and what was thought about it does not count.
        self.is_ahead = True
        self.rests_on: Job | None = None  # was still being written when this one was begun
        self.memory: Memory | None = None
        self.base: Head | None = None
        self.changes = Changes()
        self.verdicts: list[Verdict] = []
        self.finished: Finished | None = None
        self.known: Memory | None = None  # what the next batch may recall
        self.stands = False  # durable, just as it was thought
        self.since: float | None = None  # when its oldest message came; None for acts
        self.is_late = False  # it is not written: its messages waited for too long

    def take(self, parts: list[Part]) -> list[Submission]:
        judged = [one for part in parts for one in part.judged()]
        items = [one for one in judged if not isinstance(one, Verdict)]
        self.parts += parts
        self.judged += judged
        self.items += items
        return items

    @property
    def is_followable(self) -> bool:
        """Whether all it does is in the memory it leaves; a rare row is known only once it is committed."""
        return self.finished is not None and self.known is not None and not self.changes.writes


def tell_defect(error: Exception) -> None:
    """Only the type and place: an error's text may quote a payload."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace else "?"
    log.error("a submission failed: %s at %s", type(error).__name__, place)

"""A batch handed over, and what a backend refuses for good found out one by one.

Law: nothing is passed over that might have been taken. A refused batch is halved until the culprit stands
alone, and it is one only if the backend takes something else: others of the batch, or an empty request, which
every OTLP backend takes. An answer that a backend in trouble gives as well proves less: after it others of
the batch must be taken, or a test record. Otherwise it is the backend that is wrong, and the exporter stays
where it is. What is settled is always the beginning of the batch, so a cursor can follow it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

from observatory.features.exporters.otlp import Coded
from observatory.features.exporters.transports import Answer

MOST_CULPRITS: Final = 32  # of one batch at a time; the rest is found at the next look
MOST_SUSPECTS: Final = 4  # refused alone while nothing was taken; then the backend itself is asked
Send = Callable[[Sequence[Coded]], Awaitable[Answer]]
Try = Callable[[], Awaitable[Answer]]  # one record that is nobody's event


class Culprit(NamedTuple):
    record: Coded
    reason: str


class Part(NamedTuple):
    """Of these so many were not taken, and the backend does not say which."""

    records: Sequence[Coded]
    rejected: int
    reason: str


class Delivered(NamedTuple):
    settled: int  # so many from the beginning: taken, or passed over
    sent: int
    culprits: tuple[Culprit, ...] = ()
    parts: tuple[Part, ...] = ()
    stopped: Answer | None = None  # why the rest was not settled


async def deliver(batch: Sequence[Coded], send: Send, try_one: Try | None = None) -> Delivered:
    waiting: list[Sequence[Coded]] = [batch]
    suspects: list[Culprit] = []
    culprits: list[Culprit] = []
    parts: list[Part] = []
    settled = sent = 0
    is_well = False  # whether the backend has taken anything of this batch, or nothing at all
    is_vague = False  # whether a suspect was refused by an answer that proves little

    def convict() -> int:
        nonlocal is_vague
        culprits.extend(suspects)
        count = len(suspects)
        suspects.clear()
        is_vague = False
        return count

    while waiting and len(culprits) < MOST_CULPRITS:
        part = waiting.pop()
        answer = await send(part)
        if answer.kind == "taken":
            is_well = True
            settled += convict() + len(part)
            sent += len(part) - min(answer.rejected, len(part))
            if answer.rejected > 0:
                parts.append(Part(part, min(answer.rejected, len(part)), answer.detail))
        elif answer.kind == "later":
            return Delivered(settled, sent, tuple(culprits), tuple(parts), answer)
        elif len(part) > 1:
            middle = len(part) // 2
            waiting += [part[middle:], part[:middle]]
        else:
            suspects.append(Culprit(part[0], answer.detail))
            is_vague = is_vague or answer.is_vague
            if is_vague or not is_well:
                if len(suspects) < MOST_SUSPECTS and waiting:
                    continue  # what is taken next may prove it
                if not await _takes(send, try_one if is_vague else None):
                    later = Answer("later", answer.detail, after_s=answer.after_s)
                    return Delivered(settled, sent, tuple(culprits), tuple(parts), later)
                is_well = True
            settled += convict()
    return Delivered(settled, sent, tuple(culprits), tuple(parts))


async def _takes(send: Send, try_one: Try | None) -> bool:
    if (await send(())).kind != "taken":
        return False
    answer = None if try_one is None else await try_one()
    return answer is None or (answer.kind == "taken" and not answer.rejected)

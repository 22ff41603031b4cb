"""Sends a batch, and finds the records a backend permanently rejects by bisection.

Invariant: no record is skipped that might have been accepted. A rejected batch is halved until a single
record is left, which counts as rejected only if the backend accepts something else: other records of the
batch, or an empty request, which every OTLP backend accepts. A status that an overloaded backend may also
return is weaker evidence: then other records of the batch, or a test record, must be accepted. Otherwise the
backend is at fault and the exporter does not advance. What is settled is always a prefix of the batch, so a
cursor can follow it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

from observatory.features.exporters.otlp import EncodedRecord
from observatory.features.exporters.transports import ExportResult

MAX_REJECTED: Final = 32  # per batch; the rest is found at the next attempt
MAX_SUSPECTS: Final = 4  # rejected alone while nothing was accepted; then the backend itself is probed
Send = Callable[[Sequence[EncodedRecord]], Awaitable[ExportResult]]
SendTest = Callable[[], Awaitable[ExportResult]]  # sends one test record


class RejectedRecord(NamedTuple):
    record: EncodedRecord
    reason: str


class PartialRejection(NamedTuple):
    """A number of these records was rejected, and the backend does not say which."""

    records: Sequence[EncodedRecord]
    rejected: int
    reason: str


class Delivered(NamedTuple):
    settled: int  # length of the settled prefix: accepted, or skipped
    sent: int
    culprits: tuple[RejectedRecord, ...] = ()
    parts: tuple[PartialRejection, ...] = ()
    stopped: ExportResult | None = None  # why the rest was not settled


async def deliver(batch: Sequence[EncodedRecord], send: Send, try_one: SendTest | None = None) -> Delivered:
    waiting: list[Sequence[EncodedRecord]] = [batch]
    suspects: list[RejectedRecord] = []
    culprits: list[RejectedRecord] = []
    parts: list[PartialRejection] = []
    settled = sent = 0
    is_well = False  # whether the backend has accepted anything of this batch, or an empty request
    is_vague = False  # whether a suspect was rejected with an inconclusive status

    def convict() -> int:
        nonlocal is_vague
        culprits.extend(suspects)
        count = len(suspects)
        suspects.clear()
        is_vague = False
        return count

    while waiting and len(culprits) < MAX_REJECTED:
        part = waiting.pop()
        answer = await send(part)
        if answer.kind == "taken":
            is_well = True
            settled += convict() + len(part)
            sent += len(part) - min(answer.rejected, len(part))
            if answer.rejected > 0:
                parts.append(PartialRejection(part, min(answer.rejected, len(part)), answer.detail))
        elif answer.kind == "later":
            return Delivered(settled, sent, tuple(culprits), tuple(parts), answer)
        elif len(part) > 1:
            middle = len(part) // 2
            waiting += [part[middle:], part[:middle]]
        else:
            suspects.append(RejectedRecord(part[0], answer.detail))
            is_vague = is_vague or answer.is_vague
            if is_vague or not is_well:
                if len(suspects) < MAX_SUSPECTS and waiting:
                    continue  # the next accepted part may prove it
                if not await _takes(send, try_one if is_vague else None):
                    later = ExportResult("later", answer.detail, after_s=answer.after_s)
                    return Delivered(settled, sent, tuple(culprits), tuple(parts), later)
                is_well = True
            settled += convict()
    return Delivered(settled, sent, tuple(culprits), tuple(parts))


async def _takes(send: Send, try_one: SendTest | None) -> bool:
    if (await send(())).kind != "taken":
        return False
    answer = None if try_one is None else await try_one()
    return answer is None or (answer.kind == "taken" and not answer.rejected)

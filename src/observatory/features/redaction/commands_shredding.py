"""Shredding: bytes of archived messages are destroyed by a recorded order (ruling 39, S450–S455).

Law: the order is an audit event that names every message, the principal and the reason; in the same
transaction the bytes, and any rewrite of them, are cleared. No row is deleted: numbers, digests, links and
every proof stay. Data derived from the text is dropped when the event is read. What was already shredded is
not ordered again; what is held for review stays until it is decided.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import msgspec

from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import BatchState, Command, Principal, ReadSet, SubmissionResult, UnitOfWork
from observatory.protocol.responses import Refused

# Messages of one order at most: the event stays readable, the transaction short.
AT_ONCE: Final = 500
EVENT: Final = "payload_shredded"


class Shredded(msgspec.Struct, kw_only=True):
    """How many payloads this order shredded, and its event's number; none and null if all were gone."""

    shredded: int
    event: int | None = None
    held: int = 0  # skipped because they are held for review


def shred(
    principal: Principal,
    numbers: Sequence[int],
    reason: str,
    now_ns: int,
    session_id: str | None = None,
    cause: str = "order",
) -> Command:
    """`session_id`: all are of that session; `cause` is order or retention."""
    assert 0 < len(numbers) <= AT_ONCE

    def decide(uow: UnitOfWork) -> SubmissionResult:
        memory = uow.memory
        held = _held(memory, numbers)
        gone = sorted(memory.payloads.intersection(numbers) - held)
        if not gone:
            if held:
                detail = "it is held for review; approve or reject it first, then it can be shredded"
                return SubmissionResult(409, Refused(reason="held", detail=detail))
            return SubmissionResult(200, Shredded(shredded=0))
        detail_of_event = {"cause": cause, "reason": reason, "shredded_sequence_numbers": gone}
        summary = f"{len(gone)} payload{'s' if len(gone) > 1 else ''} shredded by {cause}"
        event = gateway_event(principal.tenant_id, EVENT, summary, uow.now_ns, principal, detail_of_event)
        session = None if session_id is None else memory.sessions.get(session_id)
        if session is not None:  # into its session's trail, where people look for it
            event.trace_id, event.session_no = session.trace_id, session.session_no
            event.detail["session_id"] = session.session_id
        number = uow.append(event)
        uow.changes.shreds.append((number, gone))
        rewritten = {key[0] for key, row in memory.rows.get("rewrites", {}).items() if row["raw"] is not None}
        if found := sorted(rewritten.intersection(gone)):
            where = {"tenant_id": principal.tenant_id, "message_seq": found}
            uow.changes.writes.append(RowWrite("rewrites", {"raw": None}, where))
        memory.payloads.difference_update(gone)
        return SubmissionResult(200, Shredded(shredded=len(gone), event=number, held=len(held)))

    return Command(principal, now_ns, decide, _reads(numbers, session_id))


def _reads(numbers: Collection[int], session_id: str | None) -> ReadSet:
    reads = ReadSet(payloads=set(numbers))
    if session_id is not None:
        reads.sessions.add(session_id)
    for number in numbers:
        reads.row("rewrites", number)
        reads.row("holds", number)
    return reads


def _held(memory: BatchState, numbers: Collection[int]) -> set[int]:
    rows = memory.rows.get("holds", {})
    return {number for number in numbers if number in rows and rows[number]["state"] == "held"}

"""Shredding: bytes of archived messages go for good, by an order that is on record (ruling 39, S450–S455).

Law: the order is an audit event that names every message, who wanted it and why; in the same transaction the
bytes, and what a person had put in their place, become nothing. No row goes: numbers, digests, links and
every proof stay. What others derived of the text forgets it when it reads the event. What was shredded
before is not ordered again; what is held for a person stays until it is decided.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import msgspec

from observatory.pipeline.event_writer import notice
from observatory.pipeline.rows import Write
from observatory.pipeline.state import Act, Desk, Memory, Principal, Verdict, Wants
from observatory.protocol.answers import Refused

# So many messages an order names at most: an event stays readable, a transaction short.
AT_ONCE: Final = 500
EVENT: Final = "payload_shredded"


class Shredded(msgspec.Struct, kw_only=True):
    """How many payloads went by this order, and the number of its event; none and null when all were gone."""

    shredded: int
    event: int | None = None
    held: int = 0  # left because they wait for a person


def shred(
    who: Principal,
    numbers: Sequence[int],
    reason: str,
    now_ns: int,
    session_id: str | None = None,
    cause: str = "order",
) -> Act:
    """Of one session when it is named; `cause` is order or retention."""
    assert 0 < len(numbers) <= AT_ONCE

    def decide(desk: Desk) -> Verdict:
        memory = desk.memory
        held = _held(memory, numbers)
        gone = sorted(memory.payloads.intersection(numbers) - held)
        if not gone:
            if held:
                detail = "it is held for a person; approve or reject it first, then it can be shredded"
                return Verdict(409, Refused(reason="held", detail=detail))
            return Verdict(200, Shredded(shredded=0))
        told = {"cause": cause, "reason": reason, "shredded_sequence_numbers": gone}
        summary = f"{len(gone)} payload{'s' if len(gone) > 1 else ''} shredded by {cause}"
        event = notice(who.tenant_id, EVENT, summary, desk.now_ns, who, told)
        session = None if session_id is None else memory.sessions.get(session_id)
        if session is not None:  # in the trail of its session, where it is looked for
            event.trace_id, event.session_no = session.trace_id, session.session_no
            event.detail["session_id"] = session.session_id
        number = desk.append(event)
        desk.changes.shreds.append((number, gone))
        rewritten = {key[0] for key, row in memory.rows.get("rewrites", {}).items() if row["raw"] is not None}
        if found := sorted(rewritten.intersection(gone)):
            where = {"tenant_id": who.tenant_id, "message_seq": found}
            desk.changes.writes.append(Write("rewrites", {"raw": None}, where))
        memory.payloads.difference_update(gone)
        return Verdict(200, Shredded(shredded=len(gone), event=number, held=len(held)))

    return Act(who, now_ns, decide, _wants(numbers, session_id))


def _wants(numbers: Collection[int], session_id: str | None) -> Wants:
    wants = Wants(payloads=set(numbers))
    if session_id is not None:
        wants.sessions.add(session_id)
    for number in numbers:
        wants.row("rewrites", number)
        wants.row("holds", number)
    return wants


def _held(memory: Memory, numbers: Collection[int]) -> set[int]:
    rows = memory.rows.get("holds", {})
    return {number for number in numbers if number in rows and rows[number]["state"] == "held"}

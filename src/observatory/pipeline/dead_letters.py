"""Dead letters: runs and webhook deliveries that the gateway could not send and gave up on.

Law: a letter is written in the transaction that gives up, with its reason and the beginning of its payload.
A person retries or discards it, once, and either is on record. How a letter is retried depends on its kind:
each supplies a command (`RETRIES` in `routes_dead_letters.py`) made with `retry`, which ends the letter in
the transaction that revives the run or delivery.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import Command, EventDraft, Principal, ReadSet, SubmissionResult, UnitOfWork
from observatory.protocol.identity import mint
from observatory.protocol.responses import Refused

Kind = Literal["job", "webhook"]
KINDS: tuple[Kind, ...] = ("job", "webhook")
State = Literal["dead", "retried", "discarded"]
PREVIEW = 1_024  # characters of the payload
Row = dict[str, Any]
# Revives the run or delivery of a letter: returns events and writes, or a refusal.
Reviver = Callable[[UnitOfWork, Row], tuple[list[EventDraft], list[RowWrite]] | Refused]


def create_dead_letter(
    uow: UnitOfWork,
    *,
    kind: Kind,
    source_id: str,
    source_name: str,
    subject_id: str,
    reason: str,
    preview: str,
    now_ns: int,
    asked_seq: int | None = None,
) -> tuple[EventDraft, RowWrite]:
    """Returns the event and write for a verdict. `source_id` is the job or endpoint, `subject_id` the failed
    run or delivery.

    The preview is stored in the letter and shown to people, never in the event. `asked_seq` is the message
    that requested the payload: shredding that message shreds the preview too.
    """
    tenant_id = uow.memory.tenant.tenant_id
    row: Row = {
        "tenant_id": tenant_id,
        "letter_id": mint("dlt_", now_ns),
        "kind": kind,
        "source_id": source_id,
        "source_name": source_name,
        "subject_id": subject_id,
        "reason": reason,
        "preview": preview[:PREVIEW].replace("\x00", "\ufffd"),
        "state": "dead",
        "created_ns": now_ns,
        "ended_ns": None,
        "ended_by": None,
        "asked_seq": asked_seq,
    }
    detail = {name: row[name] for name in ("letter_id", "kind", "source_id", "subject_id", "reason")}
    summary = f"{kind} {source_name}: given up, {reason}"
    return gateway_event(tenant_id, "dead_lettered", summary, now_ns, None, detail), RowWrite(
        "dead_letters", row
    )


def retry(
    who: Principal, letter: Row, now_ns: int, again: Reviver, read_set: ReadSet | None = None
) -> Command:
    """End the letter and revive its run or delivery, in one transaction."""
    return _end(who, letter["letter_id"], "retried", now_ns, again, read_set)


def discard(who: Principal, letter_id: str, now_ns: int) -> Command:
    return _end(who, letter_id, "discarded", now_ns, None, None)


def _end(
    who: Principal, letter_id: str, state: State, now_ns: int, again: Reviver | None, read_set: ReadSet | None
) -> Command:
    def decide(uow: UnitOfWork) -> SubmissionResult:
        row = uow.memory.rows.get("dead_letters", {}).get(letter_id)
        if row is None:
            detail = "no dead letter of this tenant has that id"
            return SubmissionResult(404, Refused(reason="not_found", detail=detail))
        if row["state"] != "dead":
            detail = f"this letter was already {row['state']}"
            return SubmissionResult(409, Refused(reason="already_ended", detail=detail))
        events, writes = list[EventDraft](), list[RowWrite]()
        if again is not None:
            revived = again(uow, row)
            if isinstance(revived, Refused):
                return SubmissionResult(409, revived)
            events, writes = revived
        ended = {"state": state, "ended_ns": uow.now_ns, "ended_by": who.entity_id}
        row |= ended
        where = {"tenant_id": who.tenant_id, "letter_id": letter_id, "state": "dead"}
        named = {name: row[name] for name in ("letter_id", "kind", "source_id", "subject_id")}
        summary = f"dead letter of {row['kind']} {row['source_name']} {state} by {who.entity_id}"
        event = gateway_event(who.tenant_id, f"dead_letter_{state}", summary, uow.now_ns, who, named)
        return SubmissionResult(200, row, [event, *events], [RowWrite("dead_letters", ended, where), *writes])

    read_set = read_set or ReadSet()
    read_set.row("dead_letters", letter_id)
    return Command(who, now_ns, decide, read_set)

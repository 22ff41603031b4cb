"""Command that records a failed verification, once per break.

Law: the verifier only reads; that a verification failed is an event like any other, so that alert rules can
fire on it. The chain continues after a break: new events are chained to the head as it is.
"""

from __future__ import annotations

from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import Command, Principal, ReadSet, SubmissionResult, UnitOfWork

LAST_BREAK = "chain_broken"  # the setting that stores which break was recorded last


def record_break(who: Principal, number: int, what: str, sentence: str, now_ns: int) -> Command:
    def decide(uow: UnitOfWork) -> SubmissionResult:
        knobs = uow.memory.rows.setdefault("knobs", {})
        mark = f"{number} {what}"
        if LAST_BREAK in knobs and knobs[LAST_BREAK]["value"] == mark:
            return SubmissionResult(200, False)
        knobs[LAST_BREAK] = {
            "tenant_id": who.tenant_id,
            "name": LAST_BREAK,
            "value": mark,
            "updated_ns": uow.now_ns,
            "updated_by": who.entity_id,
        }
        detail = {"first_break": number, "what": what, "sentence": sentence}
        summary = f"the trail does not verify from event {number} on, found by {who.entity_id}"
        event = gateway_event(who.tenant_id, "chain_broken", summary, uow.now_ns, who, detail)
        return SubmissionResult(
            200, True, [event], [RowWrite("knobs", knobs[LAST_BREAK], key=("tenant_id", "name"))]
        )

    read_set = ReadSet()
    read_set.row("knobs", LAST_BREAK)
    return Command(who, now_ns, decide, read_set)

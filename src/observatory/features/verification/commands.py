"""The act behind a verification that found a break: it is told, once for each break.

Law: the verifier only reads; that somebody saw it fail is an event like any other, so that rules can alarm by
it. The chain goes on behind a break: what is appended is chained to the head as it is.
"""

from __future__ import annotations

from observatory.pipeline.event_writer import notice
from observatory.pipeline.rows import Write
from observatory.pipeline.state import Act, Desk, Principal, Verdict, Wants

SEEN = "chain_broken"  # the knob that remembers which break was told of last


def tell_broken(who: Principal, number: int, what: str, sentence: str, now_ns: int) -> Act:
    def decide(desk: Desk) -> Verdict:
        knobs = desk.memory.rows.setdefault("knobs", {})
        mark = f"{number} {what}"
        if SEEN in knobs and knobs[SEEN]["value"] == mark:
            return Verdict(200, False)
        knobs[SEEN] = {
            "tenant_id": who.tenant_id,
            "name": SEEN,
            "value": mark,
            "updated_ns": desk.now_ns,
            "updated_by": who.entity_id,
        }
        detail = {"first_break": number, "what": what, "sentence": sentence}
        summary = f"the trail does not verify from event {number} on, found by {who.entity_id}"
        event = notice(who.tenant_id, "chain_broken", summary, desk.now_ns, who, detail)
        return Verdict(200, True, [event], [Write("knobs", knobs[SEEN], key=("tenant_id", "name"))])

    wants = Wants()
    wants.row("knobs", SEEN)
    return Act(who, now_ns, decide, wants)

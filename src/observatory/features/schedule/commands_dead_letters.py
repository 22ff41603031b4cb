"""Dead letters: what the house tried to send, could not, and gave up on.

Law: a letter is written in the transaction that gives up, with its reason and the beginning of what it
carried. A person tries it again or lets it go, once, and either is on record. How a letter is tried again is
known by its kind: each supplies an act (`RETRIES` at the door) made with `retry`, which ends the letter in
the transaction that revives what had died.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from observatory.pipeline.event_writer import notice
from observatory.pipeline.rows import Write
from observatory.pipeline.state import Act, Desk, Draft, Principal, Verdict, Wants
from observatory.protocol.answers import Refused
from observatory.protocol.identity import mint

Kind = Literal["job", "webhook"]
KINDS: tuple[Kind, ...] = ("job", "webhook")
State = Literal["dead", "retried", "discarded"]
PREVIEW = 1_024  # characters of what it carried
Row = dict[str, Any]
# What brings back to life what a letter is of: events and writes, or why it cannot be.
Again = Callable[[Desk, Row], tuple[list[Draft], list[Write]] | Refused]


def bury(
    desk: Desk,
    *,
    kind: Kind,
    source_id: str,
    source_name: str,
    subject_id: str,
    reason: str,
    preview: str,
    now_ns: int,
    asked_seq: int | None = None,
) -> tuple[Draft, Write]:
    """For an act's verdict. `source_id` is the job or endpoint, `subject_id` the run or delivery that died.

    The preview is kept in the letter and shown to people; the event does not hold it. `asked_seq` is the
    message that asked for what it carried: the preview goes with it.
    """
    tenant_id = desk.memory.tenant.tenant_id
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
    return notice(tenant_id, "dead_lettered", summary, now_ns, None, detail), Write("dead_letters", row)


def retry(who: Principal, letter: Row, now_ns: int, again: Again, wants: Wants | None = None) -> Act:
    """End the letter and revive what it is of, in one transaction."""
    return _end(who, letter["letter_id"], "retried", now_ns, again, wants)


def discard(who: Principal, letter_id: str, now_ns: int) -> Act:
    return _end(who, letter_id, "discarded", now_ns, None, None)


def _end(
    who: Principal, letter_id: str, state: State, now_ns: int, again: Again | None, wants: Wants | None
) -> Act:
    def decide(desk: Desk) -> Verdict:
        row = desk.memory.rows.get("dead_letters", {}).get(letter_id)
        if row is None:
            detail = "no dead letter of this tenant has that id"
            return Verdict(404, Refused(reason="not_found", detail=detail))
        if row["state"] != "dead":
            detail = f"this letter was {row['state']} already"
            return Verdict(409, Refused(reason="already_ended", detail=detail))
        events, writes = list[Draft](), list[Write]()
        if again is not None:
            revived = again(desk, row)
            if isinstance(revived, Refused):
                return Verdict(409, revived)
            events, writes = revived
        ended = {"state": state, "ended_ns": desk.now_ns, "ended_by": who.entity_id}
        row |= ended
        where = {"tenant_id": who.tenant_id, "letter_id": letter_id, "state": "dead"}
        named = {name: row[name] for name in ("letter_id", "kind", "source_id", "subject_id")}
        summary = f"dead letter of {row['kind']} {row['source_name']} {state} by {who.entity_id}"
        told = notice(who.tenant_id, f"dead_letter_{state}", summary, desk.now_ns, who, named)
        return Verdict(200, row, [told, *events], [Write("dead_letters", ended, where), *writes])

    wanted = wants or Wants()
    wanted.row("dead_letters", letter_id)
    return Act(who, now_ns, decide, wanted)

"""Words of thoughts go for good, by an order that is on record: what `shredding` is for messages (S610).

Law: the order is an audit event that names the session, every record by its index, who wanted it and why; in
the same transaction the words become nothing. No row goes, and no hash: chain, seal, log and bundles verify
as before, and say that those words were shredded. What was shredded before is not ordered again. Whoever
knows or guesses a thought word for word can still recognise it by its hash, as with a message's digest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from observatory.features.redaction.commands_shredding import Shredded
from observatory.features.thoughts.rows import UNKNOWN, Row, sessions_of, told, wants_of, where_of
from observatory.pipeline.rows import Write
from observatory.pipeline.state import Act, Desk, Principal, Verdict
from observatory.protocol.answers import Refused

# A thought has up to 64 KiB, and they are loaded under the lock.
AT_ONCE: Final = 100
EVENT: Final = "thoughts_shredded"


def shred(
    who: Principal,
    session_id: str,
    record_ids: Sequence[str],
    intent: bool,
    reason: str,
    now_ns: int,
    cause: str = "order",
) -> Act:
    """Records of one session, and with `intent` what it was begun for. `cause` is order or retention."""
    assert len(record_ids) <= AT_ONCE

    def decide(desk: Desk) -> Verdict:
        session = sessions_of(desk).get(session_id)
        if session is None:
            return Verdict(404, Refused(reason="not_found", detail=UNKNOWN))
        rows = [row for row in map(desk.memory.rows.get("thought_records", {}).get, record_ids) if row]
        gone = [row for row in rows if row["session_id"] == session_id and row.get("shredded_by") is None]
        forgets = intent and session.get("intent_shredded_by") is None and bool(session["intent"])
        if not gone and not forgets:
            return Verdict(200, Shredded(shredded=0))
        indexes = sorted(row["record_index"] for row in gone)
        detail = {
            "session_id": session_id,
            "cause": cause,
            "reason": reason,
            "records": indexes,
            "intent": forgets,
        }
        what = f"{len(gone)} thought{'' if len(gone) == 1 else 's'}{' and the intent' if forgets else ''}"
        summary = f"{what} of session {session_id} shredded by {cause}"
        number = desk.append(told(desk, who, session_id, EVENT, summary, detail))
        return Verdict(
            200, Shredded(shredded=len(gone), event=number), writes=_writes(session, gone, forgets, number)
        )

    wants = wants_of(session_id)
    for record_id in record_ids:
        wants.row("thought_records", record_id)
    return Act(who, now_ns, decide, wants)


def _writes(session: Row, gone: list[Row], forgets: bool, number: int) -> list[Write]:
    writes = list[Write]()
    if gone:
        where = where_of(session) | {"record_index": [row["record_index"] for row in gone]}
        writes.append(Write("thought_records", {"content": b"", "shredded_by": number}, where))
    for row in gone:  # for others of this batch
        row |= {"content": b"", "shredded_by": number}
    if forgets:
        changed = {"intent": "", "intent_shredded_by": number}
        session |= changed
        writes.append(Write("thought_sessions", changed, where_of(session)))
    return writes

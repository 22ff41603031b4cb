"""Shredding of thoughts: their texts are destroyed by a recorded order, as messages are (S610).

Law: the order is an audit event that names the session, every record by its index, the principal and the
reason; in the same transaction the texts are cleared. No row is deleted, and no hash: chain, seal, log and
bundles verify as before, and say that those texts were shredded. What was already shredded is not ordered
again. A thought known or guessed word for word can still be recognized by its hash, as with a message's
digest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from observatory.features.redaction.commands_shredding import Shredded
from observatory.features.thoughts.queries_rows import (
    UNKNOWN,
    Row,
    sessions_of,
    thought_event,
    wants_of,
    where_of,
)
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import Command, Principal, SubmissionResult, UnitOfWork
from observatory.protocol.responses import Refused

# A thought has up to 64 KiB, and they are loaded under the lock.
AT_ONCE: Final = 100
EVENT: Final = "thoughts_shredded"


def shred(
    principal: Principal,
    session_id: str,
    record_ids: Sequence[str],
    intent: bool,
    reason: str,
    now_ns: int,
    cause: str = "order",
) -> Command:
    """Records of one session, and with `intent` the intent it was begun with. `cause`: order or retention."""
    assert len(record_ids) <= AT_ONCE

    def decide(uow: UnitOfWork) -> SubmissionResult:
        session = sessions_of(uow).get(session_id)
        if session is None:
            return SubmissionResult(404, Refused(reason="not_found", detail=UNKNOWN))
        rows = [row for row in map(uow.memory.rows.get("thought_records", {}).get, record_ids) if row]
        gone = [row for row in rows if row["session_id"] == session_id and row.get("shredded_by") is None]
        forgets = intent and session.get("intent_shredded_by") is None and bool(session["intent"])
        if not gone and not forgets:
            return SubmissionResult(200, Shredded(shredded=0))
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
        number = uow.append(thought_event(uow, principal, session_id, EVENT, summary, detail))
        return SubmissionResult(
            200, Shredded(shredded=len(gone), event=number), writes=_writes(session, gone, forgets, number)
        )

    reads = wants_of(session_id)
    for record_id in record_ids:
        reads.row("thought_records", record_id)
    return Command(principal, now_ns, decide, reads)


def _writes(session: Row, gone: list[Row], forgets: bool, number: int) -> list[RowWrite]:
    writes = list[RowWrite]()
    if gone:
        where = where_of(session) | {"record_index": [row["record_index"] for row in gone]}
        writes.append(RowWrite("thought_records", {"content": b"", "shredded_by": number}, where))
    for row in gone:  # for later commands of this batch
        row |= {"content": b"", "shredded_by": number}
    if forgets:
        changed = {"intent": "", "intent_shredded_by": number}
        session |= changed
        writes.append(RowWrite("thought_sessions", changed, where_of(session)))
    return writes

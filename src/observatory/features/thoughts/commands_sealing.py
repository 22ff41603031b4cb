"""Commands that prove a session of thoughts: verify, seal (η), end (rules S332–S340).

Law (ruling 38): the seal is an RFC 6962 tree over the records in order. It is refused for an empty session,
an open task, a last record that is not a reflection, and without a passed verification right before the
closing reflection; sealing verifies again. A sealed session takes no more records, and sealing twice gives
the same root. A broken chain is a hard failure and an event of the highest severity. `Examined` is read
before the lock: under the lock the head of the session's chain proves that it is complete.
"""

from __future__ import annotations

from typing import Any, Final

from observatory.features.thoughts.queries_rows import (
    Row,
    ThoughtAuthor,
    session_command,
    thought_event,
    where_of,
)
from observatory.features.thoughts.verification import ThoughtVerification
from observatory.ledger import thoughts as ledger
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import Command, EventDraft, SubmissionResult, UnitOfWork
from observatory.protocol.clock import from_ns
from observatory.protocol.responses import Refused

NODES: Final = 1_000  # rows of one statement
SESSION_CHANGED: Final = SubmissionResult(
    409, Refused(reason="moved_on", detail="a record was appended meanwhile; retry")
)
NEXT: Final = "verify the chain, write the closing reflection, seal the session, then end it"


def verify(voice: ThoughtAuthor, session_id: str, seen: ThoughtVerification, now_ns: int) -> Command:
    """Record the result. A pass counts for the records it covered, which the seal checks. If a record was
    appended meanwhile, the verification is repeated: it did not cover that record."""

    def decide(uow: UnitOfWork, row: Row) -> SubmissionResult:
        answer = {
            "valid": seen.is_valid,
            "records": seen.records,
            "first_broken_index": seen.first_broken_index,
        }
        if seen.shredded:
            answer["shredded"] = seen.shredded
        if not seen.is_valid:
            return SubmissionResult(200, answer, [_broken(uow, voice, row, seen)], forget(row))
        if _head(row) != _head_of(seen):
            return SESSION_CHANGED
        detail = {"session_id": session_id, "last_chain_hash": seen.last_chain_hash} | answer
        noun = "record" if seen.records == 1 else "records"
        summary = f"the chain of {session_id} is valid over {seen.records} {noun}"
        event = thought_event(uow, voice.who, session_id, "thought_chain_verified", summary, detail)
        return SubmissionResult(200, answer, [], remember(row, seen.records, uow.append(event)))

    return session_command(voice, session_id, now_ns, decide)


def _head(row: Row) -> tuple[int, str]:
    return row["records"], row["last_chain_hash"]


def _head_of(seen: ThoughtVerification) -> tuple[int, str]:
    return seen.records, seen.last_chain_hash


def remember(row: Row, records: int, number: int) -> list[RowWrite]:
    """Store a pass, unless the session is ready to be sealed: then the pass before its closing reflection
    counts. Without an open task the last record is a reflection, since any other leaves its task open."""
    is_ready = records == row["records"] and row["verified_records"] == records - 1
    if row["sealed_ns"] is not None or (is_ready and row["open_tasks"] == 0):
        return []
    changed = {"verified_records": records, "verified_by": number}
    row |= changed
    return [RowWrite("thought_sessions", changed, where_of(row))]


def forget(row: Row) -> list[RowWrite]:
    if row["sealed_ns"] is not None or row["verified_records"] is None:
        return []
    changed = {"verified_records": None, "verified_by": None}
    row |= changed
    return [RowWrite("thought_sessions", changed, where_of(row))]


def seal(voice: ThoughtAuthor, session_id: str, seen: ThoughtVerification, now_ns: int) -> Command:
    """Seal the session; if a step of the required order is missing, the answer says which."""

    def decide(uow: UnitOfWork, row: Row) -> SubmissionResult:
        if not voice.owns(row):
            return _not_yours("seal")
        if row["sealed_ns"] is not None:
            return SubmissionResult(200, sealed(row))
        if _head(row) != _head_of(seen) and seen.is_valid:
            return SESSION_CHANGED
        if not seen.is_valid:
            detail = (
                f"the chain is broken at record {seen.first_broken_index}: what is stored is not what was "
                "recorded; it cannot be sealed"
            )
            refused = Refused(reason="chain_broken", detail=detail)
            return SubmissionResult(409, refused, [_broken(uow, voice, row, seen)], forget(row))
        problem = _why_not(row, seen)
        if problem is not None:
            return SubmissionResult(409, problem)
        return _sealed(uow, voice, row, seen)

    return session_command(voice, session_id, now_ns, decide)


def _why_not(row: Row, seen: ThoughtVerification) -> Refused | None:
    """The first rule that is not met, and what to do."""
    verified, open_tasks = row["verified_records"], ", ".join(seen.open_tasks)
    if not row["records"]:
        detail = "this session has no record; write its thoughts and its closing reflection first"
        return Refused(reason="empty_session", detail=detail)
    if seen.last_type != "reflection":
        first = "" if verified == row["records"] else "verify the chain, then "
        detail = f"its last record is not a reflection; {first}write the closing reflection of {open_tasks}"
        return Refused(reason="no_reflection", detail=f"{detail}, then seal")
    if row["open_tasks"]:
        detail = (
            f"open tasks: {open_tasks}; write a reflection for each, the last one right after verifying the "
            "chain, then seal"
        )
        return Refused(reason="open_tasks", detail=detail)
    if verified is None or verified != row["records"] - 1:
        detail = (
            "the chain was not verified right before the closing reflection; verify it now, write one more "
            "reflection (under another task), then seal"
        )
        return Refused(reason="not_verified", detail=detail)
    return None


def _sealed(uow: UnitOfWork, voice: ThoughtAuthor, row: Row, seen: ThoughtVerification) -> SubmissionResult:
    writes = tree_of(row, seen.leaves, uow.now_ns)
    detail = {
        "session_id": row["session_id"],
        "genesis": row["genesis"],
        "n_records": row["records"],
        "last_chain_hash": row["last_chain_hash"],
        "root": row["root"],
    }
    summary = f"thought session {row['session_id']} sealed over {row['records']} records"
    event = thought_event(uow, voice.who, row["session_id"], "thought_session_sealed", summary, detail)
    return SubmissionResult(200, sealed(row), [event], writes)


def tree_of(row: Row, leaves: list[bytes], sealed_ns: int) -> list[RowWrite]:
    """Writes of the nodes, then of the seal: after it the database accepts no more nodes."""
    tree = ledger.levels(leaves)
    row |= {"root": ledger.text_of(tree[-1][0]), "sealed_ns": sealed_ns}
    nodes = [
        {
            "tenant_id": row["tenant_id"],
            "session_id": row["session_id"],
            "level": level,
            "node_index": position,
            "hash": node,
        }
        for level, hashes in enumerate(tree)
        for position, node in enumerate(hashes)
    ]
    writes = [
        RowWrite("merkle_nodes", nodes[position], more=tuple(nodes[position + 1 : position + NODES]))
        for position in range(0, len(nodes), NODES)
    ]
    seal = {"root": row["root"], "sealed_ns": row["sealed_ns"]}
    return [*writes, RowWrite("thought_sessions", seal, where_of(row))]


def sealed(row: Row) -> dict[str, Any]:
    return {"root": row["root"], "size": row["records"], "sealed_at": from_ns(row["sealed_ns"])}


def end(voice: ThoughtAuthor, session_id: str, now_ns: int) -> Command:
    """End a session. A proof-grade one must be sealed first; any other must have its tasks closed."""

    def decide(uow: UnitOfWork, row: Row) -> SubmissionResult:
        if not voice.owns(row):
            return _not_yours("end")
        if row["ended_ns"] is not None:
            return SubmissionResult(200, ended(row))
        if row["proof_grade"] and row["sealed_ns"] is None:
            detail = f"a proof-grade session must be sealed before it ends: {NEXT}"
            return SubmissionResult(409, Refused(reason="not_sealed", detail=detail))
        if row["open_tasks"]:
            detail = f"open tasks: {row['open_tasks']}; write the closing reflection of each first"
            return SubmissionResult(409, Refused(reason="open_tasks", detail=detail))
        row["ended_ns"] = uow.now_ns
        ended_detail = {"session_id": session_id, "records": row["records"], "root": row["root"]}
        summary = f"thought session {session_id} ended"
        event = thought_event(uow, voice.who, session_id, "thought_session_ended", summary, ended_detail)
        write = RowWrite("thought_sessions", {"ended_ns": uow.now_ns}, where_of(row))
        return SubmissionResult(200, ended(row), [event], [write])

    return session_command(voice, session_id, now_ns, decide)


def ended(row: Row) -> dict[str, Any]:
    return {
        "session_id": row["session_id"],
        "ended_at": from_ns(row["ended_ns"]),
        "records": row["records"],
        "root": row["root"],
    }


def _not_yours(verb: str) -> SubmissionResult:
    detail = f"only its starter, an operator or an admin may {verb} a session"
    return SubmissionResult(403, Refused(reason="not_yours", detail=detail))


def _broken(uow: UnitOfWork, voice: ThoughtAuthor, row: Row, seen: ThoughtVerification) -> EventDraft:
    detail = {
        "session_id": row["session_id"],
        "records": seen.records,
        "first_broken_index": seen.first_broken_index,
    }
    summary = (
        f"the chain of thought session {row['session_id']} is broken at record {seen.first_broken_index}"
    )
    return thought_event(uow, voice.who, row["session_id"], "chain_broken", summary, detail)

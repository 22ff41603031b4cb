"""The acts that prove a session of thoughts: verified, sealed (η), ended (rules S332–S340).

Law (ruling 38): the seal is an RFC 6962 tree over the records in order. It is refused over an empty session,
an open task, a last record that is no reflection, and where no verification passed right before the closing
reflection; it verifies again itself. Once sealed nothing is appended, and sealing twice gives the same root.
A broken chain is a hard failure and an event of the highest severity. `Examined` was read before the lock:
under it the head of the session's chain proves that it was the whole of it.
"""

from __future__ import annotations

from typing import Any, Final

from observatory.features.thoughts.rows import Row, Voice, told, where_of, within
from observatory.features.thoughts.verification import Examined
from observatory.ledger import thoughts as ledger
from observatory.pipeline.rows import Write
from observatory.pipeline.state import Act, Desk, Draft, Verdict
from observatory.protocol.answers import Refused
from observatory.protocol.clock import from_ns

NODES: Final = 1_000  # rows of one statement
MOVED_ON: Final = Verdict(
    409, Refused(reason="moved_on", detail="a record was appended meanwhile; try again")
)
NEXT: Final = "verify the chain, write the closing reflection, seal the session, then end it"


def verify(voice: Voice, session_id: str, seen: Examined, now_ns: int) -> Act:
    """Tell what was found. A pass counts for the records it covered; the seal looks at that. One that lost
    a race against a record is looked at again: it would come after what it has not seen."""

    def decide(desk: Desk, row: Row) -> Verdict:
        answer = {
            "valid": seen.is_valid,
            "records": seen.records,
            "first_broken_index": seen.first_broken_index,
        }
        if seen.shredded:
            answer["shredded"] = seen.shredded
        if not seen.is_valid:
            return Verdict(200, answer, [_broken(desk, voice, row, seen)], forget(row))
        if _head(row) != _head_of(seen):
            return MOVED_ON
        detail = {"session_id": session_id, "last_chain_hash": seen.last_chain_hash} | answer
        summary = f"the chain of {session_id} holds over {seen.records} records"
        event = told(desk, voice.who, session_id, "thought_chain_verified", summary, detail)
        return Verdict(200, answer, [], remember(row, seen.records, desk.append(event)))

    return within(voice, session_id, now_ns, decide)


def _head(row: Row) -> tuple[int, str]:
    return row["records"], row["last_chain_hash"]


def _head_of(seen: Examined) -> tuple[int, str]:
    return seen.records, seen.last_chain_hash


def remember(row: Row, records: int, number: int) -> list[Write]:
    """Of a session ready to be sealed the pass before its closing reflection is what counts: without an open
    task its last record is a reflection, since any other would have left its own open."""
    is_ready = records == row["records"] and row["verified_records"] == records - 1
    if row["sealed_ns"] is not None or (is_ready and row["open_tasks"] == 0):
        return []
    changed = {"verified_records": records, "verified_by": number}
    row |= changed
    return [Write("thought_sessions", changed, where_of(row))]


def forget(row: Row) -> list[Write]:
    if row["sealed_ns"] is not None or row["verified_records"] is None:
        return []
    changed = {"verified_records": None, "verified_by": None}
    row |= changed
    return [Write("thought_sessions", changed, where_of(row))]


def seal(voice: Voice, session_id: str, seen: Examined, now_ns: int) -> Act:
    """What the writeback order still asks for is the answer where it is not at its end."""

    def decide(desk: Desk, row: Row) -> Verdict:
        if not voice.owns(row):
            return _not_yours("sealed")
        if row["sealed_ns"] is not None:
            return Verdict(200, sealed(row))
        if _head(row) != _head_of(seen) and seen.is_valid:
            return MOVED_ON
        if not seen.is_valid:
            detail = (
                f"the chain is broken at record {seen.first_broken_index}: what is stored is not what was "
                "recorded; nothing can be sealed over it"
            )
            refused = Refused(reason="chain_broken", detail=detail)
            return Verdict(409, refused, [_broken(desk, voice, row, seen)], forget(row))
        problem = _why_not(row, seen)
        if problem is not None:
            return Verdict(409, problem)
        return _sealed(desk, voice, row, seen)

    return within(voice, session_id, now_ns, decide)


def _why_not(row: Row, seen: Examined) -> Refused | None:
    """The first rule that is not kept, and how to go on."""
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


def _sealed(desk: Desk, voice: Voice, row: Row, seen: Examined) -> Verdict:
    writes = tree_of(row, seen.leaves, desk.now_ns)
    detail = {
        "session_id": row["session_id"],
        "genesis": row["genesis"],
        "n_records": row["records"],
        "last_chain_hash": row["last_chain_hash"],
        "root": row["root"],
    }
    summary = f"thought session {row['session_id']} sealed over {row['records']} records"
    event = told(desk, voice.who, row["session_id"], "thought_session_sealed", summary, detail)
    return Verdict(200, sealed(row), [event], writes)


def tree_of(row: Row, leaves: list[bytes], sealed_ns: int) -> list[Write]:
    """The nodes, then the seal itself: after it the database takes no node any more."""
    tree = ledger.levels(leaves)
    row |= {"root": ledger.text_of(tree[-1][0]), "sealed_ns": sealed_ns}
    nodes = [
        {
            "tenant_id": row["tenant_id"],
            "session_id": row["session_id"],
            "level": level,
            "node_index": at,
            "hash": node,
        }
        for level, made in enumerate(tree)
        for at, node in enumerate(made)
    ]
    writes = [
        Write("merkle_nodes", nodes[at], more=tuple(nodes[at + 1 : at + NODES]))
        for at in range(0, len(nodes), NODES)
    ]
    seal = {"root": row["root"], "sealed_ns": row["sealed_ns"]}
    return [*writes, Write("thought_sessions", seal, where_of(row))]


def sealed(row: Row) -> dict[str, Any]:
    return {"root": row["root"], "size": row["records"], "sealed_at": from_ns(row["sealed_ns"])}


def end(voice: Voice, session_id: str, now_ns: int) -> Act:
    """Close a session. A proof-grade one ends sealed or not at all; another one with its tasks closed."""

    def decide(desk: Desk, row: Row) -> Verdict:
        if not voice.owns(row):
            return _not_yours("ended")
        if row["ended_ns"] is not None:
            return Verdict(200, ended(row))
        if row["proof_grade"] and row["sealed_ns"] is None:
            detail = f"a proof-grade session ends only when it is sealed: {NEXT}"
            return Verdict(409, Refused(reason="not_sealed", detail=detail))
        if row["open_tasks"]:
            detail = f"{row['open_tasks']} of its tasks are open; write the closing reflection of each first"
            return Verdict(409, Refused(reason="open_tasks", detail=detail))
        row["ended_ns"] = desk.now_ns
        detail_told = {"session_id": session_id, "records": row["records"], "root": row["root"]}
        summary = f"thought session {session_id} ended"
        event = told(desk, voice.who, session_id, "thought_session_ended", summary, detail_told)
        write = Write("thought_sessions", {"ended_ns": desk.now_ns}, where_of(row))
        return Verdict(200, ended(row), [event], [write])

    return within(voice, session_id, now_ns, decide)


def ended(row: Row) -> dict[str, Any]:
    return {
        "session_id": row["session_id"],
        "ended_at": from_ns(row["ended_ns"]),
        "records": row["records"],
        "root": row["root"],
    }


def _not_yours(what: str) -> Verdict:
    detail = f"a session is {what} by whoever began it, an operator or an admin"
    return Verdict(403, Refused(reason="not_yours", detail=detail))


def _broken(desk: Desk, voice: Voice, row: Row, seen: Examined) -> Draft:
    detail = {
        "session_id": row["session_id"],
        "records": seen.records,
        "first_broken_index": seen.first_broken_index,
    }
    summary = (
        f"the chain of thought session {row['session_id']} is broken at record {seen.first_broken_index}"
    )
    return told(desk, voice.who, row["session_id"], "chain_broken", summary, detail)

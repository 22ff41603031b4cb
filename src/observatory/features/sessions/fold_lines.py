"""Fold of the session table's derived columns: goal, confidence, entropy trail, first agents, ended or not.

One row per session, rebuilt by each of its messages; the previous row is cached or read again. The goal is
the first intent that was not refused; a hold that ends with other content changes it, and shredding the
payload removes it. The result depends on sequence numbers alone, not on batching. Rules S300, S301.
"""

from __future__ import annotations

from observatory.derived.seen import Batch, DerivedWrite, Finding, FoldMessage, ended_by, shredded_by
from observatory.features.sessions.types_lines import (
    CREW,
    GOAL,
    TRAIL,
    SessionLine,
    SessionLineReads,
    Spots,
    key_of,
)

KNOWN = 5_000  # cached lines; beyond, they are read again


class SessionLines:
    name = "session_lines"

    def __init__(self, lines: SessionLineReads, spots: Spots) -> None:
        self._lines, self._spots = lines, spots
        self._known: dict[tuple[str, int], SessionLine] = {}

    def forget(self) -> None:
        self._known.clear()

    async def fold(self, batch: Batch) -> tuple[list[DerivedWrite], list[Finding]]:
        tenant_id = batch.tenant_id
        gone = {number: event.seq for event in batch.events for number in shredded_by(event)}
        places = {seen.seq: seen.session_no for seen in batch.messages}
        if left := gone.keys() - places.keys():
            # By the message itself: an order to shred need not be of its session.
            places |= {one.seq: one.session_no for one in await self._spots.spots(tenant_id, numbers=left)}
        await self._recall(tenant_id, set(places.values()) - {0})
        turns = {number: event.seq for event in batch.events if (number := ended_by(event)) is not None}
        changed: dict[int, SessionLine] = {}
        for seen in batch.messages:
            if seen.session_no:
                line = self._line(tenant_id, seen.session_no)
                turn = turns.get(seen.seq, seen.seq) if seen.revised else seen.seq
                updated = _revised(line, seen, turn) if seen.revised else _advanced(line, seen)
                if updated is not line:
                    changed[seen.session_no] = self._known[tenant_id, seen.session_no] = updated
        for number, turn in gone.items():
            line = self._line(tenant_id, places.get(number, 0))
            if line.goal_seq == number:
                updated = line._replace(goal=None, goal_key=None, turn=max(line.turn, turn))
                changed[line.session_no] = self._known[tenant_id, line.session_no] = updated
        rows = [line._asdict() for line in changed.values()]
        return ([DerivedWrite("insight_session_lines", rows)] if rows else []), []

    def _line(self, tenant_id: str, session_no: int) -> SessionLine:
        blank = SessionLine(session_no, 0, 0, 0, None, None, None, "", "", 0)
        return self._known.get((tenant_id, session_no), blank)

    async def _recall(self, tenant_id: str, numbers: set[int]) -> None:
        if len(self._known) > KNOWN:
            self._known.clear()
        missing = {number for number in numbers if (tenant_id, number) not in self._known}
        if missing:
            for number, line in (await self._lines.session_lines(tenant_id, missing)).items():
                self._known[tenant_id, number] = line


def _advanced(line: SessionLine, seen: FoldMessage) -> SessionLine:
    log = seen.log
    thought = None if log is None else log.cognition
    goal_seq, goal, goal_key = line.goal_seq, line.goal, line.goal_key
    if not goal_seq and thought is not None and seen.state != "refused":
        goal_seq, (goal, goal_key) = seen.seq, _goal(thought.intent)
    elif not goal_seq and _is_shredded(seen) and seen.state != "refused":
        goal_seq = seen.seq  # as when the shred order arrives after the message
    confidence = None if thought is None else thought.confidence_score
    trail = line.trail
    if seen.entropy is not None:
        trail = ",".join([*trail.split(","), f"{seen.entropy:.4g}"][-TRAIL:]).lstrip(",")
    crew, agent = line.crew, str(seen.agent_no)
    if seen.agent_no and crew.count(",") < CREW - 1 and agent not in crew.split(","):
        crew = f"{crew},{agent}" if crew else agent
    terminal = log is not None and log.control is not None and bool(log.control.is_terminal)
    return SessionLine(
        line.session_no,
        seen.seq,
        seen.seq,
        goal_seq,
        goal,
        goal_key,
        line.confidence if confidence is None else confidence,
        trail,
        crew,
        int(terminal),
    )


def _revised(line: SessionLine, seen: FoldMessage, turn: int) -> SessionLine:
    """A held message ended, perhaps with other content: only the goal is derived from it."""
    thought = None if seen.log is None else seen.log.cognition
    if line.goal_seq != seen.seq:
        return line
    goal, goal_key = (None, None) if thought is None else _goal(thought.intent)
    return line._replace(goal=goal, goal_key=goal_key, turn=max(line.turn, turn))


def _is_shredded(seen: FoldMessage) -> bool:
    return seen.message_type == "decision_log" and seen.log is None


def _goal(intent: str) -> tuple[str, str]:
    text = " ".join(intent[: 4 * GOAL].split())
    short = text if len(text) <= GOAL else text[: GOAL - 1].rstrip() + "…"
    return short, key_of(short)

"""Turns findings of the analyst into events: loops, refused edges, unknown parents, injections.

Law: each finding is recorded once. The number of the last one is a row of its own (`knobs`, name `alarms`),
written in the transaction of the event and read under the lock: a restart, a second gateway or a rebuilt
derived store repeats nothing. Each open loop stays on its session until its own agent's loop ends: `loops`
has them as JSON, oldest first; the columns `loop_…` are those of the newest. Events contain no floats and no
payload text.
"""

from __future__ import annotations

import msgspec

from observatory.derived.ports import StoredFinding
from observatory.features.loops.queries import open_loops
from observatory.features.loops.types import Loop
from observatory.pipeline.event_draft import in_session
from observatory.pipeline.rows import AgentRow, RowWrite, SessionRow
from observatory.pipeline.state import Command, Principal, ReadSet, SubmissionResult, UnitOfWork
from observatory.pipeline.tenant_settings import plain
from observatory.protocol.identity import agent_entity_id

CURSOR = "alarms"
MAX_LOOPS = 64  # open at a time in one session; beyond that the oldest is dropped
EVENTS = {
    "loop_detected": "loop_detected",
    "loop_ended": "loop_ended",
    "cycle": "causal_cycle_refused",
    "orphan": "parent_unknown",
    "injection": "injection_suspected",
}
SUMMARIES = {
    "loop_detected": "{agent} is looping (second detector)",
    "loop_ended": "{agent} is no longer looping",
    "cycle": "an edge of {agent} would close a cycle; the edge is refused, the step stays",
    "orphan": "a parent of {agent}'s step did not arrive; it is attached to the session's first root",
    "injection": "a message from {agent} contains known prompt injection patterns",
}


def opened(session: SessionRow, loop: Loop) -> None:
    others = [one for one in open_loops(session.loops) if one.agent_no != loop.agent_no]
    _store_loops(session, [*others, loop][-MAX_LOOPS:])


def closed(session: SessionRow, agent_no: int) -> bool:
    """Removes this agent's loop; returns whether there was one."""
    before = open_loops(session.loops)
    left = [one for one in before if one.agent_no != agent_no]
    _store_loops(session, left)
    return len(left) < len(before)


def _store_loops(session: SessionRow, loops: list[Loop]) -> None:
    newest = loops[-1] if loops else None
    session.loops = msgspec.json.encode(loops).decode() if loops else None
    session.loop_ns = newest.ns if newest else None
    session.loop_seq = newest.seq if newest else None
    session.loop_detector = newest.detector if newest else None
    session.loop_agent_no = newest.agent_no if newest else None


def record_finding(principal: Principal, finding: StoredFinding, now_ns: int) -> Command:
    """Records one finding, checked again under the lock. The answer is 1 if an event was written, else 0."""
    entity_id = agent_entity_id(principal.tenant_id, finding.agent_id)

    def decide(uow: UnitOfWork) -> SubmissionResult:
        memory = uow.memory
        row = memory.rows.setdefault("knobs", {}).get(CURSOR)
        if row is not None and int(row["value"]) >= finding.finding_id:
            return SubmissionResult(200, 0)
        values = {
            "tenant_id": principal.tenant_id,
            "name": CURSOR,
            "value": str(finding.finding_id),
            "updated_ns": uow.now_ns,
            "updated_by": principal.entity_id,
        }
        memory.rows["knobs"][CURSOR] = values
        write = RowWrite("knobs", values, key=("tenant_id", "name"))
        session, agent = memory.sessions.get(finding.session_id), memory.agents.get(entity_id)
        if session is None or finding.kind not in EVENTS or _is_open(session, agent, finding.kind):
            return SubmissionResult(200, 0, writes=[write])
        event_type = EVENTS[finding.kind]
        detail = {
            "session_id": finding.session_id,
            "agent_id": finding.agent_id,
            "message_sequence_number": finding.seq,
            "finding_id": finding.finding_id,
            **{name: plain(value) for name, value in finding.body.items()},
        }
        summary = SUMMARIES[finding.kind].format(agent=finding.agent_id)
        number = uow.append(in_session(session, event_type, summary, detail, uow.now_ns))
        _update_loops(session, agent, finding, number)
        memory.touch(session)
        return SubmissionResult(200, 1, writes=[write])

    reads = ReadSet(sessions={finding.session_id}, agents={entity_id})
    reads.row("knobs", CURSOR)
    return Command(principal, now_ns, decide, reads)


def _is_open(session: SessionRow, agent: AgentRow | None, kind: str) -> bool:
    """Whether a loop of the same agent is recorded already."""
    if kind != "loop_detected" or agent is None:
        return False
    return any(one.agent_no == agent.agent_no for one in open_loops(session.loops))


def _update_loops(session: SessionRow, agent: AgentRow | None, finding: StoredFinding, number: int) -> None:
    agent_no = 0 if agent is None else agent.agent_no
    if finding.kind == "loop_detected":
        detector = str(finding.body.get("detector", "fingerprint"))
        opened(session, Loop(agent_no, finding.at_ns, number, detector))
    elif finding.kind == "loop_ended":
        closed(session, agent_no)

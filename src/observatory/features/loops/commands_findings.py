"""Findings of the analyst become events: loops, refused edges, unknown parents, injections.

Law: each finding is told of once. The number of the last one is a row of its own (`knobs`, name `alarms`),
written in the transaction of the event and looked at under the lock: a restart, a second gateway or a derived
store made anew repeats nothing. Each open loop stays on its session until its own agent's ends: `loops` holds
them as JSON, oldest first; the columns `loop_…` are those of the newest. Events hold no floats and no payload
text.
"""

from __future__ import annotations

import msgspec

from observatory.features.loops.stage import plain
from observatory.pipeline.event_draft import in_session
from observatory.pipeline.rows import Agent, Session, Write
from observatory.pipeline.state import Act, Desk, Principal, Verdict, Wants
from observatory.protocol.identity import agent_entity_id
from observatory.runtime.derived import StoredFinding

CURSOR = "alarms"
MOST_LOOPS = 64  # open at a time in one session; of more the oldest is forgotten
EVENTS = {
    "loop_detected": "loop_detected",
    "loop_ended": "loop_ended",
    "cycle": "causal_cycle_refused",
    "orphan": "parent_unknown",
    "injection": "injection_suspected",
}
SUMMARIES = {
    "loop_detected": "{agent} goes in circles, says the second detector",
    "loop_ended": "{agent} goes in circles no more",
    "cycle": "an edge of {agent} would close a circle; it is left out, the step stays",
    "orphan": "a parent of {agent}'s step did not come; it is attached to the session's first root",
    "injection": "what came by {agent} has words of known prompt injections",
}


class Loop(msgspec.Struct, frozen=True):
    """An open loop: whose, since when, the event that told of it, what saw it."""

    agent_no: int
    ns: int
    seq: int
    detector: str


_loops = msgspec.json.Decoder(list[Loop]).decode


def open_loops(text: str | None) -> list[Loop]:
    """Of the column `loops` of a session, oldest first."""
    return _loops(text) if text else []


def opened(session: Session, loop: Loop) -> None:
    others = [one for one in open_loops(session.loops) if one.agent_no != loop.agent_no]
    _show(session, [*others, loop][-MOST_LOOPS:])


def closed(session: Session, agent_no: int) -> bool:
    """Whether there was one of this agent."""
    before = open_loops(session.loops)
    left = [one for one in before if one.agent_no != agent_no]
    _show(session, left)
    return len(left) < len(before)


def _show(session: Session, loops: list[Loop]) -> None:
    newest = loops[-1] if loops else None
    session.loops = msgspec.json.encode(loops).decode() if loops else None
    session.loop_ns = newest.ns if newest else None
    session.loop_seq = newest.seq if newest else None
    session.loop_detector = newest.detector if newest else None
    session.loop_agent_no = newest.agent_no if newest else None


def tell(who: Principal, finding: StoredFinding, now_ns: int) -> Act:
    """One finding, looked at again under the lock. The answer is 1 when it was told of, else 0."""
    entity_id = agent_entity_id(who.tenant_id, finding.agent_id)

    def decide(desk: Desk) -> Verdict:
        memory = desk.memory
        row = memory.rows.setdefault("knobs", {}).get(CURSOR)
        if row is not None and int(row["value"]) >= finding.finding_id:
            return Verdict(200, 0)
        values = {
            "tenant_id": who.tenant_id,
            "name": CURSOR,
            "value": str(finding.finding_id),
            "updated_ns": desk.now_ns,
            "updated_by": who.entity_id,
        }
        memory.rows["knobs"][CURSOR] = values
        write = Write("knobs", values, key=("tenant_id", "name"))
        session, agent = memory.sessions.get(finding.session_id), memory.agents.get(entity_id)
        if session is None or finding.kind not in EVENTS or _is_open(session, agent, finding.kind):
            return Verdict(200, 0, writes=[write])
        event_type = EVENTS[finding.kind]
        detail = {
            "session_id": finding.session_id,
            "agent_id": finding.agent_id,
            "message_sequence_number": finding.seq,
            "finding_id": finding.finding_id,
            **{name: plain(value) for name, value in finding.body.items()},
        }
        summary = SUMMARIES[finding.kind].format(agent=finding.agent_id)
        number = desk.append(in_session(session, event_type, summary, detail, desk.now_ns))
        _keep(session, agent, finding, number)
        memory.touch(session)
        return Verdict(200, 1, writes=[write])

    wants = Wants(sessions={finding.session_id}, agents={entity_id})
    wants.row("knobs", CURSOR)
    return Act(who, now_ns, decide, wants)


def _is_open(session: Session, agent: Agent | None, kind: str) -> bool:
    """The same agent's loop is told of already."""
    if kind != "loop_detected" or agent is None:
        return False
    return any(one.agent_no == agent.agent_no for one in open_loops(session.loops))


def _keep(session: Session, agent: Agent | None, finding: StoredFinding, number: int) -> None:
    agent_no = 0 if agent is None else agent.agent_no
    if finding.kind == "loop_detected":
        detector = str(finding.body.get("detector", "fingerprint"))
        opened(session, Loop(agent_no, finding.at_ns, number, detector))
    elif finding.kind == "loop_ended":
        closed(session, agent_no)

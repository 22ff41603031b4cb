"""A pause that an agent carries itself: it holds in every session, also in those that begin later (S1124).

Law: the pause is a column of the agent, under the tenant's lock: it survives a restart and binds every
gateway of the database with the next message. A session the agent speaks in meanwhile takes the pause over
(`relay.is_paused`), so that whoever looks there sees it. Lifting it is an act of a person, like the pause.
"""

from __future__ import annotations

from typing import Any

import msgspec

from observatory.features.redaction import typed_text as typed
from observatory.features.relay.commands import PAUSED, RUNNING, UNKNOWN_AGENT, mark
from observatory.features.relay.release import scribe_of
from observatory.pipeline.event_writer import Scribe, notice
from observatory.pipeline.rows import Agent, Write
from observatory.pipeline.state import Act, Desk, Principal, Verdict, Wants
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import agent_entity_id, mint


class EverywhereCommanded(msgspec.Struct, kw_only=True):
    """What became of the agent itself; None of ids when nothing changed."""

    state: str
    intervention_id: str | None = None
    sequence_number: int | None = None


def pause(who: Principal, agent_id: str, note: str | None, now_ns: int) -> Act:
    def decide(desk: Desk) -> Verdict:
        scribe = scribe_of(desk)
        agent = desk.memory.agents.get(agent_entity_id(who.tenant_id, agent_id))
        if agent is None:
            return UNKNOWN_AGENT
        if agent.is_paused:
            return Verdict(200, EverywhereCommanded(state="already_paused"))
        said = typed.left(desk.memory, "note", note)
        number, intervention_id = _record(scribe, who, agent, "pause", said)
        agent.paused_ns, agent.paused_by, agent.pause_seq = desk.now_ns, who.entity_id, number
        desk.memory.touch(agent)
        order = {"reason": "paused", "by": who.entity_id, "intervention_id": intervention_id, "note": said}
        desk.tell(number, agent.agent_no, "hold", order)
        answer = EverywhereCommanded(state="paused", intervention_id=intervention_id, sequence_number=number)
        return Verdict(202, answer)

    return Act(who, now_ns, decide, _wants(who, agent_id))


def unpause(who: Principal, agent_id: str, note: str | None, now_ns: int) -> Act:
    """Sessions that took the pause over are let go on by commands of their own."""

    def decide(desk: Desk) -> Verdict:
        scribe = scribe_of(desk)
        agent = desk.memory.agents.get(agent_entity_id(who.tenant_id, agent_id))
        if agent is None:
            return UNKNOWN_AGENT
        if not agent.is_paused:
            return Verdict(200, EverywhereCommanded(state="not_paused"))
        said = typed.left(desk.memory, "note", note)
        number, intervention_id = _record(scribe, who, agent, "unpause", said)
        if agent.pause_seq is not None:
            mark(scribe, agent.pause_seq, "reversed_ns")
        agent.paused_ns = agent.paused_by = agent.pause_seq = None
        desk.memory.touch(agent)
        order = {"intervention_id": intervention_id, "by": who.entity_id}
        desk.tell(number, agent.agent_no, "resume", order)
        answer = EverywhereCommanded(state="running", intervention_id=intervention_id, sequence_number=number)
        return Verdict(200, answer)

    return Act(who, now_ns, decide, _wants(who, agent_id))


def _wants(who: Principal, agent_id: str) -> Wants:
    return Wants(agents={agent_entity_id(who.tenant_id, agent_id)})


def _record(scribe: Scribe, who: Principal, agent: Agent, command: str, note: str | None) -> tuple[int, str]:
    """The command's event and row; it belongs to no session."""
    tenant_id, number = scribe.memory.tenant.tenant_id, scribe.next_sequence
    intervention_id = mint("int_", scribe.now_ns, number)
    before, after = (RUNNING, PAUSED) if command == "pause" else (PAUSED, RUNNING)
    named: dict[str, Any] = {
        "intervention_id": intervention_id,
        "command": command,
        "operator_id": who.entity_id,
        "message_id": None,
        "before_hash": before,
        "after_hash": after,
        "note": note,
    }
    detail = named | {
        "everywhere": True,
        "session_id": None,
        "agent_id": agent.agent_id,
        "issued_at": from_ns(scribe.now_ns),
        "reverses": None,
        "reversed_at": None,
    }
    summary = f"{command} of {agent.agent_id} everywhere by {who.entity_id}"
    event = notice(tenant_id, "hitl_intervention", summary, scribe.now_ns, who, detail)
    event.recipient_id = agent.entity_id
    if note is not None:
        event.attributes |= typed.attributes(scribe.memory)
    scribe.append(event)
    row = named | {
        "tenant_id": tenant_id,
        "sequence_number": number,
        "session_no": 0,
        "agent_no": agent.agent_no,
        "message_seq": None,
        "issued_ns": scribe.now_ns,
    }
    scribe.changes.writes.append(Write("interventions", row))
    return number, intervention_id

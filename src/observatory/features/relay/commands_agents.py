"""Pause and unpause an agent everywhere: in every session, also in those that begin later (S1124).

Law: the pause is a column of the agent's row, under the tenant's lock: it survives a restart and applies on
every gateway of the database from the next message on. A session in which the agent sends meanwhile copies
the pause (`stage.is_paused`), so that it is visible there. Only a person lifts it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from observatory.features.relay.commands import PAUSED, RUNNING, UNKNOWN_AGENT, set_timestamp
from observatory.features.relay.release import event_writer_of
from observatory.pipeline.event_writer import EventWriter, gateway_event
from observatory.pipeline.redaction import typed_text as typed
from observatory.pipeline.rows import AgentRow, RowWrite
from observatory.pipeline.state import Command, Principal, ReadSet, SubmissionResult, UnitOfWork
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import agent_entity_id, mint


class EverywhereCommanded(msgspec.Struct, kw_only=True):
    """The agent's own state after the command; ids are None when nothing changed."""

    state: str
    intervention_id: str | None = None
    sequence_number: int | None = None


def pause(who: Principal, agent_id: str, note: str | None, now_ns: int) -> Command:
    def decide(uow: UnitOfWork) -> SubmissionResult:
        event_writer = event_writer_of(uow)
        agent = uow.memory.agents.get(agent_entity_id(who.tenant_id, agent_id))
        if agent is None:
            return UNKNOWN_AGENT
        if agent.is_paused:
            return SubmissionResult(200, EverywhereCommanded(state="already_paused"))
        text = typed.redact_text(uow.memory, "note", note)
        number, intervention_id = _record(event_writer, who, agent, "pause", text)
        agent.paused_ns, agent.paused_by, agent.pause_seq = uow.now_ns, who.entity_id, number
        uow.memory.touch(agent)
        order = {"reason": "paused", "by": who.entity_id, "intervention_id": intervention_id, "note": text}
        uow.deliver(number, agent.agent_no, "hold", order)
        answer = EverywhereCommanded(state="paused", intervention_id=intervention_id, sequence_number=number)
        return SubmissionResult(202, answer)

    return Command(who, now_ns, decide, _wants(who, agent_id))


def unpause(who: Principal, agent_id: str, note: str | None, now_ns: int) -> Command:
    """Sessions that copied the pause are resumed by commands of their own."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        event_writer = event_writer_of(uow)
        agent = uow.memory.agents.get(agent_entity_id(who.tenant_id, agent_id))
        if agent is None:
            return UNKNOWN_AGENT
        if not agent.is_paused:
            return SubmissionResult(200, EverywhereCommanded(state="not_paused"))
        text = typed.redact_text(uow.memory, "note", note)
        number, intervention_id = _record(event_writer, who, agent, "unpause", text)
        if agent.pause_seq is not None:
            set_timestamp(event_writer, agent.pause_seq, "reversed_ns")
        agent.paused_ns = agent.paused_by = agent.pause_seq = None
        uow.memory.touch(agent)
        order = {"intervention_id": intervention_id, "by": who.entity_id}
        uow.deliver(number, agent.agent_no, "resume", order)
        answer = EverywhereCommanded(state="running", intervention_id=intervention_id, sequence_number=number)
        return SubmissionResult(200, answer)

    return Command(who, now_ns, decide, _wants(who, agent_id))


def _wants(who: Principal, agent_id: str) -> ReadSet:
    return ReadSet(agents={agent_entity_id(who.tenant_id, agent_id)})


def _record(
    event_writer: EventWriter, who: Principal, agent: AgentRow, command: str, note: str | None
) -> tuple[int, str]:
    """The command's event and row; it belongs to no session."""
    tenant_id, number = event_writer.memory.tenant.tenant_id, event_writer.next_sequence
    intervention_id = mint("int_", event_writer.now_ns, number)
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
        "issued_at": from_ns(event_writer.now_ns),
        "reverses": None,
        "reversed_at": None,
    }
    summary = f"{command} of {agent.agent_id} everywhere by {who.entity_id}"
    event = gateway_event(tenant_id, "hitl_intervention", summary, event_writer.now_ns, who, detail)
    event.recipient_id = agent.entity_id
    if note is not None:
        event.attributes |= typed.attributes(event_writer.memory)
    event_writer.append(event)
    row = named | {
        "tenant_id": tenant_id,
        "sequence_number": number,
        "session_no": 0,
        "agent_no": agent.agent_no,
        "message_seq": None,
        "issued_ns": event_writer.now_ns,
    }
    event_writer.changes.writes.append(RowWrite("interventions", row))
    return number, intervention_id

"""Interventions on a running agent: pause, unpause, rewrite, inject and cancel, and what all of them share.

Law (rulings 21–25): every intervention has a known operator, is chained as `hitl_intervention` with the
hashes before and after, and has a row that records whether it was acknowledged, confirmed or reversed.
An approval is bound to the digest of the exact message and used once; no one approves their own request.
A faulty command is answered with a refusal and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Any

import msgspec

from observatory.features.relay import release
from observatory.features.relay.held_message import content_changed, find_hold
from observatory.features.relay.release import event_writer_of, release_session
from observatory.features.relay.types import Commanded
from observatory.ledger.canonical import jcs
from observatory.pipeline import policy
from observatory.pipeline.event_writer import EventWriter
from observatory.pipeline.redaction import typed_text as typed
from observatory.pipeline.redaction.batch import redact_replacement
from observatory.pipeline.rows import AgentRow, HoldRow, MemberRow, RowWrite, SessionRow
from observatory.pipeline.state import BatchState, Command, Principal, ReadSet, SubmissionResult, UnitOfWork
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import agent_entity_id, delivery_id, mint
from observatory.protocol.message import Message
from observatory.protocol.responses import Refused
from observatory.protocol.tenant_config import PolicyRule

UNKNOWN_SESSION = SubmissionResult(
    404, Refused(reason="not_found", detail="no session of this tenant has that id")
)
UNKNOWN_AGENT = SubmissionResult(
    404, Refused(reason="not_found", detail="no agent of this tenant has that name or id")
)
NOT_IN_SESSION = SubmissionResult(
    409,
    Refused(
        reason="not_in_session",
        detail="this agent has sent nothing in this session; send force: true to do it anyway",
    ),
)
NOT_HELD = SubmissionResult(409, Refused(reason="not_held", detail="this message is not held"))
PAUSED_EVERYWHERE = SubmissionResult(
    409,
    Refused(
        reason="paused_everywhere",
        detail="this agent is paused everywhere; resume it with POST /v1/agents/{agent_id}/unpause",
    ),
)
# The state that a pause changes, as it is hashed.
RUNNING, PAUSED = ("sha256:" + sha256(jcs({"paused": paused})).hexdigest() for paused in (False, True))


class Intervention(msgspec.Struct, frozen=True):
    """A command under the tenant's lock: its operator, agent and session."""

    event_writer: EventWriter
    who: Principal
    session: SessionRow
    agent: AgentRow

    def answer(self, status: str, **state: Any) -> Commanded:
        return Commanded(
            status=status, session_id=self.session.session_id, agent_id=self.agent.agent_id, **state
        )

    def record(
        self,
        command: str,
        *,
        hold: HoldRow | None = None,
        before: str | None = None,
        after: str | None = None,
        note: str | None = None,
        intervention_id: str | None = None,
        gate: PolicyRule | None = None,
    ) -> tuple[int, Commanded]:
        """Write the command's event and row; returns its sequence number and the answer so far."""
        event_writer, who, session, agent = self.event_writer, self.who, self.session, self.agent
        number = event_writer.next_sequence
        intervention_id = intervention_id or mint("int_", event_writer.now_ns, number)
        message_id = hold.message_id if hold is not None else None
        detail: dict[str, Any] = {
            "intervention_id": intervention_id,
            "command": command,
            "operator_id": who.entity_id,
            "session_id": session.session_id,
            "agent_id": agent.agent_id,
            "issued_at": from_ns(event_writer.now_ns),
            "before_hash": before,
            "after_hash": after,
            "note": note,
            "reverses": None,
            "reversed_at": None,
        }
        if gate is not None:
            names = ("rule_id", "quorum", "on_expiry")
            detail["gate"] = {name: getattr(gate, name) for name in names}
        event = event_writer.in_session(
            session,
            "hitl_intervention",
            f"{command} of {agent.agent_id} by {who.entity_id}",
            detail,
            who,
            parent_span_id=hold.span_id if hold is not None else None,
            message_id=message_id,
            recipient_id=agent.entity_id,
        )
        if command == "inject" or note is not None:
            event.attributes |= typed.attributes(event_writer.memory)
        event_writer.append(event)
        row = {
            "tenant_id": event_writer.memory.tenant.tenant_id,
            "sequence_number": number,
            "intervention_id": intervention_id,
            "command": command,
            "operator_id": who.entity_id,
            "session_no": session.session_no,
            "agent_no": agent.agent_no,
            "message_id": message_id,
            "message_seq": hold.sequence_number if hold is not None else None,
            "before_hash": before,
            "after_hash": after,
            "note": note,
            "issued_ns": event_writer.now_ns,
        }
        event_writer.changes.writes.append(RowWrite("interventions", row))
        return number, self.answer(
            "accepted",
            intervention_id=intervention_id,
            sequence_number=number,
            message_id=message_id,
            before_hash=before,
            after_hash=after,
        )

    def left(self, name: str, text: str | None) -> str | None:
        """A typed text after the tenant's redaction rules."""
        return typed.redact_text(self.event_writer.memory, name, text)

    def deliver(self, number: int, kind: str, body: dict[str, Any]) -> None:
        self.event_writer.deliver(number, self.agent.agent_no, kind, body, session_no=self.session.session_no)

    def drained(self, answer: Commanded) -> Commanded:
        """Forward what the command has freed, and add the counts to the answer."""
        done = release_session(self.event_writer, self.session, self.who.entity_id)
        answer.released, answer.remaining = done.released, done.remaining
        return answer


def intervention_command(
    who: Principal,
    session_id: str,
    agent_id: str,
    now_ns: int,
    body: Callable[[Intervention], SubmissionResult],
    raws: bool,
    message_id: str | int | None = None,
    force: bool = True,
) -> Command:
    """A command on one agent in one session, both of which must be known.

    Without `force` the agent must have sent something there: a command that reaches no one would look obeyed.
    """
    entity_id = agent_entity_id(who.tenant_id, agent_id)

    def decide(uow: UnitOfWork) -> SubmissionResult:
        session = uow.memory.sessions.get(session_id)
        if session is None or session.session_no == 0:
            return UNKNOWN_SESSION
        agent = uow.memory.agents.get(entity_id)
        if agent is None:
            return UNKNOWN_AGENT
        member = uow.memory.members.get((session.session_no, agent.agent_no))
        if not force and (member is None or not (member.messages or member.is_paused)):
            return NOT_IN_SESSION
        return body(Intervention(event_writer_of(uow), who, session, agent))

    read_set = release.wants_of(session_id) if raws else ReadSet(sessions={session_id})
    read_set.agents.add(entity_id)
    if message_id is not None:
        read_set.named.add(message_id)
    return Command(who, now_ns, decide, read_set)


def pause(
    who: Principal, session_id: str, agent_id: str, note: str | None, now_ns: int, force: bool = True
) -> Command:
    def body(command: Intervention) -> SubmissionResult:
        memory = command.event_writer.memory
        member = member_of(memory, command.session, command.agent)
        if member.is_paused:
            return SubmissionResult(200, command.answer("already_paused", state="paused"))
        text = command.left("note", note)
        number, answer = command.record("pause", before=RUNNING, after=PAUSED, note=text)
        member.paused_ns, member.paused_by, member.pause_seq = (
            command.event_writer.now_ns,
            who.entity_id,
            number,
        )
        memory.touch(member)
        delivery = {
            "reason": "paused",
            "by": who.entity_id,
            "intervention_id": answer.intervention_id,
            "note": text,
        }
        command.deliver(number, "hold", delivery)
        answer.state, answer.confirmation = "paused", "requested"
        return SubmissionResult(202, answer)

    return intervention_command(who, session_id, agent_id, now_ns, body, raws=False, force=force)


def unpause(who: Principal, session_id: str, agent_id: str, note: str | None, now_ns: int) -> Command:
    def body(command: Intervention) -> SubmissionResult:
        memory = command.event_writer.memory
        member = member_of(memory, command.session, command.agent)
        if command.agent.is_paused:
            return PAUSED_EVERYWHERE
        if not member.is_paused:
            return SubmissionResult(200, command.answer("not_paused", state="running"))
        text = command.left("note", note)
        number, answer = command.record("unpause", before=PAUSED, after=RUNNING, note=text)
        if member.pause_seq is not None:
            set_timestamp(command.event_writer, member.pause_seq, "reversed_ns")
        member.paused_ns = member.paused_by = member.pause_seq = None
        memory.touch(member)
        command.deliver(number, "resume", {"intervention_id": answer.intervention_id, "by": who.entity_id})
        answer.state = "running"
        return SubmissionResult(200, command.drained(answer))

    return intervention_command(who, session_id, agent_id, now_ns, body, raws=True)


def inject(
    who: Principal,
    session_id: str,
    agent_id: str,
    prompt: str,
    now_ns: int,
    force: bool = True,
    intervention_id: str | None = None,
) -> Command:
    """`intervention_id` is for callers that must know it beforehand, so that a retry is not applied twice."""

    def body(command: Intervention) -> SubmissionResult:
        text = typed.redact_text(command.event_writer.memory, "prompt", prompt)
        after = "sha256:" + sha256(text.encode()).hexdigest()
        number, answer = command.record("inject", after=after, intervention_id=intervention_id)
        delivery = {
            "prompt": text,
            "by": who.entity_id,
            "intervention_id": answer.intervention_id,
            "interrupt_signal": "inject",
        }
        command.deliver(number, "inject", delivery)
        answer.state, answer.delivery_id = "queued", delivery_id((number, command.agent.agent_no))
        return SubmissionResult(202, answer)

    return intervention_command(who, session_id, agent_id, now_ns, body, raws=False, force=force)


def cancel(
    who: Principal, session_id: str, agent_id: str, note: str | None, now_ns: int, force: bool = True
) -> Command:
    """Ask the agent to stop working on the session; its held messages stay held."""

    def body(command: Intervention) -> SubmissionResult:
        text = command.left("note", note)
        number, answer = command.record("cancel", note=text)
        command.deliver(number, "cancel", {"reason": text or "cancelled by an operator", "by": who.entity_id})
        answer.state, answer.delivery_id = "cancelling", delivery_id((number, command.agent.agent_no))
        return SubmissionResult(202, answer)

    return intervention_command(who, session_id, agent_id, now_ns, body, raws=False, force=force)


def rewrite(
    who: Principal, session_id: str, agent_id: str, message_id: str | int, message: Message, now_ns: int
) -> Command:
    """`message` is the new content, validated by the interceptor, with the original's ids."""

    def body(command: Intervention) -> SubmissionResult:
        hold = find_hold(command.event_writer.memory, command.session, command.agent, message_id)
        if hold is None:
            return NOT_HELD
        content = redact_replacement(message, command.event_writer.memory)
        if isinstance(content, SubmissionResult):
            return content
        _, answer = replace(command, "rewrite", hold, content)
        answer.state = "held"
        return SubmissionResult(200, answer)

    return intervention_command(who, session_id, agent_id, now_ns, body, True, message_id)


def replace(
    command: Intervention, name: str, hold: HoldRow, message: Message, note: str | None = None
) -> tuple[int, Commanded]:
    """Replace the content of a held message; approvals were of the old content and are void."""
    event_writer, memory = command.event_writer, command.event_writer.memory
    before, after = "sha256:" + hold.digest.hex(), "sha256:" + message.digest.hex()
    rule = None if hold.gate else policy.holding_rule(message, command.agent, memory)
    number, answer = command.record(name, hold=hold, before=before, after=after, note=note, gate=rule)
    row = {
        "tenant_id": memory.tenant.tenant_id,
        "sequence_number": number,
        "message_seq": hold.sequence_number,
        "raw": message.raw,
        "digest": message.digest,
        "created_ns": event_writer.now_ns,
    }
    event_writer.changes.writes.append(RowWrite("rewrites", row))
    memory.raws[number] = message.raw
    hold.rewrite_seq = number
    content_changed(hold, message, memory)
    if rule is not None:  # the new content needs an approval
        hold.gate, hold.quorum, hold.on_expiry = 1, rule.quorum, rule.on_expiry
    return number, answer


def member_of(memory: BatchState, session: SessionRow, agent: AgentRow) -> MemberRow:
    """The member's row, created when missing: an agent may be paused in a session before it sends there."""
    pair = (session.session_no, agent.agent_no)
    member = memory.members.get(pair)
    if member is None:
        member = memory.members[pair] = MemberRow(session_no=pair[0], agent_no=pair[1])
    return member


def set_timestamp(uow: UnitOfWork, sequence_number: int, moment: str) -> None:
    """Set a timestamp column (`acknowledged_ns`, `confirmed_ns`, `reversed_ns`) of a command to now."""
    where = {"tenant_id": uow.memory.tenant.tenant_id, "sequence_number": sequence_number}
    uow.changes.writes.append(RowWrite("interventions", {moment: uow.now_ns}, where))

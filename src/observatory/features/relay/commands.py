"""What people do to a running agent: pause, unpause, rewrite, inject, approve, edit, reject, cancel, undo.

Law (rulings 21–25): every command is an act of a known operator, chained as `hitl_intervention` with the
hash of what was before and after, and written beside as a row that says whether it was acknowledged,
confirmed or reversed. Approval is bound to the digest of the exact message and used once; nobody approves
what they requested. What is wrong with a command is an answer, never a half-done act.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Any

import msgspec

from observatory.features.inbox.commands import delivery_id
from observatory.features.policies import stage as policy
from observatory.features.redaction import typed_text as typed
from observatory.features.redaction.stage import put_in
from observatory.features.relay import release
from observatory.features.relay.held_message import changed, find
from observatory.features.relay.release import flow, scribe_of
from observatory.ledger.canonical import jcs
from observatory.pipeline.event_writer import Scribe
from observatory.pipeline.rows import Agent, Hold, Member, Session, Write
from observatory.pipeline.state import Act, Desk, Memory, Principal, Verdict, Wants
from observatory.protocol.answers import Refused
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import agent_entity_id, mint
from observatory.protocol.message import Message
from observatory.protocol.rulebook import PolicyRule

UNKNOWN_SESSION = Verdict(404, Refused(reason="not_found", detail="no session of this tenant has that id"))
UNKNOWN_AGENT = Verdict(
    404, Refused(reason="not_found", detail="no agent of this tenant has that name or id")
)
NOT_THERE = Verdict(
    409,
    Refused(
        reason="not_in_session",
        detail="this agent has said nothing in this session; send force: true if you mean it all the same",
    ),
)
NOT_HELD = Verdict(409, Refused(reason="not_held", detail="this message is not held"))
PAUSED_EVERYWHERE = Verdict(
    409,
    Refused(
        reason="paused_everywhere",
        detail="this agent is paused everywhere; lift that pause with POST /v1/agents/{agent_id}/unpause",
    ),
)
# What a pause changes, as it is hashed.
RUNNING, PAUSED = ("sha256:" + sha256(jcs({"paused": paused})).hexdigest() for paused in (False, True))


class Commanded(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The answer to a command: what was done, and the state after it."""

    status: str
    session_id: str
    agent_id: str
    intervention_id: str | None = None
    sequence_number: int | None = None
    message_id: str | None = None
    state: str | None = None
    confirmation: str | None = None
    before_hash: str | None = None
    after_hash: str | None = None
    delivery_id: str | None = None
    released: int | None = None
    remaining: int | None = None
    rejected: int | None = None
    approvals: list[str] | None = None
    needed: int | None = None


class Command(msgspec.Struct, frozen=True):
    """A command under the tenant's lock: who gives it, to which agent, in which session."""

    scribe: Scribe
    who: Principal
    session: Session
    agent: Agent

    def answer(self, status: str, **state: Any) -> Commanded:
        return Commanded(
            status=status, session_id=self.session.session_id, agent_id=self.agent.agent_id, **state
        )

    def record(
        self,
        command: str,
        *,
        hold: Hold | None = None,
        before: str | None = None,
        after: str | None = None,
        note: str | None = None,
        intervention_id: str | None = None,
        gate: PolicyRule | None = None,
    ) -> tuple[int, Commanded]:
        """The command's event and row: its sequence number, and the answer as far as it is known."""
        scribe, who, session, agent = self.scribe, self.who, self.session, self.agent
        number = scribe.next_sequence
        intervention_id = intervention_id or mint("int_", scribe.now_ns, number)
        message_id = hold.message_id if hold is not None else None
        detail: dict[str, Any] = {
            "intervention_id": intervention_id,
            "command": command,
            "operator_id": who.entity_id,
            "session_id": session.session_id,
            "agent_id": agent.agent_id,
            "issued_at": from_ns(scribe.now_ns),
            "before_hash": before,
            "after_hash": after,
            "note": note,
            "reverses": None,
            "reversed_at": None,
        }
        if gate is not None:
            names = ("rule_id", "quorum", "on_expiry")
            detail["gate"] = {name: getattr(gate, name) for name in names}
        event = scribe.in_session(
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
            event.attributes |= typed.attributes(scribe.memory)
        scribe.append(event)
        row = {
            "tenant_id": scribe.memory.tenant.tenant_id,
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
            "issued_ns": scribe.now_ns,
        }
        scribe.changes.writes.append(Write("interventions", row))
        return number, self.answer(
            "accepted",
            intervention_id=intervention_id,
            sequence_number=number,
            message_id=message_id,
            before_hash=before,
            after_hash=after,
        )

    def left(self, name: str, text: str | None) -> str | None:
        """What the tenant's rules leave of what was typed."""
        return typed.left(self.scribe.memory, name, text)

    def tell(self, number: int, kind: str, body: dict[str, Any]) -> None:
        self.scribe.tell(number, self.agent.agent_no, kind, body, session_no=self.session.session_no)

    def drained(self, answer: Commanded) -> Commanded:
        """With what was free to go after it: that is forwarded now."""
        done = flow(self.scribe, self.session, self.who.entity_id)
        answer.released, answer.remaining = done.released, done.remaining
        return answer


def act_on(
    who: Principal,
    session_id: str,
    agent_id: str,
    now_ns: int,
    body: Callable[[Command], Verdict],
    raws: bool,
    message_id: str | int | None = None,
    force: bool = True,
) -> Act:
    """An act on one agent in one session, both of which must be known.

    Without `force` the agent must have spoken there: a command that reaches nobody would look obeyed.
    """
    entity_id = agent_entity_id(who.tenant_id, agent_id)

    def decide(desk: Desk) -> Verdict:
        session = desk.memory.sessions.get(session_id)
        if session is None or session.session_no == 0:
            return UNKNOWN_SESSION
        agent = desk.memory.agents.get(entity_id)
        if agent is None:
            return UNKNOWN_AGENT
        member = desk.memory.members.get((session.session_no, agent.agent_no))
        if not force and (member is None or not (member.messages or member.is_paused)):
            return NOT_THERE
        return body(Command(scribe_of(desk), who, session, agent))

    wants = release.wants_of(session_id) if raws else Wants(sessions={session_id})
    wants.agents.add(entity_id)
    if message_id is not None:
        wants.named.add(message_id)
    return Act(who, now_ns, decide, wants)


def pause(
    who: Principal, session_id: str, agent_id: str, note: str | None, now_ns: int, force: bool = True
) -> Act:
    def body(command: Command) -> Verdict:
        memory = command.scribe.memory
        member = member_in(memory, command.session, command.agent)
        if member.is_paused:
            return Verdict(200, command.answer("already_paused", state="paused"))
        said = command.left("note", note)
        number, answer = command.record("pause", before=RUNNING, after=PAUSED, note=said)
        member.paused_ns, member.paused_by, member.pause_seq = command.scribe.now_ns, who.entity_id, number
        memory.touch(member)
        told = {
            "reason": "paused",
            "by": who.entity_id,
            "intervention_id": answer.intervention_id,
            "note": said,
        }
        command.tell(number, "hold", told)
        answer.state, answer.confirmation = "paused", "requested"
        return Verdict(202, answer)

    return act_on(who, session_id, agent_id, now_ns, body, raws=False, force=force)


def unpause(who: Principal, session_id: str, agent_id: str, note: str | None, now_ns: int) -> Act:
    def body(command: Command) -> Verdict:
        memory = command.scribe.memory
        member = member_in(memory, command.session, command.agent)
        if command.agent.is_paused:
            return PAUSED_EVERYWHERE
        if not member.is_paused:
            return Verdict(200, command.answer("not_paused", state="running"))
        said = command.left("note", note)
        number, answer = command.record("unpause", before=PAUSED, after=RUNNING, note=said)
        if member.pause_seq is not None:
            mark(command.scribe, member.pause_seq, "reversed_ns")
        member.paused_ns = member.paused_by = member.pause_seq = None
        memory.touch(member)
        command.tell(number, "resume", {"intervention_id": answer.intervention_id, "by": who.entity_id})
        answer.state = "running"
        return Verdict(200, command.drained(answer))

    return act_on(who, session_id, agent_id, now_ns, body, raws=True)


def inject(
    who: Principal,
    session_id: str,
    agent_id: str,
    prompt: str,
    now_ns: int,
    force: bool = True,
    intervention_id: str | None = None,
) -> Act:
    """`intervention_id` is for whoever must know it beforehand, so that the same is not done twice."""

    def body(command: Command) -> Verdict:
        said = typed.left(command.scribe.memory, "prompt", prompt)
        after = "sha256:" + sha256(said.encode()).hexdigest()
        number, answer = command.record("inject", after=after, intervention_id=intervention_id)
        told = {
            "prompt": said,
            "by": who.entity_id,
            "intervention_id": answer.intervention_id,
            "interrupt_signal": "inject",
        }
        command.tell(number, "inject", told)
        answer.state, answer.delivery_id = "queued", delivery_id((number, command.agent.agent_no))
        return Verdict(202, answer)

    return act_on(who, session_id, agent_id, now_ns, body, raws=False, force=force)


def cancel(
    who: Principal, session_id: str, agent_id: str, note: str | None, now_ns: int, force: bool = True
) -> Act:
    """Ask the agent to stop working on the session; what it held stays held."""

    def body(command: Command) -> Verdict:
        said = command.left("note", note)
        number, answer = command.record("cancel", note=said)
        command.tell(number, "cancel", {"reason": said or "cancelled by an operator", "by": who.entity_id})
        answer.state, answer.delivery_id = "cancelling", delivery_id((number, command.agent.agent_no))
        return Verdict(202, answer)

    return act_on(who, session_id, agent_id, now_ns, body, raws=False, force=force)


def rewrite(
    who: Principal, session_id: str, agent_id: str, message_id: str | int, message: Message, now_ns: int
) -> Act:
    """`message` is the new content, past the interceptor, with the original's ids."""

    def body(command: Command) -> Verdict:
        hold = find(command.scribe.memory, command.session, command.agent, message_id)
        if hold is None:
            return NOT_HELD
        content = put_in(message, command.scribe.memory)
        if isinstance(content, Verdict):
            return content
        _, answer = replace(command, "rewrite", hold, content)
        answer.state = "held"
        return Verdict(200, answer)

    return act_on(who, session_id, agent_id, now_ns, body, True, message_id)


def replace(
    command: Command, name: str, hold: Hold, message: Message, note: str | None = None
) -> tuple[int, Commanded]:
    """Put new content in the place of what is held; approvals were of the old content and are void."""
    scribe, memory = command.scribe, command.scribe.memory
    before, after = "sha256:" + hold.digest.hex(), "sha256:" + message.digest.hex()
    rule = None if hold.gate else policy.asks(message, command.agent, memory)
    number, answer = command.record(name, hold=hold, before=before, after=after, note=note, gate=rule)
    row = {
        "tenant_id": memory.tenant.tenant_id,
        "sequence_number": number,
        "message_seq": hold.sequence_number,
        "raw": message.raw,
        "digest": message.digest,
        "created_ns": scribe.now_ns,
    }
    scribe.changes.writes.append(Write("rewrites", row))
    memory.raws[number] = message.raw
    hold.rewrite_seq = number
    changed(hold, message, memory)
    if rule is not None:  # the new content is one that a person must see first
        hold.gate, hold.quorum, hold.on_expiry = 1, rule.quorum, rule.on_expiry
    return number, answer


def member_in(memory: Memory, session: Session, agent: Agent) -> Member:
    """An agent may be paused in a session before it has spoken there."""
    pair = (session.session_no, agent.agent_no)
    member = memory.members.get(pair)
    if member is None:
        member = memory.members[pair] = Member(session_no=pair[0], agent_no=pair[1])
    return member


def mark(desk: Desk, sequence_number: int, moment: str) -> None:
    """What became of a command, now: the column that says when."""
    where = {"tenant_id": desk.memory.tenant.tenant_id, "sequence_number": sequence_number}
    desk.changes.writes.append(Write("interventions", {moment: desk.now_ns}, where))

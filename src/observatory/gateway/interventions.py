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

from observatory.gateway import policy, release
from observatory.gateway.held import changed, find
from observatory.gateway.record import Scribe
from observatory.gateway.release import flow, scribe_of
from observatory.ledger.canonical import jcs
from observatory.protocol.answers import Refused
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import agent_entity_id, mint
from observatory.protocol.message import Message
from observatory.rows import Agent, Hold, Member, Session, Write
from observatory.state import Act, Desk, Memory, Principal, Verdict, Wants

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

Body = Callable[[Scribe, Session, Agent], Verdict]


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


def digest_of(value: Any) -> str:
    return "sha256:" + sha256(jcs(value)).hexdigest()


def _command(
    who: Principal,
    session_id: str,
    agent_id: str,
    now_ns: int,
    body: Body,
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
        return body(scribe_of(desk), session, agent)

    wants = release.wants_of(session_id) if raws else Wants(sessions={session_id})
    wants.agents.add(entity_id)
    if message_id is not None:
        wants.named.add(message_id)
    return Act(who, now_ns, decide, wants)


def record(
    scribe: Scribe,
    who: Principal,
    command: str,
    session: Session,
    agent: Agent,
    *,
    hold: Hold | None = None,
    before: str | None = None,
    after: str | None = None,
    note: str | None = None,
    reverses: str | None = None,
) -> tuple[int, str]:
    """The command's event and row: its sequence number and its id."""
    number = scribe.next_sequence
    intervention_id = mint("int_", scribe.now_ns, number)
    detail = {
        "intervention_id": intervention_id,
        "command": command,
        "operator_id": who.entity_id,
        "session_id": session.session_id,
        "agent_id": agent.agent_id,
        "issued_at": from_ns(scribe.now_ns),
        "before_hash": before,
        "after_hash": after,
        "note": note,
        "reverses": reverses,
        "reversed_at": None,
    }
    message_id = hold.message_id if hold is not None else None
    scribe.append(
        scribe.in_session(
            session,
            "hitl_intervention",
            f"{command} of {agent.agent_id} by {who.entity_id}",
            detail,
            who,
            parent_span_id=hold.span_id if hold is not None else None,
            message_id=message_id,
            recipient_id=agent.entity_id,
        )
    )
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
    return number, intervention_id


def pause(
    who: Principal, session_id: str, agent_id: str, note: str | None, now_ns: int, force: bool = True
) -> Act:
    def body(scribe: Scribe, session: Session, agent: Agent) -> Verdict:
        memory = scribe.memory
        member = _member(memory, session, agent)
        if member.is_paused:
            return Verdict(
                200,
                Commanded(
                    status="already_paused",
                    session_id=session.session_id,
                    agent_id=agent.agent_id,
                    state="paused",
                ),
            )
        before, after = digest_of({"paused": False}), digest_of({"paused": True})
        number, intervention_id = record(
            scribe, who, "pause", session, agent, before=before, after=after, note=note
        )
        member.paused_ns, member.paused_by, member.pause_seq = scribe.now_ns, who.entity_id, number
        memory.touch(member)
        told = {"reason": "paused", "by": who.entity_id, "intervention_id": intervention_id, "note": note}
        scribe.tell(number, agent.agent_no, "hold", told, session_no=session.session_no)
        return Verdict(
            202,
            Commanded(
                status="accepted",
                session_id=session.session_id,
                agent_id=agent.agent_id,
                intervention_id=intervention_id,
                sequence_number=number,
                state="paused",
                confirmation="requested",
                before_hash=before,
                after_hash=after,
            ),
        )

    return _command(who, session_id, agent_id, now_ns, body, raws=False, force=force)


def unpause(who: Principal, session_id: str, agent_id: str, note: str | None, now_ns: int) -> Act:
    def body(scribe: Scribe, session: Session, agent: Agent) -> Verdict:
        memory = scribe.memory
        member = _member(memory, session, agent)
        if not member.is_paused:
            return Verdict(
                200,
                Commanded(
                    status="not_paused",
                    session_id=session.session_id,
                    agent_id=agent.agent_id,
                    state="running",
                ),
            )
        before, after = digest_of({"paused": True}), digest_of({"paused": False})
        number, intervention_id = record(
            scribe, who, "unpause", session, agent, before=before, after=after, note=note
        )
        _reversed(scribe, member.pause_seq)
        member.paused_ns = member.paused_by = member.pause_seq = None
        memory.touch(member)
        told = {"intervention_id": intervention_id, "by": who.entity_id}
        scribe.tell(number, agent.agent_no, "resume", told, session_no=session.session_no)
        done = flow(scribe, session, who.entity_id)
        return Verdict(
            200,
            Commanded(
                status="accepted",
                session_id=session.session_id,
                agent_id=agent.agent_id,
                intervention_id=intervention_id,
                sequence_number=number,
                state="running",
                before_hash=before,
                after_hash=after,
                released=done.released,
                remaining=done.remaining,
            ),
        )

    return _command(who, session_id, agent_id, now_ns, body, raws=True)


def inject(
    who: Principal, session_id: str, agent_id: str, prompt: str, now_ns: int, force: bool = True
) -> Act:
    def body(scribe: Scribe, session: Session, agent: Agent) -> Verdict:
        after = "sha256:" + sha256(prompt.encode()).hexdigest()
        number, intervention_id = record(scribe, who, "inject", session, agent, after=after)
        told = {
            "prompt": prompt,
            "by": who.entity_id,
            "intervention_id": intervention_id,
            "interrupt_signal": "inject",
        }
        scribe.tell(number, agent.agent_no, "inject", told, session_no=session.session_no)
        return Verdict(
            202,
            Commanded(
                status="accepted",
                session_id=session.session_id,
                agent_id=agent.agent_id,
                intervention_id=intervention_id,
                sequence_number=number,
                state="queued",
                after_hash=after,
                delivery_id=delivery_id(number, agent.agent_no),
            ),
        )

    return _command(who, session_id, agent_id, now_ns, body, raws=False, force=force)


def cancel(
    who: Principal, session_id: str, agent_id: str, note: str | None, now_ns: int, force: bool = True
) -> Act:
    """Ask the agent to stop working on the session; what it held stays held."""

    def body(scribe: Scribe, session: Session, agent: Agent) -> Verdict:
        number, intervention_id = record(scribe, who, "cancel", session, agent, note=note)
        told = {"reason": note or "cancelled by an operator", "by": who.entity_id}
        scribe.tell(number, agent.agent_no, "cancel", told, session_no=session.session_no)
        return Verdict(
            202,
            Commanded(
                status="accepted",
                session_id=session.session_id,
                agent_id=agent.agent_id,
                intervention_id=intervention_id,
                sequence_number=number,
                state="cancelling",
                delivery_id=delivery_id(number, agent.agent_no),
            ),
        )

    return _command(who, session_id, agent_id, now_ns, body, raws=False, force=force)


def rewrite(
    who: Principal, session_id: str, agent_id: str, message_id: str | int, message: Message, now_ns: int
) -> Act:
    """`message` is the new content, past the interceptor, with the original's ids."""

    def body(scribe: Scribe, session: Session, agent: Agent) -> Verdict:
        hold = find(scribe.memory, session, agent, message_id)
        if hold is None:
            return NOT_HELD
        number, intervention_id, before, after = replace(
            scribe, who, "rewrite", session, agent, hold, message
        )
        return Verdict(
            200,
            Commanded(
                status="accepted",
                session_id=session.session_id,
                agent_id=agent.agent_id,
                intervention_id=intervention_id,
                sequence_number=number,
                message_id=hold.message_id,
                state="held",
                before_hash=before,
                after_hash=after,
            ),
        )

    return _command(who, session_id, agent_id, now_ns, body, True, message_id)


def replace(
    scribe: Scribe,
    who: Principal,
    command: str,
    session: Session,
    agent: Agent,
    hold: Hold,
    message: Message,
    note: str | None = None,
) -> tuple[int, str, str, str]:
    """Put new content in the place of what is held; approvals were of the old content and are void."""
    before, after = "sha256:" + hold.digest.hex(), "sha256:" + message.digest.hex()
    number, intervention_id = record(
        scribe, who, command, session, agent, hold=hold, before=before, after=after, note=note
    )
    row = {
        "tenant_id": scribe.memory.tenant.tenant_id,
        "sequence_number": number,
        "message_seq": hold.sequence_number,
        "raw": message.raw,
        "digest": message.digest,
        "created_ns": scribe.now_ns,
    }
    scribe.changes.writes.append(Write("rewrites", row))
    scribe.memory.raws[number] = message.raw
    hold.rewrite_seq = number
    changed(hold, message, scribe.memory)
    rule = policy.asks(message, agent, scribe.memory)
    if rule is not None and not hold.gate:  # the new content is one that a person must see first
        hold.gate, hold.quorum, hold.on_expiry = 1, rule.quorum, rule.on_expiry
    return number, intervention_id, before, after


def delivery_id(sequence_number: int, agent_no: int) -> str:
    return f"dlv_{sequence_number}-{agent_no}"


def _member(memory: Memory, session: Session, agent: Agent) -> Member:
    """An agent may be paused in a session before it has spoken there."""
    pair = (session.session_no, agent.agent_no)
    member = memory.members.get(pair)
    if member is None:
        member = memory.members[pair] = Member(session_no=pair[0], agent_no=pair[1])
    return member


def _reversed(scribe: Scribe, sequence_number: int | None) -> None:
    if sequence_number is None:
        return
    where = {"tenant_id": scribe.memory.tenant.tenant_id, "sequence_number": sequence_number}
    scribe.changes.writes.append(Write("interventions", {"reversed_ns": scribe.now_ns}, where))

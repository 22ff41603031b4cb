"""The relay's stage: what may not be forwarded now is held, and why (rulings 21–24, 26).

Law: a held message is archived like any other and waits as a row of `holds`; it survives a kill -9. A gate
holds its message and those that name it as an ancestor, a pause holds all of one agent in one session, a
kill-switch all in its scope but essential traffic. Whatever waits in line for an agent keeps its place:
a later message never overtakes one held by a pause or a kill-switch. Releasing is in `release.py`.
"""

from __future__ import annotations

from collections.abc import Iterable

from observatory.pipeline.event_draft import of_message
from observatory.pipeline.event_writer import Scribe
from observatory.pipeline.message_context import Gate, Passage
from observatory.pipeline.rows import Agent, Hold, Session
from observatory.pipeline.state import Draft, Memory, Verdict
from observatory.protocol.answers import Refused
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import agent_entity_id
from observatory.protocol.message import Message
from observatory.protocol.otel import span_id_of
from observatory.protocol.rulebook import KillSwitch, is_essential
from observatory.protocol.spelling import are_same

# Causes that hold a place in the agent's line; a gate and what hangs on it let others pass.
IN_LINE = frozenset({"pause", "kill", "order"})


def check(passage: Passage, memory: Memory, now_ns: int) -> Verdict | None:
    """The last stage: decides whether the message is forwarded at all."""
    message, session, member = passage.message, passage.session, passage.member
    assert session is not None
    if message.log is not None and message.log.control is not None and message.log.control.hitl_required:
        passage.gates.append(Gate(reason="hitl_required", detail="the agent asked for a person"))
    if session.rejected and _names_rejected(passage, memory.rejected.get(session.session_no, set())):
        detail = "it names a message as its parent that was rejected at a gate"
        return Verdict(403, Refused(reason="ancestor_rejected", detail=detail), archived=True)
    if session.held:
        passage.waits = tuple(_held_ancestors(passage, memory.holds.get(session.session_no, {}).values()))
    if passage.gates:
        passage.cause = "gate"
    elif message.message_type == "heartbeat":
        return None
    elif is_paused(passage, memory):
        passage.cause = "pause"
    elif memory.rulebook.kill_switches and killed_by(passage.agent, message, memory):
        passage.cause = "kill"
    elif passage.waits:
        passage.cause = "ancestor"
    elif (
        session.held
        and member is not None
        and not is_essential(message.message_type, message.recipient_type)
        and _line(memory, session.session_no, member.agent_no)
    ):
        passage.cause = "order"
    return None


def is_paused(passage: Passage, memory: Memory) -> bool:
    """By a person, in this session or everywhere. A session takes over the pause its agent carries, so that
    it is shown there too (S1124)."""
    agent, member = passage.agent, passage.member
    if agent is not None and agent.is_paused and member is not None and not member.is_paused:
        member.paused_ns, member.paused_by = agent.paused_ns, agent.paused_by
        memory.touch(member)
    return any(one is not None and one.is_paused for one in (agent, member))


def killed_by(agent: Agent | None, said: Message | Hold, memory: Memory) -> KillSwitch | None:
    """The engaged kill-switch this message, new or held, is in the scope of; none for essential traffic."""
    if isinstance(said, Message):
        free = is_essential(said.message_type, said.recipient_type)
    else:  # a held request has a recipient only if that is an agent or an address
        free = is_essential(said.message_type, "user" if said.recipient is None else None)
    if free:
        return None
    for switch in memory.rulebook.kill_switches:
        if switch.state == "engaged" and in_scope(switch, agent, said):
            return switch
    return None


def in_scope(switch: KillSwitch, agent: Agent | None, said: Message | Hold | None = None) -> bool:
    """By what is known of the agent and by what its message says: neither a first message nor a new name for
    itself leads out of a scope."""
    if switch.scope == "global":
        return True
    known = [one for one in (agent, said) if one is not None]
    if switch.scope == "agent":
        return agent is not None and (
            agent.entity_id == switch.entity_id or are_same(agent.agent_id, switch.target)
        )
    if switch.scope == "cluster":
        return any(are_same(one.cluster_id, switch.target) for one in known)
    return any(are_same(one.agent_type, switch.target) for one in known)


def in_line(hold: Hold) -> bool:
    """Whether later messages of its agent wait behind it: not behind an open gate, but behind an approved
    one that a pause or a kill-switch still holds."""
    return hold.gate == 2 or (hold.cause in IN_LINE and hold.gate != 1)


def keep(passage: Passage, session: Session, scribe: Scribe) -> None:
    """Write the hold of a message that is not forwarded, and tell of it."""
    memory, message, agent = scribe.memory, passage.message, passage.agent
    gate = passage.gates[0] if passage.gates else None
    reason = gate.reason if gate is not None else str(passage.cause)
    detail = {
        "cause": passage.cause,
        "reason": reason,
        "requested_by": passage.principal.entity_id,
        "key_maker": passage.principal.key_maker,
        "waits_for": list(passage.waits),
    }
    number = scribe.chronicle(passage, session, "message_held", detail)
    hold = Hold(
        sequence_number=number,
        session_no=session.session_no,
        agent_no=agent.agent_no if agent is not None else 0,
        message_id=passage.message_id,
        step_id=passage.step_id,
        name=passage.name,
        span_id=message.span_id or span_id_of(passage.step_id),
        message_type=message.message_type,
        agent_type=message.agent_type,
        cluster_id=message.cluster_id,
        cause=passage.cause,  # type: ignore[arg-type]
        reason=reason,
        recipient=recipient_of(message, memory.tenant.tenant_id),
        gate=0 if gate is None else 1,
        waits=",".join(map(str, passage.waits)) or None,
        digest=message.digest,
        requested_by=passage.principal.entity_id,
        key_id=passage.principal.key_id,
        key_maker=passage.principal.key_maker,
        bound=int(passage.principal.is_bound),
        held_ns=scribe.now_ns,
    )
    if gate is not None:
        hold.quorum = max(one.quorum for one in passage.gates)
        deadlines = [one.deadline_ns for one in passage.gates if one.deadline_ns is not None]
        hold.deadline_ns = min(deadlines) if deadlines else None
        hold.on_expiry = "deny" if any(one.on_expiry == "deny" for one in passage.gates) else "approve"
    memory.holds.setdefault(session.session_no, {})[number] = hold
    memory.raws[number] = message.raw
    session.held += 1
    memory.touch(session)
    memory.touch(hold)
    if gate is not None:
        scribe.append(_gate_opened(passage, session, hold, scribe.now_ns))


def recipient_of(message: Message, tenant_id: str) -> str | None:
    """Whom it is for, as `Wants.recipient` takes it; people and the house have no inbox."""
    target = message.recipient
    if target is None or message.recipient_type in ("user", "system"):
        return None
    if target.startswith(("type:", "cluster:", "session:")):
        return target
    return agent_entity_id(tenant_id, target)


def _gate_opened(passage: Passage, session: Session, hold: Hold, now_ns: int) -> Draft:
    detail = {
        "session_id": session.session_id,
        "agent_id": passage.message.sender_id,
        "step_id": hold.step_id,
        "reasons": [
            {"reason": gate.reason, "detail": gate.detail, "rule_id": gate.rule_id} for gate in passage.gates
        ],
        "action_digest": "sha256:" + hold.digest.hex(),
        "quorum": hold.quorum,
        "deadline": None if hold.deadline_ns is None else from_ns(hold.deadline_ns),
        "on_expiry": hold.on_expiry,
    }
    summary = f"{passage.message.sender_id} waits for a person: {passage.gates[0].reason}"
    place = {"parent_span_id": hold.span_id, "message_id": hold.message_id}
    return of_message(passage, "gate_opened", summary, detail, now_ns, **place)


def _held_ancestors(passage: Passage, holds: Iterable[Hold]) -> Iterable[int]:
    """Held messages this one names as an ancestor and that hang on a gate, themselves or by their own."""
    span = passage.message.parent_span_id
    for hold in holds:
        if (hold.gate or hold.waits) and (
            hold.name in passage.parents
            or hold.step_id in passage.message.parents  # a text id as it was declared, whatever is in it
            or hold.span_id == span
        ):
            yield hold.sequence_number


def _names_rejected(passage: Passage, rejected: set[str]) -> bool:
    return not rejected.isdisjoint(passage.parents) or not rejected.isdisjoint(passage.message.parents)


def _line(memory: Memory, session_no: int, agent_no: int) -> bool:
    """Whether somebody still stands in the agent's line: after a pause or a kill-switch has ended."""
    return any(
        hold.agent_no == agent_no and in_line(hold) for hold in memory.holds.get(session_no, {}).values()
    )

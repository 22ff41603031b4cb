"""The relay's stage: holds messages that may not be forwarded now (rulings 21–24, 26).

Law: a held message is archived like any other and waits as a row of `holds`; it survives a kill -9. A gate
holds its message and its descendants, a pause holds all messages of one agent in one session, a kill-switch
all in its scope but essential traffic. Held messages of an agent keep their order: a later message never
overtakes one held by a pause or a kill-switch. Releasing is in `release.py`.
"""

from __future__ import annotations

from collections.abc import Iterable

from observatory.pipeline.addresses import recipient_of
from observatory.pipeline.event_draft import of_message
from observatory.pipeline.event_writer import EventWriter
from observatory.pipeline.matching import in_scope
from observatory.pipeline.message_context import ApprovalGate, MessageContext
from observatory.pipeline.rows import AgentRow, HoldRow, SessionRow
from observatory.pipeline.state import BatchState, EventDraft, SubmissionResult
from observatory.protocol.clock import from_ns
from observatory.protocol.message import Message
from observatory.protocol.otel import span_id_of
from observatory.protocol.responses import Refused
from observatory.protocol.tenant_config import KillSwitch, is_essential

# Causes that make the agent's later messages wait; a gate and its descendants let later ones pass.
IN_LINE = frozenset({"pause", "kill", "order"})


def check_hold(ctx: MessageContext, memory: BatchState, now_ns: int) -> SubmissionResult | None:
    """The last stage: decides whether the message is forwarded at all."""
    message, session, member = ctx.message, ctx.session, ctx.member
    assert session is not None
    if message.log is not None and message.log.control is not None and message.log.control.hitl_required:
        ctx.gates.append(ApprovalGate(reason="hitl_required", detail="the agent requested an approval"))
    if session.rejected and _names_rejected(ctx, memory.rejected.get(session.session_no, set())):
        detail = "its parent message was rejected at a gate"
        return SubmissionResult(403, Refused(reason="ancestor_rejected", detail=detail), archived=True)
    if session.held:
        ctx.waits = tuple(_held_ancestors(ctx, memory.holds.get(session.session_no, {}).values()))
    if ctx.gates:
        ctx.cause = "gate"
    elif message.message_type == "heartbeat":
        return None
    elif is_paused(ctx, memory):
        ctx.cause = "pause"
    elif memory.tenant_config.kill_switches and killed_by(ctx.agent, message, memory):
        ctx.cause = "kill"
    elif ctx.waits:
        ctx.cause = "ancestor"
    elif (
        session.held
        and member is not None
        and not is_essential(message.message_type, message.recipient_type)
        and _has_earlier_held(memory, session.session_no, member.agent_no)
    ):
        ctx.cause = "order"
    return None


def is_paused(ctx: MessageContext, memory: BatchState) -> bool:
    """Whether a person paused it, in this session or everywhere. A session copies the pause of its agent, so
    that it is visible there too (S1124)."""
    agent, member = ctx.agent, ctx.member
    if agent is not None and agent.is_paused and member is not None and not member.is_paused:
        member.paused_ns, member.paused_by = agent.paused_ns, agent.paused_by
        memory.touch(member)
    return any(one is not None and one.is_paused for one in (agent, member))


def killed_by(agent: AgentRow | None, sent: Message | HoldRow, memory: BatchState) -> KillSwitch | None:
    """The engaged kill-switch this message, new or held, is in the scope of; none for essential traffic."""
    if isinstance(sent, Message):
        free = is_essential(sent.message_type, sent.recipient_type)
    else:  # a held request has a recipient only if that is an agent or an address
        free = is_essential(sent.message_type, "user" if sent.recipient is None else None)
    if free:
        return None
    for switch in memory.tenant_config.kill_switches:
        if switch.state == "engaged" and in_scope(switch, agent, sent):
            return switch
    return None


def in_line(hold: HoldRow) -> bool:
    """Whether later messages of its agent wait behind it: not behind an open gate, but behind an approved
    one that a pause or a kill-switch still holds."""
    return hold.gate == 2 or (hold.cause in IN_LINE and hold.gate != 1)


def hold_message(ctx: MessageContext, session: SessionRow, event_writer: EventWriter) -> None:
    """Write the hold of a message that is not forwarded, and its event."""
    memory, message, agent = event_writer.memory, ctx.message, ctx.agent
    gate = ctx.gates[0] if ctx.gates else None
    reason = gate.reason if gate is not None else str(ctx.cause)
    detail = {
        "cause": ctx.cause,
        "reason": reason,
        "requested_by": ctx.principal.entity_id,
        "key_maker": ctx.principal.key_maker,
        "waits_for": list(ctx.waits),
    }
    number = event_writer.append_message_event(ctx, session, "message_held", detail)
    hold = HoldRow(
        sequence_number=number,
        session_no=session.session_no,
        agent_no=agent.agent_no if agent is not None else 0,
        message_id=ctx.message_id,
        step_id=ctx.step_id,
        name=ctx.name,
        span_id=message.span_id or span_id_of(ctx.step_id),
        message_type=message.message_type,
        agent_type=message.agent_type,
        cluster_id=message.cluster_id,
        cause=ctx.cause,  # type: ignore[arg-type]
        reason=reason,
        recipient=recipient_of(message, memory.tenant.tenant_id),
        gate=0 if gate is None else 1,
        waits=",".join(map(str, ctx.waits)) or None,
        digest=message.digest,
        requested_by=ctx.principal.entity_id,
        key_id=ctx.principal.key_id,
        key_maker=ctx.principal.key_maker,
        bound=int(ctx.principal.is_bound),
        held_ns=event_writer.now_ns,
    )
    if gate is not None:
        hold.quorum = max(one.quorum for one in ctx.gates)
        deadlines = [one.deadline_ns for one in ctx.gates if one.deadline_ns is not None]
        hold.deadline_ns = min(deadlines) if deadlines else None
        hold.on_expiry = "deny" if any(one.on_expiry == "deny" for one in ctx.gates) else "approve"
    memory.holds.setdefault(session.session_no, {})[number] = hold
    memory.raws[number] = message.raw
    session.held += 1
    memory.touch(session)
    memory.touch(hold)
    if gate is not None:
        event_writer.append(_gate_opened(ctx, session, hold, event_writer.now_ns))


def _gate_opened(ctx: MessageContext, session: SessionRow, hold: HoldRow, now_ns: int) -> EventDraft:
    detail = {
        "session_id": session.session_id,
        "agent_id": ctx.message.sender_id,
        "step_id": hold.step_id,
        "reasons": [
            {"reason": gate.reason, "detail": gate.detail, "rule_id": gate.rule_id} for gate in ctx.gates
        ],
        "action_digest": "sha256:" + hold.digest.hex(),
        "quorum": hold.quorum,
        "deadline": None if hold.deadline_ns is None else from_ns(hold.deadline_ns),
        "on_expiry": hold.on_expiry,
    }
    summary = f"{ctx.message.sender_id} waits for an approval: {ctx.gates[0].reason}"
    ids = {"parent_span_id": hold.span_id, "message_id": hold.message_id}
    return of_message(ctx, "gate_opened", summary, detail, now_ns, **ids)


def _held_ancestors(ctx: MessageContext, holds: Iterable[HoldRow]) -> Iterable[int]:
    """Held messages that this one names as a parent and that wait at a gate or for an ancestor's gate."""
    span = ctx.message.parent_span_id
    for hold in holds:
        if (hold.gate or hold.waits) and (
            hold.name in ctx.parents
            or hold.step_id in ctx.message.parents  # a text id exactly as declared
            or hold.span_id == span
        ):
            yield hold.sequence_number


def _names_rejected(ctx: MessageContext, rejected: set[str]) -> bool:
    return not rejected.isdisjoint(ctx.parents) or not rejected.isdisjoint(ctx.message.parents)


def _has_earlier_held(memory: BatchState, session_no: int, agent_no: int) -> bool:
    """Whether earlier messages of the agent still wait, after a pause or a kill-switch has ended."""
    return any(
        hold.agent_no == agent_no and in_line(hold) for hold in memory.holds.get(session_no, {}).values()
    )


def hold(ctx: MessageContext, event_writer: EventWriter, number: int) -> None:
    """An effect of a message that was archived as held."""
    assert ctx.session is not None
    hold_message(ctx, ctx.session, event_writer)

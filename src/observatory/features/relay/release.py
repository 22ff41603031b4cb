"""Releasing held messages: forwarded in order, or rejected for good.

Law (rulings 22–24): release keeps arrival order and leaves gated messages held; what is forwarded is checked
against policy and kill-switch again; a rejected message is never forwarded, nor are its descendants, and the
agent is notified. Each hold ends once. A release moves at most `MAX_RELEASED_AT_ONCE` messages a transaction;
the caller repeats until nothing is left.
"""

from __future__ import annotations

import msgspec

from observatory.features.relay.stage import in_line, killed_by
from observatory.features.relay.types import MAX_RELEASED_AT_ONCE
from observatory.pipeline import policy
from observatory.pipeline.event_writer import EventWriter
from observatory.pipeline.interceptor import intercept
from observatory.pipeline.message_context import MessageContext
from observatory.pipeline.rows import AgentRow, HoldRow, SessionRow
from observatory.pipeline.state import Command, Principal, ReadSet, SubmissionResult, UnitOfWork
from observatory.protocol.identity import agent_entity_id
from observatory.protocol.message import Message


class ReleaseResult(msgspec.Struct, frozen=True):
    released: int
    remaining: int  # releasable, but beyond this transaction's limit


def drain(who: Principal, session_id: str, now_ns: int, limit: int | None = None) -> Command:
    """Forward the releasable messages of a session; changes nothing when there are none."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        session = uow.memory.sessions.get(session_id)
        done = (
            release_session(event_writer_of(uow), session, who.entity_id, limit)
            if session is not None
            else ReleaseResult(0, 0)
        )
        return SubmissionResult(200, done)

    return Command(who, now_ns, decide, wants_of(session_id))


def wants_of(session_id: str) -> ReadSet:
    return ReadSet(sessions={session_id}, releases={session_id})


def event_writer_of(uow: UnitOfWork) -> EventWriter:
    assert isinstance(uow, EventWriter)
    return uow


def release_session(
    event_writer: EventWriter, session: SessionRow, by: str, limit: int | None = None
) -> ReleaseResult:
    """Release every message of the session that nothing holds any more, in arrival order."""
    memory = event_writer.memory
    holds = memory.holds.get(session.session_no, {})
    agents = {agent.agent_no: agent for agent in memory.agents.values()}
    stuck: set[int] = set()  # agents that have an earlier message held
    late: set[int] = set()  # agents whose further messages wait for the next transaction
    released = remaining = 0
    limit = MAX_RELEASED_AT_ONCE if limit is None else limit
    for number in sorted(holds):
        hold = holds.get(number)
        if hold is None:  # rejected meanwhile, with its ancestor
            continue
        if hold.gate == 1 or any(int(waited) in holds for waited in (hold.waits or "").split(",") if waited):
            continue
        agent = agents.get(hold.agent_no)
        member = memory.members.get((session.session_no, hold.agent_no))
        if (
            hold.agent_no in stuck
            or (member is not None and member.is_paused)
            or (agent is not None and agent.is_paused)
            or killed_by(agent, hold, memory) is not None
        ):
            if in_line(hold):
                stuck.add(hold.agent_no)
            continue
        if hold.agent_no in late or released >= limit or number not in memory.raws:
            remaining += 1
            late.add(hold.agent_no)
            continue
        released += forward(event_writer, session, hold, agent, by)
    return ReleaseResult(released, remaining)


def forward(
    event_writer: EventWriter, session: SessionRow, hold: HoldRow, agent: AgentRow | None, by: str
) -> bool:
    """Forward one held message; False when a check now fails and it is rejected."""
    memory = event_writer.memory
    message = message_of(hold, memory.raws)
    if message is None or message.digest != hold.digest:
        note = "its content was shredded, or is not what was held"
        reject(event_writer, session, hold, by, "rejected", note)
        return False
    rule = policy.denies(message, agent, memory)
    if rule is not None:
        note = f"policy {rule.rule_id} now denies it"
        reject(event_writer, session, hold, by, "rejected", note)
        return False
    ctx = _passage(event_writer, session, hold, agent, message)
    detail = {"held_sequence_number": hold.sequence_number, "released_by": by, "key_id": event_writer.key_id}
    number = event_writer.append_message_event(ctx, session, "message_delivered", detail)
    _end(event_writer, session, hold, "released", by, number)
    if not hold.gate and _awaits_verdict(message):
        notify_approved(event_writer, session, hold, number, by, None)
    event_writer.forward(ctx, number)
    return True


def _awaits_verdict(message: Message) -> bool:
    """Whether its agent waits for a verdict before it acts; a gate's verdict is sent in any case."""
    return message.log is not None and message.log.action.status == "pending"


def reject(
    event_writer: EventWriter, session: SessionRow, hold: HoldRow, by: str, verdict: str, note: str | None
) -> int:
    """Reject this message and its descendants for good, and notify their agents; returns how many."""
    holds = event_writer.memory.holds.get(session.session_no, {})
    agents = {agent.agent_no: agent for agent in event_writer.memory.agents.values()}
    children: dict[int, list[HoldRow]] = {}
    for other in holds.values():
        for waited in (other.waits or "").split(","):
            if waited:
                children.setdefault(int(waited), []).append(other)
    queue, count = [(hold, verdict, note)], 0
    while queue:  # no recursion: a chain of held messages may be as long as a session
        one, verdict, note = queue.pop(0)
        if one.sequence_number not in holds:
            continue
        _reject_one(event_writer, session, one, by, verdict, note, agents.get(one.agent_no))
        count += 1
        why = f"its ancestor {one.step_id} was {verdict}"
        queue += [(child, "rejected", why) for child in children.get(one.sequence_number, [])]
    return count


def _reject_one(
    event_writer: EventWriter,
    session: SessionRow,
    hold: HoldRow,
    by: str,
    verdict: str,
    note: str | None,
    agent: AgentRow | None,
) -> None:
    message = message_of(hold, event_writer.memory.raws)
    detail = {
        "reason": verdict,
        "note": note,
        "by": by,
        "key_id": event_writer.key_id,
        "step_id": hold.step_id,
        "held_sequence_number": hold.sequence_number,
    }
    if message is not None:
        ctx = _passage(event_writer, session, hold, agent, message)
        number = event_writer.append_message_event(ctx, session, "message_rejected", detail)
    else:
        summary = f"{hold.message_id} is never forwarded"
        event = event_writer.in_session(
            session, "message_rejected", summary, detail, message_id=hold.message_id
        )
        number = event_writer.append(event)
    _end(event_writer, session, hold, "expired" if verdict == "expired" else "rejected", by, number)
    session.rejected += 1
    known = event_writer.memory.rejected.setdefault(session.session_no, set())
    known.update((hold.name, hold.step_id))
    notify_verdict(event_writer, session, hold, number, verdict, by, note)


def notify_approved(
    event_writer: EventWriter, session: SessionRow, hold: HoldRow, number: int, by: str, note: str | None
) -> None:
    """Send the agent its approval: for what it asked, or for what a person made of it."""
    raw = event_writer.memory.raws.get(hold.rewrite_seq) if hold.rewrite_seq is not None else None
    content = None if raw is None else msgspec.Raw(raw)
    # The SDK treats an edit without content as a refusal: never the original in its place.
    verdict = "approved" if hold.rewrite_seq is None else "edited"
    notify_verdict(event_writer, session, hold, number, verdict, by, note, content)


def notify_verdict(
    event_writer: EventWriter,
    session: SessionRow,
    hold: HoldRow,
    number: int,
    verdict: str,
    by: str,
    note: str | None,
    content: msgspec.Raw | None = None,
) -> None:
    if not hold.agent_no:
        return
    body = {
        "message_id": hold.message_id,
        "step_id": hold.step_id,
        "verdict": verdict,
        "note": note,
        "by": by,
        "action_digest": "sha256:" + hold.digest.hex(),
        "content": content,
        "gated": hold.gate != 0,  # else no person answered: the pause or kill-switch has ended
    }
    event_writer.deliver(number, hold.agent_no, "verdict", body, session_no=session.session_no)


def message_of(hold: HoldRow, raws: dict[int, bytes]) -> Message | None:
    """The message that would be forwarded now: the rewrite in force, else the original."""
    raw = raws.get(hold.rewrite_seq or hold.sequence_number)
    message = None if raw is None else intercept(raw)
    return message if isinstance(message, Message) else None


def _passage(
    event_writer: EventWriter, session: SessionRow, hold: HoldRow, agent: AgentRow | None, message: Message
) -> MessageContext:
    """The message's context as it was in the pipeline when it was held; ids stay the original's."""
    tenant_id = event_writer.memory.tenant.tenant_id
    sender = agent.agent_id if hold.bound and agent is not None else None
    who = Principal(
        tenant_id=tenant_id,
        role="agent",
        key_id=hold.key_id or "",  # unknown for holds from before the column existed
        user_id=hold.requested_by,
        agent_id=sender,
        key_maker=hold.key_maker,
    )
    ctx = MessageContext(
        message,
        who,
        event_writer.now_ns,
        agent,
        session,
        event_writer.memory.members.get((session.session_no, hold.agent_no)),
    )
    is_agent = message.sender_type == "agent"
    ctx.entity_id = agent_entity_id(tenant_id, message.sender_id) if is_agent else message.sender_id
    ctx.step_id, ctx.name, ctx.message_id = hold.step_id, hold.name, hold.message_id
    ctx.parents, ctx.archived_seq = message.parents, hold.sequence_number
    ctx.approved = hold.gate == 2
    return ctx


def _end(
    event_writer: EventWriter, session: SessionRow, hold: HoldRow, state: str, by: str, number: int
) -> None:
    memory = event_writer.memory
    hold.state = state  # type: ignore[assignment]
    hold.ended_ns, hold.ended_by, hold.released_seq = event_writer.now_ns, by, number
    del memory.holds[session.session_no][hold.sequence_number]
    session.held -= 1
    memory.touch(hold)
    memory.touch(session)

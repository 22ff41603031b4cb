"""How held messages go on: forwarded in order, or rejected for good.

Law (rulings 22–24): release keeps arrival order and leaves gated ones held; what is forwarded is checked
again against policy and kill-switch; a rejected message is never forwarded, nor is anything that hangs on
it, and the agent is told. Each hold ends once. A release moves at most `LIMIT` messages a transaction;
whoever asked goes on until nothing is left.
"""

from __future__ import annotations

import msgspec

from observatory.features.policies import stage as policy
from observatory.features.relay.stage import in_line, killed_by
from observatory.pipeline import effects
from observatory.pipeline.event_writer import Scribe
from observatory.pipeline.interceptor import intercept
from observatory.pipeline.message_context import Passage
from observatory.pipeline.rows import Agent, Hold, Session
from observatory.pipeline.state import Act, Desk, Principal, Verdict, Wants
from observatory.protocol.identity import agent_entity_id
from observatory.protocol.message import Message

LIMIT = 1_000


class Drained(msgspec.Struct, frozen=True):
    released: int
    remaining: int  # free to go, but beyond this transaction's share


def drain(who: Principal, session_id: str, now_ns: int, limit: int | None = None) -> Act:
    """Forward whatever of a session is free to go; changes nothing when nothing is."""

    def decide(desk: Desk) -> Verdict:
        session = desk.memory.sessions.get(session_id)
        done = flow(scribe_of(desk), session, who.entity_id, limit) if session is not None else Drained(0, 0)
        return Verdict(200, done)

    return Act(who, now_ns, decide, wants_of(session_id))


def wants_of(session_id: str) -> Wants:
    return Wants(sessions={session_id}, releases={session_id})


def scribe_of(desk: Desk) -> Scribe:
    assert isinstance(desk, Scribe)
    return desk


def flow(scribe: Scribe, session: Session, by: str, limit: int | None = None) -> Drained:
    """Everything of the session that nothing holds any more, in arrival order."""
    memory = scribe.memory
    holds = memory.holds.get(session.session_no, {})
    agents = {agent.agent_no: agent for agent in memory.agents.values()}
    stuck: set[int] = set()  # agents in whose line somebody still stands
    late: set[int] = set()  # agents whose line goes on with the next transaction
    released = remaining = 0
    limit = LIMIT if limit is None else limit
    for number in sorted(holds):
        hold = holds.get(number)
        if hold is None:  # rejected on the way, with what it hung on
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
        released += forward(scribe, session, hold, agent, by)
    return Drained(released, remaining)


def forward(scribe: Scribe, session: Session, hold: Hold, agent: Agent | None, by: str) -> bool:
    """False when it may not go after all: then it is rejected."""
    memory = scribe.memory
    message = message_of(hold, memory.raws)
    if message is None or message.digest != hold.digest:
        note = "its content was shredded, or is not what was held"
        reject(scribe, session, hold, by, "rejected", note)
        return False
    rule = policy.denies(message, agent, memory)
    if rule is not None:
        note = f"policy {rule.rule_id} denies it now"
        reject(scribe, session, hold, by, "rejected", note)
        return False
    passage = _passage(scribe, session, hold, agent, message)
    detail = {"held_sequence_number": hold.sequence_number, "released_by": by, "key_id": scribe.key_id}
    number = scribe.chronicle(passage, session, "message_delivered", detail)
    _end(scribe, session, hold, "released", by, number)
    if not hold.gate and _asks(message):
        tell_passed(scribe, session, hold, number, by, None)
    effects.forwarded(passage, scribe, number)
    return True


def _asks(message: Message) -> bool:
    """Whether its agent waits before it does it: at a gate it is told the verdict, here that it may go on."""
    return message.log is not None and message.log.action.status == "pending"


def reject(scribe: Scribe, session: Session, hold: Hold, by: str, verdict: str, note: str | None) -> int:
    """This message, and what names it as an ancestor, is never forwarded; their agents are told. How many."""
    holds = scribe.memory.holds.get(session.session_no, {})
    agents = {agent.agent_no: agent for agent in scribe.memory.agents.values()}
    hanging: dict[int, list[Hold]] = {}
    for other in holds.values():
        for waited in (other.waits or "").split(","):
            if waited:
                hanging.setdefault(int(waited), []).append(other)
    todo, count = [(hold, verdict, note)], 0
    while todo:  # no recursion: a chain of held messages may be as long as a session
        one, verdict, note = todo.pop(0)
        if one.sequence_number not in holds:
            continue
        _reject_one(scribe, session, one, by, verdict, note, agents.get(one.agent_no))
        count += 1
        why = f"its ancestor {one.step_id} was {verdict}"
        todo += [(child, "rejected", why) for child in hanging.get(one.sequence_number, [])]
    return count


def _reject_one(
    scribe: Scribe,
    session: Session,
    hold: Hold,
    by: str,
    verdict: str,
    note: str | None,
    agent: Agent | None,
) -> None:
    message = message_of(hold, scribe.memory.raws)
    detail = {
        "reason": verdict,
        "note": note,
        "by": by,
        "key_id": scribe.key_id,
        "step_id": hold.step_id,
        "held_sequence_number": hold.sequence_number,
    }
    if message is not None:
        passage = _passage(scribe, session, hold, agent, message)
        number = scribe.chronicle(passage, session, "message_rejected", detail)
    else:
        summary = f"{hold.message_id} is never forwarded"
        event = scribe.in_session(session, "message_rejected", summary, detail, message_id=hold.message_id)
        number = scribe.append(event)
    _end(scribe, session, hold, "expired" if verdict == "expired" else "rejected", by, number)
    session.rejected += 1
    known = scribe.memory.rejected.setdefault(session.session_no, set())
    known.update((hold.name, hold.step_id))
    tell_verdict(scribe, session, hold, number, verdict, by, note)


def tell_passed(scribe: Scribe, session: Session, hold: Hold, number: int, by: str, note: str | None) -> None:
    """The agent is told what it may do: what it asked for, or what a person made of it."""
    raw = scribe.memory.raws.get(hold.rewrite_seq) if hold.rewrite_seq is not None else None
    content = None if raw is None else msgspec.Raw(raw)
    # An edit without its content is a no to the SDK: never the original in its place.
    verdict = "approved" if hold.rewrite_seq is None else "edited"
    tell_verdict(scribe, session, hold, number, verdict, by, note, content)


def tell_verdict(
    scribe: Scribe,
    session: Session,
    hold: Hold,
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
        "gated": hold.gate != 0,  # else nobody looked at it: what had held it is over
    }
    scribe.tell(number, hold.agent_no, "verdict", body, session_no=session.session_no)


def message_of(hold: Hold, raws: dict[int, bytes]) -> Message | None:
    """What would be forwarded now: the rewrite in force, else the original."""
    raw = raws.get(hold.rewrite_seq or hold.sequence_number)
    found = None if raw is None else intercept(raw)
    return found if isinstance(found, Message) else None


def _passage(scribe: Scribe, session: Session, hold: Hold, agent: Agent | None, message: Message) -> Passage:
    """The message as it stood in the corridor when it was held; ids stay the original's."""
    tenant_id = scribe.memory.tenant.tenant_id
    sender = agent.agent_id if hold.bound and agent is not None else None
    who = Principal(
        tenant_id=tenant_id,
        role="agent",
        key_id=hold.key_id or "",  # unknown of what was held before it was kept
        user_id=hold.requested_by,
        agent_id=sender,
        key_maker=hold.key_maker,
    )
    passage = Passage(
        message,
        who,
        scribe.now_ns,
        agent,
        session,
        scribe.memory.members.get((session.session_no, hold.agent_no)),
    )
    is_agent = message.sender_type == "agent"
    passage.entity_id = agent_entity_id(tenant_id, message.sender_id) if is_agent else message.sender_id
    passage.step_id, passage.name, passage.message_id = hold.step_id, hold.name, hold.message_id
    passage.parents, passage.archived_seq = message.parents, hold.sequence_number
    passage.approved = hold.gate == 2
    return passage


def _end(scribe: Scribe, session: Session, hold: Hold, state: str, by: str, number: int) -> None:
    memory = scribe.memory
    hold.state = state  # type: ignore[assignment]
    hold.ended_ns, hold.ended_by, hold.released_seq = scribe.now_ns, by, number
    del memory.holds[session.session_no][hold.sequence_number]
    session.held -= 1
    memory.touch(hold)
    memory.touch(session)

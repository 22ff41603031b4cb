"""How held messages go on: forwarded in order, or rejected for good.

Law (rulings 22–24): release keeps arrival order and leaves gated ones held; what is forwarded is checked
again against policy and kill-switch; a rejected message is never forwarded, nor is anything that hangs on
it, and the agent is told. Each hold ends once. A release moves at most `LIMIT` messages a transaction;
whoever asked goes on until nothing is left.
"""

from __future__ import annotations

from hashlib import sha256

import msgspec

from observatory.gateway import effects, policy
from observatory.gateway.interceptor import intercept
from observatory.gateway.passage import Passage
from observatory.gateway.record import Scribe
from observatory.gateway.relay import IN_LINE, killed_by
from observatory.protocol.identity import agent_entity_id
from observatory.protocol.message import Message
from observatory.rows import Agent, Hold, Session
from observatory.state import Act, Desk, Principal, Verdict, Wants

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
        hold = holds[number]
        if hold.gate == 1 or any(int(waited) in holds for waited in (hold.waits or "").split(",") if waited):
            continue
        agent = agents.get(hold.agent_no)
        member = memory.members.get((session.session_no, hold.agent_no))
        if (
            hold.agent_no in stuck
            or (member is not None and member.is_paused)
            or killed_by(agent, hold.message_type, memory) is not None
        ):
            if hold.cause in IN_LINE:
                stuck.add(hold.agent_no)
            continue
        if hold.agent_no in late or released >= limit or number not in memory.raws:
            remaining += 1
            late.add(hold.agent_no)
            continue
        forward(scribe, session, hold, agent, by)
        released += 1
    return Drained(released, remaining)


def forward(scribe: Scribe, session: Session, hold: Hold, agent: Agent | None, by: str) -> None:
    memory = scribe.memory
    message = message_of(hold, memory.raws)
    if message is None:  # shredded meanwhile: there is nothing left to forward
        return reject(
            scribe, session, hold, by, "rejected", "the content was shredded", {hold.agent_no: agent}
        )
    rule = policy.denies(message, agent, memory)
    if rule is not None:
        note = f"policy {rule.rule_id} denies it now"
        return reject(scribe, session, hold, by, "rejected", note, {hold.agent_no: agent})
    passage = _passage(scribe, session, hold, agent, message)
    number = scribe.chronicle(
        passage, session, "message_delivered", {"held_sequence_number": hold.sequence_number}
    )
    _end(scribe, session, hold, "released", by, number)
    effects.forwarded(passage, scribe, number)
    return None


def reject(
    scribe: Scribe,
    session: Session,
    hold: Hold,
    by: str,
    verdict: str,
    note: str | None,
    agents: dict[int, Agent | None],
) -> None:
    """This message, and what names it as an ancestor, is never forwarded; their agents are told."""
    holds = scribe.memory.holds.get(session.session_no, {})
    message = message_of(hold, scribe.memory.raws)
    detail = {
        "reason": verdict,
        "note": note,
        "by": by,
        "step_id": hold.step_id,
        "held_sequence_number": hold.sequence_number,
    }
    if message is not None:
        passage = _passage(scribe, session, hold, agents.get(hold.agent_no), message)
        number = scribe.chronicle(passage, session, "message_rejected", detail)
    else:
        number = scribe.append(
            scribe.in_session(session, "message_rejected", f"{hold.message_id} is never forwarded", detail)
        )
    _end(scribe, session, hold, "expired" if verdict == "expired" else "rejected", by, number)
    tell_verdict(scribe, session, hold, number, verdict, by, note)
    for other in list(holds.values()):
        if str(hold.sequence_number) in (other.waits or "").split(","):
            note = f"its ancestor {hold.step_id} was {verdict}"
            reject(scribe, session, other, by, "rejected", note, agents)


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
    }
    scribe.tell(number, hold.agent_no, "verdict", body, session_no=session.session_no)


def message_of(hold: Hold, raws: dict[int, bytes]) -> Message | None:
    """What would be forwarded now: the rewrite in force, else the original."""
    raw = raws.get(hold.rewrite_seq or hold.sequence_number)
    found = None if raw is None else intercept(raw)
    return found if isinstance(found, Message) else None


def original_digest(hold: Hold, raws: dict[int, bytes]) -> bytes:
    return sha256(raws[hold.sequence_number]).digest()


def _passage(scribe: Scribe, session: Session, hold: Hold, agent: Agent | None, message: Message) -> Passage:
    """The message as it stood in the corridor when it was held; ids stay the original's."""
    tenant_id = scribe.memory.tenant.tenant_id
    sender = agent.agent_id if hold.bound and agent is not None else None
    passage = Passage(
        message,
        Principal(tenant_id=tenant_id, role="agent", key_id=hold.requested_by, agent_id=sender),
        scribe.now_ns,
        agent,
        session,
        scribe.memory.members.get((session.session_no, hold.agent_no)),
    )
    is_agent = message.sender_type == "agent"
    passage.entity_id = agent_entity_id(tenant_id, message.sender_id) if is_agent else message.sender_id
    passage.step_id, passage.name, passage.message_id = hold.step_id, hold.name, hold.message_id
    passage.parents, passage.archived_seq = message.parents, hold.sequence_number
    return passage


def _end(scribe: Scribe, session: Session, hold: Hold, state: str, by: str, number: int) -> None:
    memory = scribe.memory
    hold.state = state  # type: ignore[assignment]
    hold.ended_ns, hold.ended_by, hold.released_seq = scribe.now_ns, by, number
    del memory.holds[session.session_no][hold.sequence_number]
    session.held -= 1
    memory.touch(hold)
    memory.touch(session)

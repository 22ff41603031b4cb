"""Answers at a gate: approve, edit, reject, and what happens when nobody answers in time.

Law (ruling 23): an approval is of the digest the person saw, is used once, and is checked again against
policy when it counts; where two people are needed, two different ones; nobody approves what they sent.
An edit is a new content with the editor's approval. On expiry the gate's own policy holds: deny, unless
whoever made the rule said otherwise.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from observatory.features.policies import stage as policy
from observatory.features.redaction.stage import put_in
from observatory.features.relay.commands import NOT_HELD, Command, Commanded, act_on, replace
from observatory.features.relay.held_message import find
from observatory.features.relay.release import flow, message_of, reject, scribe_of, tell_passed, wants_of
from observatory.pipeline.rows import Hold
from observatory.pipeline.state import Act, Desk, Principal, Verdict
from observatory.protocol.answers import Refused
from observatory.protocol.message import Message

NO_GATE = Refused(reason="no_gate", detail="this message waits for no approval; unpause or rewrite it")
OWN_REQUEST = Refused(
    reason="own_request",
    detail="you sent this message, or made the agent's key it was sent with; another person must approve it",
)
# What was let go may not go after all (a rule denies it now): then its agent was told so, and nothing else.
MAY_BE_DONE = ("held", "released")
Answer = Callable[[Command, Hold, str | None], Verdict]
# Who, session, agent, message, digest as it was seen, note, now.
AtGate = Callable[[Principal, str, str, str | int, str | None, str | None, int], Act]


def _at_gate(answer: Answer) -> AtGate:
    """An answer that counts: at an open gate, in time, of what was seen, by somebody else than who asked."""

    def act(
        who: Principal,
        session_id: str,
        agent_id: str,
        message_id: str | int,
        digest: str | None,
        note: str | None,
        now_ns: int,
    ) -> Act:
        def body(command: Command) -> Verdict:
            hold = find(command.scribe.memory, command.session, command.agent, message_id)
            if hold is None:
                return NOT_HELD
            if hold.gate != 1:
                return Verdict(409, NO_GATE)
            if who.has_requested(hold.requested_by, hold.key_maker):
                return Verdict(403, OWN_REQUEST)
            if digest is not None and digest.removeprefix("sha256:") != hold.digest.hex():
                detail = "the message was changed since you looked; look again and answer what is there now"
                return Verdict(409, Refused(reason="stale_digest", detail=detail))
            if hold.deadline_ns is not None and hold.deadline_ns <= command.scribe.now_ns:
                return Verdict(409, Refused(reason="expired", detail="the time to answer this gate is over"))
            return answer(command, hold, command.left("note", note))

        return act_on(who, session_id, agent_id, now_ns, body, True, message_id)

    return act


@_at_gate
def approve(command: Command, hold: Hold, note: str | None) -> Verdict:
    return _approved(command, hold, note)


def edit(
    who: Principal,
    session_id: str,
    agent_id: str,
    message_id: str | int,
    digest: str | None,
    message: Message,
    note: str | None,
    now_ns: int,
) -> Act:
    """Rewrite and approve in one act; whatever was approved before was other content."""

    def answer(command: Command, hold: Hold, note: str | None) -> Verdict:
        rule = policy.denies(message, command.agent, command.scribe.memory)
        if rule is not None:
            return _denied_now(rule.rule_id)
        content = put_in(message, command.scribe.memory)
        if isinstance(content, Verdict):
            return content
        return _approved(command, hold, note, replace(command, "edit", hold, content, note))

    return _at_gate(answer)(who, session_id, agent_id, message_id, digest, note, now_ns)


@_at_gate
def refuse(command: Command, hold: Hold, note: str | None) -> Verdict:
    _, answer = command.record("reject", hold=hold, before="sha256:" + hold.digest.hex(), note=note)
    by = command.who.entity_id
    answer.rejected = reject(command.scribe, command.session, hold, by, "rejected", note)
    answer.state = "rejected"
    return Verdict(200, command.drained(answer))


def expire(who: Principal, session_id: str, sequence_number: int, now_ns: int) -> Act:
    """The clock's answer, if the gate is still open and its time is over."""

    def decide(desk: Desk) -> Verdict:
        scribe, memory = scribe_of(desk), desk.memory
        session = memory.sessions.get(session_id)
        hold = memory.holds.get(session.session_no, {}).get(sequence_number) if session is not None else None
        if session is None or hold is None or hold.gate != 1 or (hold.deadline_ns or 1 << 62) > desk.now_ns:
            return Verdict(200, None)
        detail = {"message_id": hold.message_id, "step_id": hold.step_id, "on_expiry": hold.on_expiry}
        summary = f"the gate of {hold.message_id} was not answered in time: {hold.on_expiry}"
        event = scribe.in_session(session, "gate_expired", summary, detail, parent_span_id=hold.span_id)
        number = scribe.append(event)
        if hold.on_expiry == "approve":
            hold.gate = 2
            memory.touch(hold)
        else:
            reject(scribe, session, hold, who.entity_id, "expired", "nobody answered in time")
        done = flow(scribe, session, who.entity_id)
        if hold.state in MAY_BE_DONE:
            tell_passed(scribe, session, hold, number, who.entity_id, "nobody answered in time")
        return Verdict(200, done)

    return Act(who, now_ns, decide, wants_of(session_id))


def _approved(
    command: Command, hold: Hold, note: str | None, edited: tuple[int, Commanded] | None = None
) -> Verdict:
    """One more approval of what is held now; the last one needed lets it go. An edit is recorded already."""
    memory, by = command.scribe.memory, command.who.entity_id
    message = message_of(hold, memory.raws)
    rule = policy.denies(message, command.agent, memory) if message is not None else None
    if rule is not None:
        return _denied_now(rule.rule_id)
    given: list[str] = msgspec.json.decode(hold.approvals) if hold.approvals else []
    if by in given:
        detail = f"you have approved this already; {hold.quorum - len(given)} more must"
        return Verdict(409, Refused(reason="already_approved", detail=detail))
    given.append(by)
    hold.approvals = msgspec.json.encode(given).decode()
    memory.touch(hold)
    seen = "sha256:" + hold.digest.hex()
    number, answer = edited or command.record("approve", hold=hold, before=seen, after=seen, note=note)
    answer.approvals, answer.needed, answer.state = given, hold.quorum, "held"
    if len(given) < hold.quorum:
        return Verdict(202, answer)
    hold.gate = 2
    command.drained(answer)
    if hold.state in MAY_BE_DONE:
        tell_passed(command.scribe, command.session, hold, number, by, note)
        answer.state = "forwarded" if hold.state == "released" else "held"
    else:
        answer.state = "rejected"
    return Verdict(200, answer)


def _denied_now(rule_id: str) -> Verdict:
    detail = "a policy denies this message now; it stays held. Change the policy or reject the message"
    return Verdict(409, Refused(reason="policy_denied", detail=detail, rule_id=rule_id))

"""Commands at a gate: approve, edit, reject, and expiry without an answer.

Law (ruling 23): an approval is bound to the digest the person saw, is used once, and is checked against
policy again when applied; a quorum of two needs two different people; no one approves their own request.
An edit is new content with the editor's approval. On expiry the gate's `on_expiry` applies: deny, unless the
policy says approve.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from observatory.features.relay.commands import NOT_HELD, Intervention, intervention_command, replace
from observatory.features.relay.held_message import find_hold
from observatory.features.relay.release import (
    event_writer_of,
    message_of,
    notify_approved,
    reject,
    release_session,
    wants_of,
)
from observatory.features.relay.types import Commanded
from observatory.pipeline import policy
from observatory.pipeline.redaction.batch import redact_replacement
from observatory.pipeline.rows import HoldRow
from observatory.pipeline.state import Command, Principal, SubmissionResult, UnitOfWork
from observatory.protocol.message import Message
from observatory.protocol.responses import Refused

NO_GATE = Refused(
    reason="no_gate", detail="this message does not wait for an approval; unpause its agent, or rewrite it"
)
OWN_REQUEST = Refused(
    reason="own_request",
    detail="you sent this message, or made the agent's key it was sent with; another person must approve it",
)
# An approved message may still be rejected by a policy: then only that verdict is sent to its agent.
MAY_BE_DONE = ("held", "released")
Answer = Callable[[Intervention, HoldRow, str | None], SubmissionResult]
# Principal, session, agent, message, digest the person saw, note, now.
GateCommand = Callable[[Principal, str, str, str | int, str | None, str | None, int], Command]


def _at_gate(answer: Answer) -> GateCommand:
    """Wrap an answer: the gate must be open and in time, the digest as seen, the person not the requester."""

    def act(
        who: Principal,
        session_id: str,
        agent_id: str,
        message_id: str | int,
        digest: str | None,
        note: str | None,
        now_ns: int,
    ) -> Command:
        def body(command: Intervention) -> SubmissionResult:
            hold = find_hold(command.event_writer.memory, command.session, command.agent, message_id)
            if hold is None:
                return NOT_HELD
            if hold.gate != 1:
                return SubmissionResult(409, NO_GATE)
            if who.has_requested(hold.requested_by, hold.key_maker):
                return SubmissionResult(403, OWN_REQUEST)
            if digest is not None and digest.removeprefix("sha256:") != hold.digest.hex():
                detail = "the message changed since you read it; reload it and answer the present content"
                return SubmissionResult(409, Refused(reason="stale_digest", detail=detail))
            if hold.deadline_ns is not None and hold.deadline_ns <= command.event_writer.now_ns:
                return SubmissionResult(409, Refused(reason="expired", detail="this gate has expired"))
            return answer(command, hold, command.left("note", note))

        return intervention_command(who, session_id, agent_id, now_ns, body, True, message_id)

    return act


@_at_gate
def approve(command: Intervention, hold: HoldRow, note: str | None) -> SubmissionResult:
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
) -> Command:
    """Rewrite and approve in one command; earlier approvals were of other content."""

    def answer(command: Intervention, hold: HoldRow, note: str | None) -> SubmissionResult:
        rule = policy.denies(message, command.agent, command.event_writer.memory)
        if rule is not None:
            return _denied_now(rule.rule_id)
        content = redact_replacement(message, command.event_writer.memory)
        if isinstance(content, SubmissionResult):
            return content
        return _approved(command, hold, note, replace(command, "edit", hold, content, note))

    return _at_gate(answer)(who, session_id, agent_id, message_id, digest, note, now_ns)


@_at_gate
def reject_message(command: Intervention, hold: HoldRow, note: str | None) -> SubmissionResult:
    _, answer = command.record("reject", hold=hold, before="sha256:" + hold.digest.hex(), note=note)
    by = command.who.entity_id
    answer.rejected = reject(command.event_writer, command.session, hold, by, "rejected", note)
    answer.state = "rejected"
    return SubmissionResult(200, command.drained(answer))


def expire(who: Principal, session_id: str, sequence_number: int, now_ns: int) -> Command:
    """Expire the gate, if it is still open and its deadline has passed."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        event_writer, memory = event_writer_of(uow), uow.memory
        session = memory.sessions.get(session_id)
        hold = memory.holds.get(session.session_no, {}).get(sequence_number) if session is not None else None
        if session is None or hold is None or hold.gate != 1 or (hold.deadline_ns or 1 << 62) > uow.now_ns:
            return SubmissionResult(200, None)
        detail = {"message_id": hold.message_id, "step_id": hold.step_id, "on_expiry": hold.on_expiry}
        summary = f"the gate of {hold.message_id} expired: {hold.on_expiry}"
        event = event_writer.in_session(session, "gate_expired", summary, detail, parent_span_id=hold.span_id)
        number = event_writer.append(event)
        if hold.on_expiry == "approve":
            hold.gate = 2
            memory.touch(hold)
        else:
            reject(event_writer, session, hold, who.entity_id, "expired", "no answer in time")
        done = release_session(event_writer, session, who.entity_id)
        if hold.state in MAY_BE_DONE:
            notify_approved(event_writer, session, hold, number, who.entity_id, "no answer in time")
        return SubmissionResult(200, done)

    return Command(who, now_ns, decide, wants_of(session_id))


def _approved(
    command: Intervention, hold: HoldRow, note: str | None, edited: tuple[int, Commanded] | None = None
) -> SubmissionResult:
    """Add an approval of the present content; the last required one releases it. An edit is stored first."""
    memory, by = command.event_writer.memory, command.who.entity_id
    message = message_of(hold, memory.raws)
    rule = policy.denies(message, command.agent, memory) if message is not None else None
    if rule is not None:
        return _denied_now(rule.rule_id)
    given: list[str] = msgspec.json.decode(hold.approvals) if hold.approvals else []
    if by in given:
        detail = f"you have already approved this; {hold.quorum - len(given)} more required"
        return SubmissionResult(409, Refused(reason="already_approved", detail=detail))
    given.append(by)
    hold.approvals = msgspec.json.encode(given).decode()
    memory.touch(hold)
    seen = "sha256:" + hold.digest.hex()
    number, answer = edited or command.record("approve", hold=hold, before=seen, after=seen, note=note)
    answer.approvals, answer.needed, answer.state = given, hold.quorum, "held"
    if len(given) < hold.quorum:
        return SubmissionResult(202, answer)
    hold.gate = 2
    command.drained(answer)
    if hold.state in MAY_BE_DONE:
        notify_approved(command.event_writer, command.session, hold, number, by, note)
        answer.state = "forwarded" if hold.state == "released" else "held"
    else:
        answer.state = "rejected"
    return SubmissionResult(200, answer)


def _denied_now(rule_id: str) -> SubmissionResult:
    detail = "a policy now denies this message; it stays held. Change the policy or reject the message"
    return SubmissionResult(409, Refused(reason="policy_denied", detail=detail, rule_id=rule_id))

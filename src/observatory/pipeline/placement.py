"""Where a message belongs: its session, its step's name, its parents; and whether it came before.

Ruling 2 in code. Names are unique per tenant: a step's name is its id when that is a UUID (or an
envelope's message id), else `<session_id>/<step_id>`. A log without `step_id` is named by its
trace; when that name is taken by other content it gets an id derived from trace and body, so that a
repeat finds the same name again.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from observatory.features.redaction.redaction import digests_before
from observatory.pipeline.event_writer import notice
from observatory.pipeline.message_context import Passage
from observatory.pipeline.rows import Member, Session, Step
from observatory.pipeline.state import Memory, Verdict, Wants
from observatory.protocol.answers import Accepted, Refused
from observatory.protocol.identity import NAMESPACE, agent_entity_id
from observatory.protocol.message import Message
from observatory.protocol.otel import trace_id_of_session, uuid_of_trace
from observatory.protocol.steps import parent_name


def _derived_step(trace: str, digest: bytes) -> str:
    return str(uuid.uuid5(NAMESPACE, f"{trace}/{digest.hex()}"))


def want_again(message: Message, before: Iterable[bytes], wants: Wants) -> None:
    """The names a message without a step id has by digests it had not when `want` was asked."""
    if message.step_id is None:
        trace = uuid_of_trace(message.trace_id)
        wants.steps.update(_derived_step(trace, digest) for digest in (message.digest, *before))


def want(message: Message, tenant_id: str, wants: Wants) -> None:
    """Name every row this message may need, before the transaction begins."""
    session_id = message.session_id or uuid_of_trace(message.trace_id)
    wants.sessions.add(session_id)
    if message.sender_type == "agent":
        wants.agents.add(agent_entity_id(tenant_id, message.sender_id))
    if message.name is not None:
        wants.steps.add(message.name)
        return
    trace = uuid_of_trace(message.trace_id)
    wants.steps.add(trace)
    wants.steps.add(_derived_step(trace, message.digest))
    if message.session_id is None:
        wants.steps.update(parent_name(session_id, parent) for parent in message.parents)


def place(passage: Passage, memory: Memory, now_ns: int) -> Verdict | None:
    message = passage.message
    session_id = message.session_id or uuid_of_trace(message.trace_id)
    if message.step_id is not None and message.name is not None:
        step_id, name = message.step_id, message.name
        known = memory.step(name)
        if known is not None:
            return _as_before(known) if _is_same(passage, memory, known) else _conflict(passage, now_ns)
    else:
        name = step_id = trace = uuid_of_trace(message.trace_id)
        known = memory.step(trace)
        if known is not None and _is_same(passage, memory, known):
            return _as_before(known)
        if known is not None:  # ruling 2c: another step of that session
            for digest in () if passage.redacted is None else passage.redacted.before:
                earlier = memory.step(_derived_step(trace, digest))
                if earlier is not None and earlier.digest == digest:
                    return _as_before(earlier)
            name = step_id = _derived_step(trace, message.digest)
            again = memory.step(step_id)
            if again is not None:
                return _as_before(again) if again.digest == message.digest else _conflict(passage, now_ns)
            session_id = known.session_id
        elif message.session_id is None:
            session_id = _session_of_parent(memory, session_id, message.parents) or session_id
    passage.step_id, passage.name = step_id, name
    _settle(passage, memory, session_id)
    if known is not None and not passage.parents:
        _infer_parent(passage)
    return None


def _is_same(passage: Passage, memory: Memory, known: Step) -> bool:
    """Whether this is the message that has the name: perhaps it was redacted by other rules then."""
    if known.digest == passage.message.digest:
        return True
    book, done = memory.rulebook.redaction, passage.redacted
    return book is not None and done is not None and known.digest in digests_before(book, done.sent)


def _session_of_parent(memory: Memory, session_id: str, parents: Iterable[str]) -> str | None:
    for parent in parents:
        known = memory.step(parent_name(session_id, parent))
        if known is not None:
            return known.session_id
    return None


def _settle(passage: Passage, memory: Memory, session_id: str) -> None:
    session = memory.sessions.get(session_id)
    if session is None:
        memory.tenant.sessions += 1
        session = memory.sessions[session_id] = Session(
            session_no=memory.tenant.sessions,
            session_id=session_id,
            trace_id=trace_id_of_session(session_id),
            started_ns=passage.received_ns,
        )
    passage.session = session
    if passage.message.parents:
        passage.parents = tuple([parent_name(session_id, parent) for parent in passage.message.parents])
    if passage.agent is not None:
        pair = (session.session_no, passage.agent.agent_no)
        member = memory.members.get(pair)
        if member is None:
            member = memory.members[pair] = Member(session_no=pair[0], agent_no=pair[1])
        passage.member = member


def _infer_parent(passage: Passage) -> None:
    last = passage.member.last_step if passage.member is not None else None
    if last is not None:
        passage.parents = (last,)
        passage.parent_inferred = True


def _as_before(step: Step) -> Verdict:
    """A repeat of a message answers as the first did, and writes nothing."""
    if step.state == "refused":
        reason, rule_id, cap, detail = step.warnings
        code = 402 if reason == "budget_exceeded" else 403
        return Verdict(
            code, Refused(reason=reason, detail=detail or None, rule_id=rule_id or None, cap=cap or None)
        )
    return Verdict(
        202,
        Accepted(
            message_id=step.message_id,
            session_id=step.session_id,
            step_id=step.step_id,
            sequence_number=step.sequence_number,
            state=step.state,
            warnings=step.warnings,
        ),
    )


def _conflict(passage: Passage, now_ns: int) -> Verdict:
    what = "message_id" if passage.message.form == "envelope" else "meta.step_id"
    event = notice(
        passage.principal.tenant_id,
        "security_violation",
        f"{what} was sent again with other content",
        now_ns,
        passage.principal,
        {"reason": "id_conflict", "raw_payload_hash": "sha256:" + passage.message.digest.hex()},
    )
    detail = f"this {what} already names a message with other content; send new content under a new id"
    return Verdict(409, Refused(reason="id_conflict", detail=detail), [event])

"""The placement stage: determines a message's session, step name and parents, and recognises repeats.

Implements ruling 2. Names are unique per tenant: a step's name is its id when that is a UUID (or an
envelope's message id), else `<session_id>/<step_id>`. A log without `step_id` is named by its
trace; when that name is taken by other content it gets an id derived from trace and body, so that a
repeat gets the same name again.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.message_context import MessageContext
from observatory.pipeline.redaction.redactor import digests_before
from observatory.pipeline.rows import MemberRow, SessionRow, StepRow
from observatory.pipeline.state import BatchState, ReadSet, SubmissionResult
from observatory.protocol.identity import NAMESPACE, agent_entity_id
from observatory.protocol.message import Message
from observatory.protocol.otel import trace_id_of_session, uuid_of_trace
from observatory.protocol.responses import Accepted, Refused
from observatory.protocol.steps import parent_name


def _derived_step(trace: str, digest: bytes) -> str:
    return str(uuid.uuid5(NAMESPACE, f"{trace}/{digest.hex()}"))


def add_derived_step_reads(message: Message, before: Iterable[bytes], read_set: ReadSet) -> None:
    """Add the names a message without a step id has by digests that `want` did not know."""
    if message.step_id is None:
        trace = uuid_of_trace(message.trace_id)
        read_set.steps.update(_derived_step(trace, digest) for digest in (message.digest, *before))


def add_message_reads(message: Message, tenant_id: str, read_set: ReadSet) -> None:
    """Add every row this message may need to the read set, before the transaction begins."""
    session_id = message.session_id or uuid_of_trace(message.trace_id)
    read_set.sessions.add(session_id)
    if message.sender_type == "agent":
        read_set.agents.add(agent_entity_id(tenant_id, message.sender_id))
    if message.name is not None:
        read_set.steps.add(message.name)
        return
    trace = uuid_of_trace(message.trace_id)
    read_set.steps.add(trace)
    read_set.steps.add(_derived_step(trace, message.digest))
    if message.session_id is None:
        read_set.steps.update(parent_name(session_id, parent) for parent in message.parents)


def place_message(ctx: MessageContext, memory: BatchState, now_ns: int) -> SubmissionResult | None:
    message = ctx.message
    session_id = message.session_id or uuid_of_trace(message.trace_id)
    if message.step_id is not None and message.name is not None:
        step_id, name = message.step_id, message.name
        known = memory.step(name)
        if known is not None:
            return _repeated(known) if _is_same(ctx, memory, known) else _conflict(ctx, now_ns)
    else:
        name = step_id = trace = uuid_of_trace(message.trace_id)
        known = memory.step(trace)
        if known is not None and _is_same(ctx, memory, known):
            return _repeated(known)
        if known is not None:  # ruling 2c: another step of that session
            for digest in () if ctx.redacted is None else ctx.redacted.before:
                earlier = memory.step(_derived_step(trace, digest))
                if earlier is not None and earlier.digest == digest:
                    return _repeated(earlier)
            name = step_id = _derived_step(trace, message.digest)
            again = memory.step(step_id)
            if again is not None:
                return _repeated(again) if again.digest == message.digest else _conflict(ctx, now_ns)
            session_id = known.session_id
        elif message.session_id is None:
            session_id = _session_of_parent(memory, session_id, message.parents) or session_id
    ctx.step_id, ctx.name = step_id, name
    _place_in_session(ctx, memory, session_id)
    if known is not None and not ctx.parents:
        _infer_parent(ctx)
    return None


def _is_same(ctx: MessageContext, memory: BatchState, known: StepRow) -> bool:
    """Whether this is a repeat of the message with that name, which may have been redacted by earlier
    rules."""
    if known.digest == ctx.message.digest:
        return True
    book, done = memory.tenant_config.redaction, ctx.redacted
    return book is not None and done is not None and known.digest in digests_before(book, done.sent)


def _session_of_parent(memory: BatchState, session_id: str, parents: Iterable[str]) -> str | None:
    for parent in parents:
        known = memory.step(parent_name(session_id, parent))
        if known is not None:
            return known.session_id
    return None


def _place_in_session(ctx: MessageContext, memory: BatchState, session_id: str) -> None:
    session = memory.sessions.get(session_id)
    if session is None:
        memory.tenant.sessions += 1
        session = memory.sessions[session_id] = SessionRow(
            session_no=memory.tenant.sessions,
            session_id=session_id,
            trace_id=trace_id_of_session(session_id),
            started_ns=ctx.received_ns,
        )
    ctx.session = session
    if ctx.message.parents:
        ctx.parents = tuple([parent_name(session_id, parent) for parent in ctx.message.parents])
    if ctx.agent is not None:
        pair = (session.session_no, ctx.agent.agent_no)
        member = memory.members.get(pair)
        if member is None:
            member = memory.members[pair] = MemberRow(session_no=pair[0], agent_no=pair[1])
        ctx.member = member


def _infer_parent(ctx: MessageContext) -> None:
    last = ctx.member.last_step if ctx.member is not None else None
    if last is not None:
        ctx.parents = (last,)
        ctx.parent_inferred = True


def _repeated(step: StepRow) -> SubmissionResult:
    """A repeated message gets the same response as the first, and writes nothing."""
    if step.state == "refused":
        reason, rule_id, cap, detail = step.warnings
        code = 402 if reason == "budget_exceeded" else 403
        return SubmissionResult(
            code, Refused(reason=reason, detail=detail or None, rule_id=rule_id or None, cap=cap or None)
        )
    return SubmissionResult(
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


def _conflict(ctx: MessageContext, now_ns: int) -> SubmissionResult:
    what = "message_id" if ctx.message.form == "envelope" else "meta.step_id"
    event = gateway_event(
        ctx.principal.tenant_id,
        "security_violation",
        f"{what} was sent again with other content",
        now_ns,
        ctx.principal,
        {"reason": "id_conflict", "raw_payload_hash": "sha256:" + ctx.message.digest.hex()},
    )
    detail = f"this {what} already names a message with other content; send new content under a new id"
    return SubmissionResult(409, Refused(reason="id_conflict", detail=detail), [event])

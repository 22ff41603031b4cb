"""Redaction of a batch: between the interceptor, which says what is valid, and the first stage.

Law: what was sent goes no further than here. A message whose redacted form does not fit the schema is
refused, and of it nothing is kept but that. How a repeat is known although the rules have changed meanwhile
is told at `placement`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from observatory.features.redaction.redaction import Redactor, digests_before, redactor
from observatory.pipeline import placement
from observatory.pipeline.interceptor import Limits, intercept
from observatory.pipeline.state import Arrival, Breach, Memory, Redacted, Submission, Verdict, Wants
from observatory.protocol.answers import Fault, Rejected
from observatory.protocol.message import Message
from observatory.protocol.redaction import RedactionBook

# What was taken under the limit is not refused because its redacted form is longer.
NO_LIMIT: Final = Limits(message_bytes=1 << 40)
# So long after a change of rules a message without a step id is known when it comes again.
REPEATS_NS: Final = 86_400_000_000_000
PROBLEM: Final = "what the tenant's redaction rules leave of this message does not fit the schema"


def redacted(
    items: Sequence[Submission], book: RedactionBook, tenant_id: str, now_ns: int
) -> tuple[list[Submission], Wants]:
    """The items as they go on, and the names of steps that must be looked up because of it."""
    rules, wants = book.in_force, Wants()
    work = redactor(rules, book.secret) if rules else None
    found: list[Submission] = []
    for item in items:
        if isinstance(item, Arrival) and item.redacted is None:
            item = _one(item, book, work, now_ns)
            done = item.redacted if isinstance(item, Arrival) else None
            if isinstance(item, Arrival) and done is not None and (done.replaced or done.before):
                placement.want_again(item.message, done.before, wants)
        found.append(item)
    return found, wants


def put_in(message: Message, memory: Memory) -> Message | Verdict:
    """What a person puts in the place of a message is kept like one, and redacted like one."""
    book = memory.rulebook.redaction
    rules = () if book is None else book.in_force
    applied = redactor(rules, book.secret).apply(message.raw) if book is not None and rules else None
    if applied is None:
        return message
    found = intercept(applied.raw, NO_LIMIT)
    if isinstance(found, Message):
        return found
    return Verdict(422, Rejected(reason="not_redactable", faults=(Fault(path="", problem=PROBLEM),)))


def _one(item: Arrival, book: RedactionBook, work: Redactor | None, now_ns: int) -> Arrival | Breach:
    sent = item.message.raw
    before: tuple[bytes, ...] = ()
    if item.message.step_id is None:
        before = tuple(digests_before(book, sent, now_ns - REPEATS_NS))
    applied = work.apply(sent) if work is not None else None
    done = Redacted(
        None if work is None else book.version, 0 if applied is None else applied.total, sent, before
    )
    if applied is None:
        return replace(item, redacted=done)
    message = intercept(applied.raw, NO_LIMIT)
    if isinstance(message, Message):
        return replace(item, message=message, redacted=done)
    fault = Fault(path="", problem=PROBLEM)
    digest = "sha256:" + item.message.digest.hex()
    return Breach(
        principal=item.principal,
        received_ns=item.received_ns,
        agent_id=item.principal.agent_id,
        capability_version=None,
        reason=fault.problem,
        raw_payload_hash=digest,
        answer=Rejected(reason="not_redactable", faults=(fault,), raw_payload_hash=digest),
    )

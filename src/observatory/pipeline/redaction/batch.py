"""Redacts a batch: between the interceptor, which validates, and the first stage.

Law: the text as sent goes no further than here. A message whose redacted form violates the schema is refused,
and nothing else of it is stored. How a repeat is recognized although the rules have changed meanwhile is
described in `placement`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from observatory.pipeline import placement
from observatory.pipeline.interceptor import MessageLimits, intercept
from observatory.pipeline.redaction.redactor import Redactor, digests_before, redactor
from observatory.pipeline.state import (
    BatchState,
    IncomingMessage,
    ReadSet,
    RedactionResult,
    RejectedBody,
    Submission,
    SubmissionResult,
)
from observatory.protocol.message import Message
from observatory.protocol.redaction import RedactionRules
from observatory.protocol.responses import Fault, Rejected

# A message accepted under the limit is not refused because its redacted form is longer.
NO_LIMIT: Final = MessageLimits(message_bytes=1 << 40)
# For this long after a change of rules a message without a step id is recognized when repeated.
REPEATS_NS: Final = 86_400_000_000_000
PROBLEM: Final = "after the tenant's redaction rules were applied, this message does not fit the schema"


def redact_batch(
    items: Sequence[Submission], book: RedactionRules, tenant_id: str, now_ns: int
) -> tuple[list[Submission], ReadSet]:
    """The redacted items, and the names of steps that must be looked up because of it."""
    rules, reads = book.in_force, ReadSet()
    work = redactor(rules, book.secret) if rules else None
    found: list[Submission] = []
    for item in items:
        if isinstance(item, IncomingMessage) and item.redacted is None:
            item = _one(item, book, work, now_ns)
            done = item.redacted if isinstance(item, IncomingMessage) else None
            if isinstance(item, IncomingMessage) and done is not None and (done.replaced or done.before):
                placement.add_derived_step_reads(item.message, done.before, reads)
        found.append(item)
    return found, reads


def redact_replacement(message: Message, memory: BatchState) -> Message | SubmissionResult:
    """Redacts content with which a person replaces a message, like a message."""
    book = memory.tenant_config.redaction
    rules = () if book is None else book.in_force
    applied = redactor(rules, book.secret).apply(message.raw) if book is not None and rules else None
    if applied is None:
        return message
    found = intercept(applied.raw, NO_LIMIT)
    if isinstance(found, Message):
        return found
    return SubmissionResult(422, Rejected(reason="not_redactable", faults=(Fault(path="", problem=PROBLEM),)))


def _one(
    item: IncomingMessage, book: RedactionRules, work: Redactor | None, now_ns: int
) -> IncomingMessage | RejectedBody:
    sent = item.message.raw
    before: tuple[bytes, ...] = ()
    if item.message.step_id is None:
        before = tuple(digests_before(book, sent, now_ns - REPEATS_NS))
    applied = work.apply(sent) if work is not None else None
    done = RedactionResult(
        None if work is None else book.version, 0 if applied is None else applied.total, sent, before
    )
    if applied is None:
        return replace(item, redacted=done)
    message = intercept(applied.raw, NO_LIMIT)
    if isinstance(message, Message):
        return replace(item, message=message, redacted=done)
    fault = Fault(path="", problem=PROBLEM)
    digest = "sha256:" + item.message.digest.hex()
    return RejectedBody(
        principal=item.principal,
        received_ns=item.received_ns,
        agent_id=item.principal.agent_id,
        capability_version=None,
        reason=fault.problem,
        raw_payload_hash=digest,
        answer=Rejected(reason="not_redactable", faults=(fault,), raw_payload_hash=digest),
    )

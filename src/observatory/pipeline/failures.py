"""The event `error`: an apparently valid submission could not be processed (R448, S1166).

Law: the event names the failed submission by kind and hash; never the body nor an exception's text, which
may quote it.
"""

from __future__ import annotations

from typing import Any

from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.state import (
    Command,
    IncomingMessage,
    RejectedBody,
    Submission,
    SubmissionResult,
    UnitOfWork,
)


def error_command(item: Submission, verdict: SubmissionResult, problem: str) -> Command:
    """A command that only records the error; its result is the one the sender gets."""
    what = "a command"
    detail: dict[str, Any] = {"reason": getattr(verdict.answer, "reason", "failed"), "problem": problem}
    if isinstance(item, IncomingMessage):
        what = f"a {item.message.message_type}"
        detail |= {"raw_payload_hash": "sha256:" + item.message.digest.hex()}
    elif isinstance(item, RejectedBody):
        what, detail = "a message", detail | {"raw_payload_hash": item.raw_payload_hash}

    def decide(uow: UnitOfWork) -> SubmissionResult:
        tenant_id = uow.memory.tenant.tenant_id
        event = gateway_event(
            tenant_id, "error", f"{what} failed: {problem}", uow.now_ns, item.principal, dict(detail)
        )
        if isinstance(item, IncomingMessage):
            event.message_id, event.message_type = item.message.message_id, item.message.message_type
        return SubmissionResult(verdict.code, verdict.answer, [event])

    return Command(item.principal, item.received_ns, decide)

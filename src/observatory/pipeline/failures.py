"""The event `error`: something could not be done that was in order as far as anybody knows (R448, S1166).

Law: it holds what failed by its kind and hash; neither the body nor an error's own text, which may quote it.
"""

from __future__ import annotations

from typing import Any

from observatory.pipeline.event_writer import notice
from observatory.pipeline.state import Act, Arrival, Breach, Desk, Submission, Verdict


def failed(item: Submission, verdict: Verdict, problem: str) -> Act:
    """An act that only tells; its answer is the one the sender gets."""
    what = "a command"
    detail: dict[str, Any] = {"reason": getattr(verdict.answer, "reason", "failed"), "problem": problem}
    if isinstance(item, Arrival):
        what = f"a {item.message.message_type}"
        detail |= {"raw_payload_hash": "sha256:" + item.message.digest.hex()}
    elif isinstance(item, Breach):
        what, detail = "a message", detail | {"raw_payload_hash": item.raw_payload_hash}

    def decide(desk: Desk) -> Verdict:
        tenant_id = desk.memory.tenant.tenant_id
        event = notice(
            tenant_id, "error", f"{what} failed: {problem}", desk.now_ns, item.principal, dict(detail)
        )
        if isinstance(item, Arrival):
            event.message_id, event.message_type = item.message.message_id, item.message.message_type
        return Verdict(verdict.code, verdict.answer, [event])

    return Act(item.principal, item.received_ns, decide)

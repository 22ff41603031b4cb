"""The clock stage: a message whose time differs much from the gateway's clock passes with a warning (S1300).

A sender's time is stored as sent and never used for ordering; but queries by time find the message at an
unexpected position. It is compared with the time of receipt, so time spent in the queue does not count.
Messages buffered while the gateway was unreachable get the warning too. Nothing is refused.
"""

from __future__ import annotations

from typing import Final

from observatory.pipeline.message_context import MessageContext
from observatory.pipeline.state import BatchState, SubmissionResult

MAX_AHEAD_NS: Final = 60_000_000_000
MAX_BEHIND_NS: Final = 3_600_000_000_000
_PATHS: Final = {"decision_log": "meta.timestamp", "envelope": "timestamp"}
AHEAD: Final = {
    form: f"{path}: more than a minute ahead of the gateway's clock; stored as sent"
    for form, path in _PATHS.items()
}
BEHIND: Final = {
    form: f"{path}: more than an hour behind the gateway's clock; stored as sent"
    for form, path in _PATHS.items()
}


def check(ctx: MessageContext, memory: BatchState, now_ns: int) -> SubmissionResult | None:
    message = ctx.message
    ahead_ns = message.timestamp_ns - ctx.received_ns
    if ahead_ns > MAX_AHEAD_NS or ahead_ns < -MAX_BEHIND_NS:
        ctx.warnings.append((AHEAD if ahead_ns > 0 else BEHIND)[message.form])
    return None

"""The clock stage: a message whose time lies far from the gateway's passes with a warning (S1300).

A sender's time is kept as sent and orders nothing; but whoever looks by time looks in another place than the
sender means. Compared with when the message was received, so time spent in the queue is not held against it.
Messages kept while the gateway was away get the warning too: it says what is so, and refuses nothing.
"""

from __future__ import annotations

from typing import Final

from observatory.pipeline.message_context import Passage
from observatory.pipeline.state import Memory, Verdict

MAX_AHEAD_NS: Final = 60_000_000_000
MAX_BEHIND_NS: Final = 3_600_000_000_000
_PATHS: Final = {"decision_log": "meta.timestamp", "envelope": "timestamp"}
AHEAD: Final = {
    form: f"{path}: more than a minute ahead of the gateway's clock; kept as sent"
    for form, path in _PATHS.items()
}
BEHIND: Final = {
    form: f"{path}: more than an hour behind the gateway's clock; kept as sent"
    for form, path in _PATHS.items()
}


def check(passage: Passage, memory: Memory, now_ns: int) -> Verdict | None:
    message = passage.message
    ahead_ns = message.timestamp_ns - passage.received_ns
    if ahead_ns > MAX_AHEAD_NS or ahead_ns < -MAX_BEHIND_NS:
        passage.warnings.append((AHEAD if ahead_ns > 0 else BEHIND)[message.form])
    return None

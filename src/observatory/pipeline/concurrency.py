"""Optimistic concurrency: a change based on an outdated version is refused.

Law: checked under the lock, in the command that makes the change. A request without a version is not checked.
"""

from __future__ import annotations

from observatory.pipeline.state import SubmissionResult
from observatory.protocol.clock import from_ns
from observatory.protocol.responses import Refused


def conflict_if_stale(was: str | None, changed_ns: int) -> SubmissionResult | None:
    """`was`: the time of the last change as the caller saw it."""
    if was is None or was == from_ns(changed_ns):
        return None
    detail = "this was changed in the meantime; reload it and try again"
    return SubmissionResult(409, Refused(reason="stale", detail=detail))

"""Who was first wins: a change that says what it saw is refused when that is no longer so.

Law: looked at under the lock, in the act that would change it. Who says nothing is asked nothing.
"""

from __future__ import annotations

from observatory.pipeline.state import Verdict
from observatory.protocol.answers import Refused
from observatory.protocol.clock import from_ns


def stale(was: str | None, changed_ns: int) -> Verdict | None:
    """`was`: the time of its last change, as whoever changes it now saw it."""
    if was is None or was == from_ns(changed_ns):
        return None
    detail = "somebody changed this meanwhile; look at it again, then save yours"
    return Verdict(409, Refused(reason="stale", detail=detail))

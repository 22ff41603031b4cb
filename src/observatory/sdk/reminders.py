"""Reminders an agent requests for itself: `agent.remind(in_s=3600, payload={"check": "the deploy"})`.

Rule: it is an ordinary step with a tool call the gateway knows; the gateway creates the job when the step is
forwarded. The reminder arrives as a message in the same session: `message.is_reminder`, `message.payload`.
"""

from datetime import datetime
from typing import Any

from observatory.sdk.step import StepFields, written_input

TOOL = "schedule_reminder"
INTENT = "Be reminded later"


def fields(in_s: float | None, at: datetime | str | None, payload: Any) -> StepFields:
    """The fields of the step. A time without a zone is in this machine's zone."""
    if (in_s is None) == (at is None):
        raise TypeError("remind() takes either in_s (seconds from now) or at (a time)")
    request: dict[str, Any] = {"payload": payload}
    if in_s is not None:
        request["delay_ms"] = round(in_s * 1_000)
    else:
        request["at"] = at.astimezone().isoformat() if isinstance(at, datetime) else at
    return {"tool_call": TOOL, "tool_input": written_input(request)}

"""Asking to be spoken to later: `agent.remind(in_s=3600, payload={"check": "the deploy"})`.

Law: it is a step like any other, with the tool call the gateway knows; it makes the job when the step is
forwarded. It comes back as a message in the same session: `message.is_reminder`, `message.payload`.
"""

from datetime import datetime
from typing import Any

from observatory.sdk.step import StepFields, written_input

TOOL = "schedule_reminder"
INTENT = "Be reminded later"


def fields(in_s: float | None, at: datetime | str | None, payload: Any) -> StepFields:
    """What the step says. A time without a zone is this machine's own."""
    if (in_s is None) == (at is None):
        raise TypeError("remind() takes either in_s (seconds from now) or at (a time)")
    asked: dict[str, Any] = {"payload": payload}
    if in_s is not None:
        asked["delay_ms"] = round(in_s * 1_000)
    else:
        asked["at"] = at.astimezone().isoformat() if isinstance(at, datetime) else at
    return {"tool_call": TOOL, "tool_input": written_input(asked)}

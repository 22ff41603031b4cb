"""The kinds of the alert tray: which events of the record raise an alert, and which end it (S311)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple, Protocol

# Event of the record → kind in the tray.
RAISED: Final = {
    "entropy_alert": "entropy",
    "loop_detected": "loop",
    "injection_suspected": "injection",
    "schema_violation": "violation",
    "budget_warning": "budget_warning",
    "budget_exceeded": "budget_exceeded",
    "agent_evicted": "eviction",
    "kill_switch_engaged": "kill_switch",
    "alert_raised": "rule",
}
ENDED: Final = {
    "entropy_recovered": "entropy",
    "loop_ended": "loop",
    "agent_recovered": "eviction",
    "kill_switch_released": "kill_switch",
    "alert_resolved": "rule",
}
STATUS: Final = "status_alert"  # a message, not an event
KINDS: Final = (*RAISED.values(), STATUS)


class AlertRow(NamedTuple):
    """By number only: the text is read from the record. `starts` is 0 for the end of an alert of its kind."""

    seq: int
    kind: str
    session_no: int
    agent_no: int
    starts: int
    at_ns: int


class AlertLog(Protocol):
    """Implemented by the derived store."""

    async def alerts(
        self, tenant_id: str, before: int | None, limit: int, kinds: Collection[str]
    ) -> list[AlertRow]:
        """Alerts of these kinds before a number, newest first."""

    async def alert_ends(
        self, tenant_id: str, after: int, limit: int, kinds: Collection[str]
    ) -> list[AlertRow]:
        """Ends of alerts of these kinds past a number, oldest first."""

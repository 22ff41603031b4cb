"""Message types that are never routed to another agent."""

from __future__ import annotations

# A heartbeat is for the gateway: it passes every pause, policy and kill-switch, so it must carry nothing on.
# A decision's answer reaches its agent through `decisions.follow`.
NOT_ROUTED = frozenset({"heartbeat", "decision_response"})

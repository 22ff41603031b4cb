"""The store interface of the alert evaluator: rule states, silent agents and queues.

Implemented by every store; committed rows of one tenant. Each is read only when a rule needs it.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable


class QuietAgent(NamedTuple):
    """An agent whose last heartbeat was then; `evicted_ns` once it was evicted."""

    agent_id: str
    agent_type: str | None
    cluster_id: str | None
    heartbeat_ns: int
    evicted_ns: int | None


class QueuedMessages(NamedTuple):
    """Messages that wait with an agent of this kind, or parked under an address (agent type None)."""

    address: str | None
    agent_type: str | None
    cluster_id: str | None
    messages: int


class PendingApprovals(NamedTuple):
    """Gates and decisions that wait for a person; the oldest of each."""

    gates: int
    oldest_gate_ns: int | None
    decisions: int
    oldest_decision_ns: int | None


@runtime_checkable
class AlertingRows(Protocol):
    async def alert_standings(self, tenant_id: str, since_ns: int, limit: int) -> list[dict[str, Any]]:
        """Rows of `alert_states` that fire, and those that changed since then, the newest."""

    async def alerts_open(self, tenant_id: str, before: int | None, limit: int) -> list[dict[str, Any]]:
        """Rows that fire, by the event that raised them, newest first."""

    async def quiet_agents(
        self, tenant_id: str, before_ns: int, gone_ns: int, limit: int
    ) -> list[QuietAgent]:
        """Silent since `before_ns`; evicted ones only if that was after `gone_ns`. Most silent first."""

    async def queues(self, tenant_id: str) -> list[QueuedMessages]:
        """Unacknowledged messages, by recipient."""

    async def unanswered(self, tenant_id: str) -> PendingApprovals: ...

    async def letters_waiting(self, tenant_id: str) -> int: ...

    async def rows(self, tenant_id: str, table: str, **where: Any) -> list[dict[str, Any]]: ...

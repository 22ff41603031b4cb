"""What the evaluator of alert rules reads of the record: standings, and what waits for whom.

Promised by every store; committed rows of one tenant. Each is asked only where a rule asks.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable


class QuietAgent(NamedTuple):
    """An agent whose heart was last heard then; `evicted_ns` once it was taken out of the map."""

    agent_id: str
    agent_type: str | None
    cluster_id: str | None
    heartbeat_ns: int
    evicted_ns: int | None


class Waiting(NamedTuple):
    """Messages that wait with an agent of this kind, or parked under an address (agent type None)."""

    address: str | None
    agent_type: str | None
    cluster_id: str | None
    messages: int


class Unanswered(NamedTuple):
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
        """Not heard since `before_ns`; evicted ones only if that was after `gone_ns`. Most silent first."""

    async def queues(self, tenant_id: str) -> list[Waiting]:
        """What is not acknowledged, by who holds it."""

    async def unanswered(self, tenant_id: str) -> Unanswered: ...

    async def letters_waiting(self, tenant_id: str) -> int: ...

    async def rows(self, tenant_id: str, table: str, **where: Any) -> list[dict[str, Any]]: ...

"""Rows and reads for the map and the cost pages: minute counters, and halted agents from the record.

Committed rows of one tenant. Minutes are Unix minutes, both ends inclusive. What has no row counts nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, NamedTuple, Protocol, runtime_checkable

Dimension = Literal["agent", "session", "cluster", "type", "tool", "model"]
Key = int | str  # of a dimension: an agent's or session's number, else the name, empty where there was none


class AgentMinute(NamedTuple):
    minute: int
    agent_no: int
    messages: int
    failures: int
    violations: int
    alerts: int
    tokens: int
    cost: float


class SecondCount(NamedTuple):
    """Counts of a whole tenant in one second since 1970."""

    second: int
    messages: int
    failures: int
    violations: int
    cost: float


class ChildStep(NamedTuple):
    """A step that names a parent by its key."""

    parent_key: int
    seq: int
    agent_no: int
    at_ns: int


class EdgeSum(NamedTuple):
    """Traffic from one agent to another in a span of minutes, and in its last two."""

    from_no: int
    to_no: int
    kind: str  # causal, message
    messages: int
    failures: int
    latency_ms: int  # summed
    current: int  # messages of the last minute of the span
    previous: int  # of the one before
    failed_lately: int  # of these two
    latency_lately_ms: int


class Fork(NamedTuple):
    """A step that several others name as their parent."""

    seq: int
    agent_no: int
    session_no: int
    at_ns: int
    children: int
    child_agents: tuple[int, ...]


class SpendingRow(NamedTuple):
    key: Key
    messages: int
    tokens: int
    cost: float


class Gap(NamedTuple):
    seq: int
    session_no: int
    agent_no: int
    kind: str  # fell, differs
    reported: float
    computed: float
    gap: float
    at_ns: int


class MapReads(Protocol):
    async def agent_minutes(self, tenant_id: str, first: int, last: int) -> list[AgentMinute]: ...

    async def edge_sums(self, tenant_id: str, first: int, last: int) -> list[EdgeSum]: ...

    async def seconds(self, tenant_id: str, first: int, last: int) -> list[SecondCount]:
        """Both ends inclusive, in order."""

    async def forks(self, tenant_id: str, since_ns: int, until_ns: int, limit: int) -> list[Fork]:
        """Among a bounded number of the newest steps of that time; the widest first."""

    async def children_since(self, tenant_id: str, after: int, since_ns: int, limit: int) -> list[ChildStep]:
        """After a number and no older than that, the newest `limit`, in order."""

    async def split_at(self, tenant_id: str, keys: Collection[int]) -> dict[int, Fork]:
        """The steps named as parents by these keys, as forks without children."""


class SpendingReads(Protocol):
    async def spent_by(
        self,
        tenant_id: str,
        by: Dimension,
        first: int,
        last: int,
        limit: int,
        after: tuple[float, Key] | None = None,
    ) -> list[SpendingRow]:
        """The most expensive first; `after` is the cost and the key of the last one seen."""

    async def spent_in_all(self, tenant_id: str, first: int, last: int) -> SpendingRow: ...

    async def cells(
        self, tenant_id: str, by: Dimension, keys: Collection[Key], first: int, last: int, width: int = 1
    ) -> list[tuple[Key, int, float]]:
        """(key, minute // width, cost); cells without cost are left out."""

    async def column_sums(self, tenant_id: str, first: int, last: int, width: int) -> dict[int, float]:
        """minute // width → cost of everything."""

    async def spent_together(
        self, tenant_id: str, since_ns: int, *, session_no: int | None = None, agent_no: int | None = None
    ) -> list[tuple[int, int, float]]:
        """(session, agent, cost) of a session's or an agent's steps since then, the most expensive first."""

    async def spent_within(
        self, tenant_id: str, since_ns: int, until_ns: int, limit: int, **of: int
    ) -> list[SpendingRow]:
        """Of one session's steps (`session_no`) by agent, or of one agent's (`agent_no`) by session."""

    async def cost_gaps(
        self,
        tenant_id: str,
        before: int | None,
        limit: int,
        session_no: int | None = None,
        agent_no: int | None = None,
    ) -> list[Gap]:
        """Newest first, before a number."""


class Halted(NamedTuple):
    """An agent that is paused or has held messages. cause: paused (by a person), else why they are held."""

    agent_no: int
    cause: str
    session_id: str  # of the oldest
    since_ns: int
    messages: int


@runtime_checkable
class Halts(Protocol):
    """Implemented by every store of the record."""

    async def halted(self, tenant_id: str, limit: int) -> list[Halted]: ...

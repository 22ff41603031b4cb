"""Rows and store interface from which blast radius, containment and causes are computed.

Committed rows of one tenant, in a bounded number of queries; the caller limits every list, and the result
reports when there was more. Only the folds write these rows.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol


class StepSigns(NamedTuple):
    """A step with its signs of failure, and one of its parents."""

    seq: int
    name_key: int
    span_key: int
    session_no: int
    agent_no: int
    recipient_no: int
    state: str
    status: str | None
    tool: str | None
    cost: float
    confidence: float | None
    entropy: float | None
    at_ns: int
    parent_key: int | None
    kind: str | None


class Upstream(NamedTuple):
    """Everything of some sessions up to a number, the newest."""

    steps: Sequence[StepSigns]
    # Facts these steps used: (step, fact, kind, weight)
    uses: Sequence[tuple[int, int, str, float]]
    cut: bool


class LocatedStep(NamedTuple):
    """Where a step is."""

    seq: int
    name_key: int
    span_key: int
    session_no: int
    agent_no: int
    at_ns: int


class CascadeRows(Protocol):
    async def spots(
        self, tenant_id: str, *, numbers: Collection[int] = (), keys: Collection[int] = ()
    ) -> list[LocatedStep]:
        """Steps by number, or by the key of their name or span, in order."""

    async def first_since(self, tenant_id: str, at_ns: int) -> int | None:
        """The number of the first step at or after a time; None when there is none."""

    async def upstream(self, tenant_id: str, sessions: Collection[int], until: int, limit: int) -> Upstream:
        """Numbers up to `until`, the newest `limit` steps."""

    async def taken_from(
        self, tenant_id: str, agents: Collection[int], after: int
    ) -> list[tuple[int, int, int]]:
        """(agent, agent that used its facts, uses) of facts of these agents, by steps from a number on."""

    async def troubles(
        self, tenant_id: str, agents: Collection[int], first: int, last: int
    ) -> list[tuple[int, int, int, int]]:
        """(minute, agent, violations, alerts) of minutes that had any."""

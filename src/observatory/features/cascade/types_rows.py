"""Cascades as rows: what the blast of a step, its containment and its causes are worked out from.

Law: committed rows of one tenant, in few queries whatever the size; every list has a bound that the caller
names, and says when there was more. Nothing here is written by anybody but the folds.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol


class SignRow(NamedTuple):
    """A step as whoever looks for causes sees it, and one of its parents."""

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

    steps: Sequence[SignRow]
    # What these steps used: (step, fact, kind, weight)
    uses: Sequence[tuple[int, int, str, float]]
    cut: bool


class Spot(NamedTuple):
    """Where a step is."""

    seq: int
    name_key: int
    span_key: int
    session_no: int
    agent_no: int
    at_ns: int


class Cascades(Protocol):
    async def spots(
        self, tenant_id: str, *, numbers: Collection[int] = (), keys: Collection[int] = ()
    ) -> list[Spot]:
        """Steps by their numbers, and by the keys of their names or spans, in order."""

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

"""Where agents work and what happens there, as the windows ask it of the record.

Promised by every store; committed rows of one tenant. Always current: nothing derived stands in between.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple, Protocol, runtime_checkable

Rows = list[dict[str, Any]]


class Sought(NamedTuple):
    """Sessions that begin with, or have one of these agents in them, or are among these."""

    begins: str
    agents: Collection[int]
    numbers: Collection[int]


class Room(NamedTuple):
    """One agent in one session."""

    session: dict[str, Any]  # its row
    member: dict[str, Any]
    held: int  # messages of this agent that wait there


@runtime_checkable
class Rooms(Protocol):
    async def paused_in(self, tenant_id: str) -> dict[int, int]:
        """Session → how many agents a person has paused there."""

    async def deciding_in(self, tenant_id: str) -> set[int]:
        """Sessions in which a decision waits for a person."""

    async def sessions_found(
        self, tenant_id: str, sought: Sought, before: int | None, limit: int, severity: str | None
    ) -> Rows:
        """By last activity, newest first."""

    async def rooms_of(
        self, tenant_id: str, agent_no: int, since_ns: int, before: int | None, limit: int
    ) -> list[Room]:
        """Where an agent spoke or is paused, in sessions active since; by its own last message, newest
        first."""

    async def spoken_in(
        self, tenant_id: str, agents: Collection[int], after: int
    ) -> list[tuple[int, int, bool, bool]]:
        """(agent, session, whether it spoke there from a number on, whether it is paused there)."""

    async def counted_past(self, tenant_id: str, after: int, limit: int) -> dict[int, tuple[int, int]]:
        """Second → (messages, violations) of so many numbers past one: what is not folded yet."""

    async def size_bytes(self) -> int | None:
        """Of the database; None when it cannot be told."""

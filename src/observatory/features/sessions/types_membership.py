"""Agents in sessions, as session lists and agent pages read them from the record.

Implemented by every store; committed rows of one tenant. Always current: nothing here is derived.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple, Protocol, runtime_checkable

Rows = list[dict[str, Any]]


class SessionSearch(NamedTuple):
    """Matches sessions with this prefix, with one of these agents, or with one of these numbers."""

    begins: str
    agents: Collection[int]
    numbers: Collection[int]


class AgentInSession(NamedTuple):
    """One agent in one session."""

    session: dict[str, Any]  # its row
    member: dict[str, Any]
    held: int  # messages of this agent that are held in this session


@runtime_checkable
class MembershipReads(Protocol):
    async def paused_in(self, tenant_id: str) -> dict[int, int]:
        """Session → how many agents are paused there by a person."""

    async def deciding_in(self, tenant_id: str) -> set[int]:
        """Sessions in which a decision is pending."""

    async def sessions_found(
        self, tenant_id: str, sought: SessionSearch, before: int | None, limit: int, severity: str | None
    ) -> Rows:
        """By last activity, newest first."""

    async def memberships_of(
        self, tenant_id: str, agent_no: int, since_ns: int, before: int | None, limit: int
    ) -> list[AgentInSession]:
        """Where an agent sent a message or is paused, in sessions active since then; by the agent's last
        message there, newest first."""

    async def spoken_in(
        self, tenant_id: str, agents: Collection[int], after: int
    ) -> list[tuple[int, int, bool, bool]]:
        """(agent, session, whether it spoke there from a number on, whether it is paused there)."""

    async def counts_after(self, tenant_id: str, after: int, limit: int) -> dict[int, tuple[int, int]]:
        """Second → (messages, violations) of `limit` numbers after `after`: what is not folded yet."""

    async def size_bytes(self) -> int | None:
        """Of the database; None when it cannot be determined."""

"""Derived columns of the session table: the row type and its store protocol.

Committed rows of one tenant, slightly behind the record. A goal is text from a payload: it is stored in the
derived store only and removed with its payload (ruling 39). Rules S300–S302.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

GOAL = 160  # characters
TRAIL = 20  # scores
CREW = 5  # agents


class SessionLine(NamedTuple):
    """In the order of the table's columns. `turn` is the sequence number of the last change."""

    session_no: int
    turn: int
    last_seq: int  # of its newest folded message
    goal_seq: int  # of the message that has the goal; 0 if there is none
    goal: str | None
    goal_key: str | None  # the goal in the form that searches compare
    confidence: float | None  # the latest reported
    trail: str  # entropy scores, oldest first, comma-separated
    crew: str  # numbers of the first agents, comma-separated
    ended: int  # 1 when its newest message is terminal

    @property
    def scores(self) -> list[float]:
        return [float(one) for one in self.trail.split(",") if one]

    @property
    def agents(self) -> list[int]:
        return [int(one) for one in self.crew.split(",") if one]


class SessionLineReads(Protocol):
    """Implemented by the derived store."""

    async def session_lines(self, tenant_id: str, sessions: Collection[int]) -> dict[int, SessionLine]:
        """Lines by session number; sessions without one are left out."""

    async def session_lines_since(self, tenant_id: str, turn: int, limit: int) -> list[SessionLine]:
        """Lines that changed after a number, in the order of their change."""

    async def sessions_about(self, tenant_id: str, text: str, limit: int) -> list[int]:
        """Numbers of sessions whose goal contains this text, ignoring case; the last changed first."""


def key_of(text: str) -> str:
    """Text normalised for comparison: case and kinds of whitespace are ignored."""
    return " ".join(text.casefold().split())


class Spots(Protocol):
    async def spots(self, tenant_id: str, *, numbers: Iterable[int]) -> Sequence[Any]:
        """The steps under these numbers, each with its session."""

"""What a line of the session table shows beside the session's own row, as it was folded.

Committed rows of one tenant, a moment behind the record. A goal is text out of a payload: it lives in the
derived store only and goes when its payload goes (ruling 39). Rules S300–S302.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple, Protocol

GOAL = 160  # characters
TRAIL = 20  # scores
CREW = 5  # agents


class SessionLine(NamedTuple):
    """In the order of its columns. `turn` is the number that made it what it is."""

    session_no: int
    turn: int
    last_seq: int  # of its newest message folded
    goal_seq: int  # of the message that named the goal; 0 while nobody has
    goal: str | None
    goal_key: str | None  # the goal as it is compared with what somebody looks for
    confidence: float | None  # the latest that was given
    trail: str  # scores of entropy, oldest first, a comma between
    crew: str  # numbers of the first agents, a comma between
    ended: int  # 1 when its newest message is terminal

    @property
    def scores(self) -> list[float]:
        return [float(one) for one in self.trail.split(",") if one]

    @property
    def agents(self) -> list[int]:
        return [int(one) for one in self.crew.split(",") if one]


class Lines(Protocol):
    """Promised by the derived store."""

    async def session_lines(self, tenant_id: str, sessions: Collection[int]) -> dict[int, SessionLine]:
        """By the numbers of sessions; one nothing was folded of is left out."""

    async def session_lines_since(self, tenant_id: str, turn: int, limit: int) -> list[SessionLine]:
        """Those that changed past a number, in the order of their change."""

    async def sessions_about(self, tenant_id: str, text: str, limit: int) -> list[int]:
        """Numbers of sessions whose goal holds this text, whatever its case; the last changed first."""


def key_of(text: str) -> str:
    """Text as it is compared: case and the kind of spaces do not matter."""
    return " ".join(text.casefold().split())

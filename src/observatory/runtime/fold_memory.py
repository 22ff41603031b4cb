"""What nobody wanted for a while: folds forget it, for it can be read again (rule S1201).

A bound on the count alone is reached by a busy mesh in minutes and by a quiet one in a day: until then the
memory of its analyst grows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

IDLE_S = 600.0
K = TypeVar("K")


class Idle(Generic[K]):
    """By keys. One that was not wanted during a whole period is over at its end."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._wanted: set[K] = set()
        self._ends_at = clock() + IDLE_S

    def want(self, *keys: K) -> None:
        self._wanted.update(keys)

    def over(self, kept: Iterable[K]) -> list[K]:
        """Of these; none while the period lasts."""
        now = self._clock()
        if now < self._ends_at:
            return []
        wanted, self._wanted, self._ends_at = self._wanted, set(), now + IDLE_S
        return [key for key in kept if key not in wanted]

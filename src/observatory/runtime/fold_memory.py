"""Eviction of idle cache entries: folds drop what was unused for a while and read it again (rule S1201).

A bound on the count alone is reached by a busy mesh in minutes and by a quiet one in a day: until then the
memory of its analyst grows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

IDLE_S = 600.0
K = TypeVar("K")


class IdleKeys(Generic[K]):
    """Tracks keys. One that was not used during a whole period is evicted at its end."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._used: set[K] = set()
        self._ends_at = clock() + IDLE_S

    def want(self, *keys: K) -> None:
        self._used.update(keys)

    def over(self, kept: Iterable[K]) -> list[K]:
        """The keys to evict of these; none while the period lasts."""
        now = self._clock()
        if now < self._ends_at:
            return []
        used, self._used, self._ends_at = self._used, set(), now + IDLE_S
        return [key for key in kept if key not in used]

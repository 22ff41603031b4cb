"""How often a door without a key may be knocked at: so many at once, then so many a second."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable

KEPT = 4_096  # who is forgotten beyond it was the longest silent, and starts anew


class Pace:
    def __init__(self, burst: float, per_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._burst, self._per_s, self._clock = burst, per_s, clock
        self._left: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def allows(self, who: Hashable) -> bool:
        now = self._clock()
        left, then = self._left.pop(who, (self._burst, now))
        left = min(self._burst, left + (now - then) * self._per_s)
        is_allowed = left >= 1
        self._left[who] = (left - 1 if is_allowed else left, now)
        if len(self._left) > KEPT:
            self._left.popitem(last=False)
        return is_allowed

"""Rate limits of the endpoints without a key: a token bucket for each caller."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable

MAX_CALLERS = 4_096  # beyond it the one silent longest is dropped and starts with a full bucket


class RateLimiter:
    def __init__(self, burst: float, per_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._burst, self._per_s, self._clock = burst, per_s, clock
        self._left: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def allows(self, who: Hashable) -> bool:
        now = self._clock()
        left, last = self._left.pop(who, (self._burst, now))
        left = min(self._burst, left + (now - last) * self._per_s)
        is_allowed = left >= 1
        self._left[who] = (left - 1 if is_allowed else left, now)
        if len(self._left) > MAX_CALLERS:
            self._left.popitem(last=False)
        return is_allowed

"""Detects a wall clock that was set: it is compared with the steady clock, which cannot be set (S1164).

Law: nothing is corrected here. Once the two differ by minutes nothing fires that is due by the clock,
until a person confirms that the clock is right, or the process is restarted. The steady clock counts while
the machine sleeps, where the system has such a clock: a laptop that was closed is no wrong clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from observatory.runtime.metrics import Measure

SECOND: Final = 1_000_000_000
# Adjustments up to this size are normal.
MAX_OFFSET_NS: Final = 120 * SECOND


def steady_ns() -> int:
    """Nanoseconds that only grow, also while the machine sleeps if the system has such a clock."""
    return time.clock_gettime_ns(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class WallClock:
    def __init__(self, wall: Callable[[], int], steady: Callable[[], int] = steady_ns) -> None:
        self._wall, self._steady = wall, steady
        self._began_ns = wall() - steady()

    @property
    def offset_ns(self) -> int:
        """How far the wall clock was set ahead since it was last trusted; negative when it was set back."""
        return self._wall() - self._steady() - self._began_ns

    @property
    def is_clock_off(self) -> bool:
        return abs(self.offset_ns) > MAX_OFFSET_NS

    def believed(self, now_ns: int) -> int:
        """The time the wall clock would show had it not been set."""
        return now_ns - self.offset_ns if self.is_clock_off else now_ns

    def accept(self) -> None:
        """A person confirms that the wall clock is right."""
        self._began_ns = self._wall() - self._steady()

    def measures(self) -> list[Measure]:
        about = "How far the wall clock was set since it was last trusted, in seconds"
        return [Measure("observatory_clock_offset_seconds", "gauge", about, self.offset_ns / SECOND)]

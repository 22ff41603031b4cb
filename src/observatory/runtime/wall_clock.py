"""Whether the wall clock can be believed: it is compared with one that nobody sets (S1164).

Law: nothing is corrected here. Once the two have parted by minutes nothing fires that is due by the clock,
until a person says that the clock is right, or the process is started again. The steady clock goes on while
the machine sleeps, where the system has such a one: a laptop that was closed is no wrong clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from observatory.runtime.metrics import Measure

SECOND: Final = 1_000_000_000
# As far as an adjusted clock may be put right by itself.
MOST_NS: Final = 120 * SECOND


def steady_ns() -> int:
    """Nanoseconds that only grow, also while the machine sleeps if the system can tell."""
    return time.clock_gettime_ns(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class WallClock:
    def __init__(self, wall: Callable[[], int], steady: Callable[[], int] = steady_ns) -> None:
        self._wall, self._steady = wall, steady
        self._began_ns = wall() - steady()

    @property
    def parted_ns(self) -> int:
        """How far the wall clock was set ahead since it was last believed; negative when it was set back."""
        return self._wall() - self._steady() - self._began_ns

    @property
    def is_parted(self) -> bool:
        return abs(self.parted_ns) > MOST_NS

    def believed(self, now_ns: int) -> int:
        """What the wall clock would show had nobody set it."""
        return now_ns - self.parted_ns if self.is_parted else now_ns

    def accept(self) -> None:
        """A person says that it is right."""
        self._began_ns = self._wall() - self._steady()

    def measures(self) -> list[Measure]:
        about = "How far the wall clock was set since it was last believed"
        return [Measure("observatory_clock_parted_seconds", "gauge", about, self.parted_ns / SECOND)]

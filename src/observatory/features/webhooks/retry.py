"""When a receiver is asked again: pure arithmetic over its schedule, its answers and the time (ruling 30).

Law: the first try is at once; try n fails and waits the n-th time of the schedule, a little longer by
chance that is the same whenever it is asked for; after the last the delivery is dead. What a receiver asks
for by `Retry-After` is granted up to a bound, and never sooner than the schedule. A receiver that fails again
and again is left alone for a while, all its deliveries together: then one is sent as a probe.
"""

from __future__ import annotations

from collections.abc import Sequence
from email.utils import parsedate_to_datetime
from hashlib import sha256
from typing import Final, NamedTuple

SCHEDULE_S: Final = (30.0, 120.0, 600.0, 3_600.0, 21_600.0)
MOST_TRIES: Final = 20  # of a schedule somebody sets
SHORTEST_S, LONGEST_S = 0.05, 7 * 86_400.0
JITTER: Final = 0.25  # at most so much of a wait is added
MOST_ASKED_S: Final = 6 * 3_600  # what Retry-After can ask for
BREAK_AT: Final = 5  # failures in a row
LONGEST_PAUSE_S: Final = 600.0
THROTTLED: Final = frozenset({429, 502, 504})
S: Final = 1_000_000_000


class Health(NamedTuple):
    """How a receiver fares. While it is paused nothing is sent to it; when that is over, one probe."""

    failures: int = 0  # in a row
    paused_until_ns: int | None = None

    @property
    def is_broken(self) -> bool:
        return self.failures >= BREAK_AT


def chance(delivery_id: str, attempt: int) -> float:
    """Within 0 and 1, the same each time."""
    return int.from_bytes(sha256(f"{delivery_id}/{attempt}".encode()).digest()[:4], "big") / 2**32


def wait_s(schedule: Sequence[float], tries: int, luck: float, asked_s: int | None = None) -> float | None:
    """How long after the failed try `tries` (from 1) the next one comes; None: there is none."""
    if tries > len(schedule):
        return None
    return max(schedule[tries - 1] * (1 + JITTER * luck), float(min(asked_s or 0, MOST_ASKED_S)))


def longest_pause_s(schedule: Sequence[float]) -> float:
    return min(LONGEST_PAUSE_S, max(schedule, default=SCHEDULE_S[0]))


def patience_s(schedule: Sequence[float]) -> float:
    """After so long a delivery is given up even if it could not be tried: the whole of its schedule."""
    return sum(schedule) * (1 + JITTER) + longest_pause_s(schedule)


def after_failure(
    before: Health, schedule: Sequence[float], code: int | None, asked_s: int | None, now_ns: int
) -> Health:
    failures = before.failures + 1
    first, longest = schedule[0] if schedule else SCHEDULE_S[0], longest_pause_s(schedule)
    pause = 0.0
    if failures >= BREAK_AT:
        pause = min(first * 2.0 ** min(failures - BREAK_AT, 16), longest)
    if code in THROTTLED:
        pause = max(pause, min(first, longest))
    if asked_s and (code in THROTTLED or code == 503):
        pause = max(pause, min(asked_s, MOST_ASKED_S))
    until = None if pause == 0.0 else now_ns + int(pause * S)
    return Health(failures, max(filter(None, (until, before.paused_until_ns)), default=None))


def asked_s(header: str | None, now_ns: int) -> int | None:
    """`Retry-After` in seconds from now, whole; None when it says nothing that can be read."""
    text = (header or "").strip()
    if text.isascii() and text.isdigit():
        return int(text[:9])
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return max(0, int(at.timestamp() - now_ns / S)) if at.tzinfo is not None else None

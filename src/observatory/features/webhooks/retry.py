"""Retry schedule of webhooks: pure arithmetic over schedule, responses and time (ruling 30).

The first attempt is immediate; after failed attempt n comes the n-th wait of the schedule plus deterministic
jitter; after the last the delivery is dead. `Retry-After` is honoured up to a bound, and never shortens the
schedule. A receiver that keeps failing is paused with all its deliveries; then one is sent as a probe.
"""

from __future__ import annotations

from collections.abc import Sequence
from email.utils import parsedate_to_datetime
from hashlib import sha256
from typing import Final, NamedTuple

SCHEDULE_S: Final = (30.0, 120.0, 600.0, 3_600.0, 21_600.0)
MAX_TRIES: Final = 20  # of a configured schedule
SHORTEST_S, LONGEST_S = 0.05, 7 * 86_400.0
JITTER: Final = 0.25  # maximum fraction added to a wait
MAX_RETRY_AFTER_S: Final = 6 * 3_600  # upper bound for Retry-After
BREAK_AT: Final = 5  # failures in a row
LONGEST_PAUSE_S: Final = 600.0
THROTTLED: Final = frozenset({429, 502, 504})
S: Final = 1_000_000_000


class ReceiverHealth(NamedTuple):
    """A receiver's health. While it is paused nothing is sent; afterwards one probe."""

    failures: int = 0  # in a row
    paused_until_ns: int | None = None

    @property
    def is_broken(self) -> bool:
        return self.failures >= BREAK_AT


def jitter_of(delivery_id: str, attempt: int) -> float:
    """From 0 to 1, the same each time."""
    return int.from_bytes(sha256(f"{delivery_id}/{attempt}".encode()).digest()[:4], "big") / 2**32


def wait_s(schedule: Sequence[float], tries: int, jitter: float, asked_s: int | None = None) -> float | None:
    """The wait after failed attempt `tries` (from 1); None: no further attempt."""
    if tries > len(schedule):
        return None
    return max(schedule[tries - 1] * (1 + JITTER * jitter), float(min(asked_s or 0, MAX_RETRY_AFTER_S)))


def longest_pause_s(schedule: Sequence[float]) -> float:
    return min(LONGEST_PAUSE_S, max(schedule, default=SCHEDULE_S[0]))


def give_up_after_s(schedule: Sequence[float]) -> float:
    """The time after which a delivery that could not be attempted is given up: its whole schedule."""
    return sum(schedule) * (1 + JITTER) + longest_pause_s(schedule)


def after_failure(
    before: ReceiverHealth, schedule: Sequence[float], code: int | None, asked_s: int | None, now_ns: int
) -> ReceiverHealth:
    failures = before.failures + 1
    first, longest = schedule[0] if schedule else SCHEDULE_S[0], longest_pause_s(schedule)
    pause = 0.0
    if failures >= BREAK_AT:
        pause = min(first * 2.0 ** min(failures - BREAK_AT, 16), longest)
    if code in THROTTLED:
        pause = max(pause, min(first, longest))
    if asked_s and (code in THROTTLED or code == 503):
        pause = max(pause, min(asked_s, MAX_RETRY_AFTER_S))
    until = None if pause == 0.0 else now_ns + int(pause * S)
    return ReceiverHealth(failures, max(filter(None, (until, before.paused_until_ns)), default=None))


def retry_after_s(header: str | None, now_ns: int) -> int | None:
    """`Retry-After` in whole seconds from now; None when it cannot be parsed."""
    text = (header or "").strip()
    if text.isascii() and text.isdigit():
        return int(text[:9])
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return max(0, int(at.timestamp() - now_ns / S)) if at.tzinfo is not None else None

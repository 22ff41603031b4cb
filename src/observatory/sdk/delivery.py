"""How messages travel: bounds, patience, and time as the sender sees it (injected, so tests move it)."""

import random
import threading
import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

from observatory.sdk.client import Unsent

SYSTEM_JITTER = random.SystemRandom().random  # never the agent's own `random`, which it may have seeded


class Delivery(NamedTuple):
    """How messages travel. The defaults suit an agent; a test or a mesh may want others."""

    max_queue: int = 10_000
    """Messages in memory; beyond it, or beyond `queue_bytes`, all of memory goes to the spool."""
    queue_bytes: int = 64 << 20
    batch_lines: int = 200
    linger_s: float = 0.05
    timeout_s: float = 10.0
    close_timeout_s: float = 5.0
    spool_bytes: int = 256 << 20
    backoff_s: float = 0.25
    max_backoff_s: float = 30.0
    disk_retry_s: float = 1.0
    """How often a disk that takes nothing is tried again."""


class Clock(Protocol):
    """Time as the sender sees it."""

    def monotonic(self) -> float: ...
    def wait(self, changed: threading.Condition, timeout: float | None) -> None:
        """Wait on a held condition until it is notified or `timeout` has passed."""


class SystemClock:
    def monotonic(self) -> float:
        return time.monotonic()

    def wait(self, changed: threading.Condition, timeout: float | None) -> None:
        changed.wait(timeout)


def backoff_s(delivery: Delivery, failures: int, why: Unsent, jitter: Callable[[], float]) -> float:
    """How long to leave the gateway alone: what it asked for and a little more, else longer each time."""
    if why.retry_after_s is not None:
        return why.retry_after_s * (1 + jitter() / 4)
    doubled = delivery.backoff_s * 2 ** min(failures - 1, 20)
    longest = delivery.max_backoff_s
    return (longest if why.needs_a_person else min(doubled, longest)) * (0.5 + jitter() / 2)

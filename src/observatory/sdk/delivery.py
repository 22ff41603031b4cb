"""Delivery settings: bounds, timeouts, backoff, and an injectable clock for tests."""

import random
import threading
import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

from observatory.sdk.client import Unsent

SYSTEM_JITTER = random.SystemRandom().random  # never the agent's `random`, which may be seeded


class Delivery(NamedTuple):
    """Delivery settings. The defaults suit an agent; tests and large meshes may use others."""

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
    """How often a failing disk is retried."""


class Clock(Protocol):
    """The sender's source of time."""

    def monotonic(self) -> float: ...
    def wait(self, changed: threading.Condition, timeout: float | None) -> None:
        """Wait on a held condition until it is notified or `timeout` has passed."""


class SystemClock:
    def monotonic(self) -> float:
        return time.monotonic()

    def wait(self, changed: threading.Condition, timeout: float | None) -> None:
        changed.wait(timeout)


def backoff_s(delivery: Delivery, failures: int, why: Unsent, jitter: Callable[[], float]) -> float:
    """How long to wait before the next request: a little more than `Retry-After`, else exponential."""
    if why.retry_after_s is not None:
        return why.retry_after_s * (1 + jitter() / 4)
    doubled = delivery.backoff_s * 2 ** min(failures - 1, 20)
    longest = delivery.max_backoff_s
    return (longest if why.needs_a_person else min(doubled, longest)) * (0.5 + jitter() / 2)

"""Waiting in tests: for what comes true elsewhere, with a deadline; for what is done in another thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")
PATIENCE_S = 30.0
LONGEST_PAUSE_S = 0.05


def until(look: Callable[[], T], patience_s: float = PATIENCE_S) -> T:
    """The first true thing that is seen; fails when none is in time."""
    end, pause = time.monotonic() + patience_s, 0.01
    while not (found := look()):
        assert time.monotonic() < end, "it did not come to pass in time"
        # What is looked at is often a request, and what is waited for wants the CPU it takes.
        time.sleep(pause)
        pause = min(pause * 1.5, LONGEST_PAUSE_S)
    return found


def aside(act: Callable[[], Any]) -> Future[Any]:
    """What an agent does in its own thread, so that the test can see it wait."""
    done: Future[Any] = Future()

    def run() -> None:
        try:
            done.set_result(act())
        except Exception as exc:  # noqa: BLE001
            done.set_exception(exc)

    threading.Thread(target=run, daemon=True).start()
    return done

"""Runs the background workers: starts them, logs and counts failures, and restarts what failed.

The one place where any exception is caught: a worker that fails must not take the endpoints with it, and must
not fail silently either. The pause between restarts grows to ten seconds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from types import TracebackType
from typing import Protocol, runtime_checkable

from observatory.runtime.metrics import Measure

log = logging.getLogger("observatory.runtime")
Worker = Callable[[], Awaitable[None]]
AGAIN_S = 2.0


@runtime_checkable
class Drainable(Protocol):
    """A worker with requests to other systems in progress when the gateway stops."""

    async def drain(self) -> None:
        """Start nothing new; return when what is in progress is done. May be cancelled."""


class WorkerRunner:
    def __init__(self, workers: Mapping[str, Worker]) -> None:
        self._workers = workers
        self._tasks: list[asyncio.Task[None]] = []
        self.failures: dict[str, int] = dict.fromkeys(workers, 0)
        self._up: set[str] = set()

    def measures(self) -> list[Measure]:
        """A worker that failed is down until it is restarted; one that finished stays down."""
        up = partial(Measure, "observatory_worker_up", "gauge", "Whether the worker is running")
        failed = partial(
            Measure, "observatory_worker_failures_total", "counter", "Failures, each followed by a restart"
        )
        return [
            *(up(int(name in self._up), {"worker": name}) for name in self.failures),
            *(failed(count, {"worker": name}) for name, count in self.failures.items()),
        ]

    async def __aenter__(self) -> WorkerRunner:
        self._tasks = [
            asyncio.create_task(self._keep(name, worker), name=name) for name, worker in self._workers.items()
        ]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        left = set(self._tasks)
        while left:  # a cancellation can be lost: send it again
            for task in left:
                task.cancel()
            _, left = await asyncio.wait(left, timeout=AGAIN_S)

    async def _keep(self, name: str, worker: Worker) -> None:
        while True:
            self._up.add(name)
            try:
                await worker()
                self._up.discard(name)
                return
            except Exception:
                self.failures[name] += 1
                log.exception("%s failed and is restarted", name)
                self._up.discard(name)
                await asyncio.sleep(min(10.0, 0.25 * 2 ** min(self.failures[name], 6)))

"""The runner: starts daemons in one task group, logs and counts what fails, and starts it again.

The one place where any exception is caught: a daemon that dies must not take the doors with it, and must
not die silently either. The pause between starts grows to ten seconds.
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
Daemon = Callable[[], Awaitable[None]]
AGAIN_S = 2.0


@runtime_checkable
class Drains(Protocol):
    """Who has something under way outside the house when it stops."""

    async def drain(self) -> None:
        """Begin nothing more; return when what is under way is done. May be cancelled."""


class Runner:
    def __init__(self, daemons: Mapping[str, Daemon]) -> None:
        self._daemons = daemons
        self._tasks: list[asyncio.Task[None]] = []
        self.failures: dict[str, int] = dict.fromkeys(daemons, 0)
        self._up: set[str] = set()

    def measures(self) -> list[Measure]:
        """One that failed is down until it is started again; one that came to its end stays down."""
        up = partial(Measure, "observatory_daemon_up", "gauge", "Whether the daemon runs")
        failed = partial(
            Measure, "observatory_daemon_failures_total", "counter", "Failures, each followed by a new start"
        )
        return [
            *(up(int(name in self._up), {"daemon": name}) for name in self.failures),
            *(failed(count, {"daemon": name}) for name, count in self.failures.items()),
        ]

    async def __aenter__(self) -> Runner:
        self._tasks = [
            asyncio.create_task(self._keep(name, daemon), name=name) for name, daemon in self._daemons.items()
        ]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        left = set(self._tasks)
        while left:  # one that was told in the wrong moment is told again
            for task in left:
                task.cancel()
            _, left = await asyncio.wait(left, timeout=AGAIN_S)

    async def _keep(self, name: str, daemon: Daemon) -> None:
        while True:
            self._up.add(name)
            try:
                await daemon()
                self._up.discard(name)
                return
            except Exception:
                self.failures[name] += 1
                log.exception("%s failed and is started again", name)
                self._up.discard(name)
                await asyncio.sleep(min(10.0, 0.25 * 2 ** min(self.failures[name], 6)))

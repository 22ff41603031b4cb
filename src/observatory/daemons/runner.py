"""The runner: starts daemons in one task group, logs and counts what fails, and starts it again.

The one place where any exception is caught: a daemon that dies must not take the doors with it, and must
not die silently either. The pause between starts grows to ten seconds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType

log = logging.getLogger("observatory.daemons")
Daemon = Callable[[], Awaitable[None]]


class Runner:
    def __init__(self, daemons: Mapping[str, Daemon]) -> None:
        self._daemons = daemons
        self._tasks: list[asyncio.Task[None]] = []
        self.failures: dict[str, int] = dict.fromkeys(daemons, 0)

    async def __aenter__(self) -> Runner:
        self._tasks = [
            asyncio.create_task(self._keep(name, daemon), name=name) for name, daemon in self._daemons.items()
        ]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _keep(self, name: str, daemon: Daemon) -> None:
        while True:
            try:
                await daemon()
                return
            except Exception:
                self.failures[name] += 1
                log.exception("%s failed and is started again", name)
                await asyncio.sleep(min(10.0, 0.25 * 2 ** self.failures[name]))

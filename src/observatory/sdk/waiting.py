"""Waiting code shared by threads and asyncio: written once, as a generator of `Wait`s.

A generator yields each `Wait` it needs and returns its result; `run` blocks the thread,
`run_async` does not block the loop. Leaving either early (KeyboardInterrupt, a cancelled task) closes the
generator, so its `finally` clauses run.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Generator
from typing import NamedTuple, Protocol, TypeVar

T = TypeVar("T")


class Waitable(Protocol):
    """Something that changes and can be waited for."""

    def wait_for(self, done: Callable[[], bool], timeout: float | None) -> bool:
        """Block until `done` or `timeout`; returns whether it is done."""

    def watch(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` (from any thread) when it may have changed, until the returned function is
        called."""


class Observable:
    """Base class: state guarded by the lock `changed`; notifies watchers when it changes."""

    def __init__(self) -> None:
        self.changed = threading.Condition(threading.Lock())
        self._watchers: dict[object, Callable[[], None]] = {}

    def watch(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback`, from the thread that changed something, until the returned function is called."""
        with self.changed:
            self._watchers[token := object()] = callback

        def unwatch() -> None:
            with self.changed:
                self._watchers.pop(token, None)

        return unwatch

    def _notify(self) -> None:
        """Called with the lock held."""
        self.changed.notify_all()
        for callback in self._watchers.values():
            callback()


class Wait(NamedTuple):
    source: Waitable
    done: Callable[[], bool]
    timeout: float | None = None


Waits = Generator[Wait, None, T]


def run(waits: Waits[T]) -> T:
    with contextlib.closing(waits):
        while True:
            try:
                wait = next(waits)
            except StopIteration as end:
                result: T = end.value
                return result
            wait.source.wait_for(wait.done, wait.timeout)


async def run_async(waits: Waits[T]) -> T:
    with contextlib.closing(waits):
        while True:
            try:
                wait = next(waits)
            except StopIteration as end:
                result: T = end.value
                return result
            await until(wait)


async def until(wait: Wait) -> None:
    """Wait for one condition without blocking the loop."""
    loop, changed = asyncio.get_running_loop(), asyncio.Event()

    def notify() -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended; there are no waiters left
            loop.call_soon_threadsafe(changed.set)

    unwatch = wait.source.watch(notify)
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait.timeout):
                while not wait.done():
                    await changed.wait()
                    changed.clear()
    finally:
        unwatch()

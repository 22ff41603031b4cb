"""One law for threads and for asyncio: what waits is written once, as a generator of waits.

A generator yields each `Wait` it needs and returns its result; `run` waits by blocking the thread,
`run_async` without blocking the loop. Leaving either early (KeyboardInterrupt, a cancelled task) closes the
generator, so its `finally` clauses run.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Generator
from typing import NamedTuple, Protocol, TypeVar

T = TypeVar("T")


class Source(Protocol):
    """Something that changes."""

    def wait_for(self, done: Callable[[], bool], timeout: float | None) -> bool:
        """Block until `done` or `timeout`; says whether it is done."""

    def watch(self, tell: Callable[[], None]) -> Callable[[], None]:
        """Call `tell` (from any thread) when it may have changed; the result ends that."""


class Watched:
    """What changes under a lock, `changed`, in some thread, and tells of it."""

    def __init__(self) -> None:
        self.changed = threading.Condition(threading.Lock())
        self._watchers: dict[object, Callable[[], None]] = {}

    def watch(self, tell: Callable[[], None]) -> Callable[[], None]:
        """Call `tell`, from the thread that changed something, until the returned function is called."""
        with self.changed:
            self._watchers[token := object()] = tell

        def unwatch() -> None:
            with self.changed:
                self._watchers.pop(token, None)

        return unwatch

    def _notify(self) -> None:
        """With the lock held."""
        self.changed.notify_all()
        for tell in self._watchers.values():
            tell()


class Wait(NamedTuple):
    source: Source
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
    """Wait for one thing without blocking the loop."""
    loop, changed = asyncio.get_running_loop(), asyncio.Event()

    def tell() -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended; nobody waits any more
            loop.call_soon_threadsafe(changed.set)

    unwatch = wait.source.watch(tell)
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait.timeout):
                while not wait.done():
                    await changed.wait()
                    changed.clear()
    finally:
        unwatch()

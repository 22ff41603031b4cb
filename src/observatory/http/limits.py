"""Limits over all connections: how many may be open, and how many bytes of request bodies may be in memory.

Law (S1000–S1003, S1405): nothing is held for a caller beyond these figures, whether its key is valid or not.
`now` is a clock that moves once a second, so that a deadline costs a message one attribute access.
"""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from weakref import WeakKeyDictionary

from observatory.errors import QueueFull
from observatory.settings import Settings

SMALL: Final = 65_536  # a body up to this size is still accepted when large ones use their three quarters
RESERVED: Final = 256  # descriptors that are not connections: database, log, child processes
# Where a request's scope holds how many unpacked bytes it was granted.
UNPACKED: Final = "observatory.unpacked"


class ConnectionLimits:
    def __init__(self, settings: Settings) -> None:
        self.header_s, self.body_s = settings.header_s, settings.body_s
        self.max_bytes, self.max_connections = settings.reading_bytes, settings.connections
        self.held = 0
        self.lasting = 0  # sockets, streams and waiting polls: who holds them keeps a connection
        self.now = time.monotonic()

    @contextmanager
    def last(self) -> Iterator[None]:
        """For as long as one of them is open; QueueFull when only the part for single requests is left."""
        if self.lasting >= self.max_connections * 7 // 8:
            raise QueueFull
        self.lasting += 1
        try:
            yield
        finally:
            self.lasting -= 1

    def has_room(self, size: int) -> bool:
        """Whether a body with this many bytes so far may continue; large ones leave room for small ones."""
        return self.held <= (self.max_bytes if size <= SMALL else self.max_bytes * 3 // 4)

    def take(self, count: int, size: int) -> None:
        """Add `count` bytes of a body that then has `size`; QueueFull when there is no room."""
        self.held += count
        if not self.has_room(size):
            self.held -= count
            raise QueueFull


def raise_descriptors() -> int:
    """Raise the soft limit of open files (one per connection) to the hard one; returns the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):  # the kernel has a lower ceiling: keep the old limit
            return soft
    return hard


MAX_SESSION_READS = 2  # whole sessions read at the same time


session_read_slots: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


def session_read_slot() -> asyncio.Semaphore:
    """Acquired while a session is read whole."""
    return session_read_slots.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(MAX_SESSION_READS))

"""What all connections together may take: how many there are, and the bytes of bodies being read.

Law (S1000–S1003, S1405): nothing is held for a caller beyond these figures, whether its key is good or not.
`now` is a clock that moves once a second, so that a deadline costs a message one attribute.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from observatory.errors import QueueFull
from observatory.settings import Settings

SMALL: Final = 65_536  # a body up to this size still has room when large ones have taken their three quarters
RESERVED: Final = 256  # descriptors that are no connections: database, log, children
# Where a request's scope holds how many unpacked bytes it was granted.
UNPACKED: Final = "observatory.unpacked"


class Bounds:
    def __init__(self, settings: Settings) -> None:
        self.header_s, self.body_s = settings.header_s, settings.body_s
        self.most_bytes, self.most_connections = settings.reading_bytes, settings.connections
        self.held = 0
        self.lasting = 0  # sockets, streams and waiting polls: who holds them keeps a connection
        self.now = time.monotonic()

    @contextmanager
    def last(self) -> Iterator[None]:
        """For as long as one of them is open; QueueFull when only the part for single requests is left."""
        if self.lasting >= self.most_connections * 7 // 8:
            raise QueueFull
        self.lasting += 1
        try:
            yield
        finally:
            self.lasting -= 1

    def has_room(self, size: int) -> bool:
        """Whether a body that has this many bytes by now may go on; large ones leave room for small ones."""
        return self.held <= (self.most_bytes if size <= SMALL else self.most_bytes * 3 // 4)

    def take(self, count: int, size: int) -> None:
        """`count` bytes more, of a body that has `size` with them; QueueFull when there is no room."""
        self.held += count
        if not self.has_room(size):
            self.held -= count
            raise QueueFull


def raise_descriptors() -> int:
    """Every connection is a descriptor: the soft limit becomes the hard one. How many there may be now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):  # a kernel with a lower ceiling of its own: what there was stays
            return soft
    return hard

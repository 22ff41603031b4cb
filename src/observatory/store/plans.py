"""How old the plans of PostgreSQL connections are, and when they are made anew."""

from __future__ import annotations

import time

import asyncpg

# Plans are kept for so long. On an empty table one index is as good as another, and the one taken then may
# walk through all of a tenant for every row that is asked for (a page of 500 took 0.7 s of CPU); PostgreSQL
# itself thinks it over when the table was analysed, a minute or two after the first rows.
PLANS_S, FORGET_PLANS = 0.5, "DISCARD PLANS"
MOST_CONNECTIONS = 64


class Plans:
    """When the plans of connections were made, by the server's process."""

    def __init__(self) -> None:
        self._made: dict[int, float] = {}

    def are_old(self, connection: asyncpg.Connection) -> bool:
        """Once; then they are made anew."""
        pid, now = connection.get_server_pid(), time.monotonic()
        if now - self._made.get(pid, 0.0) < PLANS_S:
            return False
        self._made.pop(pid, None)
        self._made[pid] = now
        if len(self._made) > MOST_CONNECTIONS:  # those that are gone, oldest first
            del self._made[next(iter(self._made))]
        return True

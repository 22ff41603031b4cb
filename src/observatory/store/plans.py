"""Discards the cached query plans of PostgreSQL connections periodically."""

from __future__ import annotations

import time

import asyncpg

# Maximum age of plans. On an empty table all indexes look equal, and the one chosen then may scan a whole
# tenant
# for every requested row (a page of 500 took 0.7 s of CPU); PostgreSQL plans again only after the table was
# analysed, a minute or two after the first rows.
PLANS_S, FORGET_PLANS = 0.5, "DISCARD PLANS"
MAX_CONNECTIONS = 64


class Plans:
    """When the plans of each connection were last discarded, by server process."""

    def __init__(self) -> None:
        self._discarded_at: dict[int, float] = {}

    def are_old(self, connection: asyncpg.Connection) -> bool:
        """Whether the plans must be discarded now; true once per interval."""
        pid, now = connection.get_server_pid(), time.monotonic()
        if now - self._discarded_at.get(pid, 0.0) < PLANS_S:
            return False
        self._discarded_at.pop(pid, None)
        self._discarded_at[pid] = now
        if len(self._discarded_at) > MAX_CONNECTIONS:  # closed ones, oldest first
            del self._discarded_at[next(iter(self._discarded_at))]
        return True

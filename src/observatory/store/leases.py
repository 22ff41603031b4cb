"""Leases on SQLite: the file belongs to one process, so the holders are kept in memory.

Only the epoch is written, when the holder changes: a fenced write reads it in its own transaction. When a
process starts every lease is free. The connection that writes the epoch never checkpoints: the lane does.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from pathlib import Path

from observatory.errors import NotDurable, StartupError
from observatory.pipeline.ports import Lease

TAKE = (
    "INSERT INTO leases (name, holder, epoch, expires_ns, ticked_ns) VALUES (?, ?, 1, ?, ?) "
    "ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, epoch = leases.epoch + 1, "
    "expires_ns = excluded.expires_ns, ticked_ns = excluded.ticked_ns RETURNING epoch"
)


class SqliteLeases:
    """The `Leases` port. Uses the monotonic clock; returned times are converted to wall-clock time."""

    _path: Path

    def __init__(self) -> None:
        self._leases: dict[str, Lease] = {}
        self._leasing = threading.Lock()

    async def hold_lease(self, name: str, holder: str, lease_s: float) -> int | None:
        known = self._leases.get(name)
        if known is not None and known.holder == holder and known.expires_ns:
            now_ns = time.monotonic_ns()
            self._leases[name] = known._replace(expires_ns=now_ns + int(lease_s * 1e9), ticked_ns=now_ns)
            return known.epoch
        if known is not None and known.expires_ns > time.monotonic_ns():
            return None
        return await asyncio.to_thread(self._hold, name, holder, lease_s)

    def _hold(self, name: str, holder: str, lease_s: float) -> int | None:
        with self._leasing:
            now_ns = time.monotonic_ns()
            known = self._leases.get(name)
            if known is not None and known.holder != holder and known.expires_ns > now_ns:
                return None
            is_mine = known is not None and known.holder == holder and known.expires_ns != 0
            epoch = known.epoch if known is not None and is_mine else self._take(name, holder)
            self._leases[name] = Lease(name, holder, epoch, now_ns + int(lease_s * 1e9), now_ns, now_ns)
            return epoch

    def _take(self, name: str, holder: str) -> int:
        from observatory.store.sqlite import connect

        try:
            connection = connect(self._path)
            try:
                connection.execute("PRAGMA wal_autocheckpoint=0")
                found = connection.execute(TAKE, (name, holder, 0, time.time_ns())).fetchall()
                return int(found[0][0])
            finally:
                connection.close()
        except (sqlite3.Error, StartupError) as error:
            raise NotDurable(f"the database cannot be written now: {error}") from error

    async def end_lease(self, name: str, holder: str) -> None:
        with self._leasing:
            known = self._leases.get(name)
            if known is not None and known.holder == holder:
                self._leases[name] = known._replace(expires_ns=0)

    async def leases(self, beginning: str) -> list[Lease]:
        names = sorted(name for name in self._leases if name.startswith(beginning))
        return [one for name in names if (one := await self.lease(name)) is not None]

    async def lease(self, name: str) -> Lease | None:
        known = self._leases.get(name)
        if known is None:
            return None
        shift = time.time_ns() - time.monotonic_ns()
        # A released lease has expiry 0, as on PostgreSQL.
        expires_ns = known.expires_ns + shift if known.expires_ns else 0
        return known._replace(expires_ns=expires_ns, ticked_ns=known.ticked_ns + shift, now_ns=time.time_ns())

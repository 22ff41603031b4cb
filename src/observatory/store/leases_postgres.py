"""Leases on PostgreSQL: one row a name, taken and renewed by compare-and-set in the database's own clock.

A fenced write holds its row FOR SHARE to the end of its transaction, so nobody takes the lease over while
such a write is under way, and whoever takes it afterwards has an epoch the old one cannot write with.
"""

from __future__ import annotations

from typing import Any

from observatory.features.schedule.types_rows import Lease

# Read again after the row's lock was given: what was true before the wait counts for nothing.
NOW = "(extract(epoch FROM clock_timestamp()) * 1000000000)::bigint"
HOLD = f"""
INSERT INTO leases (name, holder, epoch, expires_ns, ticked_ns) VALUES ($1, $2, 1, {NOW} + $3, {NOW})
ON CONFLICT (name) DO UPDATE SET holder = $2, expires_ns = {NOW} + $3, ticked_ns = {NOW},
    epoch = leases.epoch + CASE WHEN leases.holder = $2 AND leases.expires_ns > 0 THEN 0 ELSE 1 END
WHERE leases.holder = $2 OR leases.expires_ns <= {NOW}
RETURNING epoch"""
END = "UPDATE leases SET expires_ns = 0 WHERE name = $1 AND holder = $2"
SEE = f"SELECT name, holder, epoch, expires_ns, ticked_ns, {NOW} FROM leases WHERE name = $1"
ALL = (
    f"SELECT name, holder, epoch, expires_ns, ticked_ns, {NOW} FROM leases "
    "WHERE starts_with(name, $1) ORDER BY name"
)


class PostgresLeases:
    """The `Leases` port over a store whose readers can write a row as well."""

    _reader: Any  # of PostgresStore: a connection of the pool, its errors translated

    async def hold_lease(self, name: str, holder: str, lease_s: float) -> int | None:
        async with self._reader() as connection:
            epoch: int | None = await connection.fetchval(HOLD, name, holder, int(lease_s * 1e9))
            return epoch

    async def end_lease(self, name: str, holder: str) -> None:
        async with self._reader() as connection:
            await connection.execute(END, name, holder)

    async def lease(self, name: str) -> Lease | None:
        async with self._reader() as connection:
            row = await connection.fetchrow(SEE, name)
        return None if row is None else Lease(*row)

    async def leases(self, beginning: str) -> list[Lease]:
        async with self._reader() as connection:
            rows = await connection.fetch(ALL, beginning)
        return [Lease(*row) for row in rows]

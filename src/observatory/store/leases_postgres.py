"""Leases on PostgreSQL: one row per name, taken and renewed by compare-and-set with the database's clock.

A fenced write locks its row FOR SHARE until the end of its transaction, so the lease cannot be taken over
during such a write, and the next holder has a new epoch with which the old holder cannot write.
"""

from __future__ import annotations

from typing import Any

from observatory.pipeline.ports import Lease

# Evaluated again after the row is locked: the values from before the wait do not count.
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
    """The `Leases` port over a store whose reader connections can also write a row."""

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

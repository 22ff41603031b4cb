"""What the clock's daemons ask of the store: who leads, and what is due."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

Row = dict[str, Any]


class Lease(NamedTuple):
    """Who leads in something, as the database sees it; `now_ns` is the database's own clock."""

    name: str
    holder: str
    epoch: int
    expires_ns: int
    ticked_ns: int
    now_ns: int


@runtime_checkable
class Leases(Protocol):
    """Leases of the house. Time is the database's: no clocks of gateways are compared."""

    async def hold_lease(self, name: str, holder: str, lease_s: float) -> int | None:
        """Take it if it is free or over, renew it if it is this holder's: its epoch; else None.

        Whoever takes it from another, or after it was freed, gets a higher epoch than was ever given before.
        NotDurable when the database cannot be asked.
        """

    async def end_lease(self, name: str, holder: str) -> None:
        """Free it at once, if it is this holder's."""

    async def lease(self, name: str) -> Lease | None:
        """As last held; None when nobody ever did."""

    async def leases(self, beginning: str) -> list[Lease]:
        """Those of whose names this is the beginning, by name, also what nobody holds any more."""


@runtime_checkable
class JobRows(Protocol):
    """Jobs and their runs as last committed."""

    async def earliest(self, tenant_id: str) -> int | None:
        """When the next job fires or the next open run is tried; None when nothing waits."""

    async def jobs_due(self, tenant_id: str, now_ns: int, limit: int) -> list[Row]:
        """Jobs whose time has come, the longest overdue first."""

    async def runs_due(self, tenant_id: str, now_ns: int, limit: int) -> list[Row]:
        """Open runs whose next try has come, the longest waiting first."""

    async def jobs_page(
        self, tenant_id: str, before: str | None, limit: int, state: str | None, asked: bool | None
    ) -> list[Row]:
        """Jobs not removed, newest first; `asked` are reminders of agents, or all but these."""

    async def runs_page(self, tenant_id: str, job_id: str, before: int | None, limit: int) -> list[Row]:
        """Runs of a job by their time, newest first."""

    async def runs_counted(
        self, tenant_id: str, job_ids: Sequence[str], from_ns: int, until_ns: int, bin_ns: int
    ) -> list[tuple[str, int, str, bool, int]]:
        """Job, beginning of a bin, state, whether by hand, and how many runs are for times in it."""

    async def runs_recent(self, tenant_id: str, job_ids: Sequence[str], each: int) -> list[Row]:
        """The newest runs of each job, by their time, newest first."""

    async def jobs_firing(self, tenant_id: str, until_ns: int, limit: int) -> list[Row]:
        """Jobs that fire before that, the earliest first."""

    async def jobs_ahead(self, tenant_id: str, beyond_ns: int, limit: int) -> list[Row]:
        """Cron jobs that were planned by a clock which showed more than that: they fire too late."""

    async def runs_ahead(self, tenant_id: str, beyond_ns: int, limit: int) -> list[Row]:
        """Open runs whose next try lies beyond."""

    async def jobs_made(self, tenant_id: str) -> int:
        """How many jobs of people there are that are not removed or done."""

    async def acknowledged(self, tenant_id: str, numbers: Sequence[int]) -> dict[int, int | None]:
        """Number of a message -> when whoever has it now acknowledged it, None while nobody did.

        A message that went to nobody, or whose deliveries have all ended, is left out.
        """

    async def letters_dead(self, tenant_id: str, most: int) -> int:
        """How many letters wait for a person; counted up to that."""

    async def letters_page(
        self,
        tenant_id: str,
        before: str | None,
        limit: int,
        kind: str | None,
        state: str | None,
        source_id: str | None = None,
    ) -> list[Row]:
        """Dead letters, newest first."""


@runtime_checkable
class Schedule(JobRows, Leases, Protocol):
    """Both: what the doors of the schedule read."""

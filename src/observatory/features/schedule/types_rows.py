"""Store protocols of the schedule: leases, jobs, runs and dead letters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from observatory.pipeline.ports import Leases

Row = dict[str, Any]


@runtime_checkable
class JobRows(Protocol):
    """Jobs and their runs as last committed."""

    async def earliest(self, tenant_id: str) -> int | None:
        """When the next job fires or the next open run is tried; None when there is neither."""

    async def jobs_due(self, tenant_id: str, now_ns: int, limit: int) -> list[Row]:
        """Jobs that are due, the longest overdue first."""

    async def runs_due(self, tenant_id: str, now_ns: int, limit: int) -> list[Row]:
        """Open runs whose next attempt is due, the longest waiting first."""

    async def jobs_page(
        self, tenant_id: str, before: str | None, limit: int, state: str | None, asked: bool | None
    ) -> list[Row]:
        """Jobs not removed, newest first; `asked`: only reminders of agents, or (False) all but these."""

    async def runs_page(self, tenant_id: str, job_id: str, before: int | None, limit: int) -> list[Row]:
        """Runs of a job by their time, newest first."""

    async def runs_counted(
        self, tenant_id: str, job_ids: Sequence[str], from_ns: int, until_ns: int, bin_ns: int
    ) -> list[tuple[str, int, str, bool, int]]:
        """Job, beginning of a bin, state, whether manual, and how many runs are scheduled in it."""

    async def runs_recent(self, tenant_id: str, job_ids: Sequence[str], each: int) -> list[Row]:
        """The newest runs of each job, by their time, newest first."""

    async def jobs_firing(self, tenant_id: str, until_ns: int, limit: int) -> list[Row]:
        """Jobs that fire before that, the earliest first."""

    async def jobs_ahead(self, tenant_id: str, beyond_ns: int, limit: int) -> list[Row]:
        """Cron jobs planned by a clock that was ahead of `beyond_ns`: they would fire too late."""

    async def runs_ahead(self, tenant_id: str, beyond_ns: int, limit: int) -> list[Row]:
        """Open runs whose next attempt is after `beyond_ns`."""

    async def jobs_made(self, tenant_id: str) -> int:
        """How many jobs of people are neither removed nor done."""

    async def acknowledged(self, tenant_id: str, numbers: Sequence[int]) -> dict[int, int | None]:
        """Number of a message -> when its present recipient acknowledged it, None until then.

        A message without a delivery, or whose deliveries have all ended, is left out.
        """

    async def letters_dead(self, tenant_id: str, most: int) -> int:
        """How many dead letters there are; counted up to `most`."""

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
    """Both protocols: what the schedule's routes read."""

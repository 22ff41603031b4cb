"""Queries on the schedule: due and upcoming jobs, runs, dead letters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, func, literal, literal_column, or_, select, union_all

from observatory.store import tables
from observatory.store.fetches import TENANT, Fetches, portions
from observatory.store.lists import any_of, padded

Row = dict[str, Any]
_jobs, _runs = tables.jobs.c, tables.job_runs.c
_FIRES = select(func.min(_jobs.next_ns)).where(_jobs.tenant_id == TENANT, _jobs.next_ns.is_not(None))
_RETRIES = select(func.min(_runs.next_try_ns)).where(
    _runs.tenant_id == TENANT, _runs.next_try_ns.is_not(None)
)
_EARLIEST = select(_FIRES.scalar_subquery(), _RETRIES.scalar_subquery())  # read after every commit


class JobReads(Fetches):
    """The `JobRows` port over any store that can `fetch` rows."""

    async def earliest(self, tenant_id: str) -> int | None:
        row = (await self.fetch(tenant_id, _EARLIEST, tenant=tenant_id))[0]
        return min((one for one in row if one is not None), default=None)

    async def jobs_due(self, tenant_id: str, now_ns: int, limit: int) -> list[Row]:
        jobs = tables.jobs.c
        return await self._rows(tenant_id, tables.jobs, [jobs.next_ns <= now_ns], jobs.next_ns, limit)

    async def runs_due(self, tenant_id: str, now_ns: int, limit: int) -> list[Row]:
        runs = tables.job_runs.c
        tests = [runs.next_try_ns <= now_ns]
        return await self._rows(
            tenant_id, tables.job_runs, tests, (runs.next_try_ns, runs.scheduled_for), limit
        )

    async def jobs_page(
        self, tenant_id: str, before: str | None, limit: int, state: str | None, asked: bool | None
    ) -> list[Row]:
        jobs = tables.jobs.c
        tests: list[ColumnElement[bool]] = [jobs.removed_ns.is_(None)]
        if before is not None:
            tests.append(jobs.job_id < before)
        if state is not None:
            tests.append(jobs.state == state)
        if asked is not None:
            tests.append(jobs.asked_by.is_not(None) if asked else jobs.asked_by.is_(None))
        return await self._rows(tenant_id, tables.jobs, tests, jobs.job_id.desc(), limit)

    async def runs_page(self, tenant_id: str, job_id: str, before: int | None, limit: int) -> list[Row]:
        runs = tables.job_runs.c
        tests: list[ColumnElement[bool]] = [runs.job_id == job_id]
        if before is not None:
            tests.append(runs.scheduled_for < before)
        return await self._rows(tenant_id, tables.job_runs, tests, runs.scheduled_for.desc(), limit)

    async def runs_counted(
        self, tenant_id: str, job_ids: Sequence[str], from_ns: int, until_ns: int, bin_ns: int
    ) -> list[tuple[str, int, str, bool, int]]:
        runs = tables.job_runs.c
        bin_no = (runs.scheduled_for // literal(bin_ns, BigInteger)).label("bin_no")
        keys = (runs.job_id, bin_no, runs.state, runs.manual)
        counted = []
        for ids in portions(job_ids):
            query = (
                select(*keys, func.count())
                .where(runs.tenant_id == tenant_id, any_of(runs.job_id, ids))
                .where(runs.scheduled_for >= from_ns, runs.scheduled_for < until_ns)
                .group_by(runs.job_id, literal_column("bin_no"), runs.state, runs.manual)
            )
            counted += await self.fetch(tenant_id, query)
        return [
            (job, int(at) * bin_ns, state, bool(manual), count) for job, at, state, manual, count in counted
        ]

    async def runs_recent(self, tenant_id: str, job_ids: Sequence[str], each: int) -> list[Row]:
        """One index lookup per job: a window function over its runs would read them all."""
        runs = tables.job_runs
        names = ("job_id", "scheduled_for", "state", "manual", "reason")
        columns = [runs.c[name] for name in names]
        distinct: set[tuple[Any, ...]] = set()
        for ids in portions(job_ids, 64):
            newest = [
                select(*columns)
                .where(runs.c.tenant_id == tenant_id, runs.c.job_id == job_id)
                .order_by(runs.c.scheduled_for.desc())
                .limit(each)
                .subquery()
                for job_id in padded(ids)
            ]
            query = union_all(*(select(one) for one in newest))
            distinct |= {tuple(row) for row in await self.fetch(tenant_id, query)}
        rows = [dict(zip(names, row, strict=True)) for row in distinct]
        return sorted(rows, key=lambda row: (row["job_id"], -row["scheduled_for"]))

    async def jobs_firing(self, tenant_id: str, until_ns: int, limit: int) -> list[Row]:
        jobs = tables.jobs.c
        return await self._rows(tenant_id, tables.jobs, [jobs.next_ns < until_ns], jobs.next_ns, limit)

    async def jobs_ahead(self, tenant_id: str, beyond_ns: int, limit: int) -> list[Row]:
        jobs = tables.jobs.c
        planned = or_(jobs.last_for_ns > beyond_ns, jobs.updated_ns > beyond_ns)
        tests = [jobs.kind == "cron", jobs.next_ns > beyond_ns, planned]
        return await self._rows(tenant_id, tables.jobs, tests, jobs.next_ns.desc(), limit)

    async def runs_ahead(self, tenant_id: str, beyond_ns: int, limit: int) -> list[Row]:
        runs = tables.job_runs.c
        tests = [runs.next_try_ns > beyond_ns]
        return await self._rows(tenant_id, tables.job_runs, tests, runs.next_try_ns.desc(), limit)

    async def jobs_made(self, tenant_id: str) -> int:
        jobs = tables.jobs.c
        query = select(func.count()).where(
            jobs.tenant_id == tenant_id,
            jobs.removed_ns.is_(None),
            jobs.asked_by.is_(None),
            jobs.state != "done",
        )
        count: int = (await self.fetch(tenant_id, query))[0][0]
        return count

    async def acknowledged(self, tenant_id: str, numbers: Sequence[int]) -> dict[int, int | None]:
        deliveries = tables.deliveries.c
        columns = select(deliveries.message_seq, deliveries.acked_ns).where(
            deliveries.tenant_id == tenant_id, deliveries.ended_ns.is_(None)
        )
        first = columns.where(
            any_of(deliveries.sequence_number, list(numbers)), deliveries.message_seq.is_not(None)
        )
        later = columns.where(
            any_of(deliveries.message_seq, list(numbers)), literal_column("sequence_number <> message_seq")
        )
        acked: dict[int, int | None] = {}
        for query in (first, later) if numbers else ():
            for number, acked_ns in await self.fetch(tenant_id, query):
                acked[number] = acked_ns if acked.get(number, acked_ns) is not None else None
        return acked

    async def letters_dead(self, tenant_id: str, most: int) -> int:
        letters = tables.dead_letters.c
        # Spelled exactly as in the partial index, so that it is used.
        dead = select(letters.letter_id).where(
            letters.tenant_id == tenant_id, literal_column("dead_letters.state = 'dead'")
        )
        query = select(func.count()).select_from(dead.limit(most).subquery())
        return int((await self.fetch(tenant_id, query))[0][0])

    async def letters_page(
        self,
        tenant_id: str,
        before: str | None,
        limit: int,
        kind: str | None,
        state: str | None,
        source_id: str | None = None,
    ) -> list[Row]:
        letters = tables.dead_letters.c
        tests: list[ColumnElement[bool]] = []
        if source_id is not None:
            tests.append(letters.source_id == source_id)
        if before is not None:
            tests.append(letters.letter_id < before)
        if kind is not None:
            tests.append(letters.kind == kind)
        if state is not None:
            tests.append(letters.state == state)
        return await self._rows(tenant_id, tables.dead_letters, tests, letters.letter_id.desc(), limit)

    async def _rows(
        self, tenant_id: str, table: Any, tests: list[ColumnElement[bool]], order: Any, limit: int
    ) -> list[Row]:
        keys = order if isinstance(order, tuple) else (order,)
        query = select(table).where(table.c.tenant_id == tenant_id, *tests).order_by(*keys).limit(limit)
        return [dict(row._mapping) for row in await self.fetch(tenant_id, query)]


RECORD_QUERIES = (JobReads,)

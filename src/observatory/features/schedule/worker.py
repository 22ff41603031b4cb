"""The scheduler: finds due jobs and open runs, and submits them to the pipeline.

Law: it decides nothing. Firing, sending and settling are commands that check again under the tenant's lock
and are fenced by the leader's epoch; a gateway that does not lead does nothing. A tenant without a schedule
costs nothing: a tenant's next time is read when its record has moved. Work that was interrupted, here or in a
gateway that died, is an open run and is found by the next poll.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from observatory.errors import ObservatoryError
from observatory.features.schedule import commands_firing as firing
from observatory.features.schedule.types_rows import JobRows
from observatory.pipeline.state import Command, Principal, Submission, SubmissionResult
from observatory.runtime import worker_context as home
from observatory.runtime.leader import Leader
from observatory.runtime.metrics import Measure
from observatory.runtime.wall_clock import WallClock
from observatory.runtime.worker_context import TenantWatch

log = logging.getLogger("observatory.scheduler")
EVERY_S = 0.5
# Per tenant and poll; the rest follows at once, after the other tenants.
LIMIT = 200
# Size of commands in one transaction: a long transaction outlives the lease, and would never complete.
SHARE_BYTES = 1 << 19
# The pipeline was busy or unavailable: nothing was decided, and the same message is sent again.
NOT_NOW = frozenset({429, 503})
Row = dict[str, Any]


class SchedulerContext(home.WorkerContext, Protocol):
    @property
    def clock(self) -> Callable[[], int]: ...


def _shares(acts: Iterable[Command]) -> Iterator[list[Command]]:
    share, size = list[Command](), 0
    for act in acts:
        if share and size + act.size > SHARE_BYTES:
            yield share
            share, size = [], 0
        share.append(act)
        size += act.size
    if share:
        yield share


class Scheduler:
    def __init__(self, app: SchedulerContext, rows: JobRows, leader: Leader, wall: WallClock) -> None:
        self._app, self._rows, self.leader, self._wall = app, rows, leader, wall
        self._watch = TenantWatch(app.store)
        # Tenant -> its next time, None when it has none; and the head of its record when that was read.
        self._next: dict[str, tuple[int | None, int]] = {}
        self._epoch: int | None = None
        self.looked_ns = 0
        self.lag_ns = 0
        self.counts = {"fired": 0, "sent": 0, "held": 0, "refused": 0, "dead": 0, "stale": 0}

    async def run(self) -> None:
        """The worker's loop; another task renews its lease (`Leader.keep`)."""
        while True:
            await asyncio.sleep(EVERY_S)
            try:
                more = True
                while more:
                    more = await self.look(self._app.clock())
            except ObservatoryError as error:  # database unavailable, queue full: found by the next poll
                log.warning("scheduler paused: store unavailable: %s", error)

    async def look(self, now_ns: int) -> bool:
        """Poll all tenants once; returns whether there is more work than one poll takes."""
        epoch = await self.leader.lead()
        if epoch != self._epoch:
            # The state another leader left is not known here.
            self._epoch, self._watch, self._next = epoch, TenantWatch(self._app.store), {}
        if epoch is None or self._wall.is_clock_off:
            return False
        await self._learn()
        more, lag_ns = False, 0
        for tenant_id, (at_ns, _) in list(self._next.items()):
            if at_ns is not None and at_ns <= now_ns:
                lag_ns = max(lag_ns, now_ns - at_ns if at_ns != firing.AT_ONCE else 0)
                try:
                    more = await self._serve(tenant_id, epoch, now_ns) or more
                except ObservatoryError as error:  # of this tenant, found again; others do not wait for it
                    log.warning("scheduler paused for one tenant: %s", error)
        self.looked_ns, self.lag_ns = now_ns, lag_ns
        return more

    async def _learn(self) -> None:
        """Read the next times of the tenants whose record has moved."""
        for tenant_id, head in await self._watch.awake():
            self._next[tenant_id] = (await self._rows.earliest(tenant_id), head)
            self._watch.rest(tenant_id, head)

    async def _serve(self, tenant_id: str, epoch: int, now_ns: int) -> bool:
        who = self._app.gateway_principal(tenant_id)
        due = await self._fire(who, epoch, now_ns)
        waiting = await self._rows.runs_due(tenant_id, now_ns, LIMIT)
        fresh = {run["run_id"] for run in due}
        due += [run for run in waiting if run["state"] == "due" and run["run_id"] not in fresh]
        due += await self._ready(who, [run for run in waiting if run["state"] != "due"], epoch, now_ns)
        sent = await self._send(who, due, epoch, now_ns)
        head = self._next[tenant_id][1]
        self._next[tenant_id] = (await self._rows.earliest(tenant_id), head)
        # A pipeline that accepted nothing is not retried at once.
        return (len(waiting) == LIMIT or len(fresh) >= LIMIT) and (sent > 0 or not due)

    async def _fire(self, who: Principal, epoch: int, now_ns: int) -> list[Row]:
        jobs = await self._rows.jobs_due(who.tenant_id, now_ns, LIMIT)
        busy = await self._at_work(who.tenant_id, jobs)
        acts, verdicts = list[Command](), list[SubmissionResult]()
        for job in jobs:
            acts.append(firing.fire(who, job, epoch, now_ns, job["last_seq"] in busy))
            await asyncio.sleep(0)  # planning a long overdue job takes a while: let other tasks run
        for share in _shares(acts):
            verdicts += await self._act(who, share)
        due = [run for verdict in verdicts for run in (verdict.answer or [])]
        self.counts["fired"] += len(due)
        return due

    async def _ready(self, who: Principal, runs: Sequence[Row], epoch: int, now_ns: int) -> list[Row]:
        """Which queued and previously refused runs are sent now."""
        if not runs:
            return []
        ids = sorted({run["job_id"] for run in runs})
        jobs = {row["job_id"]: row for row in await self._app.store.rows(who.tenant_id, "jobs", job_id=ids)}
        busy = await self._at_work(who.tenant_id, jobs.values())
        known = [(run, jobs[run["job_id"]]) for run in runs if run["job_id"] in jobs]
        acts = [
            firing.recheck_run(who, run, job, epoch, now_ns, job["last_seq"] in busy) for run, job in known
        ]
        verdicts = await self._act(who, acts)
        return [verdict.answer for verdict in verdicts if isinstance(verdict.answer, dict)]

    async def _at_work(self, tenant_id: str, jobs: Iterable[Row]) -> set[int]:
        """Numbers of the last messages not acknowledged yet; read only for jobs that forbid overlap."""
        numbers = {job["last_seq"] for job in jobs if job["overlap"] != "allow"} - {None}
        acked = await self._rows.acknowledged(tenant_id, sorted(numbers)) if numbers else {}
        return {number for number, acked_ns in acked.items() if acked_ns is None}

    async def _send(self, who: Principal, runs: Sequence[Row], epoch: int, now_ns: int) -> int:
        """Send the runs; returns how many got a final answer from the pipeline."""
        if not runs:
            return 0
        messages: list[Submission] = [firing.message_of_run(who, run, now_ns) for run in runs]
        verdicts = await self._app.committer.submit(who.tenant_id, messages)
        settled = [
            firing.settle(who, run, verdict, epoch, now_ns)
            for run, verdict in zip(runs, verdicts, strict=True)
            if verdict.code not in NOT_NOW
        ]
        for done in await self._act(who, settled):
            if done.answer in self.counts:
                self.counts[done.answer] += 1
        return len(settled)

    async def _act(self, who: Principal, acts: Sequence[Command]) -> list[SubmissionResult]:
        """Submit commands; after one with a stale epoch, which changes nothing, the lease is read again."""
        if not acts:
            return []
        verdicts = await self._app.committer.submit(who.tenant_id, acts)
        stale = sum(verdict.answer is firing.STALE for verdict in verdicts)
        if stale:
            self.counts["stale"] += stale
            self.leader.doubt()
        return [verdict for verdict in verdicts if verdict.code == 200]

    def measures(self) -> list[Measure]:
        name = "observatory_scheduler"
        leads = self.leader.epoch is not None
        ended = [
            Measure(
                f"{name}_runs_total",
                "counter",
                "Runs of jobs by outcome.",
                count,
                {"outcome": outcome},
            )
            for outcome, count in self.counts.items()
        ]
        return [
            Measure(f"{name}_is_leader", "gauge", "1 while this gateway leads the schedule.", int(leads)),
            Measure(
                f"{name}_epoch",
                "gauge",
                "Epoch of its lease; 0 while it does not lead.",
                self.leader.epoch or 0,
            ),
            Measure(
                f"{name}_poll_seconds", "gauge", "When it last polled, in Unix time.", self.looked_ns / 1e9
            ),
            Measure(
                f"{name}_lag_seconds",
                "gauge",
                "How late the most overdue job was at that poll.",
                self.lag_ns / 1e9,
            ),
            *ended,
        ]

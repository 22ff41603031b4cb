"""The scheduler: finds jobs whose time has come and runs that wait, and hands them to the corridor.

Law: it decides nothing. Firing, sending and settling are acts that look again under the tenant's lock and are
fenced by the leader's epoch; a gateway that does not lead does nothing. A tenant where nothing is scheduled
costs nothing: when its next time is, is read when its record has moved, and waited for. What was cut off
half way, here or in a gateway that died, is an open run and is found by the next look.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from observatory.errors import ObservatoryError
from observatory.features.schedule import commands_firing as firing
from observatory.features.schedule.types_rows import JobRows
from observatory.pipeline.state import Act, Principal, Submission, Verdict
from observatory.runtime import worker_context as home
from observatory.runtime.leader import Leader
from observatory.runtime.metrics import Measure
from observatory.runtime.wall_clock import WallClock
from observatory.runtime.worker_context import Watch

log = logging.getLogger("observatory.scheduler")
EVERY_S = 0.5
# So many of a tenant at a time; the rest follows at once, after the other tenants had their turn.
LIMIT = 200
# So much of acts in one transaction: a leader that takes long in one is cut off, and would never be done.
SHARE_BYTES = 1 << 19
# The corridor could not take it now: nothing was decided, and it is sent again as it was.
NOT_NOW = frozenset({429, 503})
Row = dict[str, Any]


class Home(home.Home, Protocol):
    @property
    def clock(self) -> Callable[[], int]: ...


def _shares(acts: Iterable[Act]) -> Iterator[list[Act]]:
    share, size = list[Act](), 0
    for act in acts:
        if share and size + act.size > SHARE_BYTES:
            yield share
            share, size = [], 0
        share.append(act)
        size += act.size
    if share:
        yield share


class Scheduler:
    def __init__(self, house: Home, rows: JobRows, leader: Leader, wall: WallClock) -> None:
        self._house, self._rows, self.leader, self._wall = house, rows, leader, wall
        self._watch = Watch(house.store)
        # Tenant -> its next time, None when it has none; and where its record stood when that was read.
        self._next: dict[str, tuple[int | None, int]] = {}
        self._epoch: int | None = None
        self.looked_ns = 0
        self.lag_ns = 0
        self.counts = {"fired": 0, "sent": 0, "held": 0, "refused": 0, "dead": 0, "stale": 0}

    async def run(self) -> None:
        """The daemon; its lease is kept by another (`Leader.keep`)."""
        while True:
            await asyncio.sleep(EVERY_S)
            try:
                more = True
                while more:
                    more = await self.look(self._house.clock())
            except ObservatoryError as error:  # database away, queue full: found again next time
                log.warning("the schedule waits: %s", error)

    async def look(self, now_ns: int) -> bool:
        """One look at all tenants; whether there was more than one look takes."""
        epoch = await self.leader.lead()
        if epoch != self._epoch:
            # What another leader left is not known here.
            self._epoch, self._watch, self._next = epoch, Watch(self._house.store), {}
        if epoch is None or self._wall.is_parted:
            return False
        await self._learn()
        more, lag_ns = False, 0
        for tenant_id, (at_ns, _) in list(self._next.items()):
            if at_ns is not None and at_ns <= now_ns:
                lag_ns = max(lag_ns, now_ns - at_ns if at_ns != firing.AT_ONCE else 0)
                try:
                    more = await self._serve(tenant_id, epoch, now_ns) or more
                except ObservatoryError as error:  # of this tenant, found again; others need not wait for it
                    log.warning("the schedule of a tenant waits: %s", error)
        self.looked_ns, self.lag_ns = now_ns, lag_ns
        return more

    async def _learn(self) -> None:
        """When the next times are, of the tenants whose record has moved."""
        for tenant_id, head in await self._watch.awake():
            self._next[tenant_id] = (await self._rows.earliest(tenant_id), head)
            self._watch.rest(tenant_id, head)

    async def _serve(self, tenant_id: str, epoch: int, now_ns: int) -> bool:
        who = self._house.principal_of_house(tenant_id)
        due = await self._fire(who, epoch, now_ns)
        waiting = await self._rows.runs_due(tenant_id, now_ns, LIMIT)
        fresh = {run["run_id"] for run in due}
        due += [run for run in waiting if run["state"] == "due" and run["run_id"] not in fresh]
        due += await self._ready(who, [run for run in waiting if run["state"] != "due"], epoch, now_ns)
        sent = await self._send(who, due, epoch, now_ns)
        head = self._next[tenant_id][1]
        self._next[tenant_id] = (await self._rows.earliest(tenant_id), head)
        # A corridor that takes nothing now is not asked again at once.
        return (len(waiting) == LIMIT or len(fresh) >= LIMIT) and (sent > 0 or not due)

    async def _fire(self, who: Principal, epoch: int, now_ns: int) -> list[Row]:
        jobs = await self._rows.jobs_due(who.tenant_id, now_ns, LIMIT)
        busy = await self._at_work(who.tenant_id, jobs)
        acts, verdicts = list[Act](), list[Verdict]()
        for job in jobs:
            acts.append(firing.fire(who, job, epoch, now_ns, job["last_seq"] in busy))
            await asyncio.sleep(0)  # what is long overdue takes a while to count: others have their turn
        for share in _shares(acts):
            verdicts += await self._act(who, share)
        due = [run for verdict in verdicts for run in (verdict.answer or [])]
        self.counts["fired"] += len(due)
        return due

    async def _ready(self, who: Principal, runs: Sequence[Row], epoch: int, now_ns: int) -> list[Row]:
        """Of runs in line and of those refused before: which are to be sent now."""
        if not runs:
            return []
        ids = sorted({run["job_id"] for run in runs})
        jobs = {row["job_id"]: row for row in await self._house.store.rows(who.tenant_id, "jobs", job_id=ids)}
        busy = await self._at_work(who.tenant_id, jobs.values())
        mine = [(run, jobs[run["job_id"]]) for run in runs if run["job_id"] in jobs]
        acts = [firing.ready(who, run, job, epoch, now_ns, job["last_seq"] in busy) for run, job in mine]
        verdicts = await self._act(who, acts)
        return [verdict.answer for verdict in verdicts if isinstance(verdict.answer, dict)]

    async def _at_work(self, tenant_id: str, jobs: Iterable[Row]) -> set[int]:
        """Numbers of what such jobs sent last and nobody has acknowledged; asked only where it matters."""
        numbers = {job["last_seq"] for job in jobs if job["overlap"] != "allow"} - {None}
        found = await self._rows.acknowledged(tenant_id, sorted(numbers)) if numbers else {}
        return {number for number, acked_ns in found.items() if acked_ns is None}

    async def _send(self, who: Principal, runs: Sequence[Row], epoch: int, now_ns: int) -> int:
        """How many the corridor answered for good."""
        if not runs:
            return 0
        messages: list[Submission] = [firing.call(who, run, now_ns) for run in runs]
        verdicts = await self._house.committer.submit(who.tenant_id, messages)
        settled = [
            firing.settle(who, run, verdict, epoch, now_ns)
            for run, verdict in zip(runs, verdicts, strict=True)
            if verdict.code not in NOT_NOW
        ]
        for done in await self._act(who, settled):
            if done.answer in self.counts:
                self.counts[done.answer] += 1
        return len(settled)

    async def _act(self, who: Principal, acts: Sequence[Act]) -> list[Verdict]:
        """What was done; an act of an older epoch did nothing, and the lease is asked for again."""
        if not acts:
            return []
        verdicts = await self._house.committer.submit(who.tenant_id, acts)
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
                "Runs of jobs by what came of them.",
                count,
                {"outcome": what},
            )
            for what, count in self.counts.items()
        ]
        return [
            Measure(f"{name}_leads", "gauge", "1 while this gateway leads the schedule.", int(leads)),
            Measure(
                f"{name}_epoch",
                "gauge",
                "Epoch of its lease; 0 while it does not lead.",
                self.leader.epoch or 0,
            ),
            Measure(
                f"{name}_look_seconds", "gauge", "When it last looked, in Unix time.", self.looked_ns / 1e9
            ),
            Measure(
                f"{name}_lag_seconds", "gauge", "How late the latest job was at that look.", self.lag_ns / 1e9
            ),
            *ended,
        ]

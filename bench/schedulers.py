"""`python -m bench.schedulers [--quick]`: several schedulers on one PostgreSQL, paused, killed and misled.

Three processes lead in turn. Their leader is stopped for longer than its lease, killed, or has its clock
moved by an hour, again and again, while jobs come due. At the end: each (job, time) exactly once, one
message for each, no write of an older epoch after one of a newer, every write tried with an old epoch
refused, and another led within its lease and two seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from bench.postgres import ask, database
from bench.report import OUT
from bench.soak import Lost, table
from observatory.features.access import commands as access
from observatory.features.schedule import commands as jobs
from observatory.features.schedule import commands_firing as firing
from observatory.features.schedule.commands import JobSpec
from observatory.features.schedule.worker import Scheduler
from observatory.pipeline.commit.committer import Committer
from observatory.pipeline.message_event import ServiceInfo
from observatory.pipeline.state import HOME_TENANT, Command, Principal, SubmissionResult
from observatory.runtime.leader import Leader
from observatory.runtime.wall_clock import WallClock
from observatory.settings import Settings
from observatory.stages import WRITE_PATH
from observatory.store.migrations.migrate import migrate
from observatory.store.postgres import LANE_SESSION
from observatory.stores import postgres_record

HOUR = 3_600 * 10**9
LOOK_S = 0.05
PRELOADED = ["observatory.features.schedule.worker", "observatory.store.postgres", "bench.soak", "uvloop"]
SERVICE = ServiceInfo("observatory", "0", "bench")
MOVES = {signal.SIGUSR1: HOUR, signal.SIGUSR2: -HOUR, signal.SIGHUP: 0}
SPEC = JobSpec(
    name="",
    kind="once",
    cron=None,
    zone="UTC",
    at_ns=0,
    target_kind="agent",
    target_name="sweeper",
    intent="sweep",
    payload='{"room": 7}',
    session_id=None,
    misfire="run_all",
    overlap="allow",
    jitter_s=0,
    grace_s=60,
    max_tries=3,
)


class Home:
    """As much of a gateway as a scheduler needs, on a clock that signals move."""

    def __init__(self, url: str) -> None:
        self.settings = Settings()
        self.store = postgres_record(url, lanes=1, readers=2)
        self.shift_ns = 0
        self.committer = Committer(
            self.store,
            WRITE_PATH,
            SERVICE,
            lambda notice: None,
            max_messages=5_000,
            max_bytes=1 << 26,
            batch_size=500,
            clock=self.clock,
        )

    def clock(self) -> int:
        return time.time_ns() + self.shift_ns

    def gateway_principal(self, tenant_id: str) -> Principal:
        return Principal(tenant_id=tenant_id, role="admin", key_id="sys_gateway")

    @contextlib.asynccontextmanager
    async def open(self) -> Any:
        await self.store.start()
        self.committer.start()
        try:
            yield self
        finally:
            await self.committer.stop()
            await self.store.stop()


def scheduler(url: str, lease_s: float, notes: Path) -> None:
    """One process: a scheduler that looks all the time, and writes down what it counted."""
    asyncio.run(_schedule(Home(url), lease_s, notes))


async def _schedule(home: Home, lease_s: float, notes: Path) -> None:
    loop = asyncio.get_running_loop()
    for number, shift in MOVES.items():
        loop.add_signal_handler(number, setattr, home, "shift_ns", shift)
    # As a gateway's 10 s are to its lease of 15 s: a stopped one releases the tenant's lock before.
    for name in ("idle_in_transaction_session_timeout", "statement_timeout"):
        LANE_SESSION[name] = f"{int(lease_s * 667)}ms"
    async with home.open():
        leader = Leader(home.store, firing.LEASE, lease_s, f"gtw_{os.getpid()}")
        # Its clock is moved on purpose, and what fires then is looked at.
        one = Scheduler(home, home.store, leader, WallClock(home.clock, home.clock))
        keeping = asyncio.create_task(one.leader.keep())
        counted: dict[str, int] = {}
        while not keeping.done():
            with contextlib.suppress(Exception):  # the database may cut us off: looked at again
                while await one.look(home.clock()):
                    pass
            if one.counts != counted:
                counted = dict(one.counts)
                await asyncio.to_thread(notes.write_text, json.dumps(counted))
            await asyncio.sleep(LOOK_S)


class Ring:
    """The schedulers, and what is done to them."""

    def __init__(self, url: str, lease_s: float, folder: Path) -> None:
        self._url, self._lease_s, self._folder = url, lease_s, folder
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(PRELOADED)
        self._born = 0
        self.processes = [self._start() for _ in range(3)]

    def _start(self) -> Any:
        self._born += 1
        notes = self._folder / f"{self._born}.json"
        process = self._context.Process(target=scheduler, args=(self._url, self._lease_s, notes), daemon=True)
        process.start()
        return process

    def leader(self, holder: str) -> Any:
        return next(one for one in self.processes if holder == f"gtw_{one.pid}")

    def kill(self, process: Any) -> None:
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        self.processes[self.processes.index(process)] = self._start()

    def stop(self) -> None:
        for process in self.processes:
            os.kill(process.pid, signal.SIGKILL)
            process.join()

    def counts(self) -> dict[str, int]:
        total: dict[str, int] = {}
        for notes in self._folder.glob("*.json"):
            with contextlib.suppress(ValueError):  # killed while it wrote
                for name, count in json.loads(notes.read_text()).items():
                    total[name] = total.get(name, 0) + count
        return total


class Run:
    def __init__(self, home: Home, ring: Ring, lease_s: float, seed: int) -> None:
        self.home, self.ring, self.lease_s, self.rng = home, ring, lease_s, random.Random(seed)
        self.who = home.gateway_principal(HOME_TENANT)
        self.made = self.pauses = self.kills = self.moves = self.tried = 0
        self.takeovers: list[float] = []

    async def submit(self, acts: Sequence[Command]) -> list[SubmissionResult]:
        return await self.home.committer.submit(HOME_TENANT, acts)

    async def make(self, many: int) -> None:
        """Jobs of one moment within the next two seconds."""
        now = time.time_ns()
        specs = [
            msgspec.structs.replace(
                SPEC, name=f"once {self.made + n}", at_ns=now + self.rng.randrange(2 * 10**9)
            )
            for n in range(many)
        ]
        verdicts = await self.submit([jobs.create(self.who, spec, now) for spec in specs])
        self.made += sum(one.code == 201 for one in verdicts)  # 503: who was stopped held the tenant's lock

    async def lease(self) -> Any:
        """Held and standing, by the database's clock."""
        while True:
            lease = await self.home.store.lease(firing.LEASE)
            if lease is not None and lease.expires_ns > lease.now_ns:
                return lease
            await asyncio.sleep(0.02)

    async def taken_over(self, epoch: int, since: float) -> None:
        while (lease := await self.home.store.lease(firing.LEASE)) is None or lease.epoch == epoch:
            await asyncio.sleep(0.02)
            if time.monotonic() - since > self.lease_s + 30:
                raise Lost("no gateway took the lease over")
        self.takeovers.append(time.monotonic() - since)
        await self.write_with(epoch)

    async def write_with(self, epoch: int) -> None:
        """What a leader of before would write: all of it is refused."""
        due = await self.home.store.jobs_due(HOME_TENANT, time.time_ns() + 60 * 10**9, 1)
        acts = [firing.fire(self.who, job, epoch, time.time_ns() + 60 * 10**9) for job in due]
        for verdict in await self.submit(acts) if acts else []:
            self.tried += verdict.answer == firing.STALE
            if verdict.code == 200:
                raise Lost("a write with an old epoch was taken")

    async def pause(self) -> None:
        lease = await self.lease()
        process, since = self.ring.leader(lease.holder), time.monotonic()
        os.kill(process.pid, signal.SIGSTOP)
        try:
            await self.taken_over(lease.epoch, since)
        finally:
            os.kill(process.pid, signal.SIGCONT)
        self.pauses += 1

    async def kill(self) -> None:
        lease = await self.lease()
        since = time.monotonic()
        self.ring.kill(self.ring.leader(lease.holder))
        await self.taken_over(lease.epoch, since)
        self.kills += 1

    async def move(self) -> None:
        """The leader's clock an hour off, for a moment."""
        process = self.ring.leader((await self.lease()).holder)
        os.kill(process.pid, self.rng.choice((signal.SIGUSR1, signal.SIGUSR2)))
        await asyncio.sleep(0.2)
        os.kill(process.pid, signal.SIGHUP)
        self.moves += 1

    async def finish(self) -> None:
        """Until nothing waits any more."""
        for process in self.ring.processes:
            os.kill(process.pid, signal.SIGHUP)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            next_ns = await self.home.store.earliest(HOME_TENANT)
            if next_ns is None or next_ns > time.time_ns() + HOUR // 2:
                return
            await asyncio.sleep(0.1)
        raise Lost("something due was never done")


async def drive(run: Run, firings: int, pauses: int, kills: int, moves: int) -> None:
    """The troubles in a drawn order, work coming in before each."""
    async with run.home.open():
        await run.submit([access.create_tenant(run.who, HOME_TENANT, "Default", time.time_ns())])
        troubles = [run.pause] * pauses + [run.kill] * kills + [run.move] * moves
        run.rng.shuffle(troubles)
        share = max(1, firings // len(troubles) + 1)
        for trouble in troubles:
            await run.make(min(share, firings - run.made))
            await trouble()
        while run.made < firings:
            await run.make(firings - run.made)
        await run.finish()


def judge(url: str, run: Run, within_s: float) -> dict[str, int]:
    """By the database alone, but for how long there was no leader."""
    counts = {
        "runs": "SELECT count(*) FROM job_runs",
        "jobs with no run or more than one": "SELECT count(*) FROM jobs j WHERE (SELECT count(*) "
        "FROM job_runs r WHERE r.job_id = j.job_id) <> 1",
        "runs not sent": "SELECT count(*) FROM job_runs WHERE state <> 'sent'",
        "messages of the clock": "SELECT count(*) FROM audit_events WHERE body ->> 'event_type' = "
        "'message_delivered' AND attributes ->> 'av.sender.entity_id' = 'sys_scheduler'",
        "firings on record": "SELECT count(*) FROM audit_events WHERE body ->> 'event_type' = 'job_fired'",
        "runs of an epoch older than one before": "SELECT count(*) FROM (SELECT r.epoch, max(r.epoch) OVER "
        "(ORDER BY e.sequence_number) AS newest FROM audit_events e JOIN job_runs r ON r.run_id = "
        "e.body ->> 'run_id' WHERE e.body ->> 'event_type' = 'job_fired') x WHERE epoch < newest",
        "epochs": "SELECT epoch FROM leases WHERE name = 'scheduler'",
        "letters": "SELECT count(*) FROM dead_letters",
    }
    found = {name: int(ask(url, sql)[0][0]) for name, sql in counts.items()}
    for name in ("jobs with no run or more than one", "runs not sent", "letters"):
        if found[name]:
            raise Lost(f"{found[name]} {name}")
    if found["runs of an epoch older than one before"]:
        raise Lost("a leader of before wrote after its successor")
    if not found["runs"] == found["messages of the clock"] == found["firings on record"] == run.made:
        raise Lost(f"not exactly once: {found}")
    late = [took for took in run.takeovers if took > run.lease_s + within_s]
    if late:
        raise Lost(
            f"{len(late)} times no leader for longer than the lease and {within_s:g} s: {max(late):.1f} s"
        )
    return found


QUICK = (200, 2, 1, 1)
WHOLE = (10_000, 200, 50, 50)


def soak(
    url: str, many: tuple[int, int, int, int], lease_s: float = 1.5, seed: int = 7, within_s: float = 2.0
) -> str:
    """The table of figures on an empty database; raises Lost. Another leads `within_s` of a lease's end."""
    with tempfile.TemporaryDirectory() as folder, _ring(url, lease_s, Path(folder)) as ring:
        run = Run(Home(url), ring, lease_s, seed)
        started = time.monotonic()
        asyncio.run(drive(run, *many))
        took, found, counted = time.monotonic() - started, judge(url, run, within_s), ring.counts()
    worst, mean = max(run.takeovers), sum(run.takeovers) / len(run.takeovers)
    rows = {
        "firings, each (job, time) exactly once": found["runs"],
        "leaders paused beyond their lease": run.pauses,
        "leaders killed": run.kills,
        "clocks moved by an hour": run.moves,
        "epochs": found["epochs"],
        "writes with an old epoch, all refused": run.tried + counted.get("stale", 0),
    }
    seconds = {
        f"fail-over, worst (lease {lease_s:g} s, may be 2 s more)": f"{worst:.2f}",
        "fail-over, mean": f"{mean:.2f}",
        "the whole run": f"{took:.0f}",
    }
    return table(rows, seconds)


@contextlib.contextmanager
def _ring(url: str, lease_s: float, folder: Path) -> Iterator[Ring]:
    migrate(url)
    ring = Ring(url, lease_s, folder)
    try:
        yield ring
    finally:
        ring.stop()


def main() -> None:
    received = (__doc__ or "").split("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m bench.schedulers", description=received)
    parser.add_argument("--quick", action="store_true", help="few of each")
    parser.add_argument("--lease", type=float, default=1.5)
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    try:
        with database() as url:
            figures = soak(url, QUICK if given.quick else WHOLE, given.lease, given.seed)
    except Lost as lost:
        sys.exit(f"schedulers: {lost}")
    print(figures)
    if not given.quick:
        OUT.mkdir(parents=True, exist_ok=True)
        (OUT / "schedulers.txt").write_text(figures + "\n")


if __name__ == "__main__":
    main()

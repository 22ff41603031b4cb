"""`python -m bench.sizing [--measured FILE]`: what a larger deployment would reach, by a small simulation.

Discrete events over the service times that `bench.mesh --json FILE` measured: CPU of gateway, analyst,
PostgreSQL and client a message, and the wait of a commit. First it is run for the arrangements that were
measured, and the error is told; then for houses that are not here. What it knows of the gateway:

- a gateway is one interpreter: its threads share one core;
- a lane thinks about one batch while it writes the one before (ADR-025);
- a tenant's batches are written one after the other, whoever writes them: the head of its chain is locked
  until the commit is durable. A tenant that two gateways write is thought about under that lock as well;
- the analyst works behind the commit and, on one machine, takes its share of the cores.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import deque
from collections.abc import Generator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

LINES, CONNECTIONS, BATCH = 200, 4, 1_000
SLICE_S = 0.001
# Of the gateway's CPU: what is done before the batch is handed to the writing thread.
THINKING = 0.7
# Waits of a task: for CPU under a name, for a time, for a flag.
Wish = tuple[str, Any]
Task = Generator[Wish, None, None]


@dataclass(frozen=True)
class Times:
    """Seconds of CPU a message, and of waiting a commit."""

    gateway_s: float
    analyst_s: float
    postgres_s: float
    client_s: float
    commit_s: float


@dataclass(frozen=True)
class Plan:
    """`cores` of one machine for all, or None: a core for each gateway, `database_cores` for PostgreSQL."""

    gateways: int
    tenants: int
    cores: int | None
    database_cores: int = 8
    spread: bool = False
    seconds: float = 8.0


class Flag:
    """A flag to wait for; waiters are woken once it is raised."""

    def __init__(self) -> None:
        self.waiting: list[Task] = []


@dataclass
class Machine:
    """Processes in turns of a millisecond on a number of cores; each name on a limited number of them."""

    cores: float
    limits: dict[str, float]
    now: float = 0.0
    _events: list[tuple[float, int, Task, str]] = field(default_factory=list)
    _ready: deque[tuple[Task, str, float]] = field(default_factory=deque)
    _running: dict[str, int] = field(default_factory=dict)
    _left: dict[int, float] = field(default_factory=dict)  # of who runs: what is still to be done
    _busy: int = 0
    _count: int = 0

    def start(self, task: Task) -> None:
        self._advance(task)

    def raise_flag(self, flag: Flag) -> None:
        waiting, flag.waiting = flag.waiting, []
        for task in waiting:
            self._at(0.0, task, "")

    def _at(self, after_s: float, task: Task, who: str) -> None:
        self._count += 1
        heappush(self._events, (self.now + after_s, self._count, task, who))

    def _advance(self, task: Task) -> None:
        try:
            kind, what = next(task)
        except StopIteration:
            return
        if kind == "cpu":
            self._ready.append((task, *what))
        elif kind == "sleep":
            self._at(what, task, "")
        else:
            what.waiting.append(task)

    def run(self, until_s: float) -> None:
        while True:
            self._dispatch()
            if not self._events or self._events[0][0] > until_s:
                return
            self.now, number, task, who = heappop(self._events)
            if not who:
                self._advance(task)
                continue
            self._busy -= 1
            self._running[who] -= 1
            rest = self._left.pop(number)
            if rest > 1e-12:
                self._ready.append((task, who, rest))
            else:
                self._advance(task)

    def _dispatch(self) -> None:
        """Runnable processes get a core, in the order of their requests."""
        for _ in range(len(self._ready)):
            if self._busy >= self.cores:
                return
            task, who, rest = self._ready.popleft()
            if self._running.get(who, 0) >= self.limits.get(who, math.inf):
                self._ready.append((task, who, rest))
                continue
            part = min(SLICE_S, rest)
            self._busy += 1
            self._running[who] = self._running.get(who, 0) + 1
            self._at(part, task, who)
            self._left[self._count] = rest - part


class Lock:
    def __init__(self) -> None:
        self.held, self.freed = False, Flag()


class Deployment:
    """The pipelines of several gateways, as far as time is concerned."""

    def __init__(self, plan: Plan, times: Times) -> None:
        self.plan, self.times, self.done = plan, times, 0
        cores = math.inf if plan.cores is None else plan.cores
        limits = {f"gateway {number}": 1.0 for number in range(plan.gateways)} | {"analyst": plan.gateways}
        if plan.cores is None:
            limits["postgres"] = plan.database_cores
        self.machine = Machine(cores, limits)
        for tenant in range(plan.tenants):
            head = Lock()
            ways = range(plan.gateways) if plan.spread else [tenant % plan.gateways]
            wires = max(1, CONNECTIONS // len(ways))
            for gateway in ways:
                Lane(self, f"gateway {gateway}", head, wires)

    def rate(self) -> float:
        """Past the first quarter, in which queues fill."""
        self.machine.run(self.plan.seconds / 4)
        before = self.done
        self.machine.run(self.plan.seconds)
        return (self.done - before) / (self.plan.seconds * 3 / 4)


class Lane:
    def __init__(self, deployment: Deployment, who: str, head: Lock, wires: int) -> None:
        self.deployment, self.who, self.head = deployment, who, head
        self.waiting: deque[Flag] = deque()  # of requests of LINES messages
        self.came, self.written, self.is_writing = Flag(), Flag(), False
        start = deployment.machine.start
        for _ in range(wires):
            start(self.client())
        start(self.think())

    def client(self) -> Task:
        while True:
            yield "cpu", ("client", self.deployment.times.client_s * LINES)
            answered = Flag()
            self.waiting.append(answered)
            self.deployment.machine.raise_flag(self.came)
            yield "flag", answered

    def think(self) -> Task:
        times, machine = self.deployment.times, self.deployment.machine
        while True:
            while not self.waiting:
                yield "flag", self.came
            batch = [self.waiting.popleft() for _ in range(min(len(self.waiting), BATCH // LINES))]
            count = len(batch) * LINES
            if self.deployment.plan.spread:
                yield from self._locked()
            yield "cpu", (self.who, times.gateway_s * THINKING * count)
            while self.is_writing:
                yield "flag", self.written
            self.is_writing = True
            machine.start(self.write(batch, count))
            if self.deployment.plan.spread:
                while self.is_writing:
                    yield "flag", self.written

    def _locked(self) -> Task:
        while self.head.held:
            yield "flag", self.head.freed
        self.head.held = True

    def write(self, batch: list[Flag], count: int) -> Task:
        times, machine = self.deployment.times, self.deployment.machine
        if not self.deployment.plan.spread:
            yield from self._locked()
        yield "cpu", (self.who, times.gateway_s * (1 - THINKING) * count)
        yield "cpu", ("postgres", times.postgres_s * count)
        yield "sleep", times.commit_s
        self.head.held = self.is_writing = False
        self.deployment.done += count
        for flag in (self.head.freed, self.written, *batch):
            machine.raise_flag(flag)
        if times.analyst_s:
            yield "cpu", ("analyst", times.analyst_s * count)


def simulated(plan: Plan, times: Times) -> float:
    return Deployment(plan, times).rate()


# As measured by bench.mesh on two cores of a virtual machine; see docs/sizing.md for when and how.
DEFAULT = Times(gateway_s=141e-6, analyst_s=71e-6, postgres_s=173e-6, client_s=1.4e-6, commit_s=0.004)


def times_of(row: dict[str, Any], commit_s: float) -> Times:
    count = row["messages"]
    return Times(
        gateway_s=sum(row["gateway_cpu_s"]) / count,
        analyst_s=row["analyst_cpu_s"] / count,
        postgres_s=(row["postgres_cpu_s"] + row["nats_cpu_s"]) / count,
        client_s=row["client_cpu_s"] / count,
        commit_s=commit_s,
    )


ARRANGEMENTS = {
    "one gateway, two tenants": Plan(1, 2, 2),
    "one gateway, one tenant": Plan(1, 1, 2),
    "2 gateways, two tenants": Plan(2, 2, 2),
    "2 gateways, two tenants, each at both": Plan(2, 2, 2, spread=True),
    "2 gateways, one tenant": Plan(2, 1, 2, spread=True),
}
LARGER = {
    "one tenant, one gateway: the ceiling of one chain": Plan(1, 1, None),
    "2 gateways, 8 tenants": Plan(2, 8, None),
    "4 gateways, 16 tenants": Plan(4, 16, None),
    "8 gateways, 32 tenants": Plan(8, 32, None, 16),
    "16 gateways, 64 tenants, 16 cores of PostgreSQL": Plan(16, 64, None, 16),
    "16 gateways, 64 tenants, 32 cores of PostgreSQL": Plan(16, 64, None, 32),
}


def compare(path: Path, commit_s: float) -> Times:
    """Each measured arrangement with its own service times; returns those of the first."""
    rows = json.loads(path.read_text())["details"]["mesh"]
    print(f"{'as measured':<42}{'measured':>10}{'simulated':>11}{'error':>8}")
    for row in rows:
        measured = row["messages"] / row["seconds"]
        found = simulated(ARRANGEMENTS[row["name"]], times_of(row, commit_s))
        print(f"{row['name']:<42}{measured:>10,.0f}{found:>11,.0f}{found / measured - 1:>8.0%}")
    return times_of(rows[0], commit_s)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.sizing", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--measured", type=Path, help="what `bench.mesh --json` wrote")
    parser.add_argument(
        "--commit-ms", type=float, default=DEFAULT.commit_s * 1e3, help="the wait of a commit"
    )
    asked = parser.parse_args()
    times = compare(asked.measured, asked.commit_ms / 1e3) if asked.measured else DEFAULT
    received = ", ".join(
        f"{name[:-2]} {getattr(times, name) * 1e6:,.0f}" for name in Times.__dataclass_fields__
    )
    print(f"\nservice times, µs: {received}\n\n{'not here: a core for each gateway':<52}{'msg/s':>10}")
    for name, plan in LARGER.items():
        print(f"{name:<52}{simulated(plan, times):>10,.0f}")


if __name__ == "__main__":
    main()

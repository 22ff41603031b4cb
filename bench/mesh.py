"""`python -m bench.mesh [--quick] [--share 0.3]`: one gateway against two, on one PostgreSQL and one NATS.

The same load from two tenants: requests of 200 lines over 4 connections each, from a process a tenant. With
one gateway both go to it; with two, a tenant to each (as a balancer by key does), and then each tenant to
both. What gateways, PostgreSQL and clients took of the cores is told beside each rate: on a small machine the
cores are the bound, whatever is added.

`--share` gives each gateway and its analyst so much of a core together (a cgroup's quota; where none can be
made they are stopped and continued, 20 ms by 20 ms, each for that part of the time): a stand-in for gateways
on machines of their own, where the cores they share here are not the bound. PostgreSQL, NATS and clients are
never confined. Believe it only where the cores busy stay below those there are. Who is halted in the middle
of a transaction holds the head of that chain for up to a period: where both write one tenant the other waits.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from bench.gateway import Gateway
from bench.load import Client, Job
from bench.postgres import Cluster, ask, cluster
from bench.rates import CONNECTIONS, LINES, SESSIONS, WARM_UP, WrongAnswer
from bench.report import OUT, Figure, Report, shown
from observatory.stores import postgres_record
from tests import nats_server

Deployment = tuple[list[Gateway], Cluster, nats_server.Nats]
PERIOD_S = 0.02
CPU_GROUPS = Path("/sys/fs/cgroup/cpu")
WANTED = 1.5
INSIGHT = os.environ.get("BENCH_INSIGHT", "true")  # "false": gateways without their analysts
SYNCED = 'jetstream {{ store_dir: "{}/jetstream", sync_interval: always }}'


@dataclass(frozen=True)
class Tenant:
    tenant_id: str
    key: str
    admin_key: str


@dataclass(frozen=True)
class Result:
    """CPU seconds are of all processes of that kind while the load ran."""

    name: str
    messages: int
    seconds: float
    gateway_cpu_s: list[float]
    analyst_cpu_s: float
    postgres_cpu_s: float
    nats_cpu_s: float
    client_cpu_s: float
    p50_ms: float
    p99_ms: float
    commits: float  # transactions of the lanes
    commit_s: float  # and the time spent in them
    wal_bytes: float
    stored_bytes: float

    @property
    def rate(self) -> float:
        return self.messages / self.seconds

    @property
    def cores(self) -> float:
        mine = sum(self.gateway_cpu_s) + self.analyst_cpu_s
        return (mine + self.postgres_cpu_s + self.nats_cpu_s + self.client_cpu_s) / self.seconds

    @property
    def line(self) -> str:
        busy = " + ".join(f"{one / self.seconds:.2f}" for one in self.gateway_cpu_s)
        costs = {
            "gateways": sum(self.gateway_cpu_s),
            "analysts": self.analyst_cpu_s,
            "PostgreSQL": self.postgres_cpu_s,
            "NATS": self.nats_cpu_s,
            "clients": self.client_cpu_s,
        }
        received = ", ".join(f"{name} {used / self.messages * 1e6:.0f}" for name, used in costs.items())
        each = self.messages
        return (
            f"{shown(self.rate)} msg/s ({each:,} in {self.seconds:.1f} s); µs a message: {received}; "
            f"cores busy {self.cores:.2f} of {os.cpu_count()} (gateways {busy}); "
            f"{each / self.commits:.0f} messages a commit of {self.commit_s / self.commits * 1e3:.0f} ms; "
            f"bytes a message: {self.wal_bytes / each:,.0f} of WAL, {self.stored_bytes / each:,.0f} stored; "
            f"p50 {self.p50_ms:.0f} ms, p99 {self.p99_ms:.0f} ms a request"
        )


def call(gateway: Gateway, key: str, path: str, body: dict[str, Any]) -> Any:
    request = urllib.request.Request(
        f"http://127.0.0.1:{gateway.port}{path}",
        data=json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())


def tenants(gateway: Gateway, count: int) -> list[Tenant]:
    """Each on a lane of its own: one gateway is not to be made slow by two that happen to share one."""
    admin = json.loads((gateway.folder / "credentials.json").read_text())["admin_key"]
    lane, made = postgres_record("postgresql://").lane, dict[int, Tenant]()
    while len(made) < count:
        found = call(gateway, admin, "/v1/tenants", {"display_name": "Of a benchmark"})
        key = call(gateway, found["key"], "/v1/keys", {"role": "agent"})["key"]
        made.setdefault(lane(found["tenant_id"]), Tenant(found["tenant_id"], key, found["key"]))
    return list(made.values())


@contextmanager
def deployment(folder: Path, count: int, **settings: str) -> Iterator[Deployment]:
    """Several gateways on their own PostgreSQL and NATS, both on the disk and synced."""
    with ExitStack() as stack:
        server = stack.enter_context(cluster())
        ask(server.url, "CREATE DATABASE observatory")
        nats = nats_server.Nats(folder / "nats", SYNCED.format(folder / "nats"))
        stack.enter_context(nats)
        url = server.url.replace("/postgres?", "/observatory?")
        known = {"bus": nats.url, "log_key": str(folder / "log.key"), "log_level": "warning"} | settings
        made = [Gateway(folder / f"gateway-{number}", url, known) for number in range(1, count + 1)]
        for one in made:
            stack.callback(one.kill)
            one.start()
        yield made, server, nats


def cpu_s(pids: Sequence[int]) -> float:
    total = 0.0
    for pid in pids:
        try:
            times: Any = psutil.Process(pid).cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system
    return total


def below(pid: int) -> list[int]:
    return [one.pid for one in psutil.Process(pid).children(recursive=True)]


def tell(pids: list[int], sign: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):  # an analyst may be restarted
            os.kill(pid, sign)


def turns(pids: list[int], share: float, wait_s: float, over: threading.Event) -> None:
    over.wait(wait_s)
    while not over.is_set():
        tell(pids, signal.SIGCONT)
        time.sleep(PERIOD_S * share)
        tell(pids, signal.SIGSTOP)
        time.sleep(PERIOD_S * (1 - share))
    tell(pids, signal.SIGCONT)


@contextmanager
def quota_of(pids: list[int], share: float) -> Iterator[None]:
    """All of them together so much of a core. OSError where this user may not."""
    group = CPU_GROUPS / f"observatory-bench-{pids[0]}"
    group.mkdir()
    try:
        (group / "cpu.cfs_period_us").write_text(str(int(PERIOD_S * 1e6)))
        (group / "cpu.cfs_quota_us").write_text(str(int(PERIOD_S * share * 1e6)))
        for pid in pids:
            (group / "cgroup.procs").write_text(str(pid))
        yield
    finally:
        for left in (group / "cgroup.procs").read_text().split():
            with suppress(OSError):
                (CPU_GROUPS / "cgroup.procs").write_text(left)
        group.rmdir()


@contextmanager
def share_of(gateways: list[Gateway], share: float) -> Iterator[None]:
    """Each with its analyst, for as long as this lasts."""
    if share >= 1:
        yield
        return
    machines = [[gateway.pid, *below(gateway.pid)] for gateway in gateways]
    with ExitStack() as stack:
        try:
            for pids in machines:
                stack.enter_context(quota_of(pids, share))
        except OSError:
            stack.close()
            over, pool = threading.Event(), stack.enter_context(ThreadPoolExecutor(len(machines)))
            for number, pids in enumerate(machines):
                pool.submit(turns, pids, share, PERIOD_S * number / len(machines), over)
            stack.callback(over.set)
        yield


def figures(gateways: list[Gateway], server: Cluster) -> list[float]:
    """Commits, seconds in them, bytes of WAL, bytes of the database, so far."""
    received = [one.metrics() for one in gateways]
    names = ("observatory_batches_total", "observatory_commit_seconds_total")
    sql = (
        "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8, pg_database_size('observatory')::float8"
    )
    return [*(sum(one[name] for one in received) for name in names), *ask(server.url, sql)[0]]


def load(
    name: str, gateways: list[Gateway], server: Cluster, nats: nats_server.Nats, jobs: list[Job], share: float
) -> Result:
    """Every job in a process of its own, all at once."""
    with ExitStack() as stack:
        clients = [stack.enter_context(Client()) for _ in jobs]
        for client, job in zip(clients, jobs, strict=True):
            client.build(job)
        analysts = [pid for one in gateways for pid in below(one.pid)]
        first = figures(gateways, server)

        def used() -> list[float]:
            mine = [one.cpu_s() for one in gateways]
            others = (analysts, [server.pid, *below(server.pid)], [nats.pid])
            return [*mine, *(cpu_s(group) for group in others)]

        with share_of(gateways, share), ThreadPoolExecutor(len(clients)) as pool:
            before, began = used(), time.perf_counter()
            tallies = list(pool.map(lambda client: client.run(), clients))
            seconds = time.perf_counter() - began
            took = [now - then for now, then in zip(used(), before, strict=True)]
    moved = [now - then for now, then in zip(figures(gateways, server), first, strict=True)]
    for tally in tallies:
        if tally.wrong:
            raise WrongAnswer(f"{tally.wrong} of {tally.requests} answers were wrong:\n{tally.sample}")
    latencies = sorted(one for tally in tallies for one in tally.latencies_ms)
    return Result(
        name=name,
        messages=sum(tally.messages for tally in tallies),
        seconds=seconds,
        gateway_cpu_s=took[:-3],
        analyst_cpu_s=took[-3],
        postgres_cpu_s=took[-2],
        nats_cpu_s=took[-1],
        client_cpu_s=sum(tally.cpu_s for tally in tallies),
        p50_ms=latencies[len(latencies) // 2],
        p99_ms=latencies[int(len(latencies) * 0.99)],
        commits=max(1.0, moved[0]),
        commit_s=moved[1],
        wal_bytes=moved[2],
        stored_bytes=moved[3],
    )


def settle(gateway: Gateway, owners: list[Tenant]) -> None:
    """Until the analysts have caught up: what they still owe is not the next figure's to pay."""
    for owner in owners:
        request = urllib.request.Request(
            f"http://127.0.0.1:{gateway.port}/v1/insight/status",
            headers={"Authorization": f"Bearer {owner.admin_key}"},
        )
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and INSIGHT == "true":
            with urllib.request.urlopen(request, timeout=60) as answer:
                if json.loads(answer.read())["lag_messages"] == 0:
                    break
            time.sleep(0.1)


def jobs_of(gateways: list[Gateway], owners: list[Tenant], messages: int, spread: bool) -> list[Job]:
    """A tenant to each gateway in turn, or with `spread` every tenant to every gateway."""
    ways = [
        (gateway, owner)
        for number, owner in enumerate(owners)
        for gateway in (gateways if spread else [gateways[number % len(gateways)]])
    ]
    count, wires = messages // len(ways), max(1, CONNECTIONS * len(owners) // len(ways))
    return [Job(gateway.port, owner.key, count, LINES, wires, SESSIONS) for gateway, owner in ways]


def arrangement(report: Report, folder: Path, count: int, messages: int, share: float) -> list[Result]:
    """The rate of this many gateways, on their own empty database."""
    found = []
    with deployment(folder, count, insight=INSIGHT) as (gateways, server, nats):
        owners = tenants(gateways[0], 2)
        word = "one gateway" if count == 1 else f"{count} gateways"
        rows = [("two tenants", owners, False), ("one tenant", owners[:1], count > 1)]
        if count > 1:
            rows.insert(1, ("two tenants, each at both", owners, True))
        load("warm-up", gateways, server, nats, jobs_of(gateways, owners, WARM_UP * count, True), 1)
        for name, asked, spread in rows:
            settle(gateways[0], owners)
            jobs = jobs_of(gateways, asked, messages, spread)
            found.append(load(f"{word}, {name}", gateways, server, nats, jobs, share))
            report.say(f"  {found[-1].name}: {found[-1].line}")
    return found


def mesh(report: Report, folder: Path, share: float = 1.0, messages: int = 0) -> None:
    messages = messages or (16_000 if report.quick else 60_000)
    if share < 1:
        report.say(f"  each gateway and its analyst have {share:.0%} of a core, as on a machine of their own")
    one = arrangement(report, folder / "one", 1, messages, share)
    two = arrangement(report, folder / "two", 2, messages, share)
    report.details["mesh" if share >= 1 else f"mesh at {share}"] = [asdict(each) for each in (*one, *two)]
    kind = "" if share >= 1 else f", each {share:.0%} of a core"
    report.add(Figure(f"one gateway, two tenants{kind}", "msg/s", one[0].rate))
    report.add(Figure(f"two gateways, two tenants{kind}", "msg/s", two[0].rate))
    note = f"(cores busy {one[0].cores:.1f} and {two[0].cores:.1f} of {os.cpu_count()})"
    report.add(Figure(f"two gateways beside one{kind}", "×", two[0].rate / one[0].rate, WANTED, note=note))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.mesh", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--share", type=float, default=1.0, help="of a core for each gateway and its analyst")
    parser.add_argument("--messages", type=int, default=0, help="for each figure")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    if not 0.05 <= asked.share <= 1:
        parser.error("a share is between 0.05 and 1")
    report = Report(asked.quick)
    OUT.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="mesh-", dir=OUT))
    try:
        mesh(report, folder, asked.share, asked.messages)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    report.say("\n" + report.table())
    report.say(f"\nwritten to {report.write(asked.json)}")


if __name__ == "__main__":
    main()

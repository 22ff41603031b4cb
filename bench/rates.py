"""Rates of the real server: NDJSON ingest compared with its floor, single POSTs, violations."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.floor import describe, floor
from bench.gateway import Gateway
from bench.load import Client, Job, Tally
from bench.report import Figure, Report, shown

LINES, CONNECTIONS, SESSIONS = 200, 4, 200
WARM_UP = 4_000


class WrongAnswer(Exception):
    """An answer that was not the one expected: a rate over it would mean nothing."""


@dataclass(frozen=True)
class Measured:
    """One job as client and server saw it."""

    tally: Tally
    batch: float
    server_cpu_s: float
    commit_s: float

    @property
    def server_us(self) -> float:
        """CPU of the server a message: what a noisy machine changes least."""
        return self.server_cpu_s / self.tally.messages * 1e6

    @property
    def line(self) -> str:
        tally, count = self.tally, self.tally.messages
        return (
            f"{shown(tally.rate)} msg/s; {count:,} messages of {tally.message_bytes:,.0f} bytes in "
            f"{tally.seconds:.2f} s; average batch {self.batch:.0f}; CPU server {self.server_cpu_s:.2f} s "
            f"({self.server_us:.1f} µs a message), client {tally.cpu_s:.2f} s "
            f"({tally.cpu_s / count * 1e6:.1f} µs); in transactions {self.commit_s:.2f} s "
            f"({self.commit_s / count * 1e6:.1f} µs); p50 {tally.quantile_ms(0.5):.1f} ms, "
            f"p99 {tally.quantile_ms(0.99):.1f} ms a request"
        )


def measure(gateway: Gateway, client: Client, job: Job) -> Measured:
    client.build(job)
    before, cpu = gateway.metrics(), gateway.cpu_s()
    tally = client.run()
    used, after = gateway.cpu_s() - cpu, gateway.metrics()
    if tally.wrong:
        raise WrongAnswer(f"{tally.wrong} of {tally.requests} answers were not as expected:\n{tally.sample}")
    moved = {name: after[name] - before.get(name, 0) for name in after}
    batches = max(1.0, moved["observatory_batches_total"])
    return Measured(
        tally, moved["observatory_committed_total"] / batches, used, moved["observatory_commit_seconds_total"]
    )


def ndjson(gateway: Gateway, messages: int) -> Job:
    return Job(gateway.port, gateway.key, messages, LINES, CONNECTIONS, SESSIONS)


def ingest(report: Report, folder: Path) -> Path:
    """Returns the database of the last round, for those who go on with it."""
    messages, rounds = (20_000, 1) if report.quick else (60_000, 3)
    rates, ratios, floors = [], [], []
    path = folder
    with Client() as client:
        for number in range(rounds):
            data = folder / f"ingest-{number}"
            with Gateway(data) as gateway:
                measure(gateway, client, ndjson(gateway, WARM_UP))
                found = measure(gateway, client, ndjson(gateway, messages))
            path = data / "observatory.db"
            bare, bare_cpu_s = floor(path, data / "floor.db", max(1, round(found.batch)))
            rates.append(found.tally.rate)
            floors.append(bare)
            ratios.append(found.tally.rate / bare * 100)
            report.say(f"  round {number + 1}: {found.line}")
            report.say(
                f"           floor {shown(bare)} msg/s at the same batch, CPU {bare_cpu_s * 1e6:.1f} µs a "
                f"message; ratio {ratios[-1]:.0f} %"
            )
    pragmas, schema = describe(path)
    report.say("  pragmas read back: " + ", ".join(f"{name}={value}" for name, value in pragmas.items()))
    report.say("  schema:")
    for statement in schema:
        report.say("    " + (statement if len(statement) < 150 else statement[:147] + "…"))
    report.details["ingest"] = {
        "rates": rates,
        "floors": floors,
        "ratios_percent": ratios,
        "pragmas": pragmas,
        "schema": schema,
    }
    note = f"(of {rounds} rounds: {', '.join(map(shown, rates))})" if rounds > 1 else ""
    report.add(Figure("ingest, NDJSON 200 × 4, SQLite FULL", "msg/s", median(rates), 8_000, note=note))
    note = f"(floor {shown(median(floors))} msg/s)"
    report.add(Figure("ingest beside its floor", "%", median(ratios), 50, note=note))
    return path


def filled(folder: Path) -> Path:
    """A database with some messages, when only that is needed."""
    data = folder / "filled"
    with Gateway(data) as gateway, Client() as client:
        measure(gateway, client, ndjson(gateway, 60_000))
    return data / "observatory.db"


def single(report: Report, folder: Path) -> None:
    messages = 5_000 if report.quick else 15_000
    with Gateway(folder / "single") as gateway, Client() as client:
        job = Job(gateway.port, gateway.key, 1_000, 0, 32, SESSIONS)
        measure(gateway, client, job)
        found = measure(gateway, client, Job(gateway.port, gateway.key, messages, 0, 32, SESSIONS))
    report.say("  " + found.line)
    report.details["single"] = {"rate": found.tally.rate, "p50_ms": found.tally.quantile_ms(0.5)}
    report.add(Figure("single POSTs over 32 connections", "msg/s", found.tally.rate, 2_500))
    report.add(Figure("single POSTs, p50", "ms", found.tally.quantile_ms(0.5)))
    report.add(Figure("single POSTs, p99", "ms", found.tally.quantile_ms(0.99), 50, is_limit=True))


def violations(report: Report, folder: Path) -> None:
    messages = 10_000 if report.quick else 40_000
    with Gateway(folder / "violations") as gateway, Client() as client:
        for lines, connections, name, asked in (
            (LINES, CONNECTIONS, "422s, NDJSON 200 × 4", 5_000),
            (0, 32, "422s, single over 32 connections", None),
        ):
            count = messages if lines else messages // 4
            make = Job(gateway.port, gateway.key, 1_000, lines, connections, SESSIONS, "violations")
            measure(gateway, client, make)
            job = Job(gateway.port, gateway.key, count, lines, connections, SESSIONS, "violations")
            found = measure(gateway, client, job)
            report.say("  " + found.line)
            report.add(Figure(name, "msg/s", found.tally.rate, asked))

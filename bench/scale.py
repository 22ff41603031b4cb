"""Rates elsewhere: with a million messages archived, and on PostgreSQL."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median

import psutil

from bench.gateway import Gateway
from bench.load import Client
from bench.postgres import ask, database, settings_of
from bench.rates import WARM_UP, Measured, measure, ndjson
from bench.report import Figure, Report, shown
from bench.verification import shown_size

STEP = 20_000
MILLION = 1_000_000


def million(report: Report, folder: Path) -> Path | None:
    """Every stretch of 20,000 messages opens 200 new sessions. Returns the database it leaves."""
    if report.quick:
        report.say("  skipped: --quick")
        return None
    data = folder / "million"
    path = data / "observatory.db"
    with Gateway(data) as gateway, Client() as client:
        count = STEP
        measure(gateway, client, ndjson(gateway, STEP))
        early = [measure(gateway, client, ndjson(gateway, STEP)) for _ in range(3)]
        count += 3 * STEP
        early_rss, began = gateway.rss_mb(), time.monotonic()
        report.say(f"  at {STEP:,}: {_shown(early)}, resident {early_rss:.0f} MB")
        while count < MILLION:
            rate = measure(gateway, client, ndjson(gateway, STEP)).tally.rate
            count += STEP
            if count % 100_000 == 0:
                report.say(
                    f"  {count:>9,} archived after {time.monotonic() - began:4.0f} s, {shown(rate)} msg/s, "
                    f"resident {gateway.rss_mb():.0f} MB, {shown_size(path)}"
                )
        late = [measure(gateway, client, ndjson(gateway, STEP)) for _ in range(3)]
        rss = gateway.rss_mb()
    report.say(f"  at {MILLION:,}: {_shown(late)}")
    then, now = (median(one.tally.rate for one in part) for part in (early, late))
    report.details["million"] = {"rate_at_20000": then, "rate_at_1000000": now, "rss_mb": rss}
    ratio = now / then * 100
    note = f"({shown(now)} beside {shown(then)} msg/s)"
    report.add(Figure("rate at 1,000,000 beside that at 20,000", "%", ratio, 65, note=note))
    report.add(Figure("resident memory at 1,000,000", "MB", rss, 400, is_limit=True))
    return path


def _shown(parts: list[Measured]) -> str:
    rates = ", ".join(shown(one.tally.rate) for one in parts)
    return f"{rates} msg/s; CPU of the server {median(one.server_us for one in parts):.1f} µs a message"


def postgres(report: Report, folder: Path) -> None:
    messages, rounds = (20_000, 1) if report.quick else (60_000, 2)
    rates = []
    for number in range(rounds):
        with database() as url:
            if not number:
                known = settings_of(url)
                report.details["postgres"] = known
                report.say("  settings read back: " + ", ".join(f"{k}={v}" for k, v in sorted(known.items())))
            with Gateway(folder / f"postgres-{number}", db=url) as gateway, Client() as client:
                measure(gateway, client, ndjson(gateway, WARM_UP))
                before = _backends_cpu_s(url)
                found = measure(gateway, client, ndjson(gateway, messages))
                used = _backends_cpu_s(url) - before
        rates.append(found.tally.rate)
        report.say(f"  round {number + 1}: {found.line}; CPU of its PostgreSQL backends {used:.2f} s")
    note = f"(of rounds: {', '.join(map(shown, rates))})" if rounds > 1 else ""
    report.add(Figure("ingest, NDJSON 200 × 4, PostgreSQL", "msg/s", median(rates), 5_000, note=note))


def _backends_cpu_s(url: str) -> float:
    pids = ask(url, "SELECT pid FROM pg_stat_activity WHERE application_name = 'observatory'")
    times = [psutil.Process(row[0]).cpu_times() for row in pids]
    return float(sum(one.user + one.system for one in times))

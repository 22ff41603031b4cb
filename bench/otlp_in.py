"""OTLP in: how many spans a second are durable over HTTP, against the same gateway taking DecisionLogs."""

from __future__ import annotations

from pathlib import Path

from bench.gateway import Gateway
from bench.load import Client, Job
from bench.rates import CONNECTIONS, LINES, SESSIONS, WARM_UP, WrongAnswer, measure, ndjson
from bench.report import Figure, Report, shown

ASKED = 5_000


def otlp_in(report: Report, folder: Path) -> None:
    spans = 20_000 if report.quick else 60_000
    with Gateway(folder / "otlp-in") as gateway, Client() as client:

        def job(count: int) -> Job:
            return Job(gateway.port, gateway.key, count, LINES, CONNECTIONS, SESSIONS, kind="spans")

        measure(gateway, client, job(WARM_UP))
        before = gateway.metrics()["observatory_committed_total"]
        found = measure(gateway, client, job(spans))
        recorded = gateway.metrics()["observatory_committed_total"] - before
        if recorded < spans:
            raise WrongAnswer(f"of {spans} spans {recorded:.0f} were committed")
        report.say(f"  spans: {found.line}")
        own = measure(gateway, client, ndjson(gateway, spans))
        report.say(f"  DecisionLogs: {own.line}")
    share = found.tally.rate / own.tally.rate
    note = f"({share:.0%} of {shown(own.tally.rate)} msg/s, the rate of DecisionLogs in the same run)"
    report.add(
        Figure(
            "OTLP in, protobuf 200 × 4 over HTTP, SQLite FULL", "spans/s", found.tally.rate, ASKED, note=note
        )
    )

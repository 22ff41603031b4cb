"""What is asked of insight, in one go: live feed, graph, infection, blast, and how far the analyst is behind.

Each is a benchmark by itself too, with more to set (`python -m bench.live`, `.dag`, `.spreading`, `.lag`;
beside a million messages `.spreading --others 900000`, and search by `.search --million`).
"""

from __future__ import annotations

from pathlib import Path

from bench import dag, lag, live, spreading
from bench.report import Figure, Report

MAX_MS, GRAPH_MS, SPREAD_S, LAG_S = 300, 500, 1, 5


def insight(report: Report, folder: Path) -> None:
    asked = live.arguments().parse_args(["--seconds", "10" if report.quick else "60"])
    received = live.run(asked, folder / "live")
    for topic in live.TOPICS:
        name = f"live: commit to client, {topic}, p99"
        report.add(Figure(name, "ms", received[topic]["p99"], MAX_MS, is_limit=True))
    report.add(Figure("live: the server", "cores", received["cores"], 1, is_limit=True))
    found = dag.run(folder / "dag", 10_000, 0, 7)
    note = f"(best {found['best']:.0f}, worst {found['worst']:.0f})"
    report.add(Figure("graph of 10,000 steps", "ms", found["middle"], GRAPH_MS, is_limit=True, note=note))
    steps = 20_000 if report.quick else 100_000
    spread = spreading.arguments().parse_args(["--steps", str(steps)])
    for name, one in spreading.run(spread, folder / "spreading").items():
        note = f"(best {one['best']:.2f}, worst {one['worst']:.2f})"
        report.add(
            Figure(f"{name} over {steps:,} steps", "s", one["middle"], SPREAD_S, is_limit=True, note=note)
        )
    behind = lag.run(2_000, 5 if report.quick else 20)
    report.add(Figure("analyst behind at 2,000 msg/s", "s", behind["lag_s"], LAG_S, is_limit=True))
    report.add(Figure("analyst, a message", "µs", behind["analyst_us"]))

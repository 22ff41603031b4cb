"""`python -m bench [--quick] [--only NAME] [--json FILE] [--profile]`: measure, print a table, write JSON."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from bench import (
    channels,
    claude_hook,
    export,
    idle,
    insight,
    log,
    loops,
    mesh,
    otlp_in,
    rates,
    scale,
    stages,
    verification,
)
from bench.report import OUT, Figure, Report

NAMES = (
    *("ingest", "single", "violations", "stages", "channels", "loops", "log", "export"),
    *("otlp_in", "claude_hook", "insight", "idle"),
    *("postgres", "mesh", "million", "verify"),
)


def measure(name: str, report: Report, folder: Path, left: Path | None) -> Path | None:
    """Run one; `left` is the largest database left so far, and what is returned the one now."""
    if name == "ingest":
        return rates.ingest(report, folder)
    if name == "million":
        return scale.million(report, folder) or left
    if name == "verify":
        verification.verify(report, left or rates.filled(folder))
        return left
    plain = {
        "single": rates.single,
        "violations": rates.violations,
        "stages": stages.stages,
        "channels": channels.channels,
        "loops": loops.loops,
        "log": log.log,
        "export": export.export,
        "otlp_in": otlp_in.otlp_in,
        "claude_hook": claude_hook.claude_hook,
        "insight": insight.insight,
        "idle": idle.idle,
        "postgres": scale.postgres,
        "mesh": mesh.mesh,
    }
    plain[name](report, folder)
    return left


def attempt(name: str, report: Report, folder: Path, left: Path | None) -> Path | None:
    """A benchmark that fails is reported and marked missing; the others still run."""
    report.say(f"\n{name} (load {os.getloadavg()[0]:.1f} before)")
    try:
        return measure(name, report, folder, left)
    except Exception as error:  # noqa: BLE001 - whatever it is, it belongs in the report
        report.say(f"  FAILED: {type(error).__name__}: {error}")
        report.add(Figure(name, "", None, note=f"({type(error).__name__})"))
        return left


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Measure the gateway on this machine."
    )
    parser.add_argument("--quick", action="store_true", help="fewer messages, one round, no million")
    parser.add_argument("--only", action="append", choices=NAMES, help="this one (may be repeated)")
    parser.add_argument("--json", type=Path, help="where to write the figures (default: bench/out)")
    parser.add_argument("--profile", action="store_true", help="cProfile of the server's path, top 25")
    asked = parser.parse_args()
    report, left = Report(asked.quick), None
    OUT.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="run-", dir=OUT))
    try:
        if asked.profile:
            return stages.profile(folder)
        for name in asked.only or NAMES:
            left = attempt(name, report, folder, left)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    report.say("\n" + report.table())
    report.say(f"\nwritten to {report.write(asked.json)}")
    # A low figure is a finding, shown in the table; only a benchmark that could not run is a failure.
    sys.exit(any(figure.verdict == "missing" for figure in report.figures))


if __name__ == "__main__":
    main()

"""How fast the record is proved: `observatory verify` with two workers over a database a run has left."""

from __future__ import annotations

import json
import resource
import subprocess
import time
from itertools import islice
from pathlib import Path

from bench.evidence import SqliteEvidence
from bench.gateway import COMMAND
from bench.report import Figure, Report, shown
from observatory.ledger.verify import ChainCheck

TENANT = "tnt_default"
# Starting two processes takes a second or so; below this many events the figure shows little else.
WORTH_JUDGING = 300_000


class NotVerified(Exception):
    """The command failed, or found the record broken."""


def verify(report: Report, path: Path) -> None:
    """`path` is a SQLite file no gateway is writing to."""
    head = SqliteEvidence(path).head()[0]
    _alone(report, path)
    command = [*COMMAND, "verify", "--data", str(path.parent), "--workers", "2", "--no-payloads", "--json"]
    began, spent = time.perf_counter(), _children_cpu_s()
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    wall, spent = time.perf_counter() - began, _children_cpu_s() - spent
    try:
        tenant = next(one for one in json.loads(done.stdout)["tenants"] if one["tenant_id"] == TENANT)
    except (ValueError, KeyError, StopIteration) as error:
        raise NotVerified(
            f"`observatory verify` said: {done.stdout[-500:]} {done.stderr[-1_500:]}"
        ) from error
    if not tenant["valid"] or tenant["events_verified"] != head:
        raise NotVerified(f"the record of the run does not verify: {tenant['first_break']}")
    checks = {name: held for name, held in tenant["checks"].items() if held is not None}
    rate, asked = head / tenant["seconds"], 100_000 if head >= WORTH_JUDGING else None
    report.say(
        f"  {head:,} events in {tenant['seconds']:.2f} s, {wall:.2f} s with the start of Python; "
        f"{spent / head * 1e6:.1f} µs of CPU an event, all processes"
    )
    report.say(f"  held: {', '.join(checks)}")
    report.details["verify"] = {"events": head, "seconds": tenant["seconds"], "wall_s": wall}
    report.add(Figure("verify, 2 workers", "events/s", rate, asked, note=f"({head:,} events)"))


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _alone(report: Report, path: Path) -> None:
    """The verifier's own cost: rows in memory, one process."""
    rows = list(islice(SqliteEvidence(path).events(0), 50_000))
    check = ChainCheck(TENANT)
    began = time.process_time()
    assert check.feed(rows)
    took = time.process_time() - began
    report.say(f"  the verifier alone, rows in memory: {took / len(rows) * 1e6:.1f} µs of CPU an event")


def shown_size(path: Path) -> str:
    parts = [path.with_name(path.name + end) for end in ("", "-wal")]
    sizes = [part.stat().st_size / 1e6 if part.exists() else 0.0 for part in parts]
    return f"database {shown(sizes[0])} MB, write-ahead log {shown(sizes[1])} MB"

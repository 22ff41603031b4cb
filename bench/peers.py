"""`python -m bench.peers [--quick] [--json FILE]`: the same spans, by the same client, to a peer and to us.

Law: what counts is what is stored, never what was answered. Both are asked afterwards how many spans they
have; the clock of a rate runs until all are there, or until nothing more comes. Then each is killed with
SIGKILL after its last answer, and each stopped as its operator would, and asked again after a restart.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from bench.gateway import Gateway
from bench.load import Tally, drive, spans_request
from bench.phoenix import VERSION, NoPeer, Phoenix, installed
from bench.rates import CONNECTIONS, LINES
from bench.report import OUT, Figure, Report, shown
from bench.spans import Batch, batches

ASKED = 5_000
STILL_S = 20.0  # with nothing more stored for so long, nothing more comes
AFTER_START_S = 2.0
LOOK_S = 0.25


class Side(Protocol):
    """One of those compared."""

    port: int
    key: str
    answers_when_stored: bool  # what it says of itself; the kill shows whether it is so

    def start(self) -> object: ...
    def stored(self) -> int: ...
    def stop(self) -> None: ...
    def kill(self) -> None: ...


class Ours:
    """The gateway as `observatory serve` starts it; it is asked by paging through its archive."""

    answers_when_stored = True

    def __init__(self, folder: Path) -> None:
        self._gateway = Gateway(folder)
        self.port, self.key = 0, ""

    def start(self) -> None:
        self._gateway.start()
        self.port, self.key = self._gateway.port, self._gateway.key

    def stored(self) -> int:
        steps: set[str] = set()
        after = 0
        while True:
            code, text = self._gateway.get(f"/v1/messages?after={after}&limit=1000")
            if code != 200:
                raise RuntimeError(f"/v1/messages answered {code}")
            if not (items := json.loads(text)["items"]):
                return len(steps)
            steps |= {one["step_id"] for one in items}
            after = items[-1]["sequence_number"]

    def stop(self) -> None:
        self._gateway.stop()

    def kill(self) -> None:
        self._gateway.kill()


@dataclass(frozen=True)
class Found:
    """What one side did with the same spans."""

    sent: int
    stored: int
    answered_rate: float
    stored_rate: float
    offered: int  # before each of its two ends
    after_kill: int
    after_stop: int


def settled(
    stored: Callable[[], int],
    wanted: int,
    still_s: float = STILL_S,
    clock: Callable[[], float] = time.monotonic,
    rest: Callable[[float], None] = time.sleep,
) -> tuple[int, float]:
    """How many are there once all are, or once nothing more comes; and when the last of them was seen."""
    count, at = stored(), clock()
    while count < wanted and clock() - at < still_s:
        rest(LOOK_S)
        if (now := stored()) > count:
            count, at = now, clock()
    return count, at


def send(side: Side, spans: Sequence[Batch]) -> Tally:
    requests = [spans_request(side.port, side.key, one) for one in spans]
    tally = drive(side.port, requests, CONNECTIONS)
    if tally.wrong:
        raise RuntimeError(f"{tally.wrong} of {tally.requests} requests were refused:\n{tally.sample}")
    return tally


def measure(side: Side, parts: Mapping[str, Sequence[Batch]]) -> Found:
    """Warm it, measure, then end it in two ways; after each start it is asked what it has."""
    counts = {name: sum(one.spans for one in part) for name, part in parts.items()}
    side.start()
    try:
        send(side, parts["warm"])
        has, _ = settled(side.stored, counts["warm"])
        began = time.monotonic()
        tally = send(side, parts["rate"])
        total, at = settled(side.stored, has + counts["rate"])
        stored = total - has
        seconds = tally.seconds if side.answers_when_stored else max(tally.seconds, at - began)
        ended: dict[str, int] = {}
        for name, end in (("kill", side.kill), ("stop", side.stop)):
            send(side, parts[name])
            end()
            side.start()
            now, _ = settled(side.stored, total + counts[name], AFTER_START_S)
            ended[name], total = now - total, now
    finally:
        side.kill()
    return Found(
        counts["rate"], stored, tally.rate, stored / seconds, counts["kill"], ended["kill"], ended["stop"]
    )


def table(ours: Found, theirs: Found) -> str:
    def of(part: int, whole: int) -> str:
        return f"{part:,} of {whole:,}"

    rows = [
        ("", "Observatory", f"Phoenix {VERSION}", "ratio"),
        (
            "spans stored a second",
            shown(ours.stored_rate),
            shown(theirs.stored_rate),
            f"{ours.stored_rate / max(theirs.stored_rate, 1e-9):,.1f} ×",
        ),
        ("spans answered a second", shown(ours.answered_rate), shown(theirs.answered_rate), ""),
        ("stored of those answered", of(ours.stored, ours.sent), of(theirs.stored, theirs.sent), ""),
        ("… SIGKILL after the answer", *(of(one.after_kill, one.offered) for one in (ours, theirs)), ""),
        ("… SIGTERM after the answer", *(of(one.after_stop, one.offered) for one in (ours, theirs)), ""),
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    lines.insert(1, "  ".join("─" * width for width in widths))
    return "\n".join(line.rstrip() for line in lines)


def compare(report: Report, folder: Path) -> None:
    # Fewer than the 20,000 spans Phoenix queues before it refuses: nothing of what is sent is turned away.
    spans, ended = (3_000, 1_000) if report.quick else (15_000, 4_000)
    counts = {"warm": 400, "rate": spans, "kill": ended, "stop": ended}
    parts = {name: list(batches(count, LINES)) for name, count in counts.items()}
    command = installed()
    theirs = measure(Phoenix(folder / "phoenix", command), parts)
    report.say(f"  Phoenix: {shown(theirs.stored_rate)} spans/s stored (load {os.getloadavg()[0]:.1f})")
    ours = measure(Ours(folder / "ours"), parts)
    report.details["peers"] = {"observatory": asdict(ours), f"phoenix {VERSION}": asdict(theirs)}
    report.add(Figure("OTLP in, stored: Observatory", "spans/s", ours.stored_rate, ASKED))
    report.add(Figure(f"OTLP in, stored: Phoenix {VERSION}", "spans/s", theirs.stored_rate))
    lost = 2 * ours.offered - ours.after_kill - ours.after_stop + ours.sent - ours.stored
    report.add(Figure("OTLP in, answered and lost: Observatory", "spans", lost, 0, is_limit=True))
    report.say("\n" + table(ours, theirs))


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.peers",
        description="Measure OTLP in compared with Arize Phoenix on this machine.",
    )
    parser.add_argument("--quick", action="store_true", help="fewer spans")
    parser.add_argument("--json", type=Path, help="where to write the figures (default: bench/out)")
    asked = parser.parse_args()
    report = Report(asked.quick)
    OUT.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="peers-", dir=OUT))
    report.say(f"OTLP over HTTP, {LINES} spans a request, {CONNECTIONS} connections, SQLite on both sides")
    try:
        compare(report, folder)
    except NoPeer as why:
        sys.exit(f"bench-peers: nothing was compared. {why}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    report.say(f"\nwritten to {report.write(asked.json)}")


if __name__ == "__main__":
    main()

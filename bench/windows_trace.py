"""Chromium's own trace, read for one figure: how long scripts ran between one frame and the next.

Everything counts that runs JavaScript on the page's main thread: the socket, React, timers, the map. Nested
events are counted once. A frame begins where the page's animation frame is fired.
"""

from __future__ import annotations

import json
import statistics
from dataclasses import dataclass

SCRIPTS = frozenset(
    {"FunctionCall", "EvaluateScript", "FireAnimationFrame", "TimerFire", "RunMicrotasks", "v8.callFunction"}
    | {"EventDispatch", "V8.GC_MC_BACKGROUND_MARKING", "MajorGC", "MinorGC"}
)
CATEGORIES = ["devtools.timeline", "v8.execute", "disabled-by-default-devtools.timeline"]


@dataclass(frozen=True)
class Frames:
    count: int
    median_ms: float
    p95_ms: float
    longest_ms: float
    per_second: float


def read(trace: bytes) -> Frames:
    events = json.loads(trace)["traceEvents"]
    fired = [one for one in events if one["name"] == "FireAnimationFrame" and one.get("ph") == "X"]
    assert fired, "the page drew no frame while it was traced"
    threads = [(one["pid"], one["tid"]) for one in fired]
    page = max(set(threads), key=threads.count)
    starts = sorted(one["ts"] for one in fired if (one["pid"], one["tid"]) == page)
    starts = [ts for n, ts in enumerate(starts) if n == 0 or ts - starts[n - 1] > 1_000]
    spans = sorted(
        (one["ts"], one["ts"] + one.get("dur", 0))
        for one in events
        if one["name"] in SCRIPTS and one.get("ph") == "X" and (one["pid"], one["tid"]) == page
    )
    spent, at, until = [0.0] * len(starts), 0, 0.0
    for begin, end in spans:
        begin = max(begin, until)  # nested in one that was counted
        if end <= begin:
            continue
        until = end
        while at + 1 < len(starts) and starts[at + 1] <= begin:
            at += 1
        spent[at] += end - begin
    took = sorted(us / 1_000 for us in spent[1:-1]) or [0.0]
    whole_s = (starts[-1] - starts[0]) / 1_000_000 or 1.0
    return Frames(
        len(took),
        statistics.median(took),
        took[min(len(took) - 1, int(len(took) * 0.95))],
        took[-1],
        (len(starts) - 1) / whole_s,
    )

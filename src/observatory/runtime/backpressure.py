"""Backpressure for the analyst, which shares a machine's cores with the gateway: when it rests, and how long.

Law: while messages are folded nearly as fast as they arrive, it does not rest: what people see is late by a
second or two. When twice as much arrives as can be folded and it is far behind already, it cannot catch up
for as long as that lasts, and the gateway's commits need the cores more: it rests longer than it works, and
catches up when less arrives. A backlog alone, as after an import, is no reason to rest, and neither is one
slow page.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

FAR = 5_000  # messages
TOO_MUCH = 2.0  # times what is folded in the same time
RESTS = 3.0  # times as long as it worked
MAX_REST_S = 4.0
SPAN_S = 2.0  # rates are measured over this span, or over two rounds if those took longer


class ProgressSample(NamedTuple):
    at: float
    head: int
    cursor: int
    worked_s: float  # since the beginning


class AnalystBackpressure:
    """Decides after each round of work, from the progress of record and folding over all claimed tenants."""

    def __init__(self) -> None:
        self._marks: deque[ProgressSample] = deque()

    def rest_s(self, at: float, worked_s: float, head: int, cursor: int) -> float:
        """How long to rest. `at`: when the record was at `head`; `worked_s`: how long cores were busy."""
        marks = self._marks
        marks.append(ProgressSample(at, head, cursor, (marks[-1].worked_s if marks else 0.0) + worked_s))
        while len(marks) > 2 and marks[1].at <= at - SPAN_S:
            marks.popleft()
        since, folded = marks[0], cursor - marks[0].cursor
        span_s, busy_s = at - since.at, marks[-1].worked_s - since.worked_s
        if span_s <= 0 or busy_s <= 0 or folded <= 0 or head - cursor <= FAR:
            return 0.0
        arrival_rate, fold_rate = (head - since.head) / span_s, folded / busy_s
        return min(MAX_REST_S, RESTS * worked_s) if arrival_rate > TOO_MUCH * fold_rate else 0.0

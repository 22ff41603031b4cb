"""When the analyst rests: it and the gateway share a machine's cores.

Law: while what comes in can be folded nearly as fast, nobody rests: what people see is late by a second or
two. When twice as much comes in as can be folded and it is far behind already, the chase is lost for as long
as that lasts, and whoever commits needs the cores more: it rests longer than it works, and catches up when
less comes. A backlog alone, as after an import, is no reason to rest, and neither is one slow page.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

FAR = 5_000  # messages
TOO_MUCH = 2.0  # times what is folded in the same time
RESTS = 3.0  # times as long as it worked
LONGEST_S = 4.0
SPAN_S = 2.0  # what came and what was folded is looked at over so long, or over two rounds that took longer


class Mark(NamedTuple):
    at: float
    head: int
    cursor: int
    worked_s: float  # since the beginning


class GivingWay:
    """Told after each round of work how far the record and the folding have come, over all tenants it has."""

    def __init__(self) -> None:
        self._marks: deque[Mark] = deque()

    def rest_s(self, at: float, worked_s: float, head: int, cursor: int) -> float:
        """How long to rest. `at`: when the record was at `head`; `worked_s`: how long cores were busy."""
        marks = self._marks
        marks.append(Mark(at, head, cursor, (marks[-1].worked_s if marks else 0.0) + worked_s))
        while len(marks) > 2 and marks[1].at <= at - SPAN_S:
            marks.popleft()
        since, folded = marks[0], cursor - marks[0].cursor
        span_s, busy_s = at - since.at, marks[-1].worked_s - since.worked_s
        if span_s <= 0 or busy_s <= 0 or folded <= 0 or head - cursor <= FAR:
            return 0.0
        comes, folds = (head - since.head) / span_s, folded / busy_s
        return min(LONGEST_S, RESTS * worked_s) if comes > TOO_MUCH * folds else 0.0

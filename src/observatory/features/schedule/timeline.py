"""The schedule as a strip of time, folded into bins: what came of each firing, what was missed, what comes.

Laws. Bins lie at whole multiples of their length, so that the same moment is always in the same bin. What was
fired is what runs say. Missed is told without asking the record: a time of the line after the job's last
change and before its next firing was dealt with, so where it has no run it was left out. Before that change
another line held, and only runs are told. A bin counts at most `MOST` times of a line: enough to draw it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any, Literal, NamedTuple

from observatory.features.schedule import cron as schedule

Row = Mapping[str, Any]
What = Literal["sent", "failed", "missed", "waiting", "planned"]
MOST = 100
BINS = 192  # at most, in all
# What a run's state comes to on the strip. A refused one is tried again; one that is held waits for a person.
COMES_TO: dict[str, What] = {
    "sent": "sent",
    "dead": "failed",
    "skipped": "missed",
    "due": "waiting",
    "queued": "waiting",
    "held": "waiting",
    "refused": "waiting",
}


class Span(NamedTuple):
    """From a bin's beginning to another's end; `now_ns` lies in one of them."""

    from_ns: int
    until_ns: int
    bin_ns: int
    now_ns: int

    def start_of(self, at_ns: int) -> int:
        return at_ns // self.bin_ns * self.bin_ns


class Counted(NamedTuple):
    """Runs of a job for times of one bin, in one state."""

    job_id: str
    start_ns: int
    state: str
    manual: bool
    runs: int


def span_of(now_ns: int, hours: int, bins: int) -> Span:
    """`hours` back and as many ahead, in about `bins` bins of whole minutes."""
    minute = 60 * schedule.SECOND
    wanted = 2 * hours * 60 * minute // max(2, min(bins, BINS))
    bin_ns = max(minute, -(-wanted // minute) * minute)
    reach = hours * 60 * minute
    first = (now_ns - reach) // bin_ns * bin_ns
    last = -(-(now_ns + reach) // bin_ns) * bin_ns
    return Span(first, last, bin_ns, now_ns)


def bins_of(job: Row, runs: Iterable[Counted], span: Span) -> list[dict[str, Any]]:
    """The bins in which anything is, in order of time; `at_ns` is where one begins."""
    found: dict[int, dict[str, int]] = {}
    fired: dict[int, int] = {}

    def add(start_ns: int, what: What, count: int) -> None:
        counts = found.setdefault(start_ns, {})
        counts[what] = counts.get(what, 0) + count

    for run in runs:
        add(run.start_ns, COMES_TO[run.state], run.runs)
        if not run.manual:
            fired[run.start_ns] = fired.get(run.start_ns, 0) + run.runs
    next_ns = job["next_for_ns"]
    if job["kind"] == "once":
        _once(job, span, fired, add)
    elif next_ns is not None:
        changed_ns = max(span.from_ns, job["updated_ns"] + 1)
        for start_ns, count in _times(job, changed_ns, min(next_ns, span.until_ns), span):
            left = count - fired.get(start_ns, 0)
            if left > 0:
                add(start_ns, "missed", left)
        for start_ns, count in _times(job, max(next_ns, span.from_ns), span.until_ns, span):
            add(start_ns, "planned", count)
    return [{"at_ns": start_ns, **found[start_ns]} for start_ns in sorted(found)]


def _once(job: Row, span: Span, fired: dict[int, int], add: Any) -> None:
    at_ns = job["at_ns"]
    if at_ns is None or not span.from_ns <= at_ns < span.until_ns:
        return
    start_ns = span.start_of(at_ns)
    if job["next_for_ns"] is not None:
        add(start_ns, "planned", 1)
    elif job["last_outcome"] == "missed" and not fired.get(start_ns):
        add(start_ns, "missed", 1)


def _times(job: Row, from_ns: int, until_ns: int, span: Span) -> Iterator[tuple[int, int]]:
    """Bins and how many times of the line are in them, from (inclusive) until (exclusive)."""
    start_ns = span.start_of(from_ns)
    while start_ns < until_ns:
        end_ns = start_ns + span.bin_ns
        low, high = max(start_ns, from_ns), min(end_ns, until_ns)
        whole = (low, high) == (start_ns, end_ns)
        count = (_whole if whole else _count)(job["cron"], job["zone"], low, high)
        if count:
            yield start_ns, count
        start_ns = end_ns


def _count(cron: str, zone: str, low: int, high: int) -> int:
    count = 0
    try:
        for at_ns in islice(schedule.times_after(cron, zone, low - 1), MOST):
            if at_ns >= high:
                break
            count += 1
    except schedule.BadSchedule:  # its zone is known no more
        return 0
    return count


# Asked again with every look at the page: what a line does in a bin does not change.
_whole = lru_cache(maxsize=65_536)(_count)

"""The schedule's timeline, in bins: the outcome of each firing, missed runs, planned runs.

Laws. Bins lie at whole multiples of their length, so that the same moment is always in the same bin. Fired
runs are counted from their rows. Missed runs are derived without reading the record: a time of the line after
the job's last change and before its next firing was handled, so without a run it was missed. Before that
change another line applied, and only runs are counted. A bin counts at most `MOST` times of a line: enough to
draw it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any, Literal, NamedTuple

from observatory.features.schedule import cron as schedule

Row = Mapping[str, Any]
RunOutcome = Literal["sent", "failed", "missed", "waiting", "planned"]
MAX_PER_BIN = 100
BINS = 192  # at most, in all
# The timeline's outcome for a run's state. A refused run is retried; a held one waits for a person.
OUTCOME_OF_STATE: dict[str, RunOutcome] = {
    "sent": "sent",
    "dead": "failed",
    "skipped": "missed",
    "due": "waiting",
    "queued": "waiting",
    "held": "waiting",
    "refused": "waiting",
}


class TimelineSpan(NamedTuple):
    """From a bin's beginning to another's end; `now_ns` lies in one of them."""

    from_ns: int
    until_ns: int
    bin_ns: int
    now_ns: int

    def start_of(self, at_ns: int) -> int:
        return at_ns // self.bin_ns * self.bin_ns


class RunCount(NamedTuple):
    """Runs of a job for times of one bin, in one state."""

    job_id: str
    start_ns: int
    state: str
    manual: bool
    runs: int


def span_of(now_ns: int, hours: int, bins: int) -> TimelineSpan:
    """`hours` back and as many ahead, in about `bins` bins of whole minutes."""
    minute = 60 * schedule.SECOND
    length_ns = 2 * hours * 60 * minute // max(2, min(bins, BINS))
    bin_ns = max(minute, -(-length_ns // minute) * minute)
    half_ns = hours * 60 * minute
    first = (now_ns - half_ns) // bin_ns * bin_ns
    last = -(-(now_ns + half_ns) // bin_ns) * bin_ns
    return TimelineSpan(first, last, bin_ns, now_ns)


def bins_of(job: Row, runs: Iterable[RunCount], span: TimelineSpan) -> list[dict[str, Any]]:
    """The bins that are not empty, in order of time; `at_ns` is where one begins."""
    counts_by_bin: dict[int, dict[str, int]] = {}
    fired: dict[int, int] = {}

    def add(start_ns: int, outcome: RunOutcome, count: int) -> None:
        counts = counts_by_bin.setdefault(start_ns, {})
        counts[outcome] = counts.get(outcome, 0) + count

    for run in runs:
        add(run.start_ns, OUTCOME_OF_STATE[run.state], run.runs)
        if not run.manual:
            fired[run.start_ns] = fired.get(run.start_ns, 0) + run.runs
    next_ns = job["next_for_ns"]
    if job["kind"] == "once":
        _once(job, span, fired, add)
    elif next_ns is not None:
        changed_ns = max(span.from_ns, job["updated_ns"] + 1)
        for start_ns, count in _times(job, changed_ns, min(next_ns, span.until_ns), span):
            unfired = count - fired.get(start_ns, 0)
            if unfired > 0:
                add(start_ns, "missed", unfired)
        for start_ns, count in _times(job, max(next_ns, span.from_ns), span.until_ns, span):
            add(start_ns, "planned", count)
    return [{"at_ns": start_ns, **counts_by_bin[start_ns]} for start_ns in sorted(counts_by_bin)]


def _once(job: Row, span: TimelineSpan, fired: dict[int, int], add: Any) -> None:
    at_ns = job["at_ns"]
    if at_ns is None or not span.from_ns <= at_ns < span.until_ns:
        return
    start_ns = span.start_of(at_ns)
    if job["next_for_ns"] is not None:
        add(start_ns, "planned", 1)
    elif job["last_outcome"] == "missed" and not fired.get(start_ns):
        add(start_ns, "missed", 1)


def _times(job: Row, from_ns: int, until_ns: int, span: TimelineSpan) -> Iterator[tuple[int, int]]:
    """Bins with their number of times of the line, from (inclusive) until (exclusive)."""
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
        for at_ns in islice(schedule.times_after(cron, zone, low - 1), MAX_PER_BIN):
            if at_ns >= high:
                break
            count += 1
    except schedule.BadSchedule:  # its zone is no longer known
        return 0
    return count


# Read again with every page view: a line's count in a bin does not change.
_whole = lru_cache(maxsize=65_536)(_count)

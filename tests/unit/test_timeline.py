"""The schedule as a strip of time: bins, what came of firings, and what was missed without a word."""

from __future__ import annotations

from typing import Any

import pytest

from observatory.features.schedule import timeline
from observatory.features.schedule.timeline import MAX_PER_BIN, RunCount

MINUTE = 60 * 10**9
HOUR = 60 * MINUTE
# 2026-11-16T12:00:00Z
NOON = 1_794_830_400 * 10**9


def job(**more: Any) -> dict[str, Any]:
    made = {
        "job_id": "job_1",
        "kind": "cron",
        "cron": "*/10 * * * *",
        "zone": "UTC",
        "at_ns": None,
        "next_for_ns": NOON,
        "updated_ns": NOON - 2 * HOUR,
        "last_outcome": None,
    }
    return made | more


def received(found: list[dict[str, Any]]) -> dict[int, dict[str, int]]:
    """By hours from noon."""
    return {
        (one["at_ns"] - NOON) // HOUR: {name: n for name, n in one.items() if name != "at_ns"}
        for one in found
    }


@pytest.mark.parametrize(("hours", "bins"), [(1, 48), (6, 12), (24, 48), (24, 192), (168, 2), (1, 192)])
def test_bins_lie_at_whole_multiples_and_reach_both_ways_s640(hours: int, bins: int) -> None:
    """S640"""
    now_ns = NOON + 123_456_789
    span = timeline.span_of(now_ns, hours, bins)
    assert span.bin_ns % MINUTE == 0 and span.from_ns % span.bin_ns == 0 == span.until_ns % span.bin_ns
    assert span.from_ns <= now_ns - hours * HOUR and span.until_ns >= now_ns + hours * HOUR
    assert (span.until_ns - span.from_ns) // span.bin_ns <= bins + 2


def test_what_came_of_firings_is_told_and_what_has_no_run_was_missed_s640_s641() -> None:
    """S640, S641: six times an hour since the change; of the hour before noon four have a run."""
    span = timeline.span_of(NOON, 3, 6)
    assert span.bin_ns == HOUR
    runs = [
        RunCount("job_1", NOON - HOUR, "sent", False, 2),
        RunCount("job_1", NOON - HOUR, "dead", False, 1),
        RunCount("job_1", NOON - HOUR, "skipped", False, 1),
        RunCount("job_1", NOON - HOUR, "refused", True, 1),
        RunCount("job_1", NOON - 3 * HOUR, "sent", False, 1),
    ]
    found = received(timeline.bins_of(job(), runs, span))
    # By hand is beside its times. Before the change only what ran is known; the moment of the change itself
    # fired nothing.
    assert found == {
        -3: {"sent": 1},
        -2: {"missed": 5},
        -1: {"sent": 2, "failed": 1, "missed": 3, "waiting": 1},
        0: {"planned": 6},
        1: {"planned": 6},
        2: {"planned": 6},
    }


def test_a_paused_job_misses_and_plans_nothing_and_one_moment_is_told_s641() -> None:
    """S641"""
    span = timeline.span_of(NOON, 3, 6)
    assert timeline.bins_of(job(next_for_ns=None), [], span) == []
    once = {"kind": "once", "cron": None, "at_ns": NOON + HOUR}
    assert received(timeline.bins_of(job(**once), [], span)) == {1: {"planned": 1}}
    over = once | {"next_for_ns": None, "at_ns": NOON - HOUR, "last_outcome": "missed"}
    assert received(timeline.bins_of(job(**over), [], span)) == {-1: {"missed": 1}}
    ran = [RunCount("job_1", NOON - HOUR, "sent", False, 1)]
    assert received(timeline.bins_of(job(**over) | {"last_outcome": "sent"}, ran, span)) == {-1: {"sent": 1}}


def test_what_is_overdue_stays_planned_and_a_bin_counts_only_so_far_s640() -> None:
    """S640: nobody led for an hour; and a line of every second."""
    span = timeline.span_of(NOON, 2, 4)
    late = timeline.bins_of(job(next_for_ns=NOON - HOUR), [], span)
    assert received(late)[-1] == {"planned": 6}
    each = timeline.bins_of(job(cron="* * * * * *"), [], span)
    assert received(each)[0] == {"planned": MAX_PER_BIN}
    assert timeline.bins_of(job(zone="No/Where"), [], span) == []

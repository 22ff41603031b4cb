"""When a job fires: cron lines, zones, summer time, lateness, jitter. Tables of cases, no clock."""

from __future__ import annotations

from datetime import datetime
from itertools import islice, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from observatory.features.schedule import commands_firing as firing
from observatory.features.schedule import cron as schedule
from observatory.features.schedule import worker as scheduler
from observatory.features.schedule.cron import MAX_COUNTED, MAX_LATE, SECOND, BadSchedule, PlannedFiring
from observatory.pipeline.state import Principal

MINUTE, HOUR, DAY = 60 * SECOND, 3_600 * SECOND, 86_400 * SECOND


def ns(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp()) * SECOND


def shown(times: list[int]) -> list[str]:
    return [datetime.fromtimestamp(at / SECOND).astimezone().isoformat() for at in times]


# line, zone, after, the next ones in UTC
TIMES = [
    ("0 6 * * 1-5", "UTC", "2026-11-13T07:00Z", ["2026-11-16T06:00Z", "2026-11-17T06:00Z"]),
    ("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00Z", ["2026-03-29T01:00Z", "2026-03-30T00:30Z"]),
    ("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00Z", ["2026-10-25T00:30Z", "2026-10-26T01:30Z"]),
    # asked within the hour that comes twice: its local time lies before, and is not given again
    ("30 2 * * *", "Europe/Berlin", "2026-10-25T01:10Z", ["2026-10-26T01:30Z"]),
    ("*/30 * * * *", "Europe/Berlin", "2026-10-25T00:30Z", ["2026-10-25T01:00Z", "2026-10-25T01:30Z"]),
    ("0 2-3 * * *", "Europe/Berlin", "2026-03-28T12:00Z", ["2026-03-29T01:00Z", "2026-03-30T00:00Z"]),
    ("0 0 29 2 *", "UTC", "2026-11-16T00:00Z", ["2028-02-29T00:00Z", "2032-02-29T00:00Z"]),
    ("0 0 L * *", "UTC", "2026-11-16T00:00Z", ["2026-11-30T00:00Z", "2026-12-31T00:00Z"]),
    ("*/10 * * * * *", "UTC", "2026-11-16T00:00:05Z", ["2026-11-16T00:00:10Z", "2026-11-16T00:00:20Z"]),
]


@pytest.mark.parametrize(("line", "zone", "after", "expected"), TIMES)
def test_the_next_times_of_a_line_s466(line: str, zone: str, after: str, expected: list[str]) -> None:
    """S466: in the job's zone; the hour that is missing fires at its end, the one that comes twice once."""
    found = list(islice(schedule.times_after(line, zone, ns(after)), len(expected)))
    assert found == [ns(text) for text in expected], shown(found)


LINES = st.sampled_from(["*/5 * * * *", "30 2 * * *", "0 1-4 * * *", "15 */2 * * *", "0 3 * * 0"])
ZONES = st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"])


@given(LINES, ZONES, st.integers(ns("2026-01-01T00:00Z"), ns("2027-12-31T00:00Z")))
def test_times_only_ever_grow_s466(line: str, zone: str, after: int) -> None:
    """S466: whatever the zone does to its clocks."""
    found = list(islice(schedule.times_after(line, zone, after), 6))
    assert found[0] > after and all(a < b for a, b in pairwise(found))
    assert schedule.next_after(line, zone, found[2]) == found[3], "from any of them it goes on the same"


NOT_READ = ["", "soon", "* * *", "61 * * * *", "0 0 30 2 *", "0 0 31 4,6 *", "*/0 * * * *", "1-0 * * * *"]
NOT_READ += ["0 0 * * 8", "0 0 1L * *", "9" * 300, "0 0 * * MON#6", "a b c d e", "0 0 * * *\n\n\n* *"]


@pytest.mark.parametrize("line", NOT_READ)
def test_a_line_that_cannot_be_read_is_refused_in_words_s467(line: str) -> None:
    """S467: one sentence, in which nothing of the line is repeated."""
    with pytest.raises(BadSchedule) as refused:
        schedule.check(line, "UTC", ns("2026-11-16T00:00Z"))
    assert "cron line" in str(refused.value) and "Traceback" not in str(refused.value)


@pytest.mark.parametrize(
    "zone", ["", "Mars/Olympus", "../../etc/passwd", "/etc/localtime", "a\x00b", "Europe"]
)
def test_a_zone_that_nobody_knows_is_refused_s467(zone: str) -> None:
    """S467: and it is no way to a file."""
    with pytest.raises(BadSchedule, match="zone"):
        schedule.next_after("* * * * *", zone, 0)


def job(**given: Any) -> dict[str, Any]:
    plain = {"job_id": "job_1", "kind": "cron", "cron": "*/10 * * * *", "zone": "UTC", "at_ns": None}
    return plain | {"jitter_s": 0, "grace_s": 60, "misfire": "run_once", "next_for_ns": 10 * MINUTE} | given


# misfire, minutes since, runs, missed
LATE = [
    ("skip", 9, [], 0),
    ("skip", 10, [10], 0),
    ("skip", 11, [10], 0),
    ("skip", 12, [], 1),
    ("run_once", 12, [10], 0),
    ("skip", 60, [60], 5),
    ("skip", 62, [], 6),
    ("run_once", 60, [60], 5),
    ("run_once", 62, [60], 5),
    ("run_all", 62, [10, 20, 30, 40, 50, 60], 0),
]


@pytest.mark.parametrize(("misfire", "minutes", "runs", "missed"), LATE)
def test_what_is_late_is_skipped_run_once_or_run_all_s468(
    misfire: str, minutes: int, runs: list[int], missed: int
) -> None:
    """S468: late is more than the grace; what is on time is never called late."""
    plan = schedule.plan(job(misfire=misfire), minutes * MINUTE)
    assert [at // MINUTE for at in plan.runs] == runs and plan.missed == missed
    assert plan.following is not None
    assert plan.following.for_ns == (minutes // 10 + 1) * 10 * MINUTE


def test_a_long_silence_is_counted_before_the_lock_and_written_in_shares_s484(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """S484: a leader that takes long in a transaction is cut off; of many that are late none would fire."""
    counted, real = list[int](), schedule.plan

    def count(row: dict[str, Any], now_ns: int) -> schedule.FiringPlan:
        counted.append(now_ns)
        return real(row, now_ns)

    monkeypatch.setattr(schedule, "plan", count)
    late = job(cron="* * * * *", misfire="run_all", overlap="allow", last_seq=None)
    who = Principal(tenant_id="tnt_1", role="admin", key_id="sys_gateway")
    acts = [firing.fire(who, late, 1, 365 * DAY) for _ in range(12)]
    assert len(counted) == 12, "when the act is made, not when it is decided"
    assert [len(share) for share in scheduler._shares(acts)] == [5, 5, 2]
    gone = firing.fire(who, late | {"zone": "Atlantis/Poseidonis"}, 1, 365 * DAY)
    assert gone.size == 1_024, "a zone that is known no more stops no other job"


def test_a_long_silence_is_made_up_for_within_bounds_s468() -> None:
    """S468: a year of minutes: the newest hundred, or the newest, and it costs a moment."""
    year = job(cron="* * * * *", misfire="run_all")
    plan = schedule.plan(year, 365 * DAY)
    assert len(plan.runs) == MAX_LATE and plan.is_more and plan.missed == MAX_COUNTED
    assert plan.runs[-1] == 365 * DAY and all(b - a == MINUTE for a, b in pairwise(plan.runs))
    assert plan.following == PlannedFiring(365 * DAY + MINUTE, 365 * DAY + MINUTE)
    assert schedule.plan(year | {"misfire": "run_once", "grace_s": 1}, 365 * DAY + 30 * SECOND).runs == (
        365 * DAY,
    )
    assert schedule.plan(year | {"misfire": "skip", "grace_s": 1}, 365 * DAY + 30 * SECOND).runs == ()


@given(st.integers(0, 86_400), st.integers(1, 10_000))
def test_jitter_follows_from_job_and_time_and_stays_before_the_next_s470(jitter_s: int, number: int) -> None:
    """S470: the same whoever asks; never beyond the next firing."""
    at = number * 10 * MINUTE
    one = next(schedule.upcoming(job(jitter_s=jitter_s), at - 1))
    assert one == next(schedule.upcoming(job(jitter_s=jitter_s), at - 1))
    assert one.for_ns == at and at <= one.fire_ns < at + min(max(1, jitter_s * SECOND), 10 * MINUTE)


def test_jitter_spreads_jobs_of_one_minute_s470() -> None:
    """S470: a hundred jobs of six o'clock do not come in one second."""
    times = {
        next(schedule.upcoming(job(job_id=f"job_{n}", jitter_s=300), 0)).fire_ns // SECOND for n in range(100)
    }
    assert len(times) > 60


def test_a_moment_s473() -> None:
    """S473: before, at, late, and too late for one that may be skipped."""
    once = job(kind="once", cron=None, at_ns=HOUR, next_for_ns=HOUR)
    assert schedule.plan(once, HOUR - 1) == ((), 0, None, PlannedFiring(HOUR, HOUR), None, False)
    assert schedule.plan(once, HOUR).runs == (HOUR,) and schedule.plan(once, HOUR).following is None
    assert schedule.plan(once, 9 * HOUR).runs == (HOUR,)
    assert schedule.plan(once | {"misfire": "skip"}, 9 * HOUR) == ((), 1, HOUR, None, HOUR, False)


def test_a_time_that_was_dealt_with_does_not_come_again_s471() -> None:
    """S471: a job changed or resumed after its clock had run ahead goes on from where that had led."""
    ahead = job(last_for_ns=2 * HOUR)
    assert schedule.first_of(ahead, HOUR) == PlannedFiring(2 * HOUR + 10 * MINUTE, 2 * HOUR + 10 * MINUTE)
    once = job(kind="once", at_ns=HOUR, last_for_ns=HOUR)
    assert schedule.first_of(once, 3 * HOUR) == PlannedFiring(HOUR + 1, HOUR + 1), "it is asked for once more"

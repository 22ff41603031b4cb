"""When a job fires: pure functions, in whole nanoseconds since 1970, UTC.

Laws. A cron line is evaluated in the job's zone. When clocks go forward, times in the missing hour fire at
its end; when they go back, a line with fixed hours fires once, and one with `*` in minute or hour continues
by real time (as Debian's cron does; cronsim implements it). Times only grow: each lies after the previous
one, whatever the clock shows now. Late by more than the grace period is a misfire; the job's `misfire` says
what to do. Jitter is derived from job and time, and never reaches the next time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from hashlib import sha256
from typing import Any, Literal, NamedTuple

Misfire = Literal["skip", "run_once", "run_all"]
Overlap = Literal["allow", "skip", "queue"]
SECOND = 1_000_000_000
MAX_LATE = 100  # missed runs that are made up for at once, the newest; older ones are recorded as missed
MAX_COUNTED = 1_000  # missed times that are counted; beyond it only the newest are read
LONGEST_CRON = 200
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Later times are not computed: no zone's rules are known that far ahead.
LAST_NS = int(datetime(9000, 1, 1, tzinfo=UTC).timestamp()) * SECOND


class BadSchedule(ValueError):
    """A cron line or zone that cannot be used; the message is one sentence for its author."""


@lru_cache(maxsize=256)
def zone_of(name: str) -> tzinfo:
    """A zone by its IANA name. UTC is Python's own: cronsim treats it as one without changes."""
    from zoneinfo import ZoneInfo

    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise BadSchedule("unknown time zone; use an IANA name such as Europe/Berlin") from error


def check(cron: str, zone: str, now_ns: int) -> None:
    """Raises BadSchedule for a line that cannot be parsed, and for one that never fires."""
    if next_after(cron, zone, now_ns) is None:
        raise BadSchedule("the cron line matches no time in the next 50 years")


def next_after(cron: str, zone: str, after_ns: int) -> int | None:
    """The first time of the line after `after_ns`; None when there is none for 50 years."""
    return next(times_after(cron, zone, after_ns), None)


def times_after(cron: str, zone: str, after_ns: int) -> Iterator[int]:
    """Strictly growing times. Where the local clock goes back, a line's next local time may lie before
    `after_ns`: those are skipped."""
    last = after_ns
    if after_ns >= LAST_NS:
        return
    for local in _simulated(cron, zone, after_ns):
        at_ns = (local.astimezone(UTC) - EPOCH) // timedelta(seconds=1) * SECOND
        if at_ns >= LAST_NS:
            return
        if at_ns > last:
            yield at_ns
            last = at_ns


def _simulated(cron: str, zone: str, after_ns: int, reverse: bool = False) -> Any:
    from cronsim import CronSim, CronSimError

    if len(cron) > LONGEST_CRON:
        raise BadSchedule(f"a cron line has at most {LONGEST_CRON} characters")
    start = (EPOCH + timedelta(seconds=after_ns // SECOND)).astimezone(zone_of(zone))
    try:
        return CronSim(cron, start, reverse)
    except CronSimError as error:
        raise BadSchedule(f"the cron line cannot be parsed: {_explain_problem(str(error))}") from error
    except (ValueError, TypeError, AssertionError) as error:
        raise BadSchedule("the cron line cannot be parsed: unknown form") from error


def _explain_problem(problem: str) -> str:
    if problem == "Wrong number of fields":
        return (
            "it needs five fields (minute, hour, day of month, month, day of week), or six with seconds first"
        )
    return f"invalid field: {problem.removeprefix('Bad ')}"


def explain(cron: str, zone: str) -> str:
    """A description of the line in English."""
    description: str = _simulated(cron, zone, 0).explain()
    return description


def jitter_ns(job_id: str, at_ns: int, jitter_s: int, following_ns: int | None) -> int:
    """How much later than its time this firing happens; always the same, and before the next time."""
    limit = jitter_s * SECOND
    if following_ns is not None:
        limit = min(limit, max(0, following_ns - at_ns - SECOND))
    if limit <= 0:
        return 0
    draw = int.from_bytes(sha256(f"{job_id}/{at_ns}".encode()).digest()[:8], "big")
    return draw % limit


class PlannedFiring(NamedTuple):
    """A firing: its scheduled time, and when it happens (later by its jitter)."""

    for_ns: int
    fire_ns: int


def upcoming(job: Mapping[str, Any], after_ns: int) -> Iterator[PlannedFiring]:
    """Firings of a job after `after_ns`, as long as there are any."""
    if job["kind"] == "once":
        if job["at_ns"] is not None and job["at_ns"] > after_ns:
            yield PlannedFiring(job["at_ns"], job["at_ns"])
        return
    previous: int | None = None
    for at_ns in times_after(job["cron"], job["zone"], after_ns):
        if previous is not None:
            yield _planned(job, previous, at_ns)
        previous = at_ns
    if previous is not None:
        yield _planned(job, previous, None)


def _planned(job: Mapping[str, Any], at_ns: int, following_ns: int | None) -> PlannedFiring:
    return PlannedFiring(at_ns, at_ns + jitter_ns(job["job_id"], at_ns, job["jitter_s"], following_ns))


class FiringPlan(NamedTuple):
    """What to do about a job now: the times to run, how many were missed, and the next firing."""

    runs: tuple[int, ...]
    missed: int
    first_missed: int | None
    following: PlannedFiring | None
    last: int | None = None  # the newest time handled
    is_more: bool = False  # more were missed than are counted


def plan(job: Mapping[str, Any], now_ns: int) -> FiringPlan:
    """The plan for a job whose `next_for_ns` is the first time not handled yet."""
    if job["kind"] == "once":
        return _once(job, now_ns)
    due: list[PlannedFiring] = []
    following: PlannedFiring | None = None
    for one in upcoming(job, job["next_for_ns"] - 1):
        if one.fire_ns > now_ns:
            following = one
            break
        if len(due) == MAX_COUNTED:
            return _long_silence(job, now_ns)
        due.append(one)
    grace_ns = job["grace_s"] * SECOND
    in_time = [one.for_ns for one in due if now_ns - one.fire_ns <= grace_ns]
    late = [one.for_ns for one in due if now_ns - one.fire_ns > grace_ns]
    misfire: Misfire = job["misfire"]
    if misfire == "run_all":
        runs = (late + in_time)[-MAX_LATE:]
    elif misfire == "run_once":
        runs = in_time or late[-1:]
    else:
        runs = in_time
    scheduled = set(runs)
    missed = [one.for_ns for one in due if one.for_ns not in scheduled]
    last = due[-1].for_ns if due else None
    return FiringPlan(tuple(runs), len(missed), missed[0] if missed else None, following, last)


def _long_silence(job: Mapping[str, Any], now_ns: int) -> FiringPlan:
    """More was missed than is counted; the newest times are found by simulating backwards."""
    newest: list[int] = []
    for local in _simulated(job["cron"], job["zone"], now_ns + SECOND, True):
        at_ns = (local.astimezone(UTC) - EPOCH) // timedelta(seconds=1) * SECOND
        if len(newest) == MAX_LATE or at_ns < job["next_for_ns"]:
            break
        if at_ns <= now_ns:
            newest.append(at_ns)
    misfire: Misfire = job["misfire"]
    grace_ns = job["grace_s"] * SECOND
    runs = sorted(set(newest))
    if misfire != "run_all":
        in_time = [at_ns for at_ns in runs if now_ns - at_ns <= grace_ns]
        runs = in_time or (runs[-1:] if misfire == "run_once" else [])
    following = next(upcoming(job, now_ns), None)
    return FiringPlan(tuple(runs), MAX_COUNTED, job["next_for_ns"], following, now_ns, True)


def _once(job: Mapping[str, Any], now_ns: int) -> FiringPlan:
    at_ns = job["next_for_ns"]
    if at_ns > now_ns:
        return FiringPlan((), 0, None, PlannedFiring(at_ns, at_ns))
    if job["misfire"] == "skip" and now_ns - at_ns > job["grace_s"] * SECOND:
        return FiringPlan((), 1, at_ns, None, at_ns)
    return FiringPlan((at_ns,), 0, None, None, at_ns)


def first_of(job: Mapping[str, Any], now_ns: int) -> PlannedFiring | None:
    """The first firing after a job is created, changed or resumed: nothing earlier is made up for, and no
    handled time repeats, not even when the clock had run ahead.

    A one-time job whose moment has passed fires at once.
    """
    last_ns: int = job["last_for_ns"] or 0
    if job["kind"] == "once":
        at_ns = max(job["at_ns"], last_ns + 1)
        return PlannedFiring(at_ns, at_ns)
    return next(upcoming(job, max(now_ns, last_ns)), None)

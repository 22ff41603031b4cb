"""When a job fires: pure, in whole nanoseconds since 1970, UTC.

Laws. A time of a cron line is reckoned in the job's zone. When the clocks go forward, what would fall into
the hour that is missing fires at its end; when they go back, a line with fixed hours fires once, one with
`*` in minute or hour goes on by real time (as Debian's cron does; cronsim knows). Times only ever grow: the
next one lies after the one before, whatever the clock shows now. Late by more than the grace is a misfire;
what becomes of it is the job's own setting. Jitter follows from job and time, and never reaches the next.
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
MOST_LATE = 100  # runs that are made up for at once, the newest; older ones are told as missed
MOST_COUNTED = 1_000  # times a long silence is counted through; beyond it only the newest are looked at
LONGEST_CRON = 200
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Beyond, no zone's rules are known to anybody.
LAST_NS = int(datetime(9000, 1, 1, tzinfo=UTC).timestamp()) * SECOND


class BadSchedule(ValueError):
    """One sentence for whoever wrote it."""


@lru_cache(maxsize=256)
def zone_of(name: str) -> tzinfo:
    """A zone by its IANA name. UTC is Python's own: cronsim treats it as one without changes."""
    from zoneinfo import ZoneInfo

    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise BadSchedule("the zone is not known; give an IANA name such as Europe/Berlin") from error


def check(cron: str, zone: str, now_ns: int) -> None:
    """Raises BadSchedule for a line that cannot be read, and for one that never comes."""
    if next_after(cron, zone, now_ns) is None:
        raise BadSchedule("the cron line matches no time of the next 50 years")


def next_after(cron: str, zone: str, after_ns: int) -> int | None:
    """The first time of the line past `after_ns`; None when there is none for 50 years."""
    return next(times_after(cron, zone, after_ns), None)


def times_after(cron: str, zone: str, after_ns: int) -> Iterator[int]:
    """Strictly growing. Where the local clock goes back a line's next local time may lie before `after_ns`:
    such are passed over."""
    last = after_ns
    if after_ns >= LAST_NS:
        return
    for found in _simulated(cron, zone, after_ns):
        at_ns = (found.astimezone(UTC) - EPOCH) // timedelta(seconds=1) * SECOND
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
        raise BadSchedule(f"the cron line cannot be read: {_said(str(error))}") from error
    except (ValueError, TypeError, AssertionError) as error:
        raise BadSchedule("the cron line cannot be read: it has a form that is not known") from error


def _said(problem: str) -> str:
    if problem == "Wrong number of fields":
        return (
            "it has five fields (minute, hour, day of month, month, day of week), or six with seconds first"
        )
    return f"its field {problem.removeprefix('Bad ')} is not possible"


def explain(cron: str, zone: str) -> str:
    """The line in plain words."""
    said: str = _simulated(cron, zone, 0).explain()
    return said


def jitter_ns(job_id: str, at_ns: int, jitter_s: int, following_ns: int | None) -> int:
    """How much later than its time this firing comes; always the same, and before the next time."""
    most = jitter_s * SECOND
    if following_ns is not None:
        most = min(most, max(0, following_ns - at_ns - SECOND))
    if most <= 0:
        return 0
    draw = int.from_bytes(sha256(f"{job_id}/{at_ns}".encode()).digest()[:8], "big")
    return draw % most


class Planned(NamedTuple):
    """The next firing: the time it is for, and when it really comes."""

    for_ns: int
    fire_ns: int


def upcoming(job: Mapping[str, Any], after_ns: int) -> Iterator[Planned]:
    """Firings of a job past `after_ns`, as long as there are any."""
    if job["kind"] == "once":
        if job["at_ns"] is not None and job["at_ns"] > after_ns:
            yield Planned(job["at_ns"], job["at_ns"])
        return
    before: int | None = None
    for at_ns in times_after(job["cron"], job["zone"], after_ns):
        if before is not None:
            yield _planned(job, before, at_ns)
        before = at_ns
    if before is not None:
        yield _planned(job, before, None)


def _planned(job: Mapping[str, Any], at_ns: int, following_ns: int | None) -> Planned:
    return Planned(at_ns, at_ns + jitter_ns(job["job_id"], at_ns, job["jitter_s"], following_ns))


class Plan(NamedTuple):
    """What is to be done about a job now: runs for these times, so many missed, and its next firing."""

    runs: tuple[int, ...]
    missed: int
    first_missed: int | None
    following: Planned | None
    last: int | None = None  # the newest time dealt with
    is_more: bool = False  # more were missed than are counted


def plan(job: Mapping[str, Any], now_ns: int) -> Plan:
    """Of a job whose `next_for_ns` is the first time not dealt with yet."""
    if job["kind"] == "once":
        return _once(job, now_ns)
    due: list[Planned] = []
    following: Planned | None = None
    for one in upcoming(job, job["next_for_ns"] - 1):
        if one.fire_ns > now_ns:
            following = one
            break
        if len(due) == MOST_COUNTED:
            return _long_silence(job, now_ns)
        due.append(one)
    grace_ns = job["grace_s"] * SECOND
    in_time = [one.for_ns for one in due if now_ns - one.fire_ns <= grace_ns]
    late = [one.for_ns for one in due if now_ns - one.fire_ns > grace_ns]
    misfire: Misfire = job["misfire"]
    if misfire == "run_all":
        runs = (late + in_time)[-MOST_LATE:]
    elif misfire == "run_once":
        runs = in_time or late[-1:]
    else:
        runs = in_time
    kept = set(runs)
    missed = [one.for_ns for one in due if one.for_ns not in kept]
    last = due[-1].for_ns if due else None
    return Plan(tuple(runs), len(missed), missed[0] if missed else None, following, last)


def _long_silence(job: Mapping[str, Any], now_ns: int) -> Plan:
    """So much was missed that it is not counted; the newest times are found from this end."""
    newest: list[int] = []
    for found in _simulated(job["cron"], job["zone"], now_ns + SECOND, True):
        at_ns = (found.astimezone(UTC) - EPOCH) // timedelta(seconds=1) * SECOND
        if len(newest) == MOST_LATE or at_ns < job["next_for_ns"]:
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
    return Plan(tuple(runs), MOST_COUNTED, job["next_for_ns"], following, now_ns, True)


def _once(job: Mapping[str, Any], now_ns: int) -> Plan:
    at_ns = job["next_for_ns"]
    if at_ns > now_ns:
        return Plan((), 0, None, Planned(at_ns, at_ns))
    if job["misfire"] == "skip" and now_ns - at_ns > job["grace_s"] * SECOND:
        return Plan((), 1, at_ns, None, at_ns)
    return Plan((at_ns,), 0, None, None, at_ns)


def first_of(job: Mapping[str, Any], now_ns: int) -> Planned | None:
    """From when a job is made, changed or resumed: nothing before that is made up for, and no time that was
    dealt with comes again, not even when the clock had run ahead.

    A one-time job whose moment is over fires at once: that is what its maker asked for.
    """
    last_ns: int = job["last_for_ns"] or 0
    if job["kind"] == "once":
        at_ns = max(job["at_ns"], last_ns + 1)
        return Planned(at_ns, at_ns)
    return next(upcoming(job, max(now_ns, last_ns)), None)

"""Schedules go on from the present, after a clock that was wrong (S1165).

Law: jobs fire by their next time from now on, whatever time they had dealt with; nothing in between is made
up for, and a time that was fired is never fired again. Runs that wait for longer than any run does are tried
at once. One act of a person, on record with what it found.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from observatory.features.schedule import commands_firing as firing
from observatory.features.schedule.commands import planned
from observatory.features.schedule.cron import SECOND
from observatory.pipeline.event_writer import notice
from observatory.pipeline.rows import Write
from observatory.pipeline.state import Act, Desk, Principal, Verdict, Wants

# A job planned this far ahead of the clock was planned by another clock.
JOBS_NS: Final = 60 * SECOND
# The longest a refused run waits is an hour.
RUNS_NS: Final = 2 * 3_600 * SECOND
AT_ONCE: Final = 500
NAMED: Final = 50
Row = dict[str, Any]


def is_ahead(job: Row, now_ns: int) -> bool:
    beyond_ns = now_ns + JOBS_NS
    planned_ns = max(job["last_for_ns"] or 0, job["updated_ns"])
    is_cron = job["kind"] == "cron" and job["removed_ns"] is None
    return is_cron and (job["next_ns"] or 0) > beyond_ns and planned_ns > beyond_ns


def go_on(who: Principal, jobs: Sequence[Row], runs: Sequence[Row], parted_ns: int, now_ns: int) -> Act:
    """`jobs` and `runs` as they were found; `parted_ns`: how far the clock had been set."""

    def decide(desk: Desk) -> Verdict:
        mine = {"tenant_id": who.tenant_id}
        writes, names = [], []
        known = desk.memory.rows.get("jobs", {})
        for job in (known[one["job_id"]] for one in jobs if one["job_id"] in known):
            if not is_ahead(job, desk.now_ns):
                continue
            values: Row = {"last_for_ns": None, "version": job["version"] + 1}
            values |= {"updated_ns": desk.now_ns, "updated_by": who.entity_id}
            values |= planned(job | values, desk.now_ns)
            where = mine | {"job_id": job["job_id"], "version": job["version"]}
            writes.append(Write("jobs", values, where))
            names.append(job["name"])
        open_runs = desk.memory.rows.get("job_runs", {})
        tried = 0
        for run in (open_runs[one["run_id"]] for one in runs if one["run_id"] in open_runs):
            if (run["next_try_ns"] or 0) > desk.now_ns + RUNS_NS:
                where = mine | {"job_id": run["job_id"], "scheduled_for": run["scheduled_for"]}
                writes.append(Write("job_runs", {"next_try_ns": firing.AT_ONCE}, where))
                tried += 1
        detail = {
            "jobs": len(names),
            "names": names[:NAMED],
            "runs": tried,
            "clock_was_set_by_s": parted_ns // SECOND,
        }
        summary = f"{who.entity_id}: the clock is right, and {len(names)} schedules go on from now"
        event = notice(who.tenant_id, "schedule_resumed", summary, desk.now_ns, who, detail)
        return Verdict(200, {"jobs": len(names), "runs": tried}, [event], writes)

    wants = Wants()
    for job in jobs:
        wants.row("jobs", job["job_id"])
    for run in runs:
        wants.row("job_runs", run["run_id"])
    return Act(who, now_ns, decide, wants, size=1_024 + 256 * (len(jobs) + len(runs)))

"""Command that continues schedules from the present, after the clock was wrong (S1165).

Law: jobs fire by their next time from now on, whatever time they last handled; nothing in between is made
up for, and a time that was fired is never fired again. Runs that would wait longer than any retry delay are
retried at once. One command of a person, on record with what it found.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from observatory.features.schedule import commands_firing as firing
from observatory.features.schedule.commands import next_firing
from observatory.features.schedule.cron import SECOND
from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import Command, Principal, ReadSet, SubmissionResult, UnitOfWork

# A job planned this far ahead of the clock was planned by another clock.
JOBS_NS: Final = 60 * SECOND
# A refused run waits for an hour at most.
RUNS_NS: Final = 2 * 3_600 * SECOND
AT_ONCE: Final = 500
MAX_NAMES: Final = 50
Row = dict[str, Any]


def is_ahead(job: Row, now_ns: int) -> bool:
    beyond_ns = now_ns + JOBS_NS
    planned_ns = max(job["last_for_ns"] or 0, job["updated_ns"])
    is_cron = job["kind"] == "cron" and job["removed_ns"] is None
    return is_cron and (job["next_ns"] or 0) > beyond_ns and planned_ns > beyond_ns


def continue_from_now(
    who: Principal, jobs: Sequence[Row], runs: Sequence[Row], offset_ns: int, now_ns: int
) -> Command:
    """`jobs` and `runs` as read; `parted_ns`: how far the clock had been set."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        tenant = {"tenant_id": who.tenant_id}
        writes, names = [], []
        known = uow.memory.rows.get("jobs", {})
        for job in (known[one["job_id"]] for one in jobs if one["job_id"] in known):
            if not is_ahead(job, uow.now_ns):
                continue
            values: Row = {"last_for_ns": None, "version": job["version"] + 1}
            values |= {"updated_ns": uow.now_ns, "updated_by": who.entity_id}
            values |= next_firing(job | values, uow.now_ns)
            where = tenant | {"job_id": job["job_id"], "version": job["version"]}
            writes.append(RowWrite("jobs", values, where))
            names.append(job["name"])
        open_runs = uow.memory.rows.get("job_runs", {})
        tried = 0
        for run in (open_runs[one["run_id"]] for one in runs if one["run_id"] in open_runs):
            if (run["next_try_ns"] or 0) > uow.now_ns + RUNS_NS:
                where = tenant | {"job_id": run["job_id"], "scheduled_for": run["scheduled_for"]}
                writes.append(RowWrite("job_runs", {"next_try_ns": firing.AT_ONCE}, where))
                tried += 1
        detail = {
            "jobs": len(names),
            "names": names[:MAX_NAMES],
            "runs": tried,
            "clock_was_set_by_s": offset_ns // SECOND,
        }
        summary = f"{who.entity_id}: the clock is right; schedules continued from now: {len(names)}"
        event = gateway_event(who.tenant_id, "schedule_resumed", summary, uow.now_ns, who, detail)
        return SubmissionResult(200, {"jobs": len(names), "runs": tried}, [event], writes)

    read_set = ReadSet()
    for job in jobs:
        read_set.row("jobs", job["job_id"])
    for run in runs:
        read_set.row("job_runs", run["run_id"])
    return Command(who, now_ns, decide, read_set, size=1_024 + 256 * (len(jobs) + len(runs)))

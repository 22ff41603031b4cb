"""The schedule's strip of time at the door: every job's last and next hours in bins, and its last runs."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from litestar import Response, get
from litestar.params import QueryParameter

from observatory.features.schedule import timeline
from observatory.features.schedule.timeline import BINS, Counted, Span
from observatory.http.answers import json
from observatory.http.app_state import Call, Here
from observatory.http.permissions import need
from observatory.protocol.clock import from_ns

Row = dict[str, Any]
LANES = 100  # jobs that are told, the newest
RECENT = 20  # runs of each


@get("/jobs/timeline", summary="Last and next hours of every job, in bins", operation_id="job_timeline")
async def job_timeline(
    request: Call,
    house: Here,
    hours: Annotated[int, QueryParameter(ge=1, le=168, description="So far back, and so far ahead.")] = 24,
    bins: Annotated[int, QueryParameter(ge=2, le=BINS, description="About so many in all.")] = 96,
) -> Response[bytes]:
    """Reminders of agents are left out. Only bins in which anything is are told."""
    tenant_id = (await need(request, house, "read")).tenant_id
    span = timeline.span_of(house.clock(), hours, bins)
    rows = await house.schedule.jobs_page(tenant_id, None, LANES + 1, None, False)
    jobs = rows[:LANES]
    ids = [row["job_id"] for row in jobs]
    counted = await house.schedule.runs_counted(tenant_id, ids, span.from_ns, span.until_ns, span.bin_ns)
    recent: dict[str, list[Row]] = {}
    for run in await house.schedule.runs_recent(tenant_id, ids, RECENT):
        recent.setdefault(run["job_id"], []).append(run)
    lanes = await asyncio.to_thread(_lanes, jobs, [Counted(*one) for one in counted], recent, span)
    answer = {
        "from": from_ns(span.from_ns),
        "until": from_ns(span.until_ns),
        "now": from_ns(span.now_ns),
        "bin_s": span.bin_ns // 1_000_000_000,
        "most": timeline.MOST,
        "lanes": lanes,
        "more": len(rows) > LANES,
    }
    return json(answer)


def _lanes(jobs: list[Row], counted: list[Counted], recent: dict[str, list[Row]], span: Span) -> list[Row]:
    of_job: dict[str, list[Counted]] = {}
    for one in counted:
        of_job.setdefault(one.job_id, []).append(one)
    return [
        {
            "job_id": row["job_id"],
            "name": row["name"],
            "state": row["state"],
            "bins": [_bin(one) for one in timeline.bins_of(row, of_job.get(row["job_id"], ()), span)],
            "recent": [_run(run) for run in recent.get(row["job_id"], ())],
        }
        for row in jobs
    ]


def _bin(found: Row) -> Row:
    counts = {name: found.get(name, 0) for name in ("sent", "failed", "missed", "waiting", "planned")}
    return {"at": from_ns(found["at_ns"]), **counts}


def _run(row: Row) -> Row:
    return {
        "scheduled_for": from_ns(row["scheduled_for"]),
        "state": row["state"],
        "manual": bool(row["manual"]),
        "reason": row["reason"],
    }

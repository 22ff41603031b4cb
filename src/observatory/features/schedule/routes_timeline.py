"""HTTP route of the schedule's timeline: every job's past and coming hours in bins, and its last runs."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from litestar import Response, get
from litestar.params import QueryParameter

from observatory.features.schedule import timeline
from observatory.features.schedule.timeline import BINS, RunCount, TimelineSpan
from observatory.features.schedule.types_rows import Schedule
from observatory.http.answers import json
from observatory.http.app_state import Call, Here
from observatory.http.permissions import require_permission
from observatory.protocol.clock import from_ns

Row = dict[str, Any]
LANES = 100  # jobs in the answer, the newest
RECENT = 20  # runs of each


@get("/jobs/timeline", summary="Last and next hours of every job, in bins", operation_id="job_timeline")
async def job_timeline(
    request: Call,
    app: Here,
    hours: Annotated[int, QueryParameter(ge=1, le=168, description="Hours back, and hours ahead.")] = 24,
    bins: Annotated[int, QueryParameter(ge=2, le=BINS, description="Approximate number of bins.")] = 96,
) -> Response[bytes]:
    """Reminders of agents are left out. Empty bins are left out."""
    tenant_id = (await require_permission(request, app, "read")).tenant_id
    span = timeline.span_of(app.clock(), hours, bins)
    rows = await app.service(Schedule).jobs_page(tenant_id, None, LANES + 1, None, False)
    jobs = rows[:LANES]
    ids = [row["job_id"] for row in jobs]
    counted = await app.service(Schedule).runs_counted(
        tenant_id, ids, span.from_ns, span.until_ns, span.bin_ns
    )
    recent: dict[str, list[Row]] = {}
    for run in await app.service(Schedule).runs_recent(tenant_id, ids, RECENT):
        recent.setdefault(run["job_id"], []).append(run)
    lanes = await asyncio.to_thread(_lanes, jobs, [RunCount(*one) for one in counted], recent, span)
    answer = {
        "from": from_ns(span.from_ns),
        "until": from_ns(span.until_ns),
        "now": from_ns(span.now_ns),
        "bin_s": span.bin_ns // 1_000_000_000,
        "most": timeline.MAX_PER_BIN,
        "lanes": lanes,
        "more": len(rows) > LANES,
    }
    return json(answer)


def _lanes(
    jobs: list[Row], counted: list[RunCount], recent: dict[str, list[Row]], span: TimelineSpan
) -> list[Row]:
    of_job: dict[str, list[RunCount]] = {}
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


def _bin(counted: Row) -> Row:
    counts = {name: counted.get(name, 0) for name in ("sent", "failed", "missed", "waiting", "planned")}
    return {"at": from_ns(counted["at_ns"]), **counts}


def _run(row: Row) -> Row:
    return {
        "scheduled_for": from_ns(row["scheduled_for"]),
        "state": row["state"],
        "manual": bool(row["manual"]),
        "reason": row["reason"],
    }

"""HTTP routes of the schedule: jobs, their upcoming runs and their history.

What cannot be scheduled (a cron line that cannot be parsed or never fires, an unknown zone, a payload that no
message may carry) is refused with a sentence before anything is stored.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Annotated, Any

import msgspec
from litestar import Response, Router, delete, get, post, put
from litestar.params import FromPath, JSONBody, QueryParameter

from observatory.features.schedule import commands as jobs
from observatory.features.schedule import commands_firing as firing
from observatory.features.schedule import cron as schedule
from observatory.features.schedule.commands import JobSpec
from observatory.features.schedule.cron import SECOND, BadSchedule, PlannedFiring
from observatory.features.schedule.routes_timeline import job_timeline
from observatory.features.schedule.types import ChangeJobBody, JobBody, PreviewBody
from observatory.features.schedule.types_rows import Schedule
from observatory.http.answers import (
    Cursor,
    Limit,
    Refusal,
    encode_cursor,
    invalid_cursor,
    json,
    read_id_cursor,
)
from observatory.http.app_state import AppState, Call, Here
from observatory.http.permissions import require_permission
from observatory.pipeline.state import Command, IncomingMessage, Principal
from observatory.pipeline.system_message import MessageTarget, system_message
from observatory.protocol import clock
from observatory.protocol.clock import from_ns

Row = dict[str, Any]
MAX_JOBS = 1_000  # of people, in one tenant
LARGEST = 65_536  # bytes of a payload
FARTHEST_NS = 3_653 * 86_400 * SECOND
PREVIEWED = 5
FIRING = 500  # jobs whose next times are listed together


@post("/jobs", summary="Create a job", operation_id="create_job")
async def create_job(request: Call, app: Here, data: JSONBody[JobBody]) -> Response[bytes]:
    who = await require_permission(request, app, "operate")
    spec = _spec(who, data, app.clock())
    if await app.service(Schedule).jobs_made(who.tenant_id) >= MAX_JOBS:
        raise Refusal(409, "too_many_jobs", f"a tenant has at most {MAX_JOBS} jobs")
    await _require_free_name(app, who.tenant_id, spec.name, None)
    return await _answer(app, jobs.create(who, spec, app.clock()))


async def _require_free_name(app: AppState, tenant_id: str, name: str, job_id: str | None) -> None:
    for row in await app.store.rows(tenant_id, "jobs", name=name, removed_ns=None):
        if row["asked_by"] is None and row["job_id"] != job_id:
            raise Refusal(409, "name_taken", "a job with that name already exists")


async def _answer(app: AppState, act: Command) -> Response[bytes]:
    verdict = await app.command(act)
    answer = item(verdict.answer) if isinstance(verdict.answer, dict) else verdict.answer
    return json(answer, verdict.code)


def _spec(who: Principal, data: JobBody, now_ns: int) -> JobSpec:
    """The job as it is stored; raises a refusal for the person."""
    if (data.cron is None) == (data.at is None):
        raise Refusal(422, "bad_schedule", "a job needs either a cron line or one moment (at)")
    at_ns = None
    try:
        schedule.zone_of(data.zone)
        if data.cron is not None:
            schedule.check(data.cron, data.zone, now_ns)
        else:
            at_ns = clock.parse(str(data.at))[1]
    except BadSchedule as error:
        raise Refusal(422, "bad_schedule", str(error)) from error
    except ValueError as error:
        raise Refusal(422, "bad_schedule", "at must be a time such as 2027-01-31T09:00:00Z") from error
    if at_ns is not None and at_ns - now_ns > FARTHEST_NS:
        raise Refusal(422, "bad_schedule", "at is more than ten years ahead")
    payload = msgspec.json.encode(data.payload).decode()
    if len(payload.encode()) > LARGEST:
        raise Refusal(422, "bad_payload", f"a payload may have at most {LARGEST} bytes")
    _check_message(who, data, now_ns)
    return JobSpec(
        name=data.name,
        kind="cron" if data.cron is not None else "once",
        cron=None if data.cron is None else " ".join(data.cron.split()),
        zone=data.zone,
        at_ns=at_ns,
        target_kind=data.target.kind,
        target_name=data.target.name,
        intent=data.intent,
        payload=payload,
        session_id=data.session_id,
        misfire=data.misfire,
        overlap=data.overlap,
        jitter_s=data.jitter_s,
        grace_s=data.grace_s,
        max_tries=data.max_tries,
    )


def _check_message(who: Principal, data: JobBody, now_ns: int) -> None:
    """Check that the job makes a message that the pipeline accepts."""
    message = system_message(
        who,
        message_id="msg_try",
        sender=firing.SENDER,
        target=MessageTarget(data.target.kind, data.target.name),
        intent=data.intent,
        payload=data.payload,
        session_id=data.session_id,
        at_ns=now_ns,
        now_ns=now_ns,
    )
    if not isinstance(message, IncomingMessage):
        raise Refusal(422, "bad_payload", "target, intent or payload make no valid message")


@get("/jobs", summary="Jobs with their next run and last outcome", operation_id="list_jobs")
async def list_jobs(
    request: Call,
    app: Here,
    in_state: Annotated[
        str | None, QueryParameter(name="state", description="active, paused or done.")
    ] = None,
    reminders: Annotated[
        bool | None, QueryParameter(description="Only reminders of agents; or all but these.")
    ] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response[bytes]:
    tenant_id = (await require_permission(request, app, "read")).tenant_id
    before = read_id_cursor(cursor, "job_")
    rows = await app.service(Schedule).jobs_page(tenant_id, before, limit + 1, in_state, reminders)
    more = encode_cursor(rows[limit - 1]["job_id"].encode()) if len(rows) > limit else None
    return json({"items": [item(row) for row in rows[:limit]], "next_cursor": more})


@get("/jobs/upcoming", summary="Upcoming runs, in order", operation_id="upcoming_jobs")
async def upcoming_jobs(
    request: Call,
    app: Here,
    hours: Annotated[int, QueryParameter(ge=1, le=8_784, description="How far ahead.")] = 24,
    limit: Limit = 100,
) -> Response[bytes]:
    tenant_id = (await require_permission(request, app, "read")).tenant_id
    until_ns = app.clock() + hours * 3_600 * SECOND
    rows = await app.service(Schedule).jobs_firing(tenant_id, until_ns, FIRING)
    firings = heapq.merge(*(_firings(row, until_ns) for row in rows), key=lambda one: one[0].fire_ns)
    items = [
        {
            "job_id": row["job_id"],
            "name": row["name"],
            "next_for": from_ns(planned.for_ns),
            "next_at": from_ns(planned.fire_ns),
            "target": {"kind": row["target_kind"], "name": row["target_name"]},
        }
        for planned, row in islice(firings, limit)
    ]
    return json({"items": items, "next_cursor": None})


def _firings(row: Row, until_ns: int) -> Iterator[tuple[PlannedFiring, Row]]:
    for planned in schedule.upcoming(row, row["next_for_ns"] - 1):
        if planned.fire_ns >= until_ns:
            return
        yield planned, row


@post(
    "/jobs/preview",
    summary="Explain a cron line and list its next times",
    status_code=200,
    operation_id="preview_job",
)
async def preview_job(request: Call, app: Here, data: JSONBody[PreviewBody]) -> Response[bytes]:
    await require_permission(request, app, "read")
    now_ns = app.clock()
    try:
        schedule.check(data.cron, data.zone, now_ns)
        times = list(islice(schedule.times_after(data.cron, data.zone, now_ns), PREVIEWED))
        explained = schedule.explain(data.cron, data.zone)
    except BadSchedule as error:
        raise Refusal(422, "bad_schedule", str(error)) from error
    zone = schedule.zone_of(data.zone)
    local = [datetime.fromtimestamp(at // SECOND, UTC).astimezone(zone).isoformat() for at in times]
    return json({"explained": explained, "next": [from_ns(at) for at in times], "local": local})


@get("/jobs/{job_id:str}", summary="One job", operation_id="get_job")
async def get_job(request: Call, app: Here, job_id: FromPath[str]) -> Response[bytes]:
    tenant_id = (await require_permission(request, app, "read")).tenant_id
    return json(item(await _job(app, tenant_id, job_id)))


async def _job(app: AppState, tenant_id: str, job_id: str) -> Row:
    rows = await app.store.rows(tenant_id, "jobs", job_id=job_id, removed_ns=None)
    if not rows:
        raise Refusal(404, "not_found", "no job of this tenant has that id")
    return rows[0]


@put("/jobs/{job_id:str}", summary="Replace all settings of a job", operation_id="change_job")
async def change_job(
    request: Call, app: Here, job_id: FromPath[str], data: JSONBody[ChangeJobBody]
) -> Response[bytes]:
    who = await require_permission(request, app, "operate")
    await _job(app, who.tenant_id, job_id)
    spec = _spec(who, data, app.clock())
    await _require_free_name(app, who.tenant_id, spec.name, job_id)
    return await _answer(app, jobs.change(who, job_id, spec, app.clock(), data.was))


@delete(
    "/jobs/{job_id:str}", summary="Remove a job; its runs stay", status_code=200, operation_id="remove_job"
)
async def remove_job(request: Call, app: Here, job_id: FromPath[str]) -> Response[bytes]:
    who = await require_permission(request, app, "operate")
    verdict = await app.command(jobs.remove(who, job_id, app.clock()))
    return json({"job_id": job_id, "removed": True} if verdict.code == 200 else verdict.answer, verdict.code)


@post("/jobs/{job_id:str}/pause", summary="Pause a job", status_code=200, operation_id="pause_job")
async def pause_job(request: Call, app: Here, job_id: FromPath[str]) -> Response[bytes]:
    who = await require_permission(request, app, "operate")
    return await _answer(app, jobs.pause(who, job_id, app.clock()))


@post("/jobs/{job_id:str}/resume", summary="Resume a job", status_code=200, operation_id="resume_job")
async def resume_job(request: Call, app: Here, job_id: FromPath[str]) -> Response[bytes]:
    who = await require_permission(request, app, "operate")
    return await _answer(app, jobs.resume(who, job_id, app.clock()))


@post(
    "/jobs/{job_id:str}/run",
    summary="Run a job once now, off schedule",
    status_code=202,
    operation_id="run_job",
)
async def run_job(request: Call, app: Here, job_id: FromPath[str]) -> Response[bytes]:
    who = await require_permission(request, app, "operate")
    verdict = await app.command(firing.run_now(who, job_id, app.clock()))
    answer = _run(verdict.answer, None) if verdict.code == 202 else verdict.answer
    return json(answer, verdict.code)


@get("/jobs/{job_id:str}/runs", summary="Runs of a job and their outcomes", operation_id="list_job_runs")
async def list_job_runs(
    request: Call, app: Here, job_id: FromPath[str], cursor: Cursor = None, limit: Limit = 100
) -> Response[bytes]:
    tenant_id = (await require_permission(request, app, "read")).tenant_id
    await _job(app, tenant_id, job_id)
    text = read_id_cursor(cursor, "run@")
    if text is not None and not text[4:].isdigit():
        raise invalid_cursor()
    before = None if text is None else min(int(text[4:]), (1 << 63) - 1)
    rows = await app.service(Schedule).runs_page(tenant_id, job_id, before, limit + 1)
    numbers = [row["message_seq"] for row in rows[:limit] if row["message_seq"] is not None]
    acked = await app.service(Schedule).acknowledged(tenant_id, numbers)
    items = [_run(row, acked.get(row["message_seq"])) for row in rows[:limit]]
    more = encode_cursor(f"run@{rows[limit - 1]['scheduled_for']}".encode()) if len(rows) > limit else None
    return json({"items": items, "next_cursor": more})


def _at(ns: int | None) -> str | None:
    return None if ns is None else from_ns(ns)


def item(row: Row) -> Row:
    cron = row["cron"]
    return {
        "job_id": row["job_id"],
        "name": row["name"],
        "kind": row["kind"],
        "cron": cron,
        "explained": None if cron is None else schedule.explain(cron, row["zone"]),
        "at": _at(row["at_ns"]),
        "zone": row["zone"],
        "target": {"kind": row["target_kind"], "name": row["target_name"]},
        "intent": row["intent"],
        "payload": None if row["payload"] is None else msgspec.Raw(row["payload"].encode()),
        "session_id": row["session_id"],
        **{name: row[name] for name in ("misfire", "overlap", "jitter_s", "grace_s", "max_tries", "state")},
        "next_for": _at(row["next_for_ns"]),
        "next_at": _at(row["next_ns"]),
        "last_outcome": row["last_outcome"],
        "last_at": _at(row["last_ns"]),
        "failures": row["failures"],
        "runs": row["runs"],
        "waiting": row["open_runs"],
        "asked_by": row["asked_by"],
        "created_at": from_ns(row["created_ns"]),
        "created_by": row["created_by"],
        "updated_at": from_ns(row["updated_ns"]),
        "updated_by": row["updated_by"],
    }


def _run(row: Row, acked_ns: int | None) -> Row:
    return {
        "run_id": row["run_id"],
        "job_id": row["job_id"],
        "scheduled_for": from_ns(row["scheduled_for"]),
        "state": row["state"],
        "manual": bool(row["manual"]),
        "tries": row["attempt"] + (row["state"] in ("sent", "held")),
        **{name: row[name] for name in ("reason", "code", "message_id", "session_id")},
        "next_try_at": None if row["next_try_ns"] == firing.AT_ONCE else _at(row["next_try_ns"]),
        "acknowledged_at": _at(acked_ns),
        "created_at": from_ns(row["created_ns"]),
        "created_by": row["created_by"],
        "ended_at": _at(row["ended_ns"]),
    }


jobs_router = Router(
    path="/v1",
    route_handlers=[
        create_job,
        list_jobs,
        upcoming_jobs,
        job_timeline,
        preview_job,
        get_job,
        change_job,
        remove_job,
        pause_job,
        resume_job,
        run_job,
        list_job_runs,
    ],
    tags=["Schedule"],
)

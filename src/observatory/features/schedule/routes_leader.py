"""HTTP routes of the schedule's leader: status and lag, resigning, continuing after a clock error."""

from __future__ import annotations

from typing import Any

from litestar import Response, Router, get, post

from observatory.features.schedule import commands_firing as firing
from observatory.features.schedule import commands_from_now as from_now
from observatory.features.schedule import events as job_events
from observatory.features.schedule.cron import SECOND
from observatory.features.schedule.queries_clock_health import clock_health
from observatory.features.schedule.types_rows import Schedule
from observatory.features.schedule.worker import Scheduler
from observatory.http.answers import Refusal, json
from observatory.http.app_state import AppState, Call, Here
from observatory.http.permissions import require_permission
from observatory.pipeline.state import HOME_TENANT
from observatory.protocol.clock import from_ns

Row = dict[str, Any]
MAX_COUNTED = 1_000
REST_S = 3.0  # other gateways try to take the lead once a second


@get("/scheduler", summary="The schedule's leader and its lag", operation_id="get_scheduler")
async def get_scheduler(request: Call, app: Here) -> Response[bytes]:
    return json(await _scheduler(app, (await require_permission(request, app, "read")).tenant_id))


@post(
    "/scheduler/resign",
    summary="Let another gateway lead the schedule",
    status_code=200,
    operation_id="resign_scheduler",
)
async def resign_scheduler(request: Call, app: Here) -> Response[bytes]:
    """For three seconds this gateway does not try to lead; without another gateway it then leads again."""
    who = await require_permission(request, app, "admin")
    if who.tenant_id != HOME_TENANT:
        raise Refusal(
            403,
            "not_allowed",
            "gateways belong to the deployment; only an admin of the home tenant may do this",
        )
    leader = app.service(Scheduler).leader
    if leader.epoch is None:
        raise Refusal(409, "not_leading", "this gateway does not lead the schedule; send this to the leader")
    command = job_events.resigned(who, leader.holder, leader.epoch, app.clock())
    verdict = await app.command(command)
    if verdict.code != 200:
        return json(verdict.answer, verdict.code)
    await leader.resign(REST_S)
    return json(await _scheduler(app, who.tenant_id))


@post(
    "/scheduler/from-now",
    summary="Confirm the clock, and continue schedules from now",
    status_code=200,
    operation_id="schedule_from_now",
)
async def schedule_from_now(request: Call, app: Here) -> Response[bytes]:
    """After a clock error: postponed jobs fire by their next time from now, and nothing is made up for. If
    the clock was set while the gateway ran, the home tenant must confirm that it is right."""
    who = await require_permission(request, app, "operate")
    offset_ns = app.wall.offset_ns if app.wall.is_clock_off else 0
    if offset_ns and who.tenant_id != HOME_TENANT:
        detail = "the gateway's clock was set while it ran; an operator of the home tenant must confirm it"
        raise Refusal(409, "clock_parted", detail)
    resumed = {"jobs": 0, "runs": 0}
    while True:
        now_ns = app.clock()
        jobs = await app.service(Schedule).jobs_ahead(
            who.tenant_id, now_ns + from_now.JOBS_NS, from_now.AT_ONCE
        )
        runs = await app.service(Schedule).runs_ahead(
            who.tenant_id, now_ns + from_now.RUNS_NS, from_now.AT_ONCE
        )
        verdict = await app.command(from_now.continue_from_now(who, jobs, runs, offset_ns, now_ns))
        if verdict.code != 200:
            return json(verdict.answer, verdict.code)
        resumed = {name: count + verdict.answer[name] for name, count in resumed.items()}
        is_more = max(len(jobs), len(runs)) == from_now.AT_ONCE
        if not is_more or not any(verdict.answer.values()):
            break
    if offset_ns:
        app.wall.accept()
    return json(resumed | {"scheduler": await _scheduler(app, who.tenant_id)})


async def _scheduler(app: AppState, tenant_id: str) -> Row:
    leader = app.service(Scheduler).leader
    lease = await app.service(Schedule).lease(leader.name)
    next_ns, now_ns = await app.service(Schedule).earliest(tenant_id), app.clock()
    if next_ns == firing.AT_ONCE:
        waiting = await app.service(Schedule).runs_due(tenant_id, now_ns, 1)
        next_ns = waiting[0]["created_ns"] if waiting else now_ns
    item = None
    if lease is not None:
        item = {
            "holder": lease.holder,
            "epoch": lease.epoch,
            "expires_at": from_ns(max(0, lease.expires_ns)),
            "last_tick_at": from_ns(lease.ticked_ns),
            "is_live": lease.expires_ns > lease.now_ns,
            "is_this_gateway": lease.holder == leader.holder,
        }
    return {
        "leader": item,
        "last_look_at": from_ns(app.service(Scheduler).looked_ns)
        if app.service(Scheduler).looked_ns
        else None,
        "next_at": None if next_ns is None else from_ns(next_ns),
        "lag_s": 0.0 if next_ns is None else round(max(0, now_ns - next_ns) / SECOND, 3),
        "clock": await clock_health(app, tenant_id),
        "dead_letters": await app.service(Schedule).letters_dead(tenant_id, MAX_COUNTED),
    }


scheduler_router = Router(
    path="/v1", route_handlers=[get_scheduler, resign_scheduler, schedule_from_now], tags=["Schedule"]
)

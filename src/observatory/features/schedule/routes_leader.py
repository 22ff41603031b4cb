"""Who leads the schedule, how late it is, and how a gateway steps back from the lead."""

from __future__ import annotations

from typing import Any

from litestar import Response, Router, get, post

from observatory.features.schedule import commands_firing as firing
from observatory.features.schedule import commands_from_now as from_now
from observatory.features.schedule import events as job_events
from observatory.features.schedule.clock_health import clock_health
from observatory.features.schedule.cron import SECOND
from observatory.http.answers import Refusal, json
from observatory.http.app_state import Call, Here, House
from observatory.http.permissions import need
from observatory.pipeline.state import HOME_TENANT
from observatory.protocol.clock import from_ns

Row = dict[str, Any]
MOST_COUNTED = 1_000
REST_S = 3.0  # others ask for the lead once a second


@get("/scheduler", summary="Who leads the schedule, and how late it is", operation_id="get_scheduler")
async def get_scheduler(request: Call, house: Here) -> Response[bytes]:
    return json(await _scheduler(house, (await need(request, house, "read")).tenant_id))


@post(
    "/scheduler/resign",
    summary="Let another gateway lead the schedule",
    status_code=200,
    operation_id="resign_scheduler",
)
async def resign_scheduler(request: Call, house: Here) -> Response[bytes]:
    """For three seconds this gateway does not ask for the lead; where nobody else does, it leads again."""
    who = await need(request, house, "admin")
    if who.tenant_id != HOME_TENANT:
        raise Refusal(403, "not_allowed", "gateways are the house's; only the home tenant's admin moves them")
    leader = house.scheduler.leader
    if leader.epoch is None:
        raise Refusal(409, "not_leading", "this gateway does not lead the schedule; ask the one that does")
    told = job_events.resigned(who, leader.holder, leader.epoch, house.clock())
    verdict = await house.command(told)
    if verdict.code != 200:
        return json(verdict.answer, verdict.code)
    await leader.resign(REST_S)
    return json(await _scheduler(house, who.tenant_id))


@post(
    "/scheduler/from-now",
    summary="Say that the clock is right, and let schedules go on from now",
    status_code=200,
    operation_id="schedule_from_now",
)
async def schedule_from_now(request: Call, house: Here) -> Response[bytes]:
    """After a clock that was wrong: what it put off fires by its next time from the present, and nothing is
    made up for. Where the clock was set while the gateway ran, the home tenant says that it is right."""
    who = await need(request, house, "operate")
    parted_ns = house.wall.parted_ns if house.wall.is_parted else 0
    if parted_ns and who.tenant_id != HOME_TENANT:
        detail = "the gateway's clock was set while it ran; the home tenant's operators say when it is right"
        raise Refusal(409, "clock_parted", detail)
    resumed = {"jobs": 0, "runs": 0}
    while True:
        now_ns = house.clock()
        jobs = await house.schedule.jobs_ahead(who.tenant_id, now_ns + from_now.JOBS_NS, from_now.AT_ONCE)
        runs = await house.schedule.runs_ahead(who.tenant_id, now_ns + from_now.RUNS_NS, from_now.AT_ONCE)
        verdict = await house.command(from_now.go_on(who, jobs, runs, parted_ns, now_ns))
        if verdict.code != 200:
            return json(verdict.answer, verdict.code)
        resumed = {name: count + verdict.answer[name] for name, count in resumed.items()}
        is_more = max(len(jobs), len(runs)) == from_now.AT_ONCE
        if not is_more or not any(verdict.answer.values()):
            break
    if parted_ns:
        house.wall.accept()
    return json(resumed | {"scheduler": await _scheduler(house, who.tenant_id)})


async def _scheduler(house: House, tenant_id: str) -> Row:
    leader = house.scheduler.leader
    lease = await house.schedule.lease(leader.name)
    next_ns, now_ns = await house.schedule.earliest(tenant_id), house.clock()
    if next_ns == firing.AT_ONCE:
        waiting = await house.schedule.runs_due(tenant_id, now_ns, 1)
        next_ns = waiting[0]["created_ns"] if waiting else now_ns
    told = None
    if lease is not None:
        told = {
            "holder": lease.holder,
            "epoch": lease.epoch,
            "expires_at": from_ns(max(0, lease.expires_ns)),
            "last_tick_at": from_ns(lease.ticked_ns),
            "is_live": lease.expires_ns > lease.now_ns,
            "is_this_gateway": lease.holder == leader.holder,
        }
    return {
        "leader": told,
        "last_look_at": from_ns(house.scheduler.looked_ns) if house.scheduler.looked_ns else None,
        "next_at": None if next_ns is None else from_ns(next_ns),
        "lag_s": 0.0 if next_ns is None else round(max(0, now_ns - next_ns) / SECOND, 3),
        "clock": await clock_health(house, tenant_id),
        "dead_letters": await house.schedule.letters_dead(tenant_id, MOST_COUNTED),
    }


scheduler_router = Router(
    path="/v1", route_handlers=[get_scheduler, resign_scheduler, schedule_from_now], tags=["Schedule"]
)

"""`/v1/scaling-triggers`: what suggests more or fewer agents (S553). They are rules like those of alerts."""

from __future__ import annotations

from litestar import Response, Router, delete, get, post, put
from litestar.params import FromPath, JSONBody

from observatory.features.alerting.routes_shared import (
    changed,
    created,
    got,
    levels,
    listed,
    muted,
    removed,
    tested,
)
from observatory.features.alerting.types import MuteBody, ScalingTriggerBody
from observatory.http.app_state import Call, Here


@get("/scaling-triggers", summary="Scaling triggers", operation_id="list_scaling_triggers")
async def list_scaling_triggers(request: Call, house: Here) -> Response[bytes]:
    return await listed(request, house, "scaling")


@get(
    "/scaling-triggers/levels", summary="How each trigger's figure stands now", operation_id="scaling_levels"
)
async def scaling_levels(request: Call, house: Here) -> Response[bytes]:
    return await levels(request, house, "scaling")


@post("/scaling-triggers", summary="Make a scaling trigger", operation_id="create_scaling_trigger")
async def create_scaling_trigger(
    request: Call, house: Here, data: JSONBody[ScalingTriggerBody]
) -> Response[bytes]:
    """It suggests; whoever is told of `scaling_triggered` starts or stops agents."""
    return await created(request, house, "scaling", data)


@get("/scaling-triggers/{rule_id:str}", summary="One scaling trigger", operation_id="get_scaling_trigger")
async def get_scaling_trigger(request: Call, house: Here, rule_id: FromPath[str]) -> Response[bytes]:
    return await got(request, house, "scaling", rule_id)


@put(
    "/scaling-triggers/{rule_id:str}",
    summary="Change a scaling trigger, whole",
    operation_id="change_scaling_trigger",
)
async def change_scaling_trigger(
    request: Call, house: Here, rule_id: FromPath[str], data: JSONBody[ScalingTriggerBody]
) -> Response[bytes]:
    return await changed(request, house, "scaling", rule_id, data)


@delete(
    "/scaling-triggers/{rule_id:str}",
    status_code=200,
    summary="Remove a scaling trigger",
    operation_id="remove_scaling_trigger",
)
async def remove_scaling_trigger(request: Call, house: Here, rule_id: FromPath[str]) -> Response[bytes]:
    return await removed(request, house, "scaling", rule_id)


@post(
    "/scaling-triggers/{rule_id:str}/mute",
    status_code=200,
    summary="Tell nobody outside for so many minutes",
    operation_id="mute_scaling_trigger",
)
async def mute_scaling_trigger(
    request: Call, house: Here, rule_id: FromPath[str], data: JSONBody[MuteBody]
) -> Response[bytes]:
    return await muted(request, house, "scaling", rule_id, data)


@post(
    "/scaling-triggers/{rule_id:str}/test",
    status_code=200,
    summary="Send a marked test to the trigger's endpoints, and tell how each took it",
    operation_id="test_scaling_trigger",
)
async def test_scaling_trigger(request: Call, house: Here, rule_id: FromPath[str]) -> Response[bytes]:
    return await tested(request, house, "scaling", rule_id)


scaling_router = Router(
    path="/v1",
    route_handlers=[
        list_scaling_triggers,
        scaling_levels,
        create_scaling_trigger,
        get_scaling_trigger,
        change_scaling_trigger,
        remove_scaling_trigger,
        mute_scaling_trigger,
        test_scaling_trigger,
    ],
    tags=["Alerts and scaling"],
)

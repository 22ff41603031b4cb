"""`/v1/scaling-triggers`: rules that suggest more or fewer agents (S553). They work like alert rules."""

from __future__ import annotations

from litestar import Response, Router, delete, get, post, put
from litestar.params import FromPath, JSONBody

from observatory.features.alerting.routes_shared import (
    change_rule,
    create_rule,
    get_rule,
    list_rules,
    mute_rule,
    read_levels,
    remove_rule,
    send_rule_test,
)
from observatory.features.alerting.types import MuteBody, ScalingTriggerBody
from observatory.http.app_state import Call, Here


@get("/scaling-triggers", summary="List scaling triggers", operation_id="list_scaling_triggers")
async def list_scaling_triggers(request: Call, app: Here) -> Response[bytes]:
    return await list_rules(request, app, "scaling")


@get("/scaling-triggers/levels", summary="Current level of each trigger", operation_id="scaling_levels")
async def scaling_levels(request: Call, app: Here) -> Response[bytes]:
    return await read_levels(request, app, "scaling")


@post("/scaling-triggers", summary="Create a scaling trigger", operation_id="create_scaling_trigger")
async def create_scaling_trigger(
    request: Call, app: Here, data: JSONBody[ScalingTriggerBody]
) -> Response[bytes]:
    """It only suggests: the receiver of `scaling_triggered` starts or stops agents."""
    return await create_rule(request, app, "scaling", data)


@get("/scaling-triggers/{rule_id:str}", summary="Get a scaling trigger", operation_id="get_scaling_trigger")
async def get_scaling_trigger(request: Call, app: Here, rule_id: FromPath[str]) -> Response[bytes]:
    return await get_rule(request, app, "scaling", rule_id)


@put(
    "/scaling-triggers/{rule_id:str}",
    summary="Replace a scaling trigger",
    operation_id="change_scaling_trigger",
)
async def change_scaling_trigger(
    request: Call, app: Here, rule_id: FromPath[str], data: JSONBody[ScalingTriggerBody]
) -> Response[bytes]:
    return await change_rule(request, app, "scaling", rule_id, data)


@delete(
    "/scaling-triggers/{rule_id:str}",
    status_code=200,
    summary="Remove a scaling trigger",
    operation_id="remove_scaling_trigger",
)
async def remove_scaling_trigger(request: Call, app: Here, rule_id: FromPath[str]) -> Response[bytes]:
    return await remove_rule(request, app, "scaling", rule_id)


@post(
    "/scaling-triggers/{rule_id:str}/mute",
    status_code=200,
    summary="Mute a scaling trigger for a number of minutes",
    operation_id="mute_scaling_trigger",
)
async def mute_scaling_trigger(
    request: Call, app: Here, rule_id: FromPath[str], data: JSONBody[MuteBody]
) -> Response[bytes]:
    return await mute_rule(request, app, "scaling", rule_id, data)


@post(
    "/scaling-triggers/{rule_id:str}/test",
    status_code=200,
    summary="Send a marked test to the trigger's endpoints and return each result",
    operation_id="test_scaling_trigger",
)
async def test_scaling_trigger(request: Call, app: Here, rule_id: FromPath[str]) -> Response[bytes]:
    return await send_rule_test(request, app, "scaling", rule_id)


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

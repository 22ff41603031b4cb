"""`/v1/alert-rules`: what is watched, and who is told of it (rules S540–S559).

An admin makes rules: they carry data out. Every reader sees them and what is open. The alert tray at
`/v1/alerts` tells what alarmed by itself; here stands what somebody asked to be told.
"""

from __future__ import annotations

from litestar import Response, Router, delete, get, post, put
from litestar.params import FromPath, JSONBody

from observatory.features.alerting import commands as alerting
from observatory.features.alerting.commands import rule_of
from observatory.features.alerting.routes_shared import (
    changed,
    check_endpoints,
    created,
    got,
    item_of,
    listed,
    muted,
    open_of,
    removed,
    rows_of,
    tested,
)
from observatory.features.alerting.types import AlertRuleBody, DefaultsBody, MuteBody
from observatory.http.answers import Cursor, Limit, json, page, read_cursor
from observatory.http.app_state import Call, Here
from observatory.http.permissions import need


@get("/alert-rules", summary="Alert rules, and what can be watched", operation_id="list_alert_rules")
async def list_alert_rules(request: Call, house: Here) -> Response[bytes]:
    return await listed(request, house, "alert")


@post("/alert-rules", summary="Make an alert rule", operation_id="create_alert_rule")
async def create_alert_rule(request: Call, house: Here, data: JSONBody[AlertRuleBody]) -> Response[bytes]:
    """It watches what happens from now on. Without endpoints it is told to nobody, and shown all the same."""
    return await created(request, house, "alert", data)


@post(
    "/alert-rules/defaults",
    summary="Make the rules that every house should have",
    operation_id="create_default_alert_rules",
)
async def create_default_alert_rules(
    request: Call, house: Here, data: JSONBody[DefaultsBody]
) -> Response[bytes]:
    """What some alert rule watches already is left out."""
    who = await need(request, house, "admin")
    await check_endpoints(house, who, data.endpoint_ids)
    act = alerting.add_defaults(who, tuple(dict.fromkeys(data.endpoint_ids)), house.clock())
    verdict = await house.command(act)
    if verdict.code >= 400:
        return json(verdict.answer, verdict.code)
    return json({"items": [item_of(row, {}, house.clock()) for row in verdict.answer]}, 201)


@get("/alert-rules/{rule_id:str}", summary="One alert rule", operation_id="get_alert_rule")
async def get_alert_rule(request: Call, house: Here, rule_id: FromPath[str]) -> Response[bytes]:
    return await got(request, house, "alert", rule_id)


@put("/alert-rules/{rule_id:str}", summary="Change an alert rule, whole", operation_id="change_alert_rule")
async def change_alert_rule(
    request: Call, house: Here, rule_id: FromPath[str], data: JSONBody[AlertRuleBody]
) -> Response[bytes]:
    """What is open of it is resolved, and it begins anew."""
    return await changed(request, house, "alert", rule_id, data)


@delete(
    "/alert-rules/{rule_id:str}",
    status_code=200,
    summary="Remove an alert rule",
    operation_id="remove_alert_rule",
)
async def remove_alert_rule(request: Call, house: Here, rule_id: FromPath[str]) -> Response[bytes]:
    return await removed(request, house, "alert", rule_id)


@post(
    "/alert-rules/{rule_id:str}/mute",
    status_code=200,
    summary="Tell nobody outside for so many minutes",
    operation_id="mute_alert_rule",
)
async def mute_alert_rule(
    request: Call, house: Here, rule_id: FromPath[str], data: JSONBody[MuteBody]
) -> Response[bytes]:
    """It is judged and shown all the same. What still fires when the mute ends is told then."""
    return await muted(request, house, "alert", rule_id, data)


@post(
    "/alert-rules/{rule_id:str}/test",
    status_code=200,
    summary="Send a marked test to the rule's endpoints, and tell how each took it",
    operation_id="test_alert_rule",
)
async def test_alert_rule(request: Call, house: Here, rule_id: FromPath[str]) -> Response[bytes]:
    return await tested(request, house, "alert", rule_id)


@get("/alerts/open", summary="What rules fire for now, newest first", operation_id="open_alerts")
async def open_alerts(
    request: Call, house: Here, cursor: Cursor = None, limit: Limit = 50
) -> Response[bytes]:
    tenant_id = (await need(request, house, "read")).tenant_id
    found = await rows_of(house).alerts_open(tenant_id, read_cursor(cursor), limit + 1)
    ids = sorted({row["rule_id"] for row in found})
    rules = await house.store.rows(tenant_id, "alert_rules", rule_id=ids) if ids else []
    named = {row["rule_id"]: rule_of(row) for row in rules}
    items = [open_of(row, named[row["rule_id"]]) for row in found]
    last = found[limit - 1]["raised_seq"] if len(found) > limit else None
    return json(page(items, limit, last))


alert_rules_router = Router(
    path="/v1",
    route_handlers=[
        list_alert_rules,
        create_alert_rule,
        create_default_alert_rules,
        get_alert_rule,
        change_alert_rule,
        remove_alert_rule,
        mute_alert_rule,
        test_alert_rule,
        open_alerts,
    ],
    tags=["Alerts and scaling"],
)

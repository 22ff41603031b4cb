"""`/v1/alert-rules`: what is monitored and who is notified (rules S540–S559).

Only admins create rules: they send data outside. Every reader sees the rules and what is firing. `/v1/alerts`
lists built-in alerts too; this file serves only those that come from rules.
"""

from __future__ import annotations

from litestar import Response, Router, delete, get, post, put
from litestar.params import FromPath, JSONBody

from observatory.features.alerting import commands as alerting
from observatory.features.alerting.commands import rule_from_row
from observatory.features.alerting.routes_shared import (
    alerting_rows,
    change_rule,
    check_endpoints,
    create_rule,
    get_rule,
    list_rules,
    mute_rule,
    open_alert_item,
    remove_rule,
    rule_item,
    send_rule_test,
)
from observatory.features.alerting.types import AlertRuleBody, DefaultsBody, MuteBody
from observatory.http.answers import Cursor, Limit, json, page, read_cursor
from observatory.http.app_state import Call, Here
from observatory.http.permissions import require_permission


@get("/alert-rules", summary="List alert rules and available conditions", operation_id="list_alert_rules")
async def list_alert_rules(request: Call, app: Here) -> Response[bytes]:
    return await list_rules(request, app, "alert")


@post("/alert-rules", summary="Create an alert rule", operation_id="create_alert_rule")
async def create_alert_rule(request: Call, app: Here, data: JSONBody[AlertRuleBody]) -> Response[bytes]:
    """Counts events from now on. Without endpoints nothing is sent, but alerts are still shown."""
    return await create_rule(request, app, "alert", data)


@post(
    "/alert-rules/defaults",
    summary="Create the recommended alert rules",
    operation_id="create_default_alert_rules",
)
async def create_default_alert_rules(
    request: Call, app: Here, data: JSONBody[DefaultsBody]
) -> Response[bytes]:
    """Conditions that an alert rule already watches are skipped."""
    who = await require_permission(request, app, "admin")
    await check_endpoints(app, who, data.endpoint_ids)
    act = alerting.add_defaults(who, tuple(dict.fromkeys(data.endpoint_ids)), app.clock())
    verdict = await app.command(act)
    if verdict.code >= 400:
        return json(verdict.answer, verdict.code)
    return json({"items": [rule_item(row, {}, app.clock()) for row in verdict.answer]}, 201)


@get("/alert-rules/{rule_id:str}", summary="Get an alert rule", operation_id="get_alert_rule")
async def get_alert_rule(request: Call, app: Here, rule_id: FromPath[str]) -> Response[bytes]:
    return await get_rule(request, app, "alert", rule_id)


@put("/alert-rules/{rule_id:str}", summary="Replace an alert rule", operation_id="change_alert_rule")
async def change_alert_rule(
    request: Call, app: Here, rule_id: FromPath[str], data: JSONBody[AlertRuleBody]
) -> Response[bytes]:
    """Its firing alerts are resolved, and the rule starts over."""
    return await change_rule(request, app, "alert", rule_id, data)


@delete(
    "/alert-rules/{rule_id:str}",
    status_code=200,
    summary="Remove an alert rule",
    operation_id="remove_alert_rule",
)
async def remove_alert_rule(request: Call, app: Here, rule_id: FromPath[str]) -> Response[bytes]:
    return await remove_rule(request, app, "alert", rule_id)


@post(
    "/alert-rules/{rule_id:str}/mute",
    status_code=200,
    summary="Mute an alert rule for a number of minutes",
    operation_id="mute_alert_rule",
)
async def mute_alert_rule(
    request: Call, app: Here, rule_id: FromPath[str], data: JSONBody[MuteBody]
) -> Response[bytes]:
    """The rule is still evaluated and shown. What still fires when the mute ends is sent then."""
    return await mute_rule(request, app, "alert", rule_id, data)


@post(
    "/alert-rules/{rule_id:str}/test",
    status_code=200,
    summary="Send a marked test to the rule's endpoints and return each result",
    operation_id="test_alert_rule",
)
async def test_alert_rule(request: Call, app: Here, rule_id: FromPath[str]) -> Response[bytes]:
    return await send_rule_test(request, app, "alert", rule_id)


@get("/alerts/open", summary="List firing alerts, newest first", operation_id="open_alerts")
async def open_alerts(request: Call, app: Here, cursor: Cursor = None, limit: Limit = 50) -> Response[bytes]:
    tenant_id = (await require_permission(request, app, "read")).tenant_id
    rows = await alerting_rows(app).alerts_open(tenant_id, read_cursor(cursor), limit + 1)
    ids = sorted({row["rule_id"] for row in rows})
    rule_rows = await app.store.rows(tenant_id, "alert_rules", rule_id=ids) if ids else []
    named = {row["rule_id"]: rule_from_row(row) for row in rule_rows}
    items = [open_alert_item(row, named[row["rule_id"]]) for row in rows]
    last = rows[limit - 1]["raised_seq"] if len(rows) > limit else None
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

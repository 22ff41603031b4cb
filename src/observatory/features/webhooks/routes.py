"""`/v1/webhooks/out`: outbound webhook endpoints (rules S490–S510).

Only admins create endpoints: they send data outside. Every reader sees them and their delivery log; secrets
are returned once, when created.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec
from litestar import Response, Router, delete, get, post, put
from litestar.params import FromPath, JSONBody

from observatory.features.webhooks import commands as webhooks
from observatory.features.webhooks.commands import EndpointConfig, MatchedEvent, host_of
from observatory.features.webhooks.email import recipients
from observatory.features.webhooks.event_reader import PAGE
from observatory.features.webhooks.routes_log import (
    at,
    delivery_of,
    delivery_with_attempts,
    endpoint_of,
    rows_of,
)
from observatory.features.webhooks.subscriptions import Subscription
from observatory.features.webhooks.types import ReplayBody, RotateBody, WebhookBody
from observatory.features.webhooks.types_rows import PendingDeliveries
from observatory.features.webhooks.types_signature import FILTERS, SUBSCRIBABLE, new_secret
from observatory.features.webhooks.worker import WebhookWorker
from observatory.http.answers import InvalidRequest, Refusal, json
from observatory.http.app_state import AppState, Call, Here
from observatory.http.permissions import require_permission
from observatory.pipeline.ports import EventFilter
from observatory.pipeline.state import Command, Principal
from observatory.protocol.clock import from_ns, to_ns
from observatory.protocol.responses import Fault
from observatory.runtime.outbound_http import NotPublic, OutboundError

MAX_SCANNED: Final = 10 * PAGE  # events one replay reads
SEVERITIES: Final = frozenset({"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"})
Row = dict[str, Any]


@post("/webhooks/out", summary="Create a webhook endpoint", operation_id="create_webhook")
async def create_webhook(request: Call, app: Here, data: JSONBody[WebhookBody]) -> Response[bytes]:
    """It receives events from now on. Its secret is returned only here."""
    who = await require_permission(request, app, "admin")
    config, secret = await _config(app, data), new_secret()
    verdict = await app.command(webhooks.create(who, config, secret, app.clock()))
    if verdict.code != 201:
        return json(verdict.answer, verdict.code)
    item = _item(verdict.answer, who, None)
    return json(item | {"secret": secret if config.kind == "webhook" else None}, 201)


@get("/webhooks/out", summary="List webhook endpoints and their status", operation_id="list_webhooks")
async def list_webhooks(request: Call, app: Here) -> Response[bytes]:
    who = await require_permission(request, app, "read")
    rows = await app.store.rows(who.tenant_id, "webhook_endpoints", removed_ns=None)
    waiting = await rows_of(app).deliveries_waiting(who.tenant_id)
    rows.sort(key=lambda row: str(row["endpoint_id"]))
    items = [_item(row, who, waiting.get(row["endpoint_id"])) for row in rows]
    return json({"items": items, "next_cursor": None, "event_types": sorted(SUBSCRIBABLE)})


@get("/webhooks/out/{endpoint_id:str}", summary="Get a webhook endpoint", operation_id="get_webhook")
async def get_webhook(request: Call, app: Here, endpoint_id: FromPath[str]) -> Response[bytes]:
    who = await require_permission(request, app, "read")
    return json(await _current_item(app, who, await endpoint_of(app, who, endpoint_id)))


@put("/webhooks/out/{endpoint_id:str}", summary="Replace a webhook endpoint", operation_id="change_webhook")
async def change_webhook(
    request: Call, app: Here, endpoint_id: FromPath[str], data: JSONBody[WebhookBody]
) -> Response[bytes]:
    """Applies to events not read yet; pending deliveries go to the new URL."""
    who = await require_permission(request, app, "admin")
    config = await _config(app, data)
    return await _run(app, who, webhooks.change(who, endpoint_id, config, app.clock(), data.was))


@delete(
    "/webhooks/out/{endpoint_id:str}",
    status_code=200,
    summary="Remove a webhook endpoint",
    operation_id="remove_webhook",
)
async def remove_webhook(request: Call, app: Here, endpoint_id: FromPath[str]) -> Response[bytes]:
    who = await require_permission(request, app, "admin")
    verdict = await app.command(webhooks.remove(who, endpoint_id, app.clock()))
    return json(verdict.answer, verdict.code)


@post(
    "/webhooks/out/{endpoint_id:str}/rotate",
    status_code=200,
    summary="Rotate an endpoint's secret",
    operation_id="rotate_webhook_secret",
)
async def rotate_webhook_secret(
    request: Call, app: Here, endpoint_id: FromPath[str], data: JSONBody[RotateBody]
) -> Response[bytes]:
    """The old one also signs for `overlap_s`, so that the receiver can switch."""
    who = await require_permission(request, app, "admin")
    secret = new_secret()
    verdict = await app.command(webhooks.rotate(who, endpoint_id, secret, data.overlap_s, app.clock()))
    if verdict.code != 200:
        return json(verdict.answer, verdict.code)
    ends = from_ns(verdict.answer["old_ends_ns"])
    return json({"endpoint_id": endpoint_id, "secret": secret, "old_ends_at": ends})


@post(
    "/webhooks/out/{endpoint_id:str}/enable",
    status_code=200,
    summary="Enable an endpoint",
    operation_id="enable_webhook",
)
async def enable_webhook(request: Call, app: Here, endpoint_id: FromPath[str]) -> Response[bytes]:
    who = await require_permission(request, app, "admin")
    return await _run(app, who, webhooks.enable(who, endpoint_id, app.clock()))


@post(
    "/webhooks/out/{endpoint_id:str}/disable",
    status_code=200,
    summary="Disable an endpoint",
    operation_id="disable_webhook",
)
async def disable_webhook(request: Call, app: Here, endpoint_id: FromPath[str]) -> Response[bytes]:
    who = await require_permission(request, app, "admin")
    return await _run(app, who, webhooks.disable(who, endpoint_id, app.clock()))


@post(
    "/webhooks/out/{endpoint_id:str}/test",
    status_code=200,
    summary="Send a test delivery and return the result",
    operation_id="test_webhook",
)
async def test_webhook(request: Call, app: Here, endpoint_id: FromPath[str]) -> Response[bytes]:
    """One attempt without retries. Returns the delivery with that attempt."""
    who = await require_permission(request, app, "admin")
    endpoint = await endpoint_of(app, who, endpoint_id)
    if not app.offers.allows((who.tenant_id, endpoint_id)):
        raise Refusal(429, "too_often", "this endpoint was tested too often; retry in a minute")
    verdict = await app.command(webhooks.test(who, endpoint_id, app.clock()))
    if verdict.code != 200:
        return json(verdict.answer, verdict.code)
    await app.service(WebhookWorker).attempt(endpoint, verdict.answer)
    return json(await delivery_with_attempts(app, who, endpoint_id, verdict.answer["delivery_id"]))


@post(
    "/webhooks/out/{endpoint_id:str}/replay",
    status_code=200,
    summary="Redeliver one delivery or a range of events",
    operation_id="replay_webhook",
)
async def replay_webhook(
    request: Call, app: Here, endpoint_id: FromPath[str], data: JSONBody[ReplayBody]
) -> Response[bytes]:
    """Under the original ids. A range also includes events missed while the endpoint was disabled."""
    who = await require_permission(request, app, "admin")
    endpoint = await endpoint_of(app, who, endpoint_id)
    if data.delivery_id is not None:
        if data != ReplayBody(delivery_id=data.delivery_id):
            raise Refusal(422, "bad_request", "give a delivery_id or a range, not both")
        row = await delivery_of(app, who, endpoint_id, data.delivery_id)
        matched = [MatchedEvent(row["event_seq"], row["event_type"], row["extra"])]
        detail: Row = {"delivery_id": data.delivery_id}
        next_after = None
    else:
        matched, next_after = await _range(app, who, endpoint, _span(data))
        detail = {"after": data.after, "before": data.before, "since": data.since, "until": data.until}
        detail["next_after"] = next_after
    verdict = await app.command(webhooks.replay(who, endpoint_id, matched, detail, app.clock()))
    if verdict.code != 200:
        return json(verdict.answer, verdict.code)
    return json({"replayed": verdict.answer, "next_after": next_after})


def _span(data: ReplayBody) -> EventFilter:
    if all(one is None for one in (data.after, data.before, data.since, data.until)):
        raise Refusal(422, "bad_request", "give a delivery_id, or a range by after, before, since or until")
    try:
        since, until = (None if one is None else to_ns(one) for one in (data.since, data.until))
    except ValueError as error:
        raise Refusal(
            422, "bad_request", "since and until must be times such as 2026-11-16T12:00:00Z"
        ) from error
    return EventFilter(after=data.after, before=data.before, since_ns=since, until_ns=until)


async def _range(
    app: AppState, who: Principal, endpoint: Row, span: EventFilter
) -> tuple[list[MatchedEvent], int | None]:
    """The matching events of a range, and where to continue if it was too long."""
    subscription, found = Subscription(endpoint), list[MatchedEvent]()
    for _ in range(MAX_SCANNED // PAGE):
        events = await app.store.events(who.tenant_id, span, PAGE, newest_first=False)
        if not events:
            return found, None
        part = await app.service(WebhookWorker).reading.matched(who.tenant_id, events, [subscription])
        found += part[subscription.endpoint_id]
        span = msgspec.structs.replace(span, after=events[-1].sequence_number)
        if len(events) < PAGE:
            return found, None
        if len(found) >= PAGE:
            break
    return found, span.after


async def _config(app: AppState, data: WebhookBody) -> EndpointConfig:
    """The requested configuration, validated."""
    faults = tuple(_faults(data))
    if faults:
        raise InvalidRequest(422, faults)
    await _check_url(app, data)
    filters = {name: values for name, values in data.filters.items() if values}
    return EndpointConfig(
        data.name, data.kind, data.url, data.events, filters, data.rate_per_min, data.schedule_s
    )


def _faults(data: WebhookBody) -> Iterator[Fault]:
    """Invalid members, each with its path."""
    for place, event in enumerate(data.events):
        if event not in SUBSCRIBABLE:
            yield Fault(f"events[{place}]", "must be an event type listed in docs/guides/events.md")
    for place, name in enumerate(data.filters):
        if name not in FILTERS:
            yield Fault(f"filters[{place}]", f"the name must be one of {', '.join(FILTERS)}")
    for place, severity in enumerate(data.filters.get("severity", [])):
        if severity not in SEVERITIES:
            yield Fault(f"filters.severity[{place}]", f"must be one of {', '.join(sorted(SEVERITIES))}")


async def _check_url(app: AppState, data: WebhookBody) -> None:
    if data.kind == "email":
        try:
            recipients(data.url)
        except ValueError as error:
            raise Refusal(422, "bad_url", str(error)) from error
        return
    outward = app.outward
    problem = outward.check(data.url, "the receiver", query=True)
    if problem is not None:
        raise Refusal(422, "bad_url", problem)
    try:
        await outward.address(data.url, query=True)
    except NotPublic as error:
        raise Refusal(422, "bad_url", str(error)) from error
    except OutboundError:
        pass  # the name may resolve later, when something is sent


async def _run(app: AppState, who: Principal, act: Command) -> Response[bytes]:
    verdict = await app.command(act)
    if verdict.code != 200:
        return json(verdict.answer, verdict.code)
    return json(await _current_item(app, who, verdict.answer))


async def _current_item(app: AppState, who: Principal, row: Row) -> Row:
    waiting = await rows_of(app).deliveries_waiting(who.tenant_id)
    return _item(row, who, waiting.get(row["endpoint_id"]))


def _item(row: Row, who: Principal, waiting: PendingDeliveries | None) -> Row:
    is_whole = who.role == "admin" and row["kind"] != "slack"
    return {
        "endpoint_id": row["endpoint_id"],
        "name": row["name"],
        "kind": row["kind"],
        "url": row["url"] if is_whole else f"{host_of(row['url'])}/…",
        "events": msgspec.json.decode(row["events"]),
        "filters": msgspec.json.decode(row["filters"]),
        "rate_per_min": row["rate_per_min"],
        "schedule_s": msgspec.json.decode(row["schedule_s"]),
        "state": row["state"],
        "disabled_reason": row["disabled_reason"],
        "failures": row["failures"],
        "paused_until": at(row["paused_until_ns"]),
        "last_ok_at": at(row["last_ok_ns"]),
        "last_failed_at": at(row["last_failed_ns"]),
        "waiting": 0 if waiting is None else waiting.many,
        "waiting_since": None if waiting is None else from_ns(waiting.since_ns),
        "looked_at": row["cursor_seq"],
        "created_at": from_ns(row["created_ns"]),
        "created_by": row["created_by"],
        "changed_at": from_ns(row["changed_ns"]),
    }


webhooks_router = Router(
    path="/v1",
    route_handlers=[
        create_webhook,
        list_webhooks,
        get_webhook,
        change_webhook,
        remove_webhook,
        rotate_webhook_secret,
        enable_webhook,
        disable_webhook,
        test_webhook,
        replay_webhook,
    ],
    tags=["Webhooks out"],
)

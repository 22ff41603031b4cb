"""`/v1/webhooks/out`: who outside is told of what happens here (rules S490–S510).

An admin makes endpoints: they carry data out. Every reader may see them and the log of what was sent there;
secrets are shown when they are made and never again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec
from litestar import Response, Router, delete, get, post, put
from litestar.params import FromPath, JSONBody

from observatory.features.alerting.email import recipients
from observatory.features.webhooks import commands as webhooks
from observatory.features.webhooks.commands import Matched, Wish, host_of
from observatory.features.webhooks.event_reader import PAGE
from observatory.features.webhooks.routes_log import at, delivery_of, endpoint_of, rows_of, whole
from observatory.features.webhooks.signature import FILTERS, SUBSCRIBABLE, new_secret
from observatory.features.webhooks.subscriptions import Subscription
from observatory.features.webhooks.types import ReplayBody, RotateBody, WebhookBody
from observatory.features.webhooks.types_rows import Waiting
from observatory.http.answers import InvalidRequest, Refusal, json
from observatory.http.app_state import Call, Here, House
from observatory.http.permissions import need
from observatory.pipeline.ports import EventFilter
from observatory.pipeline.state import Act, Principal
from observatory.protocol.answers import Fault
from observatory.protocol.clock import from_ns, to_ns
from observatory.runtime.outbound_http import NotPublic, Unreachable

MOST_SCANNED: Final = 10 * PAGE  # events one replay looks at
SEVERITIES: Final = frozenset({"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"})
Row = dict[str, Any]


@post("/webhooks/out", summary="Make an endpoint that is told of events", operation_id="create_webhook")
async def create_webhook(request: Call, house: Here, data: JSONBody[WebhookBody]) -> Response[bytes]:
    """It is told of what happens from now on. Its secret is in this answer and nowhere else."""
    who = await need(request, house, "admin")
    wish, secret = await _wish(house, data), new_secret()
    verdict = await house.command(webhooks.create(who, wish, secret, house.clock()))
    if verdict.code != 201:
        return json(verdict.answer, verdict.code)
    item = _item(verdict.answer, who, None)
    return json(item | {"secret": secret if wish.kind == "webhook" else None}, 201)


@get("/webhooks/out", summary="Endpoints, and how they fare", operation_id="list_webhooks")
async def list_webhooks(request: Call, house: Here) -> Response[bytes]:
    who = await need(request, house, "read")
    rows = await house.store.rows(who.tenant_id, "webhook_endpoints", removed_ns=None)
    waiting = await rows_of(house).deliveries_waiting(who.tenant_id)
    rows.sort(key=lambda row: str(row["endpoint_id"]))
    items = [_item(row, who, waiting.get(row["endpoint_id"])) for row in rows]
    return json({"items": items, "next_cursor": None, "event_types": sorted(SUBSCRIBABLE)})


@get("/webhooks/out/{endpoint_id:str}", summary="One endpoint", operation_id="get_webhook")
async def get_webhook(request: Call, house: Here, endpoint_id: FromPath[str]) -> Response[bytes]:
    who = await need(request, house, "read")
    return json(await _shown(house, who, await endpoint_of(house, who, endpoint_id)))


@put("/webhooks/out/{endpoint_id:str}", summary="Change an endpoint, whole", operation_id="change_webhook")
async def change_webhook(
    request: Call, house: Here, endpoint_id: FromPath[str], data: JSONBody[WebhookBody]
) -> Response[bytes]:
    """It counts for events not yet looked at; what waits goes to where the endpoint lies now."""
    who = await need(request, house, "admin")
    wish = await _wish(house, data)
    return await _did(house, who, webhooks.change(who, endpoint_id, wish, house.clock(), data.was))


@delete(
    "/webhooks/out/{endpoint_id:str}",
    status_code=200,
    summary="Remove an endpoint",
    operation_id="remove_webhook",
)
async def remove_webhook(request: Call, house: Here, endpoint_id: FromPath[str]) -> Response[bytes]:
    who = await need(request, house, "admin")
    verdict = await house.command(webhooks.remove(who, endpoint_id, house.clock()))
    return json(verdict.answer, verdict.code)


@post(
    "/webhooks/out/{endpoint_id:str}/rotate",
    status_code=200,
    summary="Give an endpoint another secret",
    operation_id="rotate_webhook_secret",
)
async def rotate_webhook_secret(
    request: Call, house: Here, endpoint_id: FromPath[str], data: JSONBody[RotateBody]
) -> Response[bytes]:
    """The old one signs as well for `overlap_s`: the receiver learns the new one meanwhile."""
    who = await need(request, house, "admin")
    secret = new_secret()
    verdict = await house.command(webhooks.rotate(who, endpoint_id, secret, data.overlap_s, house.clock()))
    if verdict.code != 200:
        return json(verdict.answer, verdict.code)
    ends = from_ns(verdict.answer["old_ends_ns"])
    return json({"endpoint_id": endpoint_id, "secret": secret, "old_ends_at": ends})


@post(
    "/webhooks/out/{endpoint_id:str}/enable",
    status_code=200,
    summary="Send to an endpoint again, from now on",
    operation_id="enable_webhook",
)
async def enable_webhook(request: Call, house: Here, endpoint_id: FromPath[str]) -> Response[bytes]:
    who = await need(request, house, "admin")
    return await _did(house, who, webhooks.enable(who, endpoint_id, house.clock()))


@post(
    "/webhooks/out/{endpoint_id:str}/disable",
    status_code=200,
    summary="Send nothing to an endpoint for now",
    operation_id="disable_webhook",
)
async def disable_webhook(request: Call, house: Here, endpoint_id: FromPath[str]) -> Response[bytes]:
    who = await need(request, house, "admin")
    return await _did(house, who, webhooks.disable(who, endpoint_id, house.clock()))


@post(
    "/webhooks/out/{endpoint_id:str}/test",
    status_code=200,
    summary="Send a test now, and tell how it went",
    operation_id="test_webhook",
)
async def test_webhook(request: Call, house: Here, endpoint_id: FromPath[str]) -> Response[bytes]:
    """One try, without another if it fails. The answer is the delivery with that try."""
    who = await need(request, house, "admin")
    endpoint = await endpoint_of(house, who, endpoint_id)
    if not house.offers.allows((who.tenant_id, endpoint_id)):
        raise Refusal(429, "too_often", "this endpoint was tested too often; try again in a minute")
    verdict = await house.command(webhooks.test(who, endpoint_id, house.clock()))
    if verdict.code != 200:
        return json(verdict.answer, verdict.code)
    await house.webhooks.attempt(endpoint, verdict.answer)
    return json(await whole(house, who, endpoint_id, verdict.answer["delivery_id"]))


@post(
    "/webhooks/out/{endpoint_id:str}/replay",
    status_code=200,
    summary="Send one delivery, or a range of events, once more",
    operation_id="replay_webhook",
)
async def replay_webhook(
    request: Call, house: Here, endpoint_id: FromPath[str], data: JSONBody[ReplayBody]
) -> Response[bytes]:
    """Under the ids they had. What it was never told of, as while it was disabled, is told too."""
    who = await need(request, house, "admin")
    endpoint = await endpoint_of(house, who, endpoint_id)
    if data.delivery_id is not None:
        if data != ReplayBody(delivery_id=data.delivery_id):
            raise Refusal(422, "bad_request", "name a delivery_id or a range, and not both")
        row = await delivery_of(house, who, endpoint_id, data.delivery_id)
        matched = [Matched(row["event_seq"], row["event_type"], row["extra"])]
        detail: Row = {"delivery_id": data.delivery_id}
        next_after = None
    else:
        matched, next_after = await _range(house, who, endpoint, _span(data))
        detail = {"after": data.after, "before": data.before, "since": data.since, "until": data.until}
        detail["next_after"] = next_after
    verdict = await house.command(webhooks.replay(who, endpoint_id, matched, detail, house.clock()))
    if verdict.code != 200:
        return json(verdict.answer, verdict.code)
    return json({"replayed": verdict.answer, "next_after": next_after})


def _span(data: ReplayBody) -> EventFilter:
    if all(one is None for one in (data.after, data.before, data.since, data.until)):
        raise Refusal(422, "bad_request", "name a delivery_id, or a range by after, before, since or until")
    try:
        since, until = (None if one is None else to_ns(one) for one in (data.since, data.until))
    except ValueError as error:
        raise Refusal(422, "bad_request", "since and until are times such as 2026-11-16T12:00:00Z") from error
    return EventFilter(after=data.after, before=data.before, since_ns=since, until_ns=until)


async def _range(
    house: House, who: Principal, endpoint: Row, span: EventFilter
) -> tuple[list[Matched], int | None]:
    """What of a range concerns this endpoint; and where to go on if it was too long."""
    subscription, found = Subscription(endpoint), list[Matched]()
    for _ in range(MOST_SCANNED // PAGE):
        events = await house.store.events(who.tenant_id, span, PAGE, newest_first=False)
        if not events:
            return found, None
        part = await house.webhooks.reading.matched(who.tenant_id, events, [subscription])
        found += part[subscription.endpoint_id]
        span = msgspec.structs.replace(span, after=events[-1].sequence_number)
        if len(events) < PAGE:
            return found, None
        if len(found) >= PAGE:
            break
    return found, span.after


async def _wish(house: House, data: WebhookBody) -> Wish:
    """What is asked for, if it can be."""
    faults = tuple(_faults(data))
    if faults:
        raise InvalidRequest(422, faults)
    await _check_url(house, data)
    kept = {name: values for name, values in data.filters.items() if values}
    return Wish(data.name, data.kind, data.url, data.events, kept, data.rate_per_min, data.schedule_s)


def _faults(data: WebhookBody) -> Iterator[Fault]:
    """What is none of ours, by its place."""
    for place, event in enumerate(data.events):
        if event not in SUBSCRIBABLE:
            yield Fault(f"events[{place}]", "must be an event that docs/guides/events.md names")
    for place, name in enumerate(data.filters):
        if name not in FILTERS:
            yield Fault(f"filters[{place}]", f"its name must be one of {', '.join(FILTERS)}")
    for place, severity in enumerate(data.filters.get("severity", [])):
        if severity not in SEVERITIES:
            yield Fault(f"filters.severity[{place}]", f"must be one of {', '.join(sorted(SEVERITIES))}")


async def _check_url(house: House, data: WebhookBody) -> None:
    if data.kind == "email":
        try:
            recipients(data.url)
        except ValueError as error:
            raise Refusal(422, "bad_url", str(error)) from error
        return
    outward = house.federation.outward
    problem = outward.check(data.url, "the receiver", query=True)
    if problem is not None:
        raise Refusal(422, "bad_url", problem)
    try:
        await outward.address(data.url, query=True)
    except NotPublic as error:
        raise Refusal(422, "bad_url", str(error)) from error
    except Unreachable:
        pass  # a name that is not known yet may be when something is to be sent


async def _did(house: House, who: Principal, act: Act) -> Response[bytes]:
    verdict = await house.command(act)
    if verdict.code != 200:
        return json(verdict.answer, verdict.code)
    return json(await _shown(house, who, verdict.answer))


async def _shown(house: House, who: Principal, row: Row) -> Row:
    waiting = await rows_of(house).deliveries_waiting(who.tenant_id)
    return _item(row, who, waiting.get(row["endpoint_id"]))


def _item(row: Row, who: Principal, waiting: Waiting | None) -> Row:
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

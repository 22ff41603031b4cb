"""The delivery log of outbound webhooks: deliveries, their attempts, and the secrets that signed them.

Every reader may read it; payloads are rendered again from the record, so shredded content is not included.
"""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Response, Router, get
from litestar.params import FromPath, QueryParameter

from observatory.features.webhooks.types import State
from observatory.features.webhooks.types_rows import WebhookRows
from observatory.features.webhooks.worker import WebhookWorker
from observatory.http.answers import (
    Cursor,
    Limit,
    Refusal,
    decode_cursor,
    encode_cursor,
    invalid_cursor,
    json,
    page,
    read_cursor,
)
from observatory.http.app_state import AppState, Call, Here
from observatory.http.permissions import require_permission
from observatory.pipeline.state import Principal
from observatory.protocol.clock import from_ns

Row = dict[str, Any]


@get(
    "/webhooks/out/deliveries",
    summary="List deliveries to all endpoints, newest first",
    operation_id="list_deliveries",
)
async def list_deliveries(
    request: Call,
    app: Here,
    endpoint_id: Annotated[
        str | None, QueryParameter(description="Only to this endpoint, also a removed one.")
    ] = None,
    in_state: Annotated[State | None, QueryParameter(name="state")] = None,
    event_type: Annotated[str | None, QueryParameter(description="Only of this event type.")] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response[bytes]:
    """With the name and kind of each endpoint, current or when it was removed."""
    who = await require_permission(request, app, "read")
    before = None if cursor is None else _position(cursor)
    rows = await rows_of(app).deliveries_log(
        who.tenant_id, before, limit + 1, endpoint_id, in_state, event_type
    )
    known = {one["endpoint_id"]: one for one in await app.store.rows(who.tenant_id, "webhook_endpoints")}
    items = [delivery_item(row) | _endpoint_fields(known[row["endpoint_id"]]) for row in rows[:limit]]
    last = rows[limit - 1] if len(rows) > limit else None
    more = None if last is None else encode_cursor(f"d{last['created_ns']}.{last['delivery_id']}".encode())
    return json({"items": items, "next_cursor": more})


def _endpoint_fields(endpoint: Row) -> Row:
    return {
        "endpoint_name": endpoint["name"],
        "endpoint_kind": endpoint["kind"],
        "endpoint_removed": endpoint["removed_ns"] is not None,
    }


def _position(cursor: str) -> tuple[int, str]:
    try:
        when, dot, delivery_id = decode_cursor(cursor).decode("ascii").partition(".")
        number = int(when[1:])
    except ValueError as error:
        raise invalid_cursor() from error
    if when[:1] != "d" or not dot or not 0 <= number < 1 << 63 or not delivery_id.isprintable():
        raise invalid_cursor()
    return number, delivery_id


@get(
    "/webhooks/out/{endpoint_id:str}/deliveries",
    summary="List deliveries to an endpoint, newest first",
    operation_id="list_webhook_deliveries",
)
async def list_webhook_deliveries(
    request: Call,
    app: Here,
    endpoint_id: FromPath[str],
    in_state: Annotated[State | None, QueryParameter(name="state")] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response[bytes]:
    who = await require_permission(request, app, "read")
    await endpoint_of(app, who, endpoint_id, removed=True)
    rows = await rows_of(app).deliveries_page(
        who.tenant_id, endpoint_id, read_cursor(cursor), limit + 1, in_state
    )
    last = rows[limit - 1]["event_seq"] if len(rows) > limit else None
    return json(page([delivery_item(row) for row in rows], limit, last))


@get(
    "/webhooks/out/{endpoint_id:str}/deliveries/{delivery_id:str}",
    summary="Get a delivery with its payload and attempts",
    operation_id="get_webhook_delivery",
)
async def get_webhook_delivery(
    request: Call, app: Here, endpoint_id: FromPath[str], delivery_id: FromPath[str]
) -> Response[bytes]:
    who = await require_permission(request, app, "read")
    return json(await delivery_with_attempts(app, who, endpoint_id, delivery_id))


def rows_of(app: AppState) -> WebhookRows:
    assert isinstance(app.store, WebhookRows)
    return app.store


async def endpoint_of(app: AppState, who: Principal, endpoint_id: str, removed: bool = False) -> Row:
    rows = await app.store.rows(who.tenant_id, "webhook_endpoints", endpoint_id=endpoint_id)
    if not rows or (rows[0]["removed_ns"] is not None and not removed):
        raise Refusal(404, "not_found", "no webhook endpoint of this tenant has that id")
    return rows[0]


async def delivery_of(app: AppState, who: Principal, endpoint_id: str, delivery_id: str) -> Row:
    rows = await app.store.rows(
        who.tenant_id, "webhook_deliveries", delivery_id=delivery_id, endpoint_id=endpoint_id
    )
    if not rows:
        raise Refusal(404, "not_found", "no delivery of this endpoint has that id")
    return rows[0]


async def delivery_with_attempts(app: AppState, who: Principal, endpoint_id: str, delivery_id: str) -> Row:
    row = await delivery_of(app, who, endpoint_id, delivery_id)
    rendered = await app.service(WebhookWorker).reading.rendered(row)
    attempt_rows = await app.store.rows(who.tenant_id, "webhook_attempts", delivery_id=delivery_id)
    attempt_rows.sort(key=lambda one: int(one["attempt"]))
    signing = await _signing(app, who, endpoint_id)
    attempts = [
        {
            "attempt": one["attempt"],
            "at": from_ns(one["at_ns"]),
            "took_ms": one["took_ms"],
            "ok": bool(one["ok"]),
            "code": one["code"],
            "detail": one["detail"],
            "excerpt": one["excerpt"],
            "signed_with": [number for number, since, until in signing if since <= one["at_ns"] < until],
        }
        for one in attempt_rows
    ]
    payload = None if rendered is None else rendered[1].decode()
    return delivery_item(row) | {"payload": payload, "tries": attempts}


async def _signing(app: AppState, who: Principal, endpoint_id: str) -> list[tuple[int, int, int]]:
    """The endpoint's secrets by number with the time range in which each signs; empty for unsigned kinds."""
    rows = await app.store.rows(who.tenant_id, "webhook_secrets", endpoint_id=endpoint_id)
    numbered = sorted(rows, key=lambda row: int(row["secret_no"]))
    return [(row["secret_no"], row["created_ns"], row["ends_ns"] or 1 << 63) for row in numbered]


def delivery_item(row: Row) -> Row:
    return {
        "delivery_id": row["delivery_id"],
        "endpoint_id": row["endpoint_id"],
        "event_type": row["event_type"],
        "sequence_number": row["event_seq"],
        "state": row["state"],
        "attempts": row["attempts"],
        "next_try_at": at(row["next_ns"]),
        "last_code": row["last_code"],
        "last_detail": row["last_detail"],
        "created_at": from_ns(row["created_ns"]),
        "ended_at": at(row["ended_ns"]),
    }


def at(ns: int | None) -> str | None:
    return None if ns is None else from_ns(ns)


webhook_log_router = Router(
    path="/v1",
    route_handlers=[list_deliveries, list_webhook_deliveries, get_webhook_delivery],
    tags=["Webhooks out"],
)

"""The log of webhooks out: what was sent, to all endpoints or one, how every try went, what signed it.

Every reader may read it; what is sent is made anew from the record, so what was shredded is not in it.
"""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Response, Router, get
from litestar.params import FromPath, QueryParameter

from observatory.features.webhooks.types import State
from observatory.features.webhooks.types_rows import WebhookRows
from observatory.http.answers import (
    Cursor,
    Limit,
    Refusal,
    json,
    not_ours,
    page,
    read_cursor,
    sealed,
    unsealed,
)
from observatory.http.app_state import Call, Here, House
from observatory.http.permissions import need
from observatory.pipeline.state import Principal
from observatory.protocol.clock import from_ns

Row = dict[str, Any]


@get(
    "/webhooks/out/deliveries",
    summary="What was sent to all endpoints, newest first",
    operation_id="list_deliveries",
)
async def list_deliveries(
    request: Call,
    house: Here,
    endpoint_id: Annotated[str | None, QueryParameter(description="To this one, removed ones too.")] = None,
    in_state: Annotated[State | None, QueryParameter(name="state")] = None,
    event_type: Annotated[str | None, QueryParameter(description="Of this event.")] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response[bytes]:
    """With the name and kind of each endpoint, as it is now or was when it was removed."""
    who = await need(request, house, "read")
    before = None if cursor is None else _place(cursor)
    rows = await rows_of(house).deliveries_log(
        who.tenant_id, before, limit + 1, endpoint_id, in_state, event_type
    )
    known = {one["endpoint_id"]: one for one in await house.store.rows(who.tenant_id, "webhook_endpoints")}
    items = [delivery_item(row) | _whose(known[row["endpoint_id"]]) for row in rows[:limit]]
    last = rows[limit - 1] if len(rows) > limit else None
    more = None if last is None else sealed(f"d{last['created_ns']}.{last['delivery_id']}".encode())
    return json({"items": items, "next_cursor": more})


def _whose(endpoint: Row) -> Row:
    return {
        "endpoint_name": endpoint["name"],
        "endpoint_kind": endpoint["kind"],
        "endpoint_removed": endpoint["removed_ns"] is not None,
    }


def _place(cursor: str) -> tuple[int, str]:
    try:
        when, dot, delivery_id = unsealed(cursor).decode("ascii").partition(".")
        number = int(when[1:])
    except ValueError as error:
        raise not_ours() from error
    if when[:1] != "d" or not dot or not 0 <= number < 1 << 63 or not delivery_id.isprintable():
        raise not_ours()
    return number, delivery_id


@get(
    "/webhooks/out/{endpoint_id:str}/deliveries",
    summary="What was sent to an endpoint, newest first",
    operation_id="list_webhook_deliveries",
)
async def list_webhook_deliveries(
    request: Call,
    house: Here,
    endpoint_id: FromPath[str],
    in_state: Annotated[State | None, QueryParameter(name="state")] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response[bytes]:
    who = await need(request, house, "read")
    await endpoint_of(house, who, endpoint_id, removed=True)
    rows = await rows_of(house).deliveries_page(
        who.tenant_id, endpoint_id, read_cursor(cursor), limit + 1, in_state
    )
    last = rows[limit - 1]["event_seq"] if len(rows) > limit else None
    return json(page([delivery_item(row) for row in rows], limit, last))


@get(
    "/webhooks/out/{endpoint_id:str}/deliveries/{delivery_id:str}",
    summary="One delivery: what is sent, and every try",
    operation_id="get_webhook_delivery",
)
async def get_webhook_delivery(
    request: Call, house: Here, endpoint_id: FromPath[str], delivery_id: FromPath[str]
) -> Response[bytes]:
    who = await need(request, house, "read")
    return json(await whole(house, who, endpoint_id, delivery_id))


def rows_of(house: House) -> WebhookRows:
    assert isinstance(house.store, WebhookRows)
    return house.store


async def endpoint_of(house: House, who: Principal, endpoint_id: str, removed: bool = False) -> Row:
    rows = await house.store.rows(who.tenant_id, "webhook_endpoints", endpoint_id=endpoint_id)
    if not rows or (rows[0]["removed_ns"] is not None and not removed):
        raise Refusal(404, "not_found", "no webhook endpoint of this tenant has that id")
    return rows[0]


async def delivery_of(house: House, who: Principal, endpoint_id: str, delivery_id: str) -> Row:
    rows = await house.store.rows(
        who.tenant_id, "webhook_deliveries", delivery_id=delivery_id, endpoint_id=endpoint_id
    )
    if not rows:
        raise Refusal(404, "not_found", "no delivery of this endpoint has that id")
    return rows[0]


async def whole(house: House, who: Principal, endpoint_id: str, delivery_id: str) -> Row:
    row = await delivery_of(house, who, endpoint_id, delivery_id)
    rendered = await house.webhooks.reading.rendered(row)
    tries = await house.store.rows(who.tenant_id, "webhook_attempts", delivery_id=delivery_id)
    tries.sort(key=lambda one: int(one["attempt"]))
    signing = await _signing(house, who, endpoint_id)
    told = [
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
        for one in tries
    ]
    payload = None if rendered is None else rendered[1].decode()
    return delivery_item(row) | {"payload": payload, "tries": told}


async def _signing(house: House, who: Principal, endpoint_id: str) -> list[tuple[int, int, int]]:
    """The endpoint's secrets by number, and from when until when each signs; none for what is not signed."""
    rows = await house.store.rows(who.tenant_id, "webhook_secrets", endpoint_id=endpoint_id)
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

"""The Forensic Inspector's words: the message archive and the audit trail.

Everything served comes as it was stored: messages in the agent's own bytes, audit events in the exact
bytes that were hashed. Lists are newest first with keyset cursors; a trace is oldest first.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

import msgspec
from litestar import Response, Router, get, post
from litestar.enums import MediaType
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter

from observatory.errors import ObservatoryError
from observatory.features.redaction.shredded import items_of
from observatory.features.verification.commands import tell_broken
from observatory.features.verification.log_root import LogCheck
from observatory.features.verification.routes import VerifyRequest, verify_range
from observatory.http.answers import (
    MAX_SEQUENCE,
    Cursor,
    Limit,
    Refusal,
    json,
    make_cursor,
    page,
    read_cursor,
)
from observatory.http.app_state import Call, Here, House
from observatory.http.permissions import need
from observatory.pipeline.ports import EventFilter, MessageFilter, StoredEvent
from observatory.protocol import clock
from observatory.protocol.identity import agent_entity_id, canonical_uuid
from observatory.protocol.otel import trace_id_of_session
from observatory.protocol.thoughts import THOUGHTS

PORTION, LOOKED_AT = 2_000, 20_000


@get("/messages", summary="The message archive, newest first", operation_id="list_messages")
async def list_messages(
    request: Call,
    house: Here,
    session_id: FromQuery[str | None] = None,
    agent_id: Annotated[str | None, QueryParameter(description="An agent's name or entity id.")] = None,
    message_type: FromQuery[str | None] = None,
    in_state: Annotated[str | None, QueryParameter(name="state")] = None,
    after: Annotated[
        int | None, QueryParameter(ge=0, le=MAX_SEQUENCE, description="Only past this number, oldest first.")
    ] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response[bytes]:
    principal = await need(request, house, "read")
    newest_first = after is None
    mark = read_cursor(cursor)
    where = MessageFilter(
        after=after if newest_first or mark is None else mark,
        before=mark if newest_first else None,
        session_id=None if session_id is None else canonical_uuid(session_id) or session_id,
        agent=agent_id,
        message_type=message_type,
        state=in_state,
    )
    found = await house.store.messages(principal.tenant_id, where, limit + 1, newest_first)
    last = found[limit - 1].sequence_number if len(found) > limit else None
    items = await items_of(house, principal.tenant_id, found[:limit])
    return json(page([*items, *found[limit:]], limit, last))


@get(
    "/messages/{message_id:path}",
    summary="One message, or its exact archived bytes",
    operation_id="get_message",
)
async def get_message(
    request: Call,
    house: Here,
    message_id: FromPath[str],
    raw: Annotated[bool, QueryParameter(description="Answer the exact bytes the agent sent.")] = False,
) -> Response[bytes]:
    principal = await need(request, house, "read")
    # A path, because the name of a step holds a slash; the router leaves its own in front.
    found = await house.store.message(principal.tenant_id, message_id.removeprefix("/"))
    if found is None:
        raise Refusal(404, "not_found", "no message or step of this tenant has that id")
    if raw or "application/octet-stream" in request.headers.get("accept", ""):
        if found.raw is None:
            raise Refusal(
                410, "shredded", "the bytes of this message were shredded by order; its proof stands"
            )
        return Response(found.raw, media_type="application/octet-stream")
    return json((await items_of(house, principal.tenant_id, [found]))[0])


@get(
    "/audit/trace/{trace_id:str}", summary="A session's whole trail, oldest first", operation_id="audit_trace"
)
async def audit_trace(
    request: Call, house: Here, trace_id: FromPath[str], cursor: Cursor = None, limit: Limit = 1_000
) -> Response[bytes]:
    principal = await need(request, house, "read")
    where = EventFilter(after=read_cursor(cursor), trace_id=trace_id_of_session(trace_id))
    found = await house.store.events(principal.tenant_id, where, limit + 1, newest_first=False)
    return _events(found, limit)


@get(
    "/audit/tenant",
    summary="The tenant's events by time and severity, newest first",
    operation_id="audit_tenant",
)
async def audit_tenant(
    request: Call,
    house: Here,
    since: Annotated[str | None, QueryParameter(description="RFC 3339, inclusive.")] = None,
    until: Annotated[str | None, QueryParameter(description="RFC 3339, exclusive.")] = None,
    severity_min: Annotated[int | None, QueryParameter(ge=1, le=24)] = None,
    after: Annotated[
        int | None, QueryParameter(ge=0, le=MAX_SEQUENCE, description="Only past this number, oldest first.")
    ] = None,
    entity_id: Annotated[
        str | None,
        QueryParameter(
            description="Sender or recipient: an entity id, an agent's name, or `thoughts:SESSION`."
        ),
    ] = None,
    trace_id: Annotated[str | None, QueryParameter(description="A trace or a session.")] = None,
    event_type: Annotated[str | None, QueryParameter(max_length=100)] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response[bytes]:
    """With `event_type` a page is as long as was found in the part looked through; `next_cursor` leads on."""
    tenant_id = (await need(request, house, "read")).tenant_id
    newest_first = after is None
    mark = read_cursor(cursor)
    where = EventFilter(
        after=after if newest_first or mark is None else mark,
        before=mark if newest_first else None,
        since_ns=_time("since", since),
        until_ns=_time("until", until),
        severity_min=severity_min,
        entity_id=None if entity_id is None else _entity(tenant_id, entity_id),
        trace_id=None if trace_id is None else trace_id_of_session(trace_id),
    )
    if event_type is not None:
        return await _of_type(house, tenant_id, where, event_type, limit, newest_first)
    found = await house.store.events(tenant_id, where, limit + 1, newest_first)
    return _events(found, limit)


async def _of_type(
    house: House, tenant_id: str, where: EventFilter, event_type: str, limit: int, newest_first: bool
) -> Response[bytes]:
    """No column holds the type of an event, so that many are read and looked at, not more."""
    sign, found, looked = msgspec.json.encode({"event_type": event_type})[1:-1], list[StoredEvent](), 0
    while looked < LOOKED_AT:
        some = await house.store.events(tenant_id, where, PORTION, newest_first)
        for event in some:
            # Elsewhere the same words may stand in a value; only then it is read whole.
            if sign in event.record and _type_of(event) == event_type:
                found.append(event)
        looked += len(some)
        if len(some) < PORTION:
            return _events(found, limit)
        reached = some[-1].sequence_number
        where = msgspec.structs.replace(where, **{"before" if newest_first else "after": reached})
        if len(found) > limit:
            return _events(found, limit)
    return events_page(found, limit, where.before if newest_first else where.after)


def _type_of(event: StoredEvent) -> object:
    return msgspec.json.decode(event.record)["body"].get("event_type")


def _entity(tenant_id: str, name: str) -> str:
    known = name.startswith(("agt_", "usr_", "key_", "sys_", THOUGHTS))
    return name if known else agent_entity_id(tenant_id, name)


@get(
    "/audit/entity/{entity_id:str}",
    summary="What one entity sent or received, newest first",
    operation_id="audit_entity",
)
async def audit_entity(
    request: Call, house: Here, entity_id: FromPath[str], cursor: Cursor = None, limit: Limit = 100
) -> Response[bytes]:
    """Takes an entity id (`agt_…`, `usr_…`) or an agent's name."""
    principal = await need(request, house, "read")
    where = EventFilter(before=read_cursor(cursor), entity_id=_entity(principal.tenant_id, entity_id))
    found = await house.store.events(principal.tenant_id, where, limit + 1, newest_first=True)
    return _events(found, limit)


@post(
    "/audit/verify", summary="Verify the chain over any range", operation_id="audit_verify", status_code=200
)
async def audit_verify(request: Call, house: Here, data: JSONBody[VerifyRequest]) -> Response[bytes]:
    principal = await need(request, house, "verify")
    if data.tenant_id is not None and data.tenant_id != principal.tenant_id:
        raise Refusal(403, "foreign_tenant", "this key belongs to another tenant")
    log = LogCheck(house.sealer, principal.tenant_id)
    answer = await verify_range(house.store, log, principal.tenant_id, data)
    broken = answer.first_break
    if broken is not None and broken.what != "missing_tail":  # that is an end asked for, not found
        told = (broken.sequence_number, broken.what, broken.sentence)
        with suppress(ObservatoryError):  # what was found is answered, whether it can be told or not
            await house.command(tell_broken(principal, *told, house.clock()))
    return json(answer)


def _events(found: list[StoredEvent], limit: int) -> Response[bytes]:
    return events_page(found, limit, None)


def events_page(found: list[StoredEvent], limit: int, reached: int | None) -> Response[bytes]:
    """`reached` is how far was looked, where there may be more beyond."""
    last = found[limit - 1].sequence_number if len(found) > limit else reached
    items = b",".join([event.record for event in found[:limit]])
    cursor = msgspec.json.encode(make_cursor(last) if last is not None else None)
    return Response(b'{"items":[' + items + b'],"next_cursor":' + cursor + b"}", media_type=MediaType.JSON)


def _time(name: str, text: str | None) -> int | None:
    if text is None:
        return None
    try:
        # A '+' of a zone offset arrives as a space when it was not escaped.
        return clock.to_ns(text.replace(" ", "+") if text.count("T") else text)
    except ValueError as error:
        raise Refusal(
            400, "bad_time", f"{name}: expected a time with zone, e.g. 2026-02-16T14:32:00Z"
        ) from error


forensics = Router(
    path="/v1",
    route_handlers=[list_messages, get_message, audit_trace, audit_tenant, audit_entity, audit_verify],
    tags=["Forensic Inspector"],
)

"""Routes of the Forensic Inspector: the message archive and the audit trail.

Everything is served as it was stored: messages in the agent's own bytes, audit events in the exact bytes that
were hashed. Lists are newest first with keyset cursors; a trace is oldest first.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import Response, Router, get
from litestar.params import FromPath, FromQuery, QueryParameter

from observatory.features.archive.queries import events_page
from observatory.features.redaction.queries_shredded import items_of
from observatory.http.answers import MAX_SEQUENCE, Cursor, Limit, Refusal, json, page, read_cursor
from observatory.http.app_state import AppState, Call, Here
from observatory.http.permissions import require_permission
from observatory.pipeline.ports import EventFilter, MessageFilter, StoredEvent
from observatory.protocol import clock
from observatory.protocol.identity import agent_entity_id, canonical_uuid
from observatory.protocol.otel import trace_id_of_session
from observatory.protocol.thoughts import THOUGHTS

SCAN_PAGE, MAX_SCANNED = 2_000, 20_000


@get("/messages", summary="List archived messages, newest first", operation_id="list_messages")
async def list_messages(
    request: Call,
    app: Here,
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
    principal = await require_permission(request, app, "read")
    newest_first = after is None
    position = read_cursor(cursor)
    where = MessageFilter(
        after=after if newest_first or position is None else position,
        before=position if newest_first else None,
        session_id=None if session_id is None else canonical_uuid(session_id) or session_id,
        agent=agent_id,
        message_type=message_type,
        state=in_state,
    )
    found = await app.store.messages(principal.tenant_id, where, limit + 1, newest_first)
    last = found[limit - 1].sequence_number if len(found) > limit else None
    items = await items_of(app, principal.tenant_id, found[:limit])
    return json(page([*items, *found[limit:]], limit, last))


@get(
    "/messages/{message_id:path}",
    summary="One message, or its exact archived bytes",
    operation_id="get_message",
)
async def get_message(
    request: Call,
    app: Here,
    message_id: FromPath[str],
    raw: Annotated[bool, QueryParameter(description="Return the exact bytes the agent sent.")] = False,
) -> Response[bytes]:
    principal = await require_permission(request, app, "read")
    # A path, because a step's name contains a slash; the router keeps its own leading slash.
    found = await app.store.message(principal.tenant_id, message_id.removeprefix("/"))
    if found is None:
        raise Refusal(404, "not_found", "no message or step of this tenant has that id")
    if raw or "application/octet-stream" in request.headers.get("accept", ""):
        if found.raw is None:
            raise Refusal(410, "shredded", "this message was shredded by request; its proof remains")
        return Response(found.raw, media_type="application/octet-stream")
    return json((await items_of(app, principal.tenant_id, [found]))[0])


@get(
    "/audit/trace/{trace_id:str}",
    summary="List a session's audit events, oldest first",
    operation_id="audit_trace",
)
async def audit_trace(
    request: Call, app: Here, trace_id: FromPath[str], cursor: Cursor = None, limit: Limit = 1_000
) -> Response[bytes]:
    principal = await require_permission(request, app, "read")
    where = EventFilter(after=read_cursor(cursor), trace_id=trace_id_of_session(trace_id))
    found = await app.store.events(principal.tenant_id, where, limit + 1, newest_first=False)
    return _events(found, limit)


@get(
    "/audit/tenant",
    summary="List the tenant's audit events, newest first",
    operation_id="audit_tenant",
)
async def audit_tenant(
    request: Call,
    app: Here,
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
    """With `event_type` a page has only the matches of the part scanned; `next_cursor` continues after it."""
    tenant_id = (await require_permission(request, app, "read")).tenant_id
    newest_first = after is None
    position = read_cursor(cursor)
    where = EventFilter(
        after=after if newest_first or position is None else position,
        before=position if newest_first else None,
        since_ns=_time("since", since),
        until_ns=_time("until", until),
        severity_min=severity_min,
        entity_id=None if entity_id is None else _entity(tenant_id, entity_id),
        trace_id=None if trace_id is None else trace_id_of_session(trace_id),
    )
    if event_type is not None:
        return await _of_type(app, tenant_id, where, event_type, limit, newest_first)
    found = await app.store.events(tenant_id, where, limit + 1, newest_first)
    return _events(found, limit)


async def _of_type(
    app: AppState, tenant_id: str, where: EventFilter, event_type: str, limit: int, newest_first: bool
) -> Response[bytes]:
    """No column holds the type of an event, so a bounded number of records is read and filtered."""
    marker, found, scanned = msgspec.json.encode({"event_type": event_type})[1:-1], list[StoredEvent](), 0
    while scanned < MAX_SCANNED:
        page_events = await app.store.events(tenant_id, where, SCAN_PAGE, newest_first)
        for event in page_events:
            # The bytes may also occur in a value, so a match is decoded and checked.
            if marker in event.record and _type_of(event) == event_type:
                found.append(event)
        scanned += len(page_events)
        if len(page_events) < SCAN_PAGE:
            return _events(found, limit)
        reached = page_events[-1].sequence_number
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
    summary="List audit events an entity sent or received, newest first",
    operation_id="audit_entity",
)
async def audit_entity(
    request: Call, app: Here, entity_id: FromPath[str], cursor: Cursor = None, limit: Limit = 100
) -> Response[bytes]:
    """Takes an entity id (`agt_…`, `usr_…`) or an agent's name."""
    principal = await require_permission(request, app, "read")
    where = EventFilter(before=read_cursor(cursor), entity_id=_entity(principal.tenant_id, entity_id))
    found = await app.store.events(principal.tenant_id, where, limit + 1, newest_first=True)
    return _events(found, limit)


def _events(found: list[StoredEvent], limit: int) -> Response[bytes]:
    return events_page(found, limit, None)


def _time(name: str, text: str | None) -> int | None:
    if text is None:
        return None
    try:
        # An unescaped '+' of a zone offset arrives as a space.
        return clock.to_ns(text.replace(" ", "+") if text.count("T") else text)
    except ValueError as error:
        raise Refusal(
            400, "bad_time", f"{name}: expected a time with zone, e.g. 2026-02-16T14:32:00Z"
        ) from error


forensics = Router(
    path="/v1",
    route_handlers=[list_messages, get_message, audit_trace, audit_tenant, audit_entity],
    tags=["Forensic Inspector"],
)

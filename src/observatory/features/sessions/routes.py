"""HTTP routes of sessions: list, filter, detail; cost, loops, stuck sessions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Annotated, Any, Literal

import msgspec
from litestar import Response, Router, get
from litestar.params import FromPath, FromQuery, QueryParameter

from observatory.errors import StoreError
from observatory.features.sessions.queries_rows import SessionItem, membership_reads, session_items
from observatory.features.sessions.types_lines import SessionLineReads, key_of
from observatory.features.sessions.types_membership import SessionSearch
from observatory.features.sessions.types_status import SessionStatus
from observatory.http.answers import Cursor, Limit, Refusal, json, make_cursor, page, read_cursor
from observatory.http.app_state import AppState, Call, Here
from observatory.http.permissions import require_permission
from observatory.protocol.identity import canonical_uuid

# Sessions read at a time, and how many times, when filtering by status.
LOOK, LOOKS = 1_000, 10
MAX_MATCHES = 1_000  # goals, and agents, that match a query
Row = dict[str, Any]


class SessionMember(msgspec.Struct, kw_only=True):
    agent_id: str
    entity_id: str
    messages: int
    last_step: str | None
    paused: bool
    cost: float
    tokens: int


class SessionAnswer(SessionItem, kw_only=True):
    tokens: int
    agents: list[SessionMember]


@get("/sessions", summary="Sessions, most recently active first", operation_id="list_sessions")
async def list_sessions(
    request: Call,
    app: Here,
    q: Annotated[
        str | None,
        QueryParameter(
            min_length=1,
            max_length=200,
            description="Prefix of the id, or text of the goal or of an agent's name.",
        ),
    ] = None,
    status: Annotated[
        SessionStatus | None, QueryParameter(description="Only sessions with this status.")
    ] = None,
    severity: FromQuery[Literal["warning", "loop"] | None] = None,
    stuck: Annotated[bool, QueryParameter(description="Only stuck sessions.")] = False,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response[bytes]:
    """Reads at most 10,000 sessions when filtering by status; the cursor continues from there."""
    principal = await require_permission(request, app, "read")
    tenant_id, before = principal.tenant_id, read_cursor(cursor)
    criteria = None if q is None else await _criteria(app, tenant_id, q)

    async def read_page(past: int | None, most: int) -> list[Row]:
        if criteria is None:
            return await app.store.sessions_page(tenant_id, past, most, severity)
        return await membership_reads(app).sessions_found(tenant_id, criteria, past, most, severity)

    if status is not None or stuck:
        return json(await _filtered(app, tenant_id, read_page, before, limit, status, stuck))
    rows = await read_page(before, limit + 1)
    last = rows[limit - 1]["last_seq"] if len(rows) > limit else None
    items = await session_items(app, tenant_id, rows[:limit])
    return json(page([*items, *rows[limit:]], limit, last))


@get("/sessions/stuck", summary="Stuck sessions", operation_id="list_stuck_sessions")
async def list_stuck_sessions(
    request: Call, app: Here, cursor: Cursor = None, limit: Limit = 100
) -> Response[bytes]:
    """Silent, or with an action pending, for longer than `stuck_s`, and not ended; newest first."""
    tenant_id = (await require_permission(request, app, "read")).tenant_id

    async def read_page(past: int | None, most: int) -> list[Row]:
        return await app.store.sessions_page(tenant_id, past, most, None)

    return json(await _filtered(app, tenant_id, read_page, read_cursor(cursor), limit, None, True))


@get("/sessions/{session_id:str}", summary="One session with its members", operation_id="get_session")
async def get_session(request: Call, app: Here, session_id: FromPath[str]) -> Response[bytes]:
    principal = await require_permission(request, app, "read")
    session_key = canonical_uuid(session_id) or session_id
    rows = await app.store.rows(principal.tenant_id, "sessions", session_id=session_key)
    if not rows:
        raise Refusal(404, "not_found", "no session of this tenant has that id")
    members = await app.store.rows(principal.tenant_id, "members", session_no=rows[0]["session_no"])
    agents = {row["agent_no"]: row for row in await app.store.rows(principal.tenant_id, "agents")}
    (item,) = await session_items(app, principal.tenant_id, rows)
    # Ruling 19: the latest cumulative figure of each agent, summed over agents.
    item["cost"] = round(sum(member["cost"] for member in members), 9)
    item["tokens"] = sum(member["tokens"] for member in members)
    item["agents"] = [
        {
            "agent_id": agents[member["agent_no"]]["agent_id"],
            "entity_id": agents[member["agent_no"]]["entity_id"],
            "messages": member["messages"],
            "last_step": member["last_step"],
            "paused": member["paused_ns"] is not None,
            "cost": member["cost"],
            "tokens": member["tokens"],
        }
        for member in members
        if member["agent_no"] in agents
    ]
    return json(item)


async def _criteria(app: AppState, tenant_id: str, q: str) -> SessionSearch:
    """Matches agents by name and sessions by goal; without the derived store no goal matches."""
    text = key_of(q)
    agents = await app.store.rows(tenant_id, "agents")
    named = [
        row["agent_no"]
        for row in agents
        if text in key_of(row["agent_id"]) or text in key_of(row["display_name"] or "")
    ]
    numbers: list[int] = []
    with suppress(StoreError):
        numbers = await app.derived.queries(SessionLineReads).sessions_about(tenant_id, text, MAX_MATCHES)
    return SessionSearch(canonical_uuid(q) or q.strip(), named[:MAX_MATCHES], numbers)


async def _filtered(
    app: AppState,
    tenant_id: str,
    read_page: Callable[[int | None, int], Awaitable[list[Row]]],
    before: int | None,
    limit: int,
    status: str | None,
    stuck: bool,
) -> Row:
    """Filters a bounded number of sessions; the cursor continues even when none matched."""
    items: list[Row] = []
    for _ in range(LOOKS):
        rows = await read_page(before, LOOK)
        for row, item in zip(rows, await session_items(app, tenant_id, rows), strict=True):
            before = row["last_seq"]
            if status in (None, item["status"]) and (item["stuck"] or not stuck):
                items.append(item)
                if len(items) == limit:
                    return {"items": items, "next_cursor": make_cursor(row["last_seq"])}
        if len(rows) < LOOK:
            return {"items": items, "next_cursor": None}
    return {"items": items, "next_cursor": None if before is None else make_cursor(before)}


sessions = Router(
    path="/v1",
    route_handlers=[list_sessions, list_stuck_sessions, get_session],
    tags=["Session Cluster Manager"],
)

"""The Session Cluster Manager's words, so far: which sessions there are and what they have spent."""

from __future__ import annotations

from typing import Any

from litestar import Response, Router, get
from litestar.params import FromPath

from observatory.api.answers import Cursor, Limit, Refusal, json, page, read_cursor
from observatory.api.gate import need
from observatory.api.house import Call, Here
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import canonical_uuid


@get("/sessions", summary="Sessions, most recently active first", operation_id="list_sessions")
async def list_sessions(
    request: Call, house: Here, cursor: Cursor = None, limit: Limit = 100
) -> Response[bytes]:
    principal = await need(request, house, "read")
    before = read_cursor(cursor)
    rows = await house.store.sessions_page(principal.tenant_id, before, limit + 1)
    last = rows[limit - 1]["last_seq"] if len(rows) > limit else None
    return json(page([_session(row) for row in rows], limit, last))


@get("/sessions/{session_id:str}", summary="One session with its members", operation_id="get_session")
async def get_session(request: Call, house: Here, session_id: FromPath[str]) -> Response[bytes]:
    principal = await need(request, house, "read")
    wanted = canonical_uuid(session_id) or session_id
    rows = await house.store.rows(principal.tenant_id, "sessions", session_id=wanted)
    if not rows:
        raise Refusal(404, "not_found", "no session of this tenant has that id")
    members = await house.store.rows(principal.tenant_id, "members", session_no=rows[0]["session_no"])
    agents = {row["agent_no"]: row for row in await house.store.rows(principal.tenant_id, "agents")}
    shown = _session(rows[0])
    # Ruling 19: the latest cumulative figure of each agent, summed over agents.
    shown["cost"] = round(sum(member["cost"] for member in members), 9)
    shown["tokens"] = sum(member["tokens"] for member in members)
    shown["agents"] = [
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
    return json(shown)


def _session(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "session_id": row["session_id"],
        "trace_id": row["trace_id"],
        "messages": row["messages"],
        "held": row["held"],
        "agents_count": row["agents"],
        "first_sequence_number": row["first_seq"],
        "last_sequence_number": row["last_seq"],
        "started_at": from_ns(row["started_ns"]),
        "last_at": from_ns(row["last_ns"]),
    }


sessions = Router(path="/v1", route_handlers=[list_sessions, get_session], tags=["Session Cluster Manager"])

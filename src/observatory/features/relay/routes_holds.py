"""HTTP routes that read holds, interventions and the content of rewrites."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from litestar import Response, Router, get
from litestar.params import FromPath, FromQuery, QueryParameter

from observatory.features.relay.routes import canonical
from observatory.http.answers import Cursor, Limit, Refusal, json, page, read_cursor
from observatory.http.app_state import AppState, Call, Here
from observatory.http.permissions import require_permission
from observatory.pipeline.state import Principal
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import agent_entity_id


@get(
    "/interventions/{intervention_id:str}/content",
    summary="The exact bytes that a rewrite or an edit put in place of a message",
    operation_id="get_rewrite",
)
async def get_rewrite(request: Call, app: Here, intervention_id: FromPath[str]) -> Response[bytes]:
    who = await require_permission(request, app, "read")
    rows = await app.store.rows(who.tenant_id, "interventions", intervention_id=intervention_id)
    number = rows[0]["sequence_number"] if rows else 0
    rows = await app.store.rows(who.tenant_id, "rewrites", sequence_number=number)
    if not rows:
        raise Refusal(404, "not_found", "no rewrite or edit of this tenant has that id")
    if rows[0]["raw"] is None:
        raise Refusal(410, "shredded", "this content was shredded by order; its proof stands")
    return Response(bytes(rows[0]["raw"]), media_type="application/octet-stream")


@get("/holds", summary="Held messages, oldest first", operation_id="list_holds")
async def list_holds(
    request: Call,
    app: Here,
    session_id: FromQuery[str | None] = None,
    agent_id: FromQuery[str | None] = None,
    gates_only: Annotated[
        bool, QueryParameter(description="Only messages that wait for an approval.")
    ] = False,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response[bytes]:
    who = await require_permission(request, app, "read")
    rows = await app.store.holds_page(who.tenant_id, read_cursor(cursor), limit + 1, gates_only)
    sessions = await _by_number(app, who, "sessions", "session_no", rows)
    agents = await _by_number(app, who, "agents", "agent_no", rows)
    session = None if session_id is None else canonical(session_id)
    entity = None if agent_id is None else agent_entity_id(who.tenant_id, agent_id)
    items = [_hold(row, sessions, agents) for row in rows]
    matching = [
        item
        for item in items
        if session in (None, item["session_id"]) and entity in (None, item["entity_id"])
    ]
    last = rows[limit - 1]["sequence_number"] if len(rows) > limit else None
    return json(page(matching, limit, last) if session is None and entity is None else _whole(matching, last))


@get(
    "/sessions/{session_id:str}/interventions",
    summary="Interventions in a session, oldest first",
    operation_id="list_interventions",
)
async def list_interventions(request: Call, app: Here, session_id: FromPath[str]) -> Response[bytes]:
    who = await require_permission(request, app, "read")
    sessions = await app.store.rows(who.tenant_id, "sessions", session_id=canonical(session_id))
    if not sessions:
        raise Refusal(404, "not_found", "no session of this tenant has that id")
    rows = await app.store.rows(who.tenant_id, "interventions", session_no=sessions[0]["session_no"])
    agents = await _by_number(app, who, "agents", "agent_no", rows)
    return json({"items": [_intervention(row, session_id, agents) for row in rows], "next_cursor": None})


async def _by_number(
    app: AppState, who: Principal, table: str, column: str, rows: list[dict[str, Any]]
) -> dict[int, dict[str, Any]]:
    """Rows of another table that these rows name by number, in one query."""
    numbers = sorted({row[column] for row in rows})
    rows = await app.store.rows(who.tenant_id, table, **{column: numbers}) if numbers else []
    return {row[column]: row for row in rows}


def _whole(items: list[Any], last: int | None) -> dict[str, Any]:
    return page([*items, None], len(items), last) if last is not None else page(items, len(items) + 1, None)


def _hold(
    row: dict[str, Any], sessions: dict[int, dict[str, Any]], agents: dict[int, dict[str, Any]]
) -> dict[str, Any]:
    agent = agents.get(row["agent_no"], {})
    return {
        "message_id": row["message_id"],
        "step_id": row["step_id"],
        "session_id": sessions[row["session_no"]]["session_id"],
        "agent_id": agent.get("agent_id"),
        "entity_id": agent.get("entity_id"),
        "sequence_number": row["sequence_number"],
        "message_type": row["message_type"],
        "cause": row["cause"],
        "reason": row["reason"],
        "gate": ("none", "open", "approved")[row["gate"]],
        "waits_for": [int(number) for number in (row["waits"] or "").split(",") if number],
        "action_digest": "sha256:" + bytes(row["digest"]).hex(),
        "rewritten": row["rewrite_seq"] is not None,
        "quorum": row["quorum"],
        "approvals": msgspec.json.decode(row["approvals"]) if row["approvals"] else [],
        "requested_by": row["requested_by"],
        "key_maker": row["key_maker"],
        "deadline": None if row["deadline_ns"] is None else from_ns(row["deadline_ns"]),
        "on_expiry": row["on_expiry"],
        "held_at": from_ns(row["held_ns"]),
    }


def _intervention(row: dict[str, Any], session_id: str, agents: dict[int, dict[str, Any]]) -> dict[str, Any]:
    confirmation = None
    if row["command"] == "pause":
        confirmation = (
            "confirmed" if row["confirmed_ns"] else "acknowledged" if row["acknowledged_ns"] else "requested"
        )
    return {
        "intervention_id": row["intervention_id"],
        "sequence_number": row["sequence_number"],
        "command": row["command"],
        "operator_id": row["operator_id"],
        "session_id": canonical(session_id),
        "agent_id": agents.get(row["agent_no"], {}).get("agent_id"),
        "message_id": row["message_id"],
        "before_hash": row["before_hash"],
        "after_hash": row["after_hash"],
        "note": row["note"],
        "confirmation": confirmation,
        "issued_at": from_ns(row["issued_ns"]),
        "acknowledged_at": None if row["acknowledged_ns"] is None else from_ns(row["acknowledged_ns"]),
        "proven": None if row["proven"] is None else bool(row["proven"]),
        "confirmed_at": None if row["confirmed_ns"] is None else from_ns(row["confirmed_ns"]),
        "reversed_at": None if row["reversed_ns"] is None else from_ns(row["reversed_ns"]),
    }


holds = Router(
    path="/v1",
    route_handlers=[get_rewrite, list_holds, list_interventions],
    tags=["Session Cluster Manager"],
)

"""What is held, what people did about it, and what they put in a message's place: the relay's windows."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from litestar import Response, Router, get
from litestar.params import FromPath, FromQuery, QueryParameter

from observatory.features.relay.routes import canonical
from observatory.http.answers import Cursor, Limit, Refusal, json, page, read_cursor
from observatory.http.app_state import Call, Here, House
from observatory.http.permissions import need
from observatory.pipeline.state import Principal
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import agent_entity_id


@get(
    "/interventions/{intervention_id:str}/content",
    summary="The exact bytes a rewrite or an edit put in the place of a message",
    operation_id="get_rewrite",
)
async def get_rewrite(request: Call, house: Here, intervention_id: FromPath[str]) -> Response[bytes]:
    who = await need(request, house, "read")
    rows = await house.store.rows(who.tenant_id, "interventions", intervention_id=intervention_id)
    number = rows[0]["sequence_number"] if rows else 0
    found = await house.store.rows(who.tenant_id, "rewrites", sequence_number=number)
    if not found:
        raise Refusal(404, "not_found", "no rewrite or edit of this tenant has that id")
    if found[0]["raw"] is None:
        raise Refusal(410, "shredded", "this content was shredded by order; its proof stands")
    return Response(bytes(found[0]["raw"]), media_type="application/octet-stream")


@get("/holds", summary="What is held, oldest first", operation_id="list_holds")
async def list_holds(
    request: Call,
    house: Here,
    session_id: FromQuery[str | None] = None,
    agent_id: FromQuery[str | None] = None,
    gates_only: Annotated[bool, QueryParameter(description="Only what waits for an answer.")] = False,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response[bytes]:
    who = await need(request, house, "read")
    found = await house.store.holds_page(who.tenant_id, read_cursor(cursor), limit + 1, gates_only)
    sessions = await _by_number(house, who, "sessions", "session_no", found)
    agents = await _by_number(house, who, "agents", "agent_no", found)
    wanted = None if session_id is None else canonical(session_id)
    entity = None if agent_id is None else agent_entity_id(who.tenant_id, agent_id)
    items = [_hold(row, sessions, agents) for row in found]
    shown = [
        item for item in items if wanted in (None, item["session_id"]) and entity in (None, item["entity_id"])
    ]
    last = found[limit - 1]["sequence_number"] if len(found) > limit else None
    return json(page(shown, limit, last) if wanted is None and entity is None else _whole(shown, last))


@get(
    "/sessions/{session_id:str}/interventions",
    summary="What people did in a session, oldest first",
    operation_id="list_interventions",
)
async def list_interventions(request: Call, house: Here, session_id: FromPath[str]) -> Response[bytes]:
    who = await need(request, house, "read")
    sessions = await house.store.rows(who.tenant_id, "sessions", session_id=canonical(session_id))
    if not sessions:
        raise Refusal(404, "not_found", "no session of this tenant has that id")
    rows = await house.store.rows(who.tenant_id, "interventions", session_no=sessions[0]["session_no"])
    agents = await _by_number(house, who, "agents", "agent_no", rows)
    return json({"items": [_intervention(row, session_id, agents) for row in rows], "next_cursor": None})


async def _by_number(
    house: House, who: Principal, table: str, column: str, rows: list[dict[str, Any]]
) -> dict[int, dict[str, Any]]:
    """What rows of another table name by number, in one query."""
    numbers = sorted({row[column] for row in rows})
    found = await house.store.rows(who.tenant_id, table, **{column: numbers}) if numbers else []
    return {row[column]: row for row in found}


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

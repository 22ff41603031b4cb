"""Instructions over HTTP: issue, roll back, and which agents have acknowledged them (God Mode, R227)."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from litestar import Response, Router, get, post, put
from litestar.params import FromPath, JSONBody

from observatory.features.instructions import commands
from observatory.http.answers import Refusal, json
from observatory.http.app_state import AppState, Call, Here
from observatory.http.permissions import require_permission
from observatory.pipeline.state import SubmissionResult
from observatory.protocol.clock import from_ns
from observatory.protocol.rules import NAME

Note = Annotated[str, msgspec.Meta(max_length=1_000)]
HISTORY = 50  # versions returned with their text, the newest; an older one can still be rolled back to
# The version the caller saw in force, 0 for none: if it changed meanwhile, 409, and nothing is issued.
Seen = Annotated[int, msgspec.Meta(ge=0, le=1 << 40)] | None


class NewInstructions(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The whole system prompt of an agent of this type, at most 64 KiB."""

    text: Annotated[str, msgspec.Meta(min_length=1, max_length=commands.MAX_BYTES)]
    note: Note = ""
    was: Seen = None


class RollBack(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    version: Annotated[int, msgspec.Meta(ge=1, le=1 << 40)]
    was: Seen = None


class InstructionsShown(msgspec.Struct, kw_only=True):
    agent_type: str
    version: int
    text_hash: str
    note: str
    created_at: str
    created_by: str


class InstructionsItem(InstructionsShown, kw_only=True):
    agents: int
    acknowledged: int


class InstructionsVersion(InstructionsShown, kw_only=True):
    text: str


class InstructionsIssued(InstructionsVersion, kw_only=True):
    told: int


class InstructedAgent(msgspec.Struct, kw_only=True):
    agent_id: str
    entity_id: str
    acknowledged_version: int | None
    pending: bool
    connected_ever: bool
    last_seen_at: str | None
    evicted: bool


class InstructionsAnswer(InstructionsVersion, kw_only=True):
    history: list[InstructionsVersion]
    agents: list[InstructedAgent]


@get("/instructions", summary="Instructions in force, by agent type", operation_id="list_instructions")
async def list_instructions(request: Call, app: Here) -> Response[bytes]:
    principal = await require_permission(request, app, "read")
    newest: dict[str, dict[str, Any]] = {}
    for row in await app.store.rows(principal.tenant_id, commands.TABLE):
        if row["version"] > newest.get(row["agent_type"], row | {"version": 0})["version"]:
            newest[row["agent_type"]] = row
    acknowledged: dict[str, list[bool]] = {agent_type: [] for agent_type in newest}
    for agent in await app.store.rows(principal.tenant_id, "agents") if newest else ():
        if agent["agent_type"] in newest and agent["evicted_ns"] is None:
            version = newest[agent["agent_type"]]["version"]
            acknowledged[agent["agent_type"]].append(agent["instructions_version"] >= version)
    items = [
        _item(row) | {"agents": len(acknowledged[agent_type]), "acknowledged": sum(acknowledged[agent_type])}
        for agent_type, row in sorted(newest.items())
    ]
    return json({"items": items, "next_cursor": None})


@get(
    "/instructions/{agent_type:str}",
    summary="Instructions of one agent type: history, and which agents acknowledged them",
    operation_id="get_instructions",
)
async def get_instructions(request: Call, app: Here, agent_type: FromPath[str]) -> Response[bytes]:
    principal = await require_permission(request, app, "read")
    rows = await app.store.rows(principal.tenant_id, commands.TABLE, agent_type=agent_type)
    if not rows:
        raise Refusal(404, "not_found", "no instructions were issued for this agent type")
    rows.sort(key=lambda row: -row["version"])
    agents = await app.store.rows(principal.tenant_id, "agents", agent_type=agent_type)
    version = rows[0]["version"]
    with_heartbeat = {row["agent_no"] for row in await app.store.rows(principal.tenant_id, "pulses")}
    return json(
        _item(rows[0])
        | {
            "text": rows[0]["text"],
            "history": [_item(row) | {"text": row["text"]} for row in rows[:HISTORY]],
            "agents": [
                _agent_item(agent, version, agent["agent_no"] in with_heartbeat)
                for agent in sorted(agents, key=lambda row: row["agent_id"])
            ],
        }
    )


@put(
    "/instructions/{agent_type:str}",
    summary="Issue new instructions to every agent of a type",
    status_code=201,
    operation_id="put_instructions",
)
async def put_instructions(
    request: Call, app: Here, agent_type: FromPath[str], data: JSONBody[NewInstructions]
) -> Response[bytes]:
    principal = await require_permission(request, app, "admin")
    if not NAME.fullmatch(agent_type):
        raise Refusal(422, "bad_type", "an agent type has 1 to 256 characters without control characters")
    if len(data.text.encode()) > commands.MAX_BYTES:
        raise Refusal(413, "too_large", "instructions have at most 64 KiB")
    entities = await _entities(app, principal.tenant_id, agent_type)
    command = commands.issue(principal, agent_type, data.text, data.note, entities, app.clock(), data.was)
    return _issued(await app.command(command))


@post(
    "/instructions/{agent_type:str}/rollback",
    summary="Issue an older version's text again, as a new version",
    status_code=201,
    operation_id="roll_back_instructions",
)
async def roll_back_instructions(
    request: Call, app: Here, agent_type: FromPath[str], data: JSONBody[RollBack]
) -> Response[bytes]:
    principal = await require_permission(request, app, "admin")
    entities = await _entities(app, principal.tenant_id, agent_type)
    command = commands.roll_back(principal, agent_type, data.version, entities, app.clock(), data.was)
    return _issued(await app.command(command))


async def _entities(app: AppState, tenant_id: str, agent_type: str) -> list[str]:
    rows = await app.store.rows(tenant_id, "agents", agent_type=agent_type, evicted_ns=None)
    return [row["entity_id"] for row in rows]


def _issued(verdict: SubmissionResult) -> Response[bytes]:
    if verdict.code >= 400:
        raise Refusal(verdict.code, verdict.answer.reason, verdict.answer.detail or "not accepted")
    row = verdict.answer
    return json(_item(row) | {"text": row["text"], "told": row["told"]}, verdict.code)


def _item(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "agent_type": row["agent_type"],
        "version": row["version"],
        "text_hash": commands.text_hash(row["text"]),
        "note": row["note"],
        "created_at": from_ns(row["created_ns"]),
        "created_by": row["created_by"],
    }


def _agent_item(agent: dict[str, Any], version: int, beats: bool) -> dict[str, Any]:
    return {
        "agent_id": agent["agent_id"],
        "entity_id": agent["entity_id"],
        "acknowledged_version": agent["instructions_version"] or None,
        "pending": agent["instructions_version"] < version,
        "connected_ever": beats or bool(agent["last_seen_ns"] or agent["instructions_version"]),
        "last_seen_at": from_ns(agent["last_seen_ns"]) if agent["last_seen_ns"] else None,
        "evicted": agent["evicted_ns"] is not None,
    }


instructions = Router(
    path="/v1",
    route_handlers=[list_instructions, get_instructions, put_instructions, roll_back_instructions],
    tags=["God Mode"],
)

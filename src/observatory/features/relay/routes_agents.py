"""An agent where it works: its sessions, and one pause or unpause of all it does (S309, S1124).

The agent itself is paused, whatever it begins later. Each session it works in gets a command of its own as
well, with its own `hitl_intervention`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from litestar import Response, Router, get, post
from litestar.params import FromPath, JSONBody, QueryParameter

from observatory.features.relay import commands as interventions
from observatory.features.relay import commands_agents as agent_pauses
from observatory.features.relay.commands import Commanded
from observatory.features.relay.commands_agents import EverywhereCommanded
from observatory.features.relay.routes import Note, drained
from observatory.features.sessions.routes import session_items
from observatory.features.sessions.rows import rooms
from observatory.features.sessions.status import SessionStatus
from observatory.http.answers import Cursor, Limit, Refusal, json, page, read_cursor
from observatory.http.app_state import Call, Here, House
from observatory.http.permissions import need
from observatory.pipeline.state import Principal, Verdict
from observatory.protocol.answers import Refused
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import agent_entity_id

ACTIVE_NS = 10 * 60_000_000_000
MOST = 200  # sessions that get a pause of their own
Row = dict[str, Any]
Answered = Literal["paused", "already_paused", "running", "not_paused", "refused"]


class Ordered(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    note: Note | None = None


class AgentSession(msgspec.Struct, kw_only=True):
    """One agent in one session. `active`: the session moved within ten minutes."""

    session_id: str
    goal: str | None
    status: SessionStatus
    active: bool
    last_at: str | None
    last_step: str | None
    messages: int
    cost: float
    tokens: int
    held: int
    paused: bool
    paused_at: str | None
    paused_by: str | None


class RoomCommanded(msgspec.Struct, kw_only=True):
    session_id: str
    state: Answered
    confirmation: str | None
    released: int | None
    remaining: int | None
    intervention_id: str | None
    detail: str | None


class AgentCommanded(msgspec.Struct, kw_only=True):
    """`state` and `intervention_id` are of the agent itself; `done` counts the sessions in which it changed
    something."""

    agent_id: str
    entity_id: str
    command: Literal["pause", "unpause"]
    state: Answered
    intervention_id: str | None
    done: int
    sessions: list[RoomCommanded]


@get("/agents/{agent_id:str}/sessions", summary="Where an agent works", operation_id="agent_sessions")
async def agent_sessions(
    request: Call,
    house: Here,
    agent_id: FromPath[str],
    active: Annotated[bool, QueryParameter(description="Only sessions that moved within 10 min.")] = False,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Response[bytes]:
    """By the agent's own last message there, newest first."""
    who = await need(request, house, "read")
    agent, now_ns = await _agent(house, who, agent_id), house.clock()
    since_ns = now_ns - ACTIVE_NS if active else 0
    found = await rooms(house).rooms_of(
        who.tenant_id, agent["agent_no"], since_ns, read_cursor(cursor), limit + 1
    )
    shown = await session_items(house, who.tenant_id, [room.session for room in found[:limit]])
    items = []
    for room, session in zip(found, shown, strict=False):
        member, paused_ns = room.member, room.member["paused_ns"]
        items.append(
            {
                "session_id": session["session_id"],
                "goal": session["goal"],
                "status": session["status"],
                "active": room.session["last_ns"] >= now_ns - ACTIVE_NS,
                "last_at": from_ns(member["arrived_ns"]) if member["arrived_ns"] else None,
                "last_step": member["last_step"],
                "messages": member["messages"],
                "cost": round(member["cost"], 9),
                "tokens": member["tokens"],
                "held": room.held,
                "paused": paused_ns is not None,
                "paused_at": None if paused_ns is None else from_ns(paused_ns),
                "paused_by": member["paused_by"],
            }
        )
    last = found[limit - 1].member["last_seq"] if len(found) > limit else None
    return json(page([*items, *found[limit:]], limit, last))


@post(
    "/agents/{agent_id:str}/pause",
    status_code=202,
    summary="Hold all an agent sends, in every session",
    operation_id="pause_agent",
)
async def pause_agent(
    request: Call, house: Here, agent_id: FromPath[str], data: JSONBody[Ordered]
) -> Response[bytes]:
    """The agent carries the pause: it holds in sessions not begun yet too, until it is lifted. Sessions that
    moved within ten minutes get a pause of their own as well."""
    who = await need(request, house, "operate")
    agent, since_ns = await _agent(house, who, agent_id), house.clock() - ACTIVE_NS
    verdict = await house.command(agent_pauses.pause(who, agent["agent_id"], data.note, house.clock()))
    itself = _everywhere(verdict)
    found = await rooms(house).rooms_of(who.tenant_id, agent["agent_no"], since_ns, None, MOST)
    acts = [
        interventions.pause(who, room.session["session_id"], agent["agent_id"], data.note, house.clock())
        for room in found
    ]
    verdicts = await house.committer.submit(who.tenant_id, acts) if acts else []
    names = [room.session["session_id"] for room in found]
    told = [_answered(name, verdict) for name, verdict in zip(names, verdicts, strict=True)]
    return json(_commanded(agent, "pause", itself, told), 202)


@post(
    "/agents/{agent_id:str}/unpause",
    status_code=200,
    summary="Let an agent go on wherever it is paused",
    operation_id="unpause_agent",
)
async def unpause_agent(
    request: Call, house: Here, agent_id: FromPath[str], data: JSONBody[Ordered]
) -> Response[bytes]:
    """Its own pause first, then that of each session, however long ago; 409 when it is paused nowhere."""
    who = await need(request, house, "operate")
    agent = await _agent(house, who, agent_id)
    verdict = await house.command(agent_pauses.unpause(who, agent["agent_id"], data.note, house.clock()))
    itself = _everywhere(verdict)
    names = await house.store.paused_sessions(who.tenant_id, agent["agent_no"])
    if not names and itself.intervention_id is None:
        raise Refusal(409, "not_paused", f"{agent['agent_id']} is paused nowhere")
    told = []
    for name in names:
        act = interventions.unpause(who, name, agent["agent_id"], data.note, house.clock())
        verdict = await house.command(act)
        if isinstance(verdict.answer, Commanded):
            await drained(house, who, name, verdict.answer)
        told.append(_answered(name, verdict))
    return json(_commanded(agent, "unpause", itself, told))


async def _agent(house: House, who: Principal, agent_id: str) -> Row:
    entity_id = agent_entity_id(who.tenant_id, agent_id)
    rows = await house.store.rows(who.tenant_id, "agents", entity_id=entity_id)
    if not rows:
        raise Refusal(404, "not_found", "no agent of this tenant has that name or id")
    return rows[0]


def _everywhere(verdict: Verdict) -> EverywhereCommanded:
    if not isinstance(verdict.answer, EverywhereCommanded):
        raise Refusal(verdict.code, verdict.answer.reason, verdict.answer.detail or "not accepted")
    return verdict.answer


def _answered(session_id: str, verdict: Verdict) -> Row:
    answer, detail = verdict.answer, None
    if not isinstance(answer, Commanded):
        detail = answer.detail if isinstance(answer, Refused) else None
        answer = Commanded(status="refused", session_id=session_id, agent_id="")
    state = answer.status if answer.status != "accepted" else answer.state
    return {
        "session_id": session_id,
        "state": state,
        "confirmation": answer.confirmation,
        "released": answer.released,
        "remaining": answer.remaining,
        "intervention_id": answer.intervention_id,
        "detail": detail,
    }


def _commanded(agent: Row, command: str, itself: EverywhereCommanded, told: list[Row]) -> Row:
    return {
        "agent_id": agent["agent_id"],
        "entity_id": agent["entity_id"],
        "command": command,
        "state": itself.state,
        "intervention_id": itself.intervention_id,
        "done": sum(1 for one in told if one["intervention_id"] is not None),
        "sessions": told,
    }


ROOM_ANSWERS: dict[str, Any] = {"pause_agent": AgentCommanded, "unpause_agent": AgentCommanded}
agent_rooms = Router(
    path="/v1", route_handlers=[agent_sessions, pause_agent, unpause_agent], tags=["Fleet Command"]
)

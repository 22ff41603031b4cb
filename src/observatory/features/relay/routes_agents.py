"""HTTP routes of one agent: its sessions, and pausing or resuming it everywhere (S309, S1124).

The agent itself is paused, also in sessions that begin later. Each active session gets a command of its own
as well, with its own `hitl_intervention`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from litestar import Response, Router, get, post
from litestar.params import FromPath, JSONBody, QueryParameter

from observatory.features.relay import commands as interventions
from observatory.features.relay import commands_agents as agent_pauses
from observatory.features.relay.commands_agents import EverywhereCommanded
from observatory.features.relay.routes import drain_all
from observatory.features.relay.types import Commanded, Note
from observatory.features.sessions.queries_rows import membership_reads, session_items
from observatory.features.sessions.types_status import SessionStatus
from observatory.http.answers import Cursor, Limit, Refusal, json, page, read_cursor
from observatory.http.app_state import AppState, Call, Here
from observatory.http.permissions import require_permission
from observatory.pipeline.state import Principal, SubmissionResult
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import agent_entity_id
from observatory.protocol.responses import Refused

ACTIVE_NS = 10 * 60_000_000_000
MAX_SESSIONS = 200  # sessions that get a pause of their own
Row = dict[str, Any]
Answered = Literal["paused", "already_paused", "running", "not_paused", "refused"]


class Ordered(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    note: Note | None = None


class AgentSession(msgspec.Struct, kw_only=True):
    """One agent in one session. `active`: the session had a message within ten minutes."""

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
    """`state` and `intervention_id` are of the agent itself; `done` counts the sessions that changed."""

    agent_id: str
    entity_id: str
    command: Literal["pause", "unpause"]
    state: Answered
    intervention_id: str | None
    done: int
    sessions: list[RoomCommanded]


@get("/agents/{agent_id:str}/sessions", summary="Sessions of an agent", operation_id="agent_sessions")
async def agent_sessions(
    request: Call,
    app: Here,
    agent_id: FromPath[str],
    active: Annotated[
        bool, QueryParameter(description="Only sessions with a message within 10 min.")
    ] = False,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Response[bytes]:
    """By the agent's own last message there, newest first."""
    who = await require_permission(request, app, "read")
    agent, now_ns = await _agent(app, who, agent_id), app.clock()
    since_ns = now_ns - ACTIVE_NS if active else 0
    visits = await membership_reads(app).memberships_of(
        who.tenant_id, agent["agent_no"], since_ns, read_cursor(cursor), limit + 1
    )
    summaries = await session_items(app, who.tenant_id, [room.session for room in visits[:limit]])
    items = []
    for room, session in zip(visits, summaries, strict=False):
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
    last = visits[limit - 1].member["last_seq"] if len(visits) > limit else None
    return json(page([*items, *visits[limit:]], limit, last))


@post(
    "/agents/{agent_id:str}/pause",
    status_code=202,
    summary="Pause an agent in every session",
    operation_id="pause_agent",
)
async def pause_agent(
    request: Call, app: Here, agent_id: FromPath[str], data: JSONBody[Ordered]
) -> Response[bytes]:
    """The pause belongs to the agent: it also applies to sessions that begin later, until it is lifted.
    Sessions with a message within ten minutes get a pause of their own as well."""
    who = await require_permission(request, app, "operate")
    agent, since_ns = await _agent(app, who, agent_id), app.clock() - ACTIVE_NS
    verdict = await app.command(agent_pauses.pause(who, agent["agent_id"], data.note, app.clock()))
    itself = _everywhere(verdict)
    visits = await membership_reads(app).memberships_of(
        who.tenant_id, agent["agent_no"], since_ns, None, MAX_SESSIONS
    )
    acts = [
        interventions.pause(who, room.session["session_id"], agent["agent_id"], data.note, app.clock())
        for room in visits
    ]
    verdicts = await app.committer.submit(who.tenant_id, acts) if acts else []
    names = [room.session["session_id"] for room in visits]
    outcomes = [_outcome(name, verdict) for name, verdict in zip(names, verdicts, strict=True)]
    return json(_commanded(agent, "pause", itself, outcomes), 202)


@post(
    "/agents/{agent_id:str}/unpause",
    status_code=200,
    summary="Resume an agent wherever it is paused",
    operation_id="unpause_agent",
)
async def unpause_agent(
    request: Call, app: Here, agent_id: FromPath[str], data: JSONBody[Ordered]
) -> Response[bytes]:
    """Lifts its own pause, then that of each session, however old; 409 when it is paused nowhere."""
    who = await require_permission(request, app, "operate")
    agent = await _agent(app, who, agent_id)
    verdict = await app.command(agent_pauses.unpause(who, agent["agent_id"], data.note, app.clock()))
    itself = _everywhere(verdict)
    names = await app.store.paused_sessions(who.tenant_id, agent["agent_no"])
    if not names and itself.intervention_id is None:
        raise Refusal(409, "not_paused", f"{agent['agent_id']} is not paused")
    outcomes = []
    for name in names:
        act = interventions.unpause(who, name, agent["agent_id"], data.note, app.clock())
        verdict = await app.command(act)
        if isinstance(verdict.answer, Commanded):
            await drain_all(app, who, name, verdict.answer)
        outcomes.append(_outcome(name, verdict))
    return json(_commanded(agent, "unpause", itself, outcomes))


async def _agent(app: AppState, who: Principal, agent_id: str) -> Row:
    entity_id = agent_entity_id(who.tenant_id, agent_id)
    rows = await app.store.rows(who.tenant_id, "agents", entity_id=entity_id)
    if not rows:
        raise Refusal(404, "not_found", "no agent of this tenant has that name or id")
    return rows[0]


def _everywhere(verdict: SubmissionResult) -> EverywhereCommanded:
    if not isinstance(verdict.answer, EverywhereCommanded):
        raise Refusal(verdict.code, verdict.answer.reason, verdict.answer.detail or "not accepted")
    return verdict.answer


def _outcome(session_id: str, verdict: SubmissionResult) -> Row:
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


def _commanded(agent: Row, command: str, itself: EverywhereCommanded, outcomes: list[Row]) -> Row:
    return {
        "agent_id": agent["agent_id"],
        "entity_id": agent["entity_id"],
        "command": command,
        "state": itself.state,
        "intervention_id": itself.intervention_id,
        "done": sum(1 for one in outcomes if one["intervention_id"] is not None),
        "sessions": outcomes,
    }


ROOM_ANSWERS: dict[str, Any] = {"pause_agent": AgentCommanded, "unpause_agent": AgentCommanded}
agent_rooms = Router(
    path="/v1", route_handlers=[agent_sessions, pause_agent, unpause_agent], tags=["Fleet Command"]
)

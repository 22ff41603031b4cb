"""Decision routes: list what waits for a person, answer it, cancel it (R494, R525).

An answer given here becomes a `decision_response` message in the user's name and passes the pipeline like a
sent one: archived, chained, checked under the lock. The question is read from the archive.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from litestar import Response, Router, get, post
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter

from observatory.features.decisions import commands as acts
from observatory.features.decisions.responses import agent_of, by_person, request_of
from observatory.features.decisions.stage import options_of
from observatory.http.answers import Cursor, Limit, Refusal, json, page, read_cursor
from observatory.http.app_state import AppState, Call, Here
from observatory.http.permissions import require_permission
from observatory.pipeline.state import Principal
from observatory.protocol.clock import from_ns
from observatory.protocol.messages import DecisionOption, RiskLevel
from observatory.protocol.responses import Rejected
from observatory.protocol.rules import Name

State = Literal["pending", "answered", "expired", "cancelled", "executing", "succeeded", "failed"]
RISKS: tuple[RiskLevel, ...] = ("low", "medium", "high", "critical")
Note = Annotated[str, msgspec.Meta(max_length=16_384)]


class DecisionResponseBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One of the decision's options, and an optional note."""

    selected_option_id: Name
    respondent_note: Note | None = None
    response_method: Name = "interactive"


@get("/decisions/pending", summary="List pending decisions", operation_id="pending_decisions")
async def pending_decisions(
    request: Call,
    app: Here,
    user_id: FromQuery[str | None] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response[bytes]:
    """For one user, or for the whole tenant; newest first."""
    principal = await require_permission(request, app, "read")
    where = {"state": "pending"} | ({} if user_id is None else {"user_id": user_id})
    return await _listed(app, principal, where, cursor, limit)


@get("/decisions", summary="List decisions, newest first", operation_id="list_decisions")
async def list_decisions(
    request: Call,
    app: Here,
    in_state: Annotated[State | None, QueryParameter(name="state")] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response[bytes]:
    principal = await require_permission(request, app, "read")
    where = {} if in_state is None else {"state": in_state}
    return await _listed(app, principal, where, cursor, limit)


@get("/decisions/{decision_id:str}", summary="Get a decision", operation_id="get_decision")
async def get_decision(request: Call, app: Here, decision_id: FromPath[str]) -> Response[bytes]:
    principal = await require_permission(request, app, "read")
    return json(await _item(app, principal, await _existing(app, principal, decision_id)))


@post(
    "/decisions/{decision_id:str}/respond",
    summary="Respond to a decision with one of its options",
    status_code=200,
    operation_id="respond_decision",
)
async def respond(
    request: Call, app: Here, decision_id: FromPath[str], data: JSONBody[DecisionResponseBody]
) -> Response[bytes]:
    """The first valid answer wins, later ones get 409; 202 when a policy holds the answer for approval."""
    principal = await require_permission(request, app, "approve")
    if principal.user_id is None:
        raise Refusal(403, "no_user", "only a person can respond; use a key that belongs to a user")
    row = await _existing(app, principal, decision_id)
    asked = await request_of(app.store, principal.tenant_id, row)
    agent = await agent_of(app.store, principal.tenant_id, row["agent_no"])
    answer = by_person(
        principal,
        decision_id,
        asked,
        agent["entity_id"],
        data.selected_option_id,
        data.respondent_note,
        data.response_method,
        app.clock(),
    )
    if isinstance(answer, Rejected):
        return json(answer, 422)
    (verdict,) = await app.committer.submit(principal.tenant_id, [answer])
    if verdict.code != 202:
        return json(verdict.answer, verdict.code)
    row = await _existing(app, principal, decision_id)
    return json(await _item(app, principal, row), 202 if verdict.answer.state == "held" else 200)


@post(
    "/decisions/{decision_id:str}/cancel",
    summary="Cancel a pending decision; its agent is notified",
    status_code=200,
    operation_id="cancel_decision",
)
async def cancel(request: Call, app: Here, decision_id: FromPath[str]) -> Response[bytes]:
    principal = await require_permission(request, app, "operate")
    row = await _existing(app, principal, decision_id)
    asked = await request_of(app.store, principal.tenant_id, row)
    verdict = await app.command(acts.cancel(principal, decision_id, asked.session_id, app.clock()))
    if verdict.code != 200:
        raise Refusal(verdict.code, verdict.answer.reason, verdict.answer.detail or "not accepted")
    return json(await _item(app, principal, verdict.answer))


async def _existing(app: AppState, principal: Principal, decision_id: str) -> dict[str, Any]:
    rows = await app.store.rows(principal.tenant_id, "decisions", decision_id=decision_id)
    if not rows:
        raise Refusal(404, "no_such_decision", "no decision of this tenant has that id")
    return rows[0]


async def _listed(
    app: AppState, principal: Principal, where: dict[str, Any], cursor: str | None, limit: int
) -> Response[bytes]:
    before = read_cursor(cursor)
    rows = await app.store.rows(principal.tenant_id, "decisions", **where)
    rows = [row for row in rows if before is None or row["request_seq"] < before]
    rows = sorted(rows, key=lambda row: -row["request_seq"])[: limit + 1]
    last = rows[limit - 1]["request_seq"] if len(rows) > limit else None
    return json(page([await _item(app, principal, row) for row in rows], limit, last))


async def _item(app: AppState, principal: Principal, row: dict[str, Any]) -> dict[str, Any]:
    asked = await request_of(app.store, principal.tenant_id, row)
    agent = await agent_of(app.store, principal.tenant_id, row["agent_no"])
    content = asked.words
    known = [DecisionOption(option_id=one, label=one) for one in options_of(row).option_ids]
    options = known if content is None else content.options
    risks = [one.risk_level for one in options if one.risk_level is not None]
    deadline_ns, answered_ns = row["deadline_ns"], row["answered_ns"]
    return {
        "decision_id": row["decision_id"],
        "state": row["state"],
        "user_id": row["user_id"],
        "agent_id": agent["agent_id"],
        "entity_id": agent["entity_id"],
        "session_id": asked.session_id,
        "message_id": asked.message_id,
        "sequence_number": row["request_seq"],
        "title": None if content is None else content.title,
        "description": None if content is None else content.description,
        "options": options,
        "context_refs": [] if content is None else content.context_refs or [],
        "risk": max(risks, key=RISKS.index, default=None),
        "deadline": None if deadline_ns is None else from_ns(deadline_ns),
        "auto_option_id": row["auto_option"],
        "requested_at": from_ns(row["created_ns"]),
        "selected_option_id": row["option_id"],
        "answered_by": row["answered_by"],
        "answered_at": None if answered_ns is None else from_ns(answered_ns),
        "response_sequence_number": row["response_seq"],
        "action_id": row["action_id"],
        "updated_at": from_ns(row["updated_ns"]),
    }


decisions = Router(
    path="/v1",
    route_handlers=[pending_decisions, list_decisions, get_decision, respond, cancel],
    tags=["Decisions"],
)

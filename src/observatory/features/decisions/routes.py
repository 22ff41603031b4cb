"""Doors of decisions: what waits for a person, answering it, taking it back (R494, R525).

An answer given here is a `decision_response` message in the user's name and walks the corridor like one
that was sent: archived, chained, judged under the lock. What was asked is read from the archive.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from litestar import Response, Router, get, post
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter

from observatory.features.decisions import commands as acts
from observatory.features.decisions.stage import asked_of
from observatory.features.inbox.responses import agent_of, by_person, request_of
from observatory.http.answers import Cursor, Limit, Refusal, json, page, read_cursor
from observatory.http.app_state import Call, Here, House
from observatory.http.permissions import need
from observatory.pipeline.state import Principal
from observatory.protocol.answers import Rejected
from observatory.protocol.clock import from_ns
from observatory.protocol.messages import DecisionOption, RiskLevel
from observatory.protocol.rules import Name

State = Literal["pending", "answered", "expired", "cancelled", "executing", "succeeded", "failed"]
RISKS: tuple[RiskLevel, ...] = ("low", "medium", "high", "critical")
Note = Annotated[str, msgspec.Meta(max_length=16_384)]


class Respond(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One of the decision's options, and why."""

    selected_option_id: Name
    respondent_note: Note | None = None
    response_method: Name = "interactive"


@get("/decisions/pending", summary="Decisions that wait for a person", operation_id="pending_decisions")
async def pending_decisions(
    request: Call,
    house: Here,
    user_id: FromQuery[str | None] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response[bytes]:
    """Of one user, or of the whole tenant; newest first."""
    principal = await need(request, house, "read")
    where = {"state": "pending"} | ({} if user_id is None else {"user_id": user_id})
    return await _listed(house, principal, where, cursor, limit)


@get("/decisions", summary="Decisions, newest first", operation_id="list_decisions")
async def list_decisions(
    request: Call,
    house: Here,
    in_state: Annotated[State | None, QueryParameter(name="state")] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response[bytes]:
    principal = await need(request, house, "read")
    where = {} if in_state is None else {"state": in_state}
    return await _listed(house, principal, where, cursor, limit)


@get("/decisions/{decision_id:str}", summary="One decision", operation_id="get_decision")
async def get_decision(request: Call, house: Here, decision_id: FromPath[str]) -> Response[bytes]:
    principal = await need(request, house, "read")
    return json(await _item(house, principal, await _existing(house, principal, decision_id)))


@post(
    "/decisions/{decision_id:str}/respond",
    summary="Decide: choose one of the options",
    status_code=200,
    operation_id="respond_decision",
)
async def respond(
    request: Call, house: Here, decision_id: FromPath[str], data: JSONBody[Respond]
) -> Response[bytes]:
    """The first valid answer wins, later ones get 409; 202 when a policy holds the answer for a person."""
    principal = await need(request, house, "approve")
    if principal.user_id is None:
        raise Refusal(403, "no_user", "only a person can decide; use a key that belongs to a user")
    row = await _existing(house, principal, decision_id)
    asked = await request_of(house.store, principal.tenant_id, row)
    agent = await agent_of(house.store, principal.tenant_id, row["agent_no"])
    answer = by_person(
        principal,
        decision_id,
        asked,
        agent["entity_id"],
        data.selected_option_id,
        data.respondent_note,
        data.response_method,
        house.clock(),
    )
    if isinstance(answer, Rejected):
        return json(answer, 422)
    (verdict,) = await house.committer.submit(principal.tenant_id, [answer])
    if verdict.code != 202:
        return json(verdict.answer, verdict.code)
    row = await _existing(house, principal, decision_id)
    return json(await _item(house, principal, row), 202 if verdict.answer.state == "held" else 200)


@post(
    "/decisions/{decision_id:str}/cancel",
    summary="Take a pending decision back; its agent is told",
    status_code=200,
    operation_id="cancel_decision",
)
async def cancel(request: Call, house: Here, decision_id: FromPath[str]) -> Response[bytes]:
    principal = await need(request, house, "operate")
    row = await _existing(house, principal, decision_id)
    asked = await request_of(house.store, principal.tenant_id, row)
    verdict = await house.command(acts.cancel(principal, decision_id, asked.session_id, house.clock()))
    if verdict.code != 200:
        raise Refusal(verdict.code, verdict.answer.reason, verdict.answer.detail or "not accepted")
    return json(await _item(house, principal, verdict.answer))


async def _existing(house: House, principal: Principal, decision_id: str) -> dict[str, Any]:
    rows = await house.store.rows(principal.tenant_id, "decisions", decision_id=decision_id)
    if not rows:
        raise Refusal(404, "no_such_decision", "no decision of this tenant has that id")
    return rows[0]


async def _listed(
    house: House, principal: Principal, where: dict[str, Any], cursor: str | None, limit: int
) -> Response[bytes]:
    before = read_cursor(cursor)
    rows = await house.store.rows(principal.tenant_id, "decisions", **where)
    rows = [row for row in rows if before is None or row["request_seq"] < before]
    rows = sorted(rows, key=lambda row: -row["request_seq"])[: limit + 1]
    last = rows[limit - 1]["request_seq"] if len(rows) > limit else None
    return json(page([await _item(house, principal, row) for row in rows], limit, last))


async def _item(house: House, principal: Principal, row: dict[str, Any]) -> dict[str, Any]:
    asked = await request_of(house.store, principal.tenant_id, row)
    agent = await agent_of(house.store, principal.tenant_id, row["agent_no"])
    words = asked.words
    known = [DecisionOption(option_id=one, label=one) for one in asked_of(row).option_ids]
    options = known if words is None else words.options
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
        "title": None if words is None else words.title,
        "description": None if words is None else words.description,
        "options": options,
        "context_refs": [] if words is None else words.context_refs or [],
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

"""Fact routes: where a claim came from, how far it spread, and marking it false (rules S243–S253).

Facts are folded after the commit (`GET /v1/insight/status` returns the lag). Marking a fact false affects no
agent; a quarantine (routes_infection.py) does.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from litestar import Response, Router, delete, get, post
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter

from observatory.features.facts import commands as acts
from observatory.features.facts.claims import key_of, normalise
from observatory.features.facts.commands import FactReference
from observatory.features.facts.types import FactFilter, FactReads, FactRow, fact_name, fact_named
from observatory.features.facts.types_answers import NameLookup
from observatory.features.graph.queries_session import session_row
from observatory.features.relay.types import Note, hashed
from observatory.http.answers import (
    Cursor,
    Limit,
    Refusal,
    decode_cursor,
    encode_cursor,
    invalid_cursor,
    json,
)
from observatory.http.app_state import AppState, Call, Here
from observatory.http.permissions import require_permission
from observatory.pipeline.state import Principal
from observatory.protocol.identity import agent_entity_id

Row = dict[str, Any]
LONGEST_ASKED = 1_000  # characters of `q`


class FalseMark(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    note: Note | None = None


@get("/facts", summary="List facts agents added to memory, newest first", operation_id="list_facts")
async def list_facts(
    request: Call,
    app: Here,
    text: Annotated[str | None, QueryParameter(description="The same text, ignoring case.")] = None,
    q: Annotated[str | None, QueryParameter(description="Text it contains.")] = None,
    agent: FromQuery[str | None] = None,
    session: FromQuery[str | None] = None,
    marked: Annotated[
        bool, QueryParameter(description="Only those marked false, most recently marked first.")
    ] = False,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response[bytes]:
    who = await require_permission(request, app, "read")
    if marked:
        return json({"items": await _marked(app, who, limit), "next_cursor": None})
    if text is not None and not normalise(text):
        raise Refusal(400, "bad_request", "text must not be empty")
    if q is not None and len(q) > LONGEST_ASKED:
        raise Refusal(400, "bad_request", f"q: at most {LONGEST_ASKED:,} characters")
    where = FactFilter(
        fact_keys=(key_of(normalise(text)),) if text is not None else None,
        agent_no=await agent_number(app, who, agent) if agent is not None else None,
        session_no=(await session_row(app, who.tenant_id, session))["session_no"] if session else None,
        contains=q or None,
    )
    rows = await app.derived.queries(FactReads).facts_page(
        who.tenant_id, where, read_fact_cursor(cursor), limit + 1
    )
    items = await fact_items(app, who, rows[:limit])
    more = len(rows) > limit
    return json({"items": items, "next_cursor": fact_cursor(rows[limit - 1].fact_id) if more else None})


@get("/facts/{fact_id:str}", summary="Get a fact", operation_id="get_fact")
async def get_fact(request: Call, app: Here, fact_id: FromPath[str]) -> Response[bytes]:
    who = await require_permission(request, app, "read")
    (item,) = await fact_items(app, who, [await fact_row(app, who, fact_id)])
    return json(item)


@post(
    "/facts/{fact_id:str}/false", status_code=201, summary="Mark a fact false", operation_id="mark_fact_false"
)
async def mark_fact_false(
    request: Call, app: Here, fact_id: FromPath[str], data: JSONBody[FalseMark]
) -> Response[bytes]:
    who = await require_permission(request, app, "operate")
    about = await about_of(app, who, await fact_row(app, who, fact_id))
    verdict = await app.command(acts.mark_false(who, about, data.note, app.clock()))
    return json(verdict.answer, verdict.code)


@delete(
    "/facts/{fact_id:str}/false",
    status_code=200,
    summary="Unmark a fact as false",
    operation_id="undo_fact_mark",
)
async def undo_fact_mark(request: Call, app: Here, fact_id: FromPath[str]) -> Response[bytes]:
    who = await require_permission(request, app, "operate")
    about = await about_of(app, who, await fact_row(app, who, fact_id))
    verdict = await app.command(acts.undo_mark(who, about, app.clock()))
    return json(verdict.answer, verdict.code)


async def _marked(app: AppState, who: Principal, limit: int) -> list[Row]:
    marks = sorted((await marks_of(app, who)).values(), key=lambda row: -row["marked_ns"])[:limit]
    rows = await app.derived.queries(FactReads).facts_by_id(who.tenant_id, [row["fact_id"] for row in marks])
    return await fact_items(app, who, [rows[mark["fact_id"]] for mark in marks if mark["fact_id"] in rows])


# --- reads of the derived store ---


async def fact_row(app: AppState, who: Principal, name: str) -> FactRow:
    number = fact_named(name)
    rows = (
        await app.derived.queries(FactReads).facts_by_id(who.tenant_id, [number])
        if number is not None
        else {}
    )
    if number is None or number not in rows:
        raise Refusal(404, "not_found", "no fact of this tenant has that id, or it is not folded yet")
    return rows[number]


async def agent_number(app: AppState, who: Principal, agent: str) -> int:
    entity_id = agent_entity_id(who.tenant_id, agent)
    rows = await app.store.rows(who.tenant_id, "agents", entity_id=entity_id)
    if not rows:
        raise Refusal(404, "not_found", "no agent of this tenant has that name or id")
    number: int = rows[0]["agent_no"]
    return number


async def marks_of(app: AppState, who: Principal, facts: list[int] | None = None) -> dict[int, Row]:
    """Marks in force, by fact."""
    rows = await app.store.rows(who.tenant_id, "fact_marks", **({"fact_id": facts} if facts else {}))
    return {row["fact_id"]: row for row in rows if row["undone_ns"] is None}


async def fact_items(app: AppState, who: Principal, rows: list[FactRow]) -> list[Row]:
    if not rows:
        return []
    names, numbers = NameLookup(), [row.fact_id for row in rows]
    await names.know(app, who.tenant_id, rows)
    marks = await marks_of(app, who, numbers)
    uses = await app.derived.queries(FactReads).uses_of(who.tenant_id, numbers)
    return [names.fact(row, marks, uses.get(row.fact_id, 0)) for row in rows]


async def about_of(app: AppState, who: Principal, row: FactRow) -> FactReference:
    names = NameLookup()
    await names.learn(app, who.tenant_id, {row.agent_no}, {row.session_no})
    return FactReference(
        row.fact_id,
        fact_name(row.fact_id),
        row.fact_key,
        hashed(normalise(row.text)),
        row.seq,
        names.sessions.get(row.session_no, ""),
        names.agents.get(row.agent_no, ""),
    )


def fact_cursor(fact_id: int) -> str:
    return encode_cursor(fact_name(fact_id).encode())


def read_fact_cursor(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        number = fact_named(decode_cursor(text).decode())
    except ValueError:
        number = None
    if number is None:
        raise invalid_cursor()
    return number


facts = Router(
    path="/v1",
    route_handlers=[list_facts, get_fact, mark_fact_false, undo_fact_mark],
    tags=["Insight"],
)

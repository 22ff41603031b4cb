"""Facts: where a claim came from, who holds it, how far it spread, and what is done about it (S243–S253).

What is read here is folded after the commit (`GET /v1/insight/status` says how far behind). Marking a fact
false changes nothing for anybody; a quarantine (infection.py) does.
"""

from __future__ import annotations

import json as plain_json
from collections import Counter
from typing import Annotated, Any

import msgspec
from litestar import Response, Router, delete, get, post
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter

from observatory.features.facts import commands as acts
from observatory.features.facts.claims import key_of, normalise
from observatory.features.facts.commands import About
from observatory.features.facts.types import FactFilter, FactRow, fact_name, fact_named
from observatory.features.facts.types_answers import Names
from observatory.features.graph.loader import session_row
from observatory.features.relay.routes import Note
from observatory.http.answers import Cursor, Limit, Refusal, json, not_ours, sealed, unsealed
from observatory.http.app_state import Call, Here, House
from observatory.http.permissions import need
from observatory.pipeline.state import Principal
from observatory.protocol.identity import agent_entity_id

Row = dict[str, Any]
LONGEST_ASKED = 1_000  # characters of `q`
LONGEST_QUOTED = 300


class FalseMark(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    note: Note | None = None


@get("/facts", summary="What agents added to memory, newest first", operation_id="list_facts")
async def list_facts(
    request: Call,
    house: Here,
    text: Annotated[str | None, QueryParameter(description="The same text, whatever its case.")] = None,
    q: Annotated[str | None, QueryParameter(description="Words that stand in it as they are.")] = None,
    agent: FromQuery[str | None] = None,
    session: FromQuery[str | None] = None,
    marked: Annotated[
        bool, QueryParameter(description="Only those marked false, the last marked first.")
    ] = False,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response[bytes]:
    who = await need(request, house, "read")
    if marked:
        return json({"items": await _marked(house, who, limit), "next_cursor": None})
    if text is not None and not normalise(text):
        raise Refusal(400, "bad_request", "text: a fact is not empty")
    if q is not None and len(q) > LONGEST_ASKED:
        raise Refusal(400, "bad_request", f"q: at most {LONGEST_ASKED:,} characters")
    where = FactFilter(
        fact_keys=(key_of(normalise(text)),) if text is not None else None,
        agent_no=await agent_number(house, who, agent) if agent is not None else None,
        session_no=(await session_row(house, who.tenant_id, session))["session_no"] if session else None,
        contains=q or None,
    )
    rows = await house.derived.facts_page(who.tenant_id, where, read_fact_cursor(cursor), limit + 1)
    items = await fact_items(house, who, rows[:limit])
    more = len(rows) > limit
    return json({"items": items, "next_cursor": fact_cursor(rows[limit - 1].fact_id) if more else None})


@get("/facts/{fact_id:str}", summary="One fact", operation_id="get_fact")
async def get_fact(request: Call, house: Here, fact_id: FromPath[str]) -> Response[bytes]:
    who = await need(request, house, "read")
    (item,) = await fact_items(house, who, [await fact_row(house, who, fact_id)])
    return json(item)


@post(
    "/facts/{fact_id:str}/false", status_code=201, summary="Mark a fact false", operation_id="mark_fact_false"
)
async def mark_fact_false(
    request: Call, house: Here, fact_id: FromPath[str], data: JSONBody[FalseMark]
) -> Response[bytes]:
    who = await need(request, house, "operate")
    about = await about_of(house, who, await fact_row(house, who, fact_id))
    verdict = await house.command(acts.mark_false(who, about, data.note, house.clock()))
    return json(verdict.answer, verdict.code)


@delete(
    "/facts/{fact_id:str}/false",
    status_code=200,
    summary="Take the mark back",
    operation_id="undo_fact_mark",
)
async def undo_fact_mark(request: Call, house: Here, fact_id: FromPath[str]) -> Response[bytes]:
    who = await need(request, house, "operate")
    about = await about_of(house, who, await fact_row(house, who, fact_id))
    verdict = await house.command(acts.undo_mark(who, about, house.clock()))
    return json(verdict.answer, verdict.code)


async def _marked(house: House, who: Principal, limit: int) -> list[Row]:
    marks = sorted((await marks_of(house, who)).values(), key=lambda row: -row["marked_ns"])[:limit]
    rows = await house.derived.facts_by_id(who.tenant_id, [row["fact_id"] for row in marks])
    return await fact_items(house, who, [rows[mark["fact_id"]] for mark in marks if mark["fact_id"] in rows])


# --- what is asked of the derived store ---


async def fact_row(house: House, who: Principal, name: str) -> FactRow:
    number = fact_named(name)
    rows = await house.derived.facts_by_id(who.tenant_id, [number]) if number is not None else {}
    if number is None or number not in rows:
        raise Refusal(404, "not_found", "no fact of this tenant has that id, or it is not folded yet")
    return rows[number]


async def agent_number(house: House, who: Principal, agent: str) -> int:
    entity_id = agent_entity_id(who.tenant_id, agent)
    rows = await house.store.rows(who.tenant_id, "agents", entity_id=entity_id)
    if not rows:
        raise Refusal(404, "not_found", "no agent of this tenant has that name or id")
    number: int = rows[0]["agent_no"]
    return number


async def marks_of(house: House, who: Principal, facts: list[int] | None = None) -> dict[int, Row]:
    """Marks in force, by fact."""
    rows = await house.store.rows(who.tenant_id, "fact_marks", **({"fact_id": facts} if facts else {}))
    return {row["fact_id"]: row for row in rows if row["undone_ns"] is None}


async def fact_items(house: House, who: Principal, rows: list[FactRow]) -> list[Row]:
    if not rows:
        return []
    names, numbers = Names(), [row.fact_id for row in rows]
    await names.know(house, who.tenant_id, rows)
    marks = await marks_of(house, who, numbers)
    uses = await house.derived.uses_of(who.tenant_id, numbers)
    return [names.fact(row, marks, uses.get(row.fact_id, 0)) for row in rows]


async def about_of(house: House, who: Principal, row: FactRow) -> About:
    names = Names()
    await names.learn(house, who.tenant_id, {row.agent_no}, {row.session_no})
    return About(
        row.fact_id,
        fact_name(row.fact_id),
        row.fact_key,
        acts.hashed(normalise(row.text)),
        row.seq,
        names.sessions.get(row.session_no, ""),
        names.agents.get(row.agent_no, ""),
    )


def quoted(text: str) -> str:
    """An agent's words inside an operator's prompt: one line of JSON text, so that nobody takes them for his.

    Whatever could break the line or hide in it is escaped too.
    """
    line = plain_json.dumps(text[:LONGEST_QUOTED], ensure_ascii=False)
    return "".join(char if char.isprintable() else plain_json.dumps(char)[1:-1] for char in line)


async def told_before(
    house: House, who: Principal, prompt: str
) -> tuple[dict[tuple[int, int], int], Counter[tuple[int, int]]]:
    """(session, agent) -> the number of the last time it was told this and not spared it; and how often."""
    rows = await house.store.rows(
        who.tenant_id, "interventions", command="inject", after_hash=acts.hashed(prompt)
    )
    told: dict[tuple[int, int], int] = {}
    for row in rows:
        if row["reversed_ns"] is None:
            pair = (row["session_no"], row["agent_no"])
            told[pair] = max(told.get(pair, 0), row["sequence_number"])
    return told, Counter((row["session_no"], row["agent_no"]) for row in rows)


def fact_cursor(fact_id: int) -> str:
    return sealed(fact_name(fact_id).encode())


def read_fact_cursor(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        number = fact_named(unsealed(text).decode())
    except ValueError:
        number = None
    if number is None:
        raise not_ours()
    return number


facts = Router(
    path="/v1",
    route_handlers=[list_facts, get_fact, mark_fact_false, undo_fact_mark],
    tags=["Insight"],
)

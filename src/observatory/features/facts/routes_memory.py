"""State scrub: the facts an agent or a session held at any moment, each with its source (rule S254)."""

from __future__ import annotations

import asyncio
from typing import Annotated

from litestar import Response, Router, get
from litestar.params import FromQuery, QueryParameter

from observatory.features.annotations.routes import archived
from observatory.features.facts.claims import Claim, claim_of, near
from observatory.features.facts.routes import (
    Row,
    agent_number,
    fact_cursor,
    fact_items,
    marks_of,
    read_fact_cursor,
)
from observatory.features.facts.types import FactFilter, FactRow, UseRow, fact_name
from observatory.features.facts.types_answers import Names, mark_item
from observatory.features.graph.loader import session_row
from observatory.http.answers import MAX_SEQUENCE, Cursor, Limit, Refusal, json
from observatory.http.app_state import Call, Here, House
from observatory.http.permissions import need
from observatory.pipeline.state import Principal
from observatory.protocol.clock import to_ns
from observatory.protocol.identity import canonical_uuid

HOPS = 20
MOST_READ = 1_000
MOST_MARKS = 1_000


@get("/memory", summary="What an agent or a session held in memory then", operation_id="read_memory")
async def read_memory(
    request: Call,
    house: Here,
    agent: FromQuery[str | None] = None,
    session: FromQuery[str | None] = None,
    at: Annotated[str | None, QueryParameter(description="A time; now when nothing is said.")] = None,
    step: Annotated[str | None, QueryParameter(description="After this step (id or name).")] = None,
    seq: Annotated[int | None, QueryParameter(ge=0, le=MAX_SEQUENCE)] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response[bytes]:
    who = await need(request, house, "read")
    if agent is None and session is None:
        raise Refusal(400, "bad_request", "name an agent or a session")
    if sum(moment is not None for moment in (at, step, seq)) > 1:
        raise Refusal(400, "bad_request", "name one moment: at, step or seq")
    session_no = (await session_row(house, who.tenant_id, session))["session_no"] if session else None
    agent_no = await agent_number(house, who, agent) if agent else None
    until_ns = _time(at) if at is not None else None
    until_seq = await _number(house, who, step, session) if step is not None else seq
    where = FactFilter(agent_no=agent_no, session_no=session_no, until_seq=until_seq, until_ns=until_ns)
    rows = await house.derived.facts_page(who.tenant_id, where, read_fact_cursor(cursor), limit + 1)
    shown, more = rows[:limit], len(rows) > limit
    held = dict.fromkeys((row.fact_id for row in shown), "added")
    if agent_no is not None and cursor is None:  # what it declared to have read is in its memory too
        uses = await house.derived.uses_by(who.tenant_id, agent_no, until_seq, until_ns, MOST_READ)
        wanted = {use.fact_id for use in uses if session_no in (None, use.session_no)} - held.keys()
        found = await house.derived.facts_by_id(who.tenant_id, wanted)
        read = sorted((row for row in found.values() if row.agent_no != agent_no), reverse=True)
        shown = [*shown, *read]
        held |= dict.fromkeys((row.fact_id for row in read), "read")
    items = await _items(house, who, shown, held)
    return json({"items": items, "next_cursor": fact_cursor(rows[limit - 1].fact_id) if more else None})


async def _items(house: House, who: Principal, rows: list[FactRow], held: dict[int, str]) -> list[Row]:
    if not rows:
        return []
    sources = await _sources(house, who, rows)
    marked = await _marked(house, who, rows)
    names = Names()
    await names.know(house, who.tenant_id, list(sources.values()))
    items = await fact_items(house, who, rows)
    for row, item in zip(rows, items, strict=True):
        source = sources[row.fact_id]
        item["held_by"] = held[row.fact_id]
        item["source"], item["source_fact_id"] = names.of(source), fact_name(source.fact_id)
        if item["marked_false"] is None and row.fact_id in marked:
            item["marked_false"] = marked[row.fact_id]
    return items


async def _sources(house: House, who: Principal, rows: list[FactRow]) -> dict[int, FactRow]:
    """Each fact's first of the claim, all of them a hop at a time."""
    sources = {row.fact_id: row for row in rows}
    for _ in range(HOPS):
        uses = await house.derived.uses_at(who.tenant_id, {row.seq for row in sources.values()})
        above = {use.copy_id: use.fact_id for use in sorted(uses, reverse=True) if use.copy_id}
        wanted = {above[row.fact_id] for row in sources.values() if row.fact_id in above}
        found = await house.derived.facts_by_id(who.tenant_id, wanted) if wanted else {}
        moved = False
        for fact_id, row in sources.items():
            source = found.get(above.get(row.fact_id, 0))
            if source is not None:
                sources[fact_id], moved = source, True
        if not moved:
            break
    return sources


async def _marked(house: House, who: Principal, rows: list[FactRow]) -> dict[int, Row]:
    """Facts that say what was marked false where they could have heard it: copies, near ones too."""
    marks = await marks_of(house, who)
    if not marks:
        return {}
    newest = sorted(marks, key=lambda fact_id: -marks[fact_id]["marked_ns"])[:MOST_MARKS]
    false = await house.derived.facts_by_id(who.tenant_id, newest)
    if not false:
        return {}
    uses = await house.derived.uses_at(who.tenant_id, {row.seq for row in rows})
    said = await asyncio.to_thread(_said, rows, list(false.values()), uses)
    return {fact_id: mark_item(marks[wrong]) or {} for fact_id, wrong in said.items()}


def _said(rows: list[FactRow], false: list[FactRow], uses: list[UseRow]) -> dict[int, int]:
    """Fact -> the first of the false ones it says: looked for only where it may be."""
    copied: dict[int, set[int]] = {}
    for use in uses:
        copied.setdefault(use.copy_id, set()).add(use.fact_id)
    places = {wrong.fact_id: place for place, wrong in enumerate(false)}
    same: dict[int, list[int]] = {}  # text -> places
    alike: dict[tuple[int, frozenset[str]], list[tuple[int, Claim]]] = {}  # near ones share what must agree
    for place, wrong in enumerate(false):
        same.setdefault(wrong.fact_key, []).append(place)
        claim = claim_of(wrong.text)
        if claim.words:
            alike.setdefault((wrong.session_no, claim.must), []).append((place, claim))
    found: dict[int, int] = {}
    for row in rows:
        hits = [places[fact_id] for fact_id in copied.get(row.fact_id, ()) if fact_id in places]
        hits += [place for place in same.get(row.fact_key, ()) if _is_within(row, false[place])]
        claim = claim_of(row.text)
        hits += [
            place for place, other in alike.get((row.session_no, claim.must), ()) if near(claim, other) > 0
        ]
        if hits:
            found[row.fact_id] = false[min(hits)].fact_id
    return found


def _is_within(row: FactRow, wrong: FactRow) -> bool:
    return (
        row.session_no == wrong.session_no
        or row.agent_no == wrong.agent_no
        or (row.cluster_id is not None and row.cluster_id == wrong.cluster_id)
    )


async def _number(house: House, who: Principal, step: str, session: str | None) -> int:
    if session is not None:
        row = await session_row(house, who.tenant_id, session)
        return (await archived(house, who, row["session_id"], step)).sequence_number
    found = await house.store.message(who.tenant_id, canonical_uuid(step) or step)
    if found is None:
        raise Refusal(404, "not_found", "no step of this tenant has that id; name its session too")
    return found.sequence_number


def _time(text: str) -> int:
    try:
        return to_ns(text)
    except ValueError as error:
        raise Refusal(400, "bad_request", "at: a time such as 2026-02-16T14:32:00Z") from error


memory = Router(path="/v1", route_handlers=[read_memory], tags=["Insight"])

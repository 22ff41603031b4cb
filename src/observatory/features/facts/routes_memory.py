"""The memory of an agent or session at any moment: its facts, each with its source (rule S254)."""

from __future__ import annotations

import asyncio
from typing import Annotated

from litestar import Response, Router, get
from litestar.params import FromQuery, QueryParameter

from observatory.features.facts.claims import Claim, claim_of, near
from observatory.features.facts.routes import (
    Row,
    agent_number,
    fact_cursor,
    fact_items,
    marks_of,
    read_fact_cursor,
)
from observatory.features.facts.types import FactFilter, FactReads, FactRow, UseRow, fact_name
from observatory.features.facts.types_answers import NameLookup, mark_item
from observatory.features.graph.queries_session import archived_step, session_row
from observatory.http.answers import MAX_SEQUENCE, Cursor, Limit, Refusal, json
from observatory.http.app_state import AppState, Call, Here
from observatory.http.permissions import require_permission
from observatory.pipeline.state import Principal
from observatory.protocol.clock import to_ns
from observatory.protocol.identity import canonical_uuid

HOPS = 20
MAX_READ = 1_000
MAX_MARKS = 1_000


@get("/memory", summary="List the memory of an agent or session at a moment", operation_id="read_memory")
async def read_memory(
    request: Call,
    app: Here,
    agent: FromQuery[str | None] = None,
    session: FromQuery[str | None] = None,
    at: Annotated[str | None, QueryParameter(description="A time. Default: now.")] = None,
    step: Annotated[str | None, QueryParameter(description="After this step (id or name).")] = None,
    seq: Annotated[int | None, QueryParameter(ge=0, le=MAX_SEQUENCE)] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response[bytes]:
    who = await require_permission(request, app, "read")
    if agent is None and session is None:
        raise Refusal(400, "bad_request", "name an agent or a session")
    if sum(moment is not None for moment in (at, step, seq)) > 1:
        raise Refusal(400, "bad_request", "give only one of at, step and seq")
    session_no = (await session_row(app, who.tenant_id, session))["session_no"] if session else None
    agent_no = await agent_number(app, who, agent) if agent else None
    until_ns = _time(at) if at is not None else None
    until_seq = await _number(app, who, step, session) if step is not None else seq
    where = FactFilter(agent_no=agent_no, session_no=session_no, until_seq=until_seq, until_ns=until_ns)
    rows = await app.derived.queries(FactReads).facts_page(
        who.tenant_id, where, read_fact_cursor(cursor), limit + 1
    )
    shown, more = rows[:limit], len(rows) > limit
    held_by = dict.fromkeys((row.fact_id for row in shown), "added")
    if agent_no is not None and cursor is None:  # facts it declared to have read are in its memory too
        uses = await app.derived.queries(FactReads).uses_by(
            who.tenant_id, agent_no, until_seq, until_ns, MAX_READ
        )
        fact_ids = {use.fact_id for use in uses if session_no in (None, use.session_no)} - held_by.keys()
        found = await app.derived.queries(FactReads).facts_by_id(who.tenant_id, fact_ids)
        read = sorted((row for row in found.values() if row.agent_no != agent_no), reverse=True)
        shown = [*shown, *read]
        held_by |= dict.fromkeys((row.fact_id for row in read), "read")
    items = await _items(app, who, shown, held_by)
    return json({"items": items, "next_cursor": fact_cursor(rows[limit - 1].fact_id) if more else None})


async def _items(app: AppState, who: Principal, rows: list[FactRow], held_by: dict[int, str]) -> list[Row]:
    if not rows:
        return []
    sources = await _sources(app, who, rows)
    marked = await _marked(app, who, rows)
    names = NameLookup()
    await names.know(app, who.tenant_id, list(sources.values()))
    items = await fact_items(app, who, rows)
    for row, item in zip(rows, items, strict=True):
        source = sources[row.fact_id]
        item["held_by"] = held_by[row.fact_id]
        item["source"], item["source_fact_id"] = names.of(source), fact_name(source.fact_id)
        if item["marked_false"] is None and row.fact_id in marked:
            item["marked_false"] = marked[row.fact_id]
    return items


async def _sources(app: AppState, who: Principal, rows: list[FactRow]) -> dict[int, FactRow]:
    """The first fact of each claim, resolved for all facts one hop at a time."""
    sources = {row.fact_id: row for row in rows}
    for _ in range(HOPS):
        uses = await app.derived.queries(FactReads).uses_at(
            who.tenant_id, {row.seq for row in sources.values()}
        )
        above = {use.copy_id: use.fact_id for use in sorted(uses, reverse=True) if use.copy_id}
        fact_ids = {above[row.fact_id] for row in sources.values() if row.fact_id in above}
        found = await app.derived.queries(FactReads).facts_by_id(who.tenant_id, fact_ids) if fact_ids else {}
        moved = False
        for fact_id, row in sources.items():
            source = found.get(above.get(row.fact_id, 0))
            if source is not None:
                sources[fact_id], moved = source, True
        if not moved:
            break
    return sources


async def _marked(app: AppState, who: Principal, rows: list[FactRow]) -> dict[int, Row]:
    """Facts that repeat one marked false within their reach: copies, also near ones."""
    marks = await marks_of(app, who)
    if not marks:
        return {}
    newest = sorted(marks, key=lambda fact_id: -marks[fact_id]["marked_ns"])[:MAX_MARKS]
    false = await app.derived.queries(FactReads).facts_by_id(who.tenant_id, newest)
    if not false:
        return {}
    uses = await app.derived.queries(FactReads).uses_at(who.tenant_id, {row.seq for row in rows})
    repeated = await asyncio.to_thread(_repeated_falsehoods, rows, list(false.values()), uses)
    return {fact_id: mark_item(marks[wrong]) or {} for fact_id, wrong in repeated.items()}


def _repeated_falsehoods(rows: list[FactRow], false: list[FactRow], uses: list[UseRow]) -> dict[int, int]:
    """Fact -> the first false fact it repeats, among possible candidates only."""
    copied: dict[int, set[int]] = {}
    for use in uses:
        copied.setdefault(use.copy_id, set()).add(use.fact_id)
    places = {wrong.fact_id: place for place, wrong in enumerate(false)}
    same: dict[int, list[int]] = {}  # text -> places
    alike: dict[tuple[int, frozenset[str]], list[tuple[int, Claim]]] = {}  # near claims have equal `must`
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


async def _number(app: AppState, who: Principal, step: str, session: str | None) -> int:
    if session is not None:
        row = await session_row(app, who.tenant_id, session)
        return (await archived_step(app, who, row["session_id"], step)).sequence_number
    found = await app.store.message(who.tenant_id, canonical_uuid(step) or step)
    if found is None:
        raise Refusal(404, "not_found", "no step of this tenant has that id; give its session too")
    return found.sequence_number


def _time(text: str) -> int:
    try:
        return to_ns(text)
    except ValueError as error:
        raise Refusal(400, "bad_request", "at must be a time such as 2026-02-16T14:32:00Z") from error


memory = Router(path="/v1", route_handlers=[read_memory], tags=["Insight"])

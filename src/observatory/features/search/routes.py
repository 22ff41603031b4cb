"""HTTP route of search: the archive by words, meaning and filters (rules S270–S279).

A page continues where the previous one ended, over what was indexed at the first page: new messages shift
nothing. The index follows the record; `behind` is its lag in events.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from hashlib import sha256
from typing import Annotated, Any, Literal

import msgspec
from litestar import Response, Router, get
from litestar.params import FromQuery, QueryParameter

from observatory.features.search.find import (
    SearchResult,
    facets,
    find,
    hit_items,
    is_ranked,
    later_page,
    names_of,
)
from observatory.features.search.query_language import SearchQuery, parse
from observatory.features.search.ranking import Hit
from observatory.features.search.types_query import AgentHitCount, Mode, SearchIndexReads, StepFacets
from observatory.http.answers import (
    MAX_SEQUENCE,
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
from observatory.protocol.clock import from_ns

Row = dict[str, Any]
MAX_BINS = 96
WIDTHS_S = (
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400, 604_800,
)  # fmt: skip


class SearchCursor(msgspec.Struct, array_like=True, frozen=True):
    """A cursor: the query's hash, the part of the record it covers, and the last hit returned."""

    question: str
    as_of: int
    now_ns: int
    score: float
    seq: int
    hits: int = 0  # as counted by the first page
    capped: bool = False


_decode_place = msgspec.json.Decoder(SearchCursor).decode


@get("/search", summary="Find messages by words, meaning and filters", operation_id="search")
async def search(
    request: Call,
    app: Here,
    q: Annotated[
        str, QueryParameter(description='E.g. agent:planner status:failure since:1h "Project X"')
    ] = "",
    mode: FromQuery[Mode] = "hybrid",
    group: FromQuery[Literal["agent", "time"] | None] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Response[bytes]:
    who = await require_permission(request, app, "read")
    question = sha256(f"{mode}\n{q}".encode("utf-8", "replace")).hexdigest()[:16]
    place = _read(cursor, question)
    progress = await app.derived.progress(who.tenant_id)
    as_of, now_ns = (place.as_of, place.now_ns) if place else (progress.seq, app.clock())
    query = parse(q, now_ns)
    if place is not None and group is None and not is_ranked(query, mode):
        found, count = await later_page(app, who.tenant_id, query, as_of), place.hits
        found.capped = place.capped
    else:
        found = await find(app, who.tenant_id, query, mode, as_of)
        count = len(found.hits)
    head, _ = await app.store.head(who.tenant_id)
    answer: Row = {
        "items": [],
        "next_cursor": None,
        "mode": mode,
        "semantic": found.semantic,
        "hits": count,
        "capped": found.capped,
        "as_of": as_of,
        "behind": max(0, head - progress.seq),
        "query": explained(query),
        "problems": [problem._asdict() for problem in query.problems],
        "warnings": [*query.warnings, *found.warnings, *_limits(found, count)],
        "facets": None,
    }
    if group == "time":
        answer["items"], more = await by_time(app, who.tenant_id, query, mode, found, now_ns)
        answer["capped"] = more
        return json(answer)
    if group == "agent":
        answer["items"], more = await by_agent(app, who.tenant_id, query, mode, found, limit)
        answer["capped"] = found.capped or more
        return json(answer)
    hits, more = await _page(app, who.tenant_id, query, found, place, limit)
    faces = found.faces
    missing = [hit.seq for hit in hits if hit.seq not in faces]
    faces |= await app.derived.queries(SearchIndexReads).faces(who.tenant_id, missing) if missing else {}
    answer["items"] = await hit_items(app, who.tenant_id, query, hits, faces)
    if place is None:
        counted = [faces[hit.seq] for hit in found.hits if hit.seq in faces]
        answer["facets"] = await facets(app, who.tenant_id, counted)
    if more:
        last = hits[-1]
        answer["next_cursor"] = _cursor(
            SearchCursor(question, as_of, now_ns, last.score, last.seq, count, found.capped)
        )
    return json(answer)


def _limits(found: SearchResult, count: int) -> list[str]:
    warnings = list[str]()
    if found.capped:
        what = "ranked" if found.is_ranked else "counted"
        warnings.append(
            f"there are more hits; the newest {count:,} were {what}: narrow the query with filters"
        )
    if found.semantic == "not_available":
        warnings.append("semantic search is not available; only words and filters were used")
    if found.semantic == "partial":
        warnings.append("similarity was not compared over the whole archive")
    return warnings


async def _page(
    app: AppState,
    tenant_id: str,
    query: SearchQuery,
    found: SearchResult,
    place: SearchCursor | None,
    limit: int,
) -> tuple[Sequence[Hit], bool]:
    if found.is_ranked:
        hits = found.hits
        if place is not None:
            key = (-place.score, -place.seq)
            hits = [hit for hit in hits if (-hit.score, -hit.seq) > key]
        return hits[:limit], len(hits) > limit
    # Listing by number has no cap: the page is read from its first number.
    until = found.scope.until if place is None else min(found.scope.until, place.seq - 1)
    scope = msgspec.structs.replace(found.scope, until=until)
    numbers = await app.derived.queries(SearchIndexReads).newest(
        tenant_id, scope, query.wanted.none, limit + 1
    )
    return [Hit(seq, 0.0, None, None, None, ()) for seq in numbers[:limit]], len(numbers) > limit


async def by_agent(
    app: AppState, tenant_id: str, query: SearchQuery, mode: Mode, found: SearchResult, limit: int
) -> tuple[list[Row], bool]:
    """Agents among the hits: count, first and last time, and the best hit of each."""
    faces = found.faces
    best: dict[int, Hit] = {}
    spoke: dict[int, AgentHitCount] = {}
    for hit in found.hits:
        face = faces.get(hit.seq)
        if face is not None:
            best.setdefault(face.agent_no, hit)
            spoke[face.agent_no] = _joined(spoke.get(face.agent_no), face)
    capped = False
    if query.has_words and mode != "semantic" and found.hits:
        counted, capped = await app.derived.queries(SearchIndexReads).speakers(
            tenant_id, query.wanted, found.scope
        )
        for one in counted:  # word counts cover more than the ranked hits
            if one.agent_no not in spoke or one.times > spoke[one.agent_no].times:
                spoke[one.agent_no] = one
            best.setdefault(one.agent_no, Hit(one.last_seq, 0.0, None, None, None, ()))
    ranked = sorted(spoke.values(), key=lambda one: (-one.times, -one.last_seq))[:limit]
    quoted = [best[one.agent_no] for one in ranked]
    faces |= await app.derived.queries(SearchIndexReads).faces(
        tenant_id, [hit.seq for hit in quoted if hit.seq not in faces]
    )
    names = await names_of(app, tenant_id, [one.agent_no for one in ranked], ())
    items = {item["sequence_number"]: item for item in await hit_items(app, tenant_id, query, quoted, faces)}
    return [
        _agent(one, items.get(hit.seq), names.agents) for one, hit in zip(ranked, quoted, strict=True)
    ], capped


async def by_time(
    app: AppState, tenant_id: str, query: SearchQuery, mode: Mode, found: SearchResult, now_ns: int
) -> tuple[list[Row], bool]:
    """Hits over time: counts in even bins, from the query's `since`, else from the first of the archive."""
    if not found.hits:
        return [], False
    ends = await app.derived.queries(SearchIndexReads).span(tenant_id, found.scope)
    if ends is None:
        return [], False
    first, last = ends
    if query.since_ns is not None:
        first = query.since_ns
    if query.until_ns is not None:
        last = min(query.until_ns, now_ns)
    width = width_of(last - first)
    with_words = query.has_words and mode != "semantic"
    counts: dict[int, int] = {}
    capped = False
    if with_words or not found.is_ranked:
        counts, capped = await app.derived.queries(SearchIndexReads).bins(
            tenant_id, query.wanted, found.scope, width
        )
    for hit in found.hits if found.is_ranked else ():  # hits found only by similarity are not in the counts
        face = found.faces.get(hit.seq)
        if face is not None and not (with_words and hit.text_rank is not None):
            counts[face.at_ns // width] = counts.get(face.at_ns // width, 0) + 1
    lowest = min([first // width, *counts])
    highest = max([last // width, *counts])
    return [
        {"from": from_ns(n * width), "to": from_ns((n + 1) * width), "count": counts.get(n, 0)}
        for n in range(max(lowest, highest - 2 * MAX_BINS), highest + 1)
    ], capped


def width_of(span_ns: int) -> int:
    """The narrowest even width that splits a span into at most `MAX_BINS` bins."""
    needed_s = span_ns / MAX_BINS / 1_000_000_000
    width = next((one for one in WIDTHS_S if one >= needed_s), None)
    return (width or WIDTHS_S[-1] * math.ceil(needed_s / WIDTHS_S[-1])) * 1_000_000_000


def _joined(one: AgentHitCount | None, face: StepFacets) -> AgentHitCount:
    if one is None:
        return AgentHitCount(face.agent_no, 1, face.at_ns, face.at_ns, face.seq)
    first, last = min(one.first_ns, face.at_ns), max(one.last_ns, face.at_ns)
    return AgentHitCount(face.agent_no, one.times + 1, first, last, max(one.last_seq, face.seq))


def _agent(one: AgentHitCount, best: Row | None, agents: dict[int, Row]) -> Row:
    known = agents.get(one.agent_no)
    return {
        "agent_id": known["agent_id"] if known else best["agent_id"] if best else None,
        "count": one.times,
        "first_at": from_ns(one.first_ns),
        "last_at": from_ns(one.last_ns),
        "best": best,
    }


def explained(query: SearchQuery) -> Row:
    """How the query was read."""

    def texts(terms: Sequence[Any]) -> list[str]:
        return [f"{term.text}*" if term.prefix else term.text for term in terms]

    return {
        "words": [texts(group) for group in query.wanted.every],
        "without": texts(query.wanted.none),
        "phrases": texts(query.phrases),
        "meaning": query.likeness or None,
        "filters": [
            {"field": one.field, "op": one.op, "values": list(one.values), "negated": one.negated}
            for one in query.clauses
        ],
        "since": from_ns(query.since_ns) if query.since_ns is not None else None,
        "until": from_ns(query.until_ns) if query.until_ns is not None else None,
    }


def _cursor(place: SearchCursor) -> str:
    return encode_cursor(msgspec.json.encode(place))


def _read(cursor: str | None, question: str) -> SearchCursor | None:
    if cursor is None:
        return None
    try:
        place = _decode_place(decode_cursor(cursor))
        if place.question != question:
            raise Refusal(400, "bad_cursor", "this cursor belongs to another query; start again without it")
        if 0 <= place.as_of <= MAX_SEQUENCE and 0 < place.seq <= MAX_SEQUENCE and 0 <= place.now_ns < 1 << 63:
            return place
    except (ValueError, msgspec.MsgspecError):
        pass
    raise invalid_cursor()


search_router = Router(path="/v1", route_handlers=[search], tags=["Forensic Inspector"])

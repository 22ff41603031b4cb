"""Search: everything archived, by words, meaning and filters (rules S270–S279).

A page goes on where the one before ended, over what was indexed when the first was asked for: new messages
shift nothing. The index follows the record; `behind` says how many numbers it has yet to see.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from hashlib import sha256
from typing import Annotated, Any, Literal

import msgspec
from litestar import Response, Router, get
from litestar.params import FromQuery, QueryParameter

from observatory.features.search.find import Found, facets, find, is_ranked, listed, names_of, shown
from observatory.features.search.query_language import Query, parse
from observatory.features.search.ranking import Hit
from observatory.features.search.types_query import Face, Mode, Spoke
from observatory.http.answers import MAX_SEQUENCE, Cursor, Limit, Refusal, json, not_ours, sealed, unsealed
from observatory.http.app_state import Call, Here, House
from observatory.http.permissions import need
from observatory.protocol.clock import from_ns

Row = dict[str, Any]
MOST_BINS = 96
WIDTHS_S = (
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400, 604_800,
)  # fmt: skip


class Place(msgspec.Struct, array_like=True, frozen=True):
    """A cursor: of which question, over which part of the record, and the last hit that was shown."""

    question: str
    as_of: int
    now_ns: int
    score: float
    seq: int
    hits: int = 0  # as the first page counted them
    capped: bool = False


_place = msgspec.json.Decoder(Place).decode


@get("/search", summary="Find messages by words, meaning and filters", operation_id="search")
async def search(
    request: Call,
    house: Here,
    q: Annotated[
        str, QueryParameter(description='E.g. agent:planner status:failure since:1h "Project X"')
    ] = "",
    mode: FromQuery[Mode] = "hybrid",
    group: FromQuery[Literal["agent", "time"] | None] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Response[bytes]:
    who = await need(request, house, "read")
    question = sha256(f"{mode}\n{q}".encode("utf-8", "replace")).hexdigest()[:16]
    place = _read(cursor, question)
    progress = await house.derived.progress(who.tenant_id)
    as_of, now_ns = (place.as_of, place.now_ns) if place else (progress.seq, house.clock())
    query = parse(q, now_ns)
    if place is not None and group is None and not is_ranked(query, mode):
        found, count = await listed(house, who.tenant_id, query, as_of), place.hits
        found.capped = place.capped
    else:
        found = await find(house, who.tenant_id, query, mode, as_of)
        count = len(found.hits)
    head, _ = await house.store.head(who.tenant_id)
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
        "warnings": [*query.warnings, *found.warnings, *_told(found, count)],
        "facets": None,
    }
    if group == "time":
        answer["items"], more = await by_time(house, who.tenant_id, query, mode, found, now_ns)
        answer["capped"] = more
        return json(answer)
    if group == "agent":
        answer["items"], more = await by_agent(house, who.tenant_id, query, mode, found, limit)
        answer["capped"] = found.capped or more
        return json(answer)
    hits, more = await _page(house, who.tenant_id, query, found, place, limit)
    faces = found.faces
    missing = [hit.seq for hit in hits if hit.seq not in faces]
    faces |= await house.derived.faces(who.tenant_id, missing) if missing else {}
    answer["items"] = await shown(house, who.tenant_id, query, hits, faces)
    if place is None:
        counted = [faces[hit.seq] for hit in found.hits if hit.seq in faces]
        answer["facets"] = await facets(house, who.tenant_id, counted)
    if more:
        last = hits[-1]
        answer["next_cursor"] = _cursor(
            Place(question, as_of, now_ns, last.score, last.seq, count, found.capped)
        )
    return json(answer)


def _told(found: Found, count: int) -> list[str]:
    told = []
    if found.capped:
        what = "ranked" if found.is_ranked else "counted"
        told.append(f"there are more; the newest {count:,} were {what}: narrow it with filters")
    if found.semantic == "not_available":
        told.append("semantic search is not available here; words and filters were used")
    if found.semantic == "partial":
        told.append("likeness was not looked for in all of the archive")
    return told


async def _page(
    house: House, tenant_id: str, query: Query, found: Found, place: Place | None, limit: int
) -> tuple[Sequence[Hit], bool]:
    if found.is_ranked:
        hits = found.hits
        if place is not None:
            key = (-place.score, -place.seq)
            hits = [hit for hit in hits if (-hit.score, -hit.seq) > key]
        return hits[:limit], len(hits) > limit
    # By number there is no cap: the page is read where it begins.
    until = found.scope.until if place is None else min(found.scope.until, place.seq - 1)
    scope = msgspec.structs.replace(found.scope, until=until)
    numbers = await house.derived.newest(tenant_id, scope, query.wanted.none, limit + 1)
    return [Hit(seq, 0.0, None, None, None, ()) for seq in numbers[:limit]], len(numbers) > limit


async def by_agent(
    house: House, tenant_id: str, query: Query, mode: Mode, found: Found, limit: int
) -> tuple[list[Row], bool]:
    """Who spoke of it: how often, from when to when, and the best quote of each."""
    faces = found.faces
    best: dict[int, Hit] = {}
    spoke: dict[int, Spoke] = {}
    for hit in found.hits:
        face = faces.get(hit.seq)
        if face is not None:
            best.setdefault(face.agent_no, hit)
            spoke[face.agent_no] = _joined(spoke.get(face.agent_no), face)
    capped = False
    if query.has_words and mode != "semantic" and found.hits:
        counted, capped = await house.derived.speakers(tenant_id, query.wanted, found.scope)
        for one in counted:  # counts of words reach further than what was ranked
            if one.agent_no not in spoke or one.times > spoke[one.agent_no].times:
                spoke[one.agent_no] = one
            best.setdefault(one.agent_no, Hit(one.last_seq, 0.0, None, None, None, ()))
    ranked = sorted(spoke.values(), key=lambda one: (-one.times, -one.last_seq))[:limit]
    quoted = [best[one.agent_no] for one in ranked]
    faces |= await house.derived.faces(tenant_id, [hit.seq for hit in quoted if hit.seq not in faces])
    names = await names_of(house, tenant_id, [one.agent_no for one in ranked], ())
    items = {item["sequence_number"]: item for item in await shown(house, tenant_id, query, quoted, faces)}
    return [
        _agent(one, items.get(hit.seq), names.agents) for one, hit in zip(ranked, quoted, strict=True)
    ], capped


async def by_time(
    house: House, tenant_id: str, query: Query, mode: Mode, found: Found, now_ns: int
) -> tuple[list[Row], bool]:
    """When it was said: counts between even times, from the first of the archive, or since when was asked."""
    if not found.hits:
        return [], False
    ends = await house.derived.span(tenant_id, found.scope)
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
        counts, capped = await house.derived.bins(tenant_id, query.wanted, found.scope, width)
    for hit in found.hits if found.is_ranked else ():  # what is only alike is not among the counted
        face = found.faces.get(hit.seq)
        if face is not None and not (with_words and hit.text_rank is not None):
            counts[face.at_ns // width] = counts.get(face.at_ns // width, 0) + 1
    lowest = min([first // width, *counts])
    highest = max([last // width, *counts])
    return [
        {"from": from_ns(n * width), "to": from_ns((n + 1) * width), "count": counts.get(n, 0)}
        for n in range(max(lowest, highest - 2 * MOST_BINS), highest + 1)
    ], capped


def width_of(span_ns: int) -> int:
    """The narrowest even width by which a span is at most `MOST_BINS` bins."""
    wanted = span_ns / MOST_BINS / 1_000_000_000
    width = next((one for one in WIDTHS_S if one >= wanted), None)
    return (width or WIDTHS_S[-1] * math.ceil(wanted / WIDTHS_S[-1])) * 1_000_000_000


def _joined(one: Spoke | None, face: Face) -> Spoke:
    if one is None:
        return Spoke(face.agent_no, 1, face.at_ns, face.at_ns, face.seq)
    first, last = min(one.first_ns, face.at_ns), max(one.last_ns, face.at_ns)
    return Spoke(face.agent_no, one.times + 1, first, last, max(one.last_seq, face.seq))


def _agent(one: Spoke, best: Row | None, agents: dict[int, Row]) -> Row:
    known = agents.get(one.agent_no)
    return {
        "agent_id": known["agent_id"] if known else best["agent_id"] if best else None,
        "count": one.times,
        "first_at": from_ns(one.first_ns),
        "last_at": from_ns(one.last_ns),
        "best": best,
    }


def explained(query: Query) -> Row:
    """How the question was read."""

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


def _cursor(place: Place) -> str:
    return sealed(msgspec.json.encode(place))


def _read(cursor: str | None, question: str) -> Place | None:
    if cursor is None:
        return None
    try:
        place = _place(unsealed(cursor))
        if place.question != question:
            raise Refusal(400, "bad_cursor", "this cursor is of another question; start again without it")
        if 0 <= place.as_of <= MAX_SEQUENCE and 0 < place.seq <= MAX_SEQUENCE and 0 <= place.now_ns < 1 << 63:
            return place
    except (ValueError, msgspec.MsgspecError):
        pass
    raise not_ours()


search_router = Router(path="/v1", route_handlers=[search], tags=["Forensic Inspector"])

"""Searching: from a question to ranked hits, and from numbers to what is shown of them (rules S270–S278).

The index tells numbers; names, content and quotes are read from the archive when they are shown, so that what
was shredded is never quoted. Everything that counts or ranks runs in a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import msgspec

from observatory.features.graph.loader import playback
from observatory.features.search.query_language import Query
from observatory.features.search.ranking import LIKE, Hit, bm25, counted, fuse, holds, snippet
from observatory.features.search.types_query import Clause, Face, Mode, Near, Scope, Term
from observatory.features.search.words import plain
from observatory.features.sessions.message_text import parts_of
from observatory.features.sessions.types import Played, seen_of
from observatory.http.app_state import House
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import canonical_uuid

MOST_HITS = 2_000  # documents with the words that are ranked, newest first
MOST_LIKE = 200  # documents like the question
MOST_VALUES = 20  # of a facet
MOST_QUOTED = 100  # hits of a page that are quoted
AT_ONCE = 2  # rankings and quotings that run at a time: they hold the interpreter's lock
Row = dict[str, Any]


_turns: WeakKeyDictionary[object, asyncio.Semaphore] = WeakKeyDictionary()


def _turn(house: House) -> asyncio.Semaphore:
    """Of this gateway; the index's own reads are waited for outside of it."""
    return _turns.setdefault(house.committer, asyncio.Semaphore(AT_ONCE))


class Found(msgspec.Struct):
    """Hits best first, or newest first when nothing was to be ranked (score 0)."""

    hits: list[Hit]
    faces: dict[int, Face]
    capped: bool
    semantic: str  # used, partial, not_asked, not_available
    is_ranked: bool
    scope: Scope
    warnings: list[str]


class Names(msgspec.Struct):
    agents: dict[int, Row]
    sessions: dict[int, Row]


async def scope_of(house: House, tenant_id: str, query: Query, as_of: int) -> tuple[Scope, list[str]]:
    """Names become numbers; a name nobody has is told of and met by nothing."""
    clauses: list[Clause] = []
    warnings: list[str] = []
    for clause in query.clauses:
        if clause.field in ("agent", "session"):
            numbers, unknown = await _numbers(house, tenant_id, clause)
            warnings += [f"no {clause.field} of this tenant is called {name}" for name in unknown]
            clause = msgspec.structs.replace(clause, values=tuple(numbers))
        clauses.append(clause)
    after, until = 0, as_of
    if query.since_ns is not None or query.until_ns is not None:
        after, upto = await house.derived.window(tenant_id, query.since_ns, query.until_ns)
        until = min(until, upto)
    times = [] if query.since_ns is None else [Clause("at", (query.since_ns,), ">=")]
    times += [] if query.until_ns is None else [Clause("at", (query.until_ns,), "<=")]
    return Scope(until, after, tuple(clauses), tuple(times)), warnings


async def _numbers(house: House, tenant_id: str, clause: Clause) -> tuple[list[int], list[str]]:
    asked = [str(value) for value in clause.values]
    if clause.field == "agent":
        rows = await house.store.rows(tenant_id, "agents", agent_id=asked)
        rows += await house.store.rows(tenant_id, "agents", entity_id=asked)
        known = {row["agent_id"] for row in rows} | {row["entity_id"] for row in rows}
        return [row["agent_no"] for row in rows], [name[:80] for name in asked if name not in known]
    wanted = [canonical_uuid(name) or name for name in asked]
    rows = await house.store.rows(tenant_id, "sessions", session_id=wanted)
    known = {row["session_id"] for row in rows}
    return [row["session_no"] for row in rows], [name[:80] for name in wanted if name not in known]


def is_ranked(query: Query, mode: Mode) -> bool:
    """Whether there is anything to put hits in order by; without it they are listed."""
    likeness = plain(query.likeness) if mode != "text" else ""
    return bool(likeness) or (query.has_words and mode != "semantic")


async def listed(house: House, tenant_id: str, query: Query, as_of: int) -> Found:
    """Where a listing goes on: its first page counted the hits, so only what bounds them is read again."""
    scope, warnings = await scope_of(house, tenant_id, query, as_of)
    return Found([], {}, False, "not_asked", False, scope, warnings)


async def find(house: House, tenant_id: str, query: Query, mode: Mode, as_of: int) -> Found:
    scope, warnings = await scope_of(house, tenant_id, query, as_of)
    nothing = Found([], {}, False, "not_asked", True, scope, warnings)
    if (
        query.lost
        or scope.until <= scope.after
        or any(clause.op == "in" and not clause.values and not clause.negated for clause in scope.clauses)
    ):
        return nothing
    likeness = plain(query.likeness) if mode != "text" else ""
    with_words = query.has_words and mode != "semantic"
    if not likeness and not with_words:
        return await _newest(house, tenant_id, query, scope, warnings)
    texts, near = await asyncio.gather(
        house.derived.texts(tenant_id, query.wanted, scope, MOST_HITS) if with_words else _none(),
        house.derived.nearest(tenant_id, likeness, scope, MOST_LIKE) if likeness else _none(),
    )
    semantic = "not_asked" if not likeness else "not_available" if near is None else "used"
    alike = [] if near is None else near.found
    if near is not None and near.partial:
        semantic = "partial"
    async with _turn(house):
        hits = await asyncio.to_thread(_ranked, query, texts.found if texts else [], alike)
    faces = await house.derived.faces(tenant_id, [hit.seq for hit in hits])
    since, until = query.since_ns, query.until_ns
    hits = [hit for hit in hits if hit.seq in faces and _is_within(faces[hit.seq].at_ns, since, until)]
    return Found(hits, faces, bool(texts and texts.capped), semantic, True, scope, warnings)


def _is_within(at_ns: int, since_ns: int | None, until_ns: int | None) -> bool:
    return (since_ns is None or at_ns >= since_ns) and (until_ns is None or at_ns <= until_ns)


async def _none() -> None:
    return None


async def _newest(house: House, tenant_id: str, query: Query, scope: Scope, warnings: list[str]) -> Found:
    numbers = await house.derived.newest(tenant_id, scope, query.wanted.none, MOST_HITS + 1)
    hits = [Hit(seq, 0.0, None, None, None, ()) for seq in numbers[:MOST_HITS]]
    faces = await house.derived.faces(tenant_id, numbers[:MOST_HITS])
    return Found(hits, faces, len(numbers) > MOST_HITS, "not_asked", False, scope, warnings)


def _ranked(query: Query, texts: Sequence[tuple[int, str]], alike: Sequence[Near]) -> list[Hit]:
    """What is only alike must hold the phrases asked for, too, and none of the words left out."""
    kept = [
        near for near in alike if near.likeness >= LIKE and holds(query.phrases, query.wanted.none, near.body)
    ]
    return fuse(bm25(query.wanted, texts), kept)


async def names_of(house: House, tenant_id: str, agents: Collection[int], sessions: Collection[int]) -> Names:
    """Rows of agents and sessions by their numbers."""
    found: list[dict[int, Row]] = []
    for table, key, wanted in (("agents", "agent_no", agents), ("sessions", "session_no", sessions)):
        numbers, rows = sorted({*wanted} - {0}), []
        for start in range(0, len(numbers), 500):
            part = numbers[start : start + 500]
            rows += await house.store.rows(tenant_id, table, **{key: part})
        found.append({row[key]: row for row in rows})
    return Names(*found)


async def facets(house: House, tenant_id: str, faces: Collection[Face]) -> Row:
    """Over the hits, which are capped."""
    agents = counted((face.agent_no or None for face in faces), MOST_VALUES)
    sessions = counted((face.session_no or None for face in faces), MOST_VALUES)
    names = await names_of(
        house, tenant_id, [one["value"] for one in agents], [one["value"] for one in sessions]
    )
    return {
        "agent": _named(agents, names.agents, "agent_id"),
        "type": counted((face.message_type for face in faces), MOST_VALUES),
        "status": counted((face.status for face in faces), MOST_VALUES),
        "tool": counted((face.tool for face in faces), MOST_VALUES),
        "state": counted((face.state for face in faces), MOST_VALUES),
        "session": _named(sessions, names.sessions, "session_id"),
    }


def _named(counts: list[Row], rows: dict[int, Row], field: str) -> list[Row]:
    return [one | {"value": rows[one["value"]][field]} for one in counts if one["value"] in rows]


async def shown(
    house: House, tenant_id: str, query: Query, hits: Sequence[Hit], faces: dict[int, Face]
) -> list[Row]:
    """The hits as they are in the archive now, in their order."""
    numbers = [hit.seq for hit in hits]
    rows = await _played(house, tenant_id, numbers)
    here = [faces[seq] for seq in numbers if seq in faces]
    names = await names_of(
        house, tenant_id, {face.agent_no for face in here}, {face.session_no for face in here}
    )
    async with _turn(house):
        return await asyncio.to_thread(_items, tenant_id, query, hits, faces, rows, names)


async def _played(house: House, tenant_id: str, numbers: Collection[int]) -> dict[int, tuple[int, Played]]:
    return await playback(house).played(tenant_id, numbers) if numbers else {}


def _items(
    tenant_id: str,
    query: Query,
    hits: Sequence[Hit],
    faces: dict[int, Face],
    rows: dict[int, tuple[int, Played]],
    names: Names,
) -> list[Row]:
    terms: Sequence[Term] | None = [term for group in query.wanted.every for term in group]
    by_entity = {row["entity_id"]: row for row in names.agents.values()}
    items: list[Row] = []
    for hit in hits:
        if hit.seq in rows and hit.seq in faces:
            session_no, row = rows[hit.seq]
            session = names.sessions.get(session_no, {"session_no": session_no, "session_id": None})
            terms = terms if len(items) < MOST_QUOTED else None
            items.append(_item(tenant_id, hit, faces[hit.seq], row, session, by_entity, terms))
    return items


def _item(
    tenant_id: str,
    hit: Hit,
    face: Face,
    row: Played,
    session: Row,
    agents: dict[str, Row],
    terms: Sequence[Term] | None,  # None: not to be quoted
) -> Row:
    seen = seen_of(row, tenant_id, session, agents)
    has_parts = terms is not None and row.raw is not None
    parts = parts_of(seen.log, seen.envelope, seen.agent_id) if has_parts else []
    return {
        "sequence_number": hit.seq,
        "message_id": row.message_id,
        "session_id": session["session_id"],
        "step_id": row.step_id,
        "agent_id": seen.agent_id or None,
        "message_type": row.message_type,
        "state": row.state,
        "status": face.status,
        "tool": face.tool,
        "at": from_ns(face.at_ns),
        "score": hit.score,
        "why": {
            "text_rank": hit.text_rank,
            "semantic_rank": hit.like_rank,
            "likeness": hit.likeness,
            "words": list(hit.terms),
        },
        "snippet": None if terms is None else snippet(parts, terms),
    }

"""Searching: from a query to ranked hits, and from sequence numbers to displayed items (rules S270–S278).

The index returns numbers; names, content and snippets are read from the archive for display, so that shredded
content is never quoted. Everything that counts or ranks runs in a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import msgspec

from observatory.features.graph.queries_session import playback
from observatory.features.graph.types_session import SessionMessage, seen_of
from observatory.features.search.document import parts_of
from observatory.features.search.query_language import SearchQuery
from observatory.features.search.ranking import LIKE, Hit, bm25, counted, fuse, holds, snippet
from observatory.features.search.types_query import (
    Clause,
    Mode,
    Scope,
    SearchIndexReads,
    SimilarDocument,
    StepFacets,
)
from observatory.features.search.words import plain
from observatory.http.app_state import AppState
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import canonical_uuid
from observatory.store.search_query import Term

MAX_HITS = 2_000  # ranked documents with the words, newest first
MAX_SIMILAR = 200  # documents similar to the query
MAX_VALUES = 20  # of a facet
MAX_SNIPPETS = 100  # hits of a page that get a snippet
AT_ONCE = 2  # rankings and snippets that run concurrently: they hold the interpreter's lock
Row = dict[str, Any]


_turns: WeakKeyDictionary[object, asyncio.Semaphore] = WeakKeyDictionary()


def _turn(app: AppState) -> asyncio.Semaphore:
    """This gateway's semaphore; reads of the index are awaited outside of it."""
    return _turns.setdefault(app.committer, asyncio.Semaphore(AT_ONCE))


class SearchResult(msgspec.Struct):
    """Hits, best first, or newest first when there is nothing to rank by (score 0)."""

    hits: list[Hit]
    faces: dict[int, StepFacets]
    capped: bool
    semantic: str  # used, partial, not_asked, not_available
    is_ranked: bool
    scope: Scope
    warnings: list[str]


class NamedRows(msgspec.Struct):
    agents: dict[int, Row]
    sessions: dict[int, Row]


async def scope_of(app: AppState, tenant_id: str, query: SearchQuery, as_of: int) -> tuple[Scope, list[str]]:
    """Resolve names to numbers; an unknown name gives a warning and matches nothing."""
    clauses: list[Clause] = []
    warnings: list[str] = []
    for clause in query.clauses:
        if clause.field in ("agent", "session"):
            numbers, unknown = await _numbers(app, tenant_id, clause)
            warnings += [f"no {clause.field} of this tenant has the name {name}" for name in unknown]
            clause = msgspec.structs.replace(clause, values=tuple(numbers))
        clauses.append(clause)
    after, until = 0, as_of
    if query.since_ns is not None or query.until_ns is not None:
        after, upto = await app.derived.queries(SearchIndexReads).window(
            tenant_id, query.since_ns, query.until_ns
        )
        until = min(until, upto)
    times = [] if query.since_ns is None else [Clause("at", (query.since_ns,), ">=")]
    times += [] if query.until_ns is None else [Clause("at", (query.until_ns,), "<=")]
    return Scope(until, after, tuple(clauses), tuple(times)), warnings


async def _numbers(app: AppState, tenant_id: str, clause: Clause) -> tuple[list[int], list[str]]:
    given = [str(value) for value in clause.values]
    if clause.field == "agent":
        rows = await app.store.rows(tenant_id, "agents", agent_id=given)
        rows += await app.store.rows(tenant_id, "agents", entity_id=given)
        known = {row["agent_id"] for row in rows} | {row["entity_id"] for row in rows}
        return [row["agent_no"] for row in rows], [name[:80] for name in given if name not in known]
    ids = [canonical_uuid(name) or name for name in given]
    rows = await app.store.rows(tenant_id, "sessions", session_id=ids)
    known = {row["session_id"] for row in rows}
    return [row["session_no"] for row in rows], [name[:80] for name in ids if name not in known]


def is_ranked(query: SearchQuery, mode: Mode) -> bool:
    """Whether the query has anything to rank by; otherwise hits are listed by number."""
    likeness = plain(query.likeness) if mode != "text" else ""
    return bool(likeness) or (query.has_words and mode != "semantic")


async def later_page(app: AppState, tenant_id: str, query: SearchQuery, as_of: int) -> SearchResult:
    """A later page of a listing: the first page counted the hits, so only the scope is read again."""
    scope, warnings = await scope_of(app, tenant_id, query, as_of)
    return SearchResult([], {}, False, "not_asked", False, scope, warnings)


async def find(app: AppState, tenant_id: str, query: SearchQuery, mode: Mode, as_of: int) -> SearchResult:
    scope, warnings = await scope_of(app, tenant_id, query, as_of)
    nothing = SearchResult([], {}, False, "not_asked", True, scope, warnings)
    if (
        query.lost
        or scope.until <= scope.after
        or any(clause.op == "in" and not clause.values and not clause.negated for clause in scope.clauses)
    ):
        return nothing
    likeness = plain(query.likeness) if mode != "text" else ""
    with_words = query.has_words and mode != "semantic"
    if not likeness and not with_words:
        return await _newest(app, tenant_id, query, scope, warnings)
    texts, near = await asyncio.gather(
        app.derived.queries(SearchIndexReads).texts(tenant_id, query.wanted, scope, MAX_HITS)
        if with_words
        else _none(),
        app.derived.queries(SearchIndexReads).nearest(tenant_id, likeness, scope, MAX_SIMILAR)
        if likeness
        else _none(),
    )
    semantic = "not_asked" if not likeness else "not_available" if near is None else "used"
    similar = [] if near is None else near.found
    if near is not None and near.partial:
        semantic = "partial"
    async with _turn(app):
        hits = await asyncio.to_thread(_ranked, query, texts.found if texts else [], similar)
    faces = await app.derived.queries(SearchIndexReads).faces(tenant_id, [hit.seq for hit in hits])
    since, until = query.since_ns, query.until_ns
    hits = [hit for hit in hits if hit.seq in faces and _is_within(faces[hit.seq].at_ns, since, until)]
    return SearchResult(hits, faces, bool(texts and texts.capped), semantic, True, scope, warnings)


def _is_within(at_ns: int, since_ns: int | None, until_ns: int | None) -> bool:
    return (since_ns is None or at_ns >= since_ns) and (until_ns is None or at_ns <= until_ns)


async def _none() -> None:
    return None


async def _newest(
    app: AppState, tenant_id: str, query: SearchQuery, scope: Scope, warnings: list[str]
) -> SearchResult:
    numbers = await app.derived.queries(SearchIndexReads).newest(
        tenant_id, scope, query.wanted.none, MAX_HITS + 1
    )
    hits = [Hit(seq, 0.0, None, None, None, ()) for seq in numbers[:MAX_HITS]]
    faces = await app.derived.queries(SearchIndexReads).faces(tenant_id, numbers[:MAX_HITS])
    return SearchResult(hits, faces, len(numbers) > MAX_HITS, "not_asked", False, scope, warnings)


def _ranked(
    query: SearchQuery, texts: Sequence[tuple[int, str]], similar: Sequence[SimilarDocument]
) -> list[Hit]:
    """A document found only by similarity must also contain the phrases, and none of the excluded words."""
    matching = [
        near
        for near in similar
        if near.likeness >= LIKE and holds(query.phrases, query.wanted.none, near.body)
    ]
    return fuse(bm25(query.wanted, texts), matching)


async def names_of(
    app: AppState, tenant_id: str, agents: Collection[int], sessions: Collection[int]
) -> NamedRows:
    """Rows of agents and sessions by their numbers."""
    by_table: list[dict[int, Row]] = []
    for table, key, wanted_numbers in (("agents", "agent_no", agents), ("sessions", "session_no", sessions)):
        numbers, rows = sorted({*wanted_numbers} - {0}), []
        for start in range(0, len(numbers), 500):
            part = numbers[start : start + 500]
            rows += await app.store.rows(tenant_id, table, **{key: part})
        by_table.append({row[key]: row for row in rows})
    return NamedRows(*by_table)


async def facets(app: AppState, tenant_id: str, faces: Collection[StepFacets]) -> Row:
    """Facets over the hits, which are capped."""
    agents = counted((face.agent_no or None for face in faces), MAX_VALUES)
    sessions = counted((face.session_no or None for face in faces), MAX_VALUES)
    names = await names_of(
        app, tenant_id, [one["value"] for one in agents], [one["value"] for one in sessions]
    )
    return {
        "agent": _named(agents, names.agents, "agent_id"),
        "type": counted((face.message_type for face in faces), MAX_VALUES),
        "status": counted((face.status for face in faces), MAX_VALUES),
        "tool": counted((face.tool for face in faces), MAX_VALUES),
        "state": counted((face.state for face in faces), MAX_VALUES),
        "session": _named(sessions, names.sessions, "session_id"),
    }


def _named(counts: list[Row], rows: dict[int, Row], field: str) -> list[Row]:
    return [one | {"value": rows[one["value"]][field]} for one in counts if one["value"] in rows]


async def hit_items(
    app: AppState, tenant_id: str, query: SearchQuery, hits: Sequence[Hit], faces: dict[int, StepFacets]
) -> list[Row]:
    """Items of the hits as they are in the archive now, in their order."""
    numbers = [hit.seq for hit in hits]
    rows = await _played(app, tenant_id, numbers)
    known = [faces[seq] for seq in numbers if seq in faces]
    names = await names_of(
        app, tenant_id, {face.agent_no for face in known}, {face.session_no for face in known}
    )
    async with _turn(app):
        return await asyncio.to_thread(_items, tenant_id, query, hits, faces, rows, names)


async def _played(
    app: AppState, tenant_id: str, numbers: Collection[int]
) -> dict[int, tuple[int, SessionMessage]]:
    return await playback(app).played(tenant_id, numbers) if numbers else {}


def _items(
    tenant_id: str,
    query: SearchQuery,
    hits: Sequence[Hit],
    faces: dict[int, StepFacets],
    rows: dict[int, tuple[int, SessionMessage]],
    names: NamedRows,
) -> list[Row]:
    terms: Sequence[Term] | None = [term for group in query.wanted.every for term in group]
    by_entity = {row["entity_id"]: row for row in names.agents.values()}
    items: list[Row] = []
    for hit in hits:
        if hit.seq in rows and hit.seq in faces:
            session_no, row = rows[hit.seq]
            session = names.sessions.get(session_no, {"session_no": session_no, "session_id": None})
            terms = terms if len(items) < MAX_SNIPPETS else None
            items.append(_item(tenant_id, hit, faces[hit.seq], row, session, by_entity, terms))
    return items


def _item(
    tenant_id: str,
    hit: Hit,
    face: StepFacets,
    row: SessionMessage,
    session: Row,
    agents: dict[str, Row],
    terms: Sequence[Term] | None,  # None: no snippet
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

"""Queries of the search index on either database: words, filters, similarity (rules S270–S277).

Scans are capped and the answer reports it: the newest `LOOK` documents with the words, and of these the
newest that pass the filters. Comparing vectors and embedding run in threads; the event loop only waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any, Final
from weakref import WeakValueDictionary

import numpy as np
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Subquery,
    Text,
    and_,
    bindparam,
    false,
    func,
    not_,
    or_,
    select,
    text,
)

from observatory.derived.tables import cursors, documents, steps, vectors
from observatory.features.search.types_query import (
    AgentHitCount,
    Clause,
    MatchingTexts,
    Scope,
    SimilarDocument,
    SimilarDocuments,
    StepFacets,
    TimeCounts,
)
from observatory.features.search.vector_index import TenantVectors, VectorIndex, parse_vectors
from observatory.store import search_postgres as postgres
from observatory.store import search_sqlite as sqlite
from observatory.store.embedding import Embedder, bits_of, embedder
from observatory.store.fetches import Fetches, portions
from observatory.store.lists import any_of
from observatory.store.search_query import Term, WordQuery

LOOK = 50_000  # documents with the words that filters are applied to, newest first
EXCLUDED = 200_000  # documents with excluded words that are left out
AMONG = 50_000  # documents that pass the filters and are compared
RECENT = 100_000  # newest numbers that filters without an index are applied to
COUNTED = 100_000  # messages that pass filters and are counted by time
COUNTED_ALL = 1_000_000  # the same without filters: only times are read, from their index
INDEXED: Final = {"agent", "session"}
CANDIDATES = 200  # nearest by bits, embedded again and ordered exactly
WIDER = 3_000  # nearest by bits when the filters are applied afterwards
PAGE = 16_384  # vectors read at once
AROUND = 1_000  # rows around a time: the clock may have been set back a little
MANY = 5_000  # values of one IN list
LARGEST = (1 << 63) - 1
COLUMNS: Final = {
    "agent": steps.c.agent_no,
    "session": steps.c.session_no,
    "type": steps.c.message_type,
    "state": steps.c.state,
    "status": steps.c.status,
    "tool": steps.c.tool,
    "cluster": steps.c.cluster_id,
    "cost": steps.c.cost,
    "tokens": steps.c.tokens,
    "confidence": steps.c.confidence,
    "entropy": steps.c.entropy,
    "at": steps.c.at_ns,
}
_PART = (
    f"SELECT turn, seq, bits FROM {vectors.name} WHERE tenant_id = :of_tenant "
    "AND (turn, seq) > (:turn, :seq) ORDER BY turn, seq LIMIT :most"
)
LOAD = {
    "sqlite": "SELECT group_concat(turn), group_concat(seq), group_concat(hex(bits), '') "
    f"FROM ({_PART}) AS part",
    "postgresql": "SELECT string_agg(turn::text, ','), string_agg(seq::text, ','), "
    f"string_agg(encode(bits, 'hex'), '') FROM ({_PART}) AS part",
}


def condition(clause: Clause) -> ColumnElement[bool]:
    column: ColumnElement[Any] = COLUMNS[clause.field]
    if clause.op == "in":
        test: ColumnElement[bool] = any_of(column, clause.values) if clause.values else false()
        return or_(column.is_(None), not_(test)) if clause.negated else test
    (value,) = clause.values
    test = {"<": column < value, "<=": column <= value, ">": column > value, ">=": column >= value}[clause.op]
    return or_(column.is_(None), not_(test)) if clause.negated else test


class SearchReads(Fetches):
    dialect: str
    _likeness: VectorIndex | None = None
    _loading: WeakValueDictionary[str, asyncio.Lock] | None = None  # one per tenant that is loading now

    def _hits(self, tenant_id: str, wanted: WordQuery, scope: Scope, most: int) -> Subquery:
        words = sqlite.hits if self.dialect == "sqlite" else postgres.hits
        return words(tenant_id, wanted, scope.after, scope.until, most)

    async def texts(self, tenant_id: str, wanted: WordQuery, scope: Scope, limit: int) -> MatchingTexts:
        most = LOOK if scope.clauses else limit + 1
        hits = self._hits(tenant_id, wanted, scope, most)
        source = hits.join(documents, and_(documents.c.tenant_id == tenant_id, documents.c.seq == hits.c.seq))
        query = select(documents.c.seq, documents.c.body)
        if scope.clauses:
            same_step = and_(steps.c.tenant_id == tenant_id, steps.c.seq == hits.c.seq)
            source = source.join(steps, same_step)
            query = query.where(*map(condition, scope.clauses))
        query = query.select_from(source).order_by(documents.c.seq.desc()).limit(limit + 1)
        rows = await self.fetch(tenant_id, query)
        capped = len(rows) > limit
        if scope.clauses and not capped:
            seen = await self.fetch(tenant_id, select(func.count()).select_from(hits))
            capped = seen[0][0] >= LOOK
        return MatchingTexts([(row[0], row[1]) for row in rows[:limit]], capped)

    async def speakers(
        self, tenant_id: str, wanted: WordQuery, scope: Scope
    ) -> tuple[list[AgentHitCount], bool]:
        hits = self._hits(tenant_id, wanted, scope, LOOK)
        same_step = and_(steps.c.tenant_id == tenant_id, steps.c.seq == hits.c.seq)
        count = func.count().label("count")
        query = (
            select(
                steps.c.agent_no,
                count,
                func.min(steps.c.at_ns),
                func.max(steps.c.at_ns),
                func.max(steps.c.seq),
            )
            .select_from(hits.join(steps, same_step))
            .where(*map(condition, (*scope.clauses, *scope.times)))
            .group_by(steps.c.agent_no)
            .order_by(count.desc(), steps.c.agent_no)
        )
        rows = [AgentHitCount(*row) for row in await self.fetch(tenant_id, query)]
        if scope.clauses:
            seen = await self.fetch(tenant_id, select(func.count()).select_from(hits))
            return rows, seen[0][0] >= LOOK
        return rows, sum(row.times for row in rows) >= LOOK

    async def span(self, tenant_id: str, scope: Scope) -> tuple[int, int] | None:
        # Two queries: each reads one end of an index; one query for both would read all of it.
        ends: list[int] = []
        for order in (steps.c.at_ns, steps.c.at_ns.desc()):
            query = select(steps.c.at_ns).where(steps.c.tenant_id == tenant_id)
            query = query.where(*map(condition, scope.times)).order_by(order).limit(1)
            ends += [row[0] for row in await self.fetch(tenant_id, query)]
        return (ends[0], ends[1]) if len(ends) == 2 else None

    async def bins(self, tenant_id: str, wanted: WordQuery, scope: Scope, width_ns: int) -> TimeCounts:
        of_tenant = steps.c.tenant_id == tenant_id
        if wanted.every:
            hits, most = self._hits(tenant_id, wanted, scope, LOOK), LOOK
            joined = hits.join(steps, and_(of_tenant, steps.c.seq == hits.c.seq))
            passing = select(steps.c.at_ns).select_from(joined)
            passing = passing.where(*map(condition, (*scope.clauses, *scope.times)))
        else:
            plain = not (scope.clauses or wanted.none)
            most = COUNTED_ALL if plain else COUNTED
            passing = select(steps.c.at_ns).where(of_tenant, *map(condition, (*scope.clauses, *scope.times)))
            if plain:  # the index of times, from its newest end
                passing = passing.order_by(steps.c.at_ns.desc()).limit(most)
            else:
                passing = passing.where(steps.c.seq > scope.after, steps.c.seq <= scope.until)
                if wanted.none:
                    unwanted = self._hits(tenant_id, WordQuery((wanted.none,)), scope, EXCLUDED)
                    passing = passing.where(steps.c.seq.not_in(select(unwanted.c.seq)))
                passing = passing.order_by(steps.c.seq.desc()).limit(most)
        passed = passing.subquery("passing")
        bin_no = (passed.c.at_ns // width_ns).label("bin")
        query = select(bin_no, func.count()).select_from(passed).group_by(bin_no)
        counts = {int(row[0]): int(row[1]) for row in await self.fetch(tenant_id, query)}
        capped = sum(counts.values()) >= most
        if wanted.every and scope.clauses and not capped:
            seen = await self.fetch(tenant_id, select(func.count()).select_from(hits))
            capped = seen[0][0] >= LOOK
        return TimeCounts(counts, capped)

    async def newest(self, tenant_id: str, scope: Scope, none: tuple[Term, ...], limit: int) -> list[int]:
        query = (
            select(steps.c.seq)
            .where(steps.c.tenant_id == tenant_id, steps.c.seq > scope.after, steps.c.seq <= scope.until)
            .where(*map(condition, (*scope.clauses, *scope.times)))
            .order_by(steps.c.seq.desc())
            .limit(limit)
        )
        if none:
            unwanted = self._hits(tenant_id, WordQuery((none,)), scope, EXCLUDED)
            query = query.where(steps.c.seq.not_in(select(unwanted.c.seq)))
        return [row[0] for row in await self.fetch(tenant_id, query)]

    async def window(self, tenant_id: str, since_ns: int | None, until_ns: int | None) -> tuple[int, int]:
        after, until = 0, LARGEST >> 24
        of_tenant, at = steps.c.tenant_id == tenant_id, steps.c.at_ns
        if since_ns is not None:
            rows = select(steps.c.seq).where(of_tenant, at >= since_ns).order_by(at).limit(AROUND).subquery()
            lowest = (await self.fetch(tenant_id, select(func.min(rows.c.seq))))[0][0]
            after = until if lowest is None else lowest - 1
        if until_ns is not None:
            rows = (
                select(steps.c.seq)
                .where(of_tenant, at <= until_ns)
                .order_by(at.desc())
                .limit(AROUND)
                .subquery()
            )
            highest = (await self.fetch(tenant_id, select(func.max(rows.c.seq))))[0][0]
            until = 0 if highest is None else highest
        return after, until

    async def faces(self, tenant_id: str, numbers: Collection[int]) -> dict[int, StepFacets]:
        columns = (steps.c[name] for name in StepFacets._fields)
        query = select(*columns).where(steps.c.tenant_id == tenant_id)
        by_seq: dict[int, StepFacets] = {}
        for some in portions(sorted(numbers), MANY):
            rows = await self.fetch(tenant_id, query.where(any_of(steps.c.seq, some)))
            by_seq |= {row[0]: StepFacets(*row) for row in rows}
        return by_seq

    async def nearest(self, tenant_id: str, text: str, scope: Scope, limit: int) -> SimilarDocuments | None:
        model = await asyncio.to_thread(embedder)
        if model is None:
            return None
        cached = await self._vectors(tenant_id)
        vector = await asyncio.to_thread(model.embed, [text])
        if not vector.any():
            return SimilarDocuments([], False)
        signs, most = bits_of(vector)[0], max(limit, CANDIDATES)
        among, partial = await self._among(tenant_id, scope)
        best = await asyncio.to_thread(cached.scan, signs, scope.after, scope.until, among, most)
        if partial:  # add those of the nearest anywhere that pass the filters
            wide = await asyncio.to_thread(cached.scan, signs, scope.after, scope.until, None, WIDER)
            best = list(dict.fromkeys([*best, *await self._passing(tenant_id, scope, wide)]))[: 2 * most]
        ordered = await asyncio.to_thread(_ordered, model, vector, await self._bodies(tenant_id, best))
        return SimilarDocuments(ordered[:limit], partial or not cached.is_whole)

    async def _among(self, tenant_id: str, scope: Scope) -> tuple[Any, bool]:
        """The documents that pass the filters, and whether there may be more; None for all."""
        if not scope.clauses:
            return None, False
        lowest = scope.after
        if not any(one.field in INDEXED and not one.negated for one in scope.clauses):
            lowest = max(lowest, scope.until - RECENT)
        bounded = Scope(scope.until, lowest, scope.clauses)
        passing = await self.newest(tenant_id, bounded, (), AMONG)
        return np.array(sorted(passing), dtype=np.int64), len(passing) == AMONG or lowest > scope.after

    async def _passing(self, tenant_id: str, scope: Scope, numbers: list[int]) -> list[int]:
        query = select(steps.c.seq).where(steps.c.tenant_id == tenant_id, *map(condition, scope.clauses))
        passing = {row[0] for row in await self.fetch(tenant_id, query.where(any_of(steps.c.seq, numbers)))}
        return [number for number in numbers if number in passing]

    async def _bodies(self, tenant_id: str, numbers: list[int]) -> list[tuple[int, int, str]]:
        query = select(documents.c.seq, documents.c.meant, documents.c.body).where(
            documents.c.tenant_id == tenant_id, any_of(documents.c.seq, numbers)
        )
        return [tuple(row) for row in await self.fetch(tenant_id, query)] if numbers else []

    async def _vectors(self, tenant_id: str) -> TenantVectors:
        """All folded vectors: reads those added since the cache was filled."""
        if self._likeness is None or self._loading is None:
            self._likeness, self._loading = VectorIndex(), WeakValueDictionary()
        head = select(cursors.c.seq).where(cursors.c.tenant_id == tenant_id, cursors.c.name == "fold")
        async with self._loading.setdefault(tenant_id, asyncio.Lock()):
            rows = await self.fetch(tenant_id, head)
            cached = self._likeness.of(tenant_id, rows[0][0] if rows else 0)
            while True:
                ((turns, seqs, signs),) = await self.fetch(tenant_id, self._load(tenant_id, cached))
                if not turns:
                    break
                more = await asyncio.to_thread(parse_vectors, turns, seqs, signs)
                await asyncio.to_thread(cached.add, more)
                self._likeness.trim()
                if len(more.turns) < PAGE:
                    break
            return cached

    def _load(self, tenant_id: str, cached: TenantVectors) -> Any:
        return text(LOAD[self.dialect]).bindparams(
            bindparam("of_tenant", tenant_id, Text),
            bindparam("turn", cached.turn, BigInteger),
            bindparam("seq", cached.seq, BigInteger),
            bindparam("most", PAGE, BigInteger),
        )


def _ordered(model: Embedder, vector: Any, rows: list[tuple[int, int, str]]) -> list[SimilarDocument]:
    """By exact similarity, the newer first among equals."""
    if not rows:
        return []
    likeness = model.embed([body[:meant] for _, meant, body in rows]) @ vector[0]
    made = [
        SimilarDocument(seq, round(float(one), 4), body)
        for (seq, _, body), one in zip(rows, likeness, strict=True)
    ]
    return sorted(made, key=lambda near: (-near.likeness, -near.seq))


DERIVED_QUERIES = (SearchReads,)

"""Reads of facts, their uses, and first claims; mixed into `DerivedReads`."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, func, select

from observatory.derived.steps import StepReads
from observatory.derived.tables import claims, facts, reach, steps, uses
from observatory.features.facts.types import ClaimedFact, FactFilter, FactRow, StatedBelief, UseRow
from observatory.store.fetches import MAX_IN_VALUES, portions
from observatory.store.lists import any_of

_FACT = tuple(facts.c[name] for name in FactRow._fields)
_CLAIMED = tuple(facts.c[name] for name in ClaimedFact._fields)
_USE = tuple(uses.c[name] for name in UseRow._fields)
# Joined by the session of the fact: uses are clustered by session.
_OF_FACT = and_(
    uses.c.tenant_id == facts.c.tenant_id,
    uses.c.from_no == facts.c.session_no,
    uses.c.fact_id == facts.c.fact_id,
)
SCOPES = {"session": facts.c.session_no, "agent": facts.c.agent_no, "cluster": facts.c.cluster_id}


class FactQueries(StepReads):
    async def facts_by_id(self, tenant_id: str, numbers: Collection[int]) -> dict[int, FactRow]:
        found = await self._in(tenant_id, _facts(tenant_id), facts.c.fact_id, numbers)
        return {row[0]: FactRow(*row) for row in found}

    async def facts_at(self, tenant_id: str, numbers: Collection[int]) -> list[FactRow]:
        """Facts that steps added, by the steps' numbers."""
        found = await self._in(tenant_id, _facts(tenant_id), facts.c.seq, numbers)
        return [FactRow(*row) for row in found]

    async def facts_page(
        self, tenant_id: str, where: FactFilter, before: int | None, limit: int
    ) -> list[FactRow]:
        query = _facts(tenant_id)
        if where.fact_keys is not None:
            query = query.where(any_of(facts.c.fact_key, where.fact_keys))
        if where.agent_no is not None:
            query = query.where(facts.c.agent_no == where.agent_no)
        if where.session_no is not None:
            query = query.where(facts.c.session_no == where.session_no)
        if where.contains is not None:
            query = query.where(func.lower(facts.c.text).contains(where.contains.lower(), autoescape=True))
        if where.until_seq is not None:
            query = query.where(facts.c.seq <= where.until_seq)
        if where.until_ns is not None:
            query = query.where(facts.c.at_ns <= where.until_ns)
        if before is not None:
            query = query.where(facts.c.fact_id < before)
        found = await self.fetch(tenant_id, query.order_by(facts.c.fact_id.desc()).limit(limit))
        return [FactRow(*row) for row in found]

    async def claimed(self, tenant_id: str, keys: Collection[int], limit: int) -> list[FactRow]:
        query = _facts(tenant_id).where(any_of(facts.c.fact_key, sorted(keys)[:MAX_IN_VALUES]))
        found = await self.fetch(tenant_id, query.order_by(facts.c.fact_id).limit(limit))
        return [FactRow(*row) for row in found]

    async def uses_of(self, tenant_id: str, numbers: Collection[int]) -> dict[int, int]:
        query = select(facts.c.fact_id, func.count()).select_from(facts.join(uses, _OF_FACT))
        query = query.where(facts.c.tenant_id == tenant_id).group_by(facts.c.fact_id)
        return {row[0]: row[1] for row in await self._in(tenant_id, query, facts.c.fact_id, numbers)}

    async def uses_at(self, tenant_id: str, numbers: Collection[int]) -> list[UseRow]:
        query = select(*_USE).where(uses.c.tenant_id == tenant_id)
        return [UseRow(*row) for row in await self._in(tenant_id, query, uses.c.seq, numbers)]

    async def uses_by(
        self, tenant_id: str, agent_no: int, until_seq: int | None, until_ns: int | None, limit: int
    ) -> list[UseRow]:
        mine = and_(steps.c.tenant_id == tenant_id, steps.c.agent_no == agent_no)
        joined = and_(uses.c.tenant_id == tenant_id, uses.c.seq == steps.c.seq)
        query = select(*_USE).select_from(steps.join(uses, joined)).where(mine, uses.c.kind == "declared")
        if until_seq is not None:
            query = query.where(steps.c.seq <= until_seq)
        if until_ns is not None:
            query = query.where(steps.c.at_ns <= until_ns)
        found = await self.fetch(tenant_id, query.order_by(steps.c.seq.desc()).limit(limit))
        return [UseRow(*row) for row in found]

    async def contested(self, tenant_id: str, since_ns: int, limit: int) -> list[StatedBelief]:
        torn = (
            select(facts.c.subject_key)
            .where(facts.c.tenant_id == tenant_id, facts.c.subject_key.is_not(None))
            .group_by(facts.c.subject_key)
            .having(func.min(facts.c.value) != func.max(facts.c.value))
        )
        return await self._stated(tenant_id, facts.c.subject_key.in_(torn), since_ns, limit)

    async def believed(
        self, tenant_id: str, subject_key: int, since_ns: int, limit: int
    ) -> list[StatedBelief]:
        return await self._stated(tenant_id, facts.c.subject_key == subject_key, since_ns, limit)

    async def _stated(
        self, tenant_id: str, which: ColumnElement[bool], since_ns: int, limit: int
    ) -> list[StatedBelief]:
        # An agent that adds a text again makes no new fact: its step is a use of its own fact with weight 1.
        again = and_(
            _OF_FACT,
            uses.c.agent_no == facts.c.agent_no,
            uses.c.kind == "exact",
            uses.c.weight == 1.0,
        )
        query = (
            select(*_FACT, func.max(uses.c.seq))
            .select_from(facts.outerjoin(uses, again))
            .where(facts.c.tenant_id == tenant_id, which, facts.c.at_ns >= since_ns)
            .group_by(*_FACT)
            .order_by(facts.c.fact_id.desc())
            .limit(limit)
        )
        found = await self.fetch(tenant_id, query)
        return [StatedBelief(FactRow(*row[:-1]), max(row[1], row[-1] or 0)) for row in found]

    async def tools_used(self, tenant_id: str, since_ns: int) -> list[tuple[int, str, int]]:
        query = (
            select(steps.c.agent_no, steps.c.tool, func.count())
            .where(steps.c.tenant_id == tenant_id, steps.c.at_ns >= since_ns, steps.c.tool.is_not(None))
            .where(steps.c.agent_no > 0)
            .group_by(steps.c.agent_no, steps.c.tool)
        )
        return [tuple(row) for row in await self.fetch(tenant_id, query)]

    # --- for the fold's in-memory state ---

    async def facts_within(
        self, tenant_id: str, scope: str, places: Iterable[Any], limit: int
    ) -> dict[Any, tuple[list[FactRow], bool]]:
        """The last facts of each session, agent or cluster, in order, and whether these are all."""
        column = SCOPES[scope]
        counts: dict[Any, int] = {}
        for some in portions(places):
            query = select(column, func.count()).where(facts.c.tenant_id == tenant_id, any_of(column, some))
            counts |= {row[0]: row[1] for row in await self.fetch(tenant_id, query.group_by(column))}
        found: dict[Any, tuple[list[FactRow], bool]] = {}
        small = [place for place, count in counts.items() if count <= limit]
        at = FactRow._fields.index(column.name)
        for row in await self._in(tenant_id, _facts(tenant_id), column, small):
            found.setdefault(row[at], ([], True))[0].append(FactRow(*row))
        for place, count in counts.items():
            if count > limit:
                query = _facts(tenant_id).where(column == place).order_by(facts.c.fact_id.desc()).limit(limit)
                rows = [FactRow(*row) for row in await self.fetch(tenant_id, query)]
                found[place] = (rows, False)
        for rows, _ in found.values():
            rows.sort()
        return found

    async def ever_added(self, tenant_id: str, keys: Collection[int]) -> set[int]:
        """Which of these texts exist as facts anywhere."""
        query = select(facts.c.fact_key).distinct().where(facts.c.tenant_id == tenant_id)
        return {row[0] for row in await self._in(tenant_id, query, facts.c.fact_key, keys)}

    async def first_claims(self, tenant_id: str, keys: Collection[int]) -> dict[int, ClaimedFact]:
        """Claim key -> the fact it stands for, if that still exists."""
        mine = and_(facts.c.tenant_id == tenant_id, facts.c.fact_id == claims.c.fact_id)
        query = select(claims.c.claim_key, *_CLAIMED).select_from(claims.join(facts, mine))
        query = query.where(claims.c.tenant_id == tenant_id)
        return {
            row[0]: ClaimedFact(*row[1:])
            for row in await self._in(tenant_id, query, claims.c.claim_key, keys)
        }

    async def reaches(self, tenant_id: str, agents: Collection[int]) -> dict[int, tuple[str, str]]:
        query = select(reach.c.agent_no, reach.c.rooms, reach.c.mail).where(reach.c.tenant_id == tenant_id)
        return {
            row[0]: (row[1], row[2]) for row in await self._in(tenant_id, query, reach.c.agent_no, agents)
        }

    async def _in(
        self, tenant_id: str, query: Select[Any], column: ColumnElement[Any], values: Iterable[Any]
    ) -> list[Any]:
        found: list[Any] = []
        for some in portions(sorted(values)):
            found += await self.fetch(tenant_id, query.where(any_of(column, some)))
        return found


def _facts(tenant_id: str) -> Select[Any]:
    return select(*_FACT).where(facts.c.tenant_id == tenant_id)


DERIVED_QUERIES = (FactQueries,)

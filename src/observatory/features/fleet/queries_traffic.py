"""Reads of minute counters, and of the steps and links the traffic fold needs again."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice
from typing import NamedTuple, TypeVar

from sqlalchemy import and_, case, func, literal_column, select

from observatory.derived.tables import agent_minutes, edge_minutes, links, seconds, steps
from observatory.features.fleet.types_traffic import AgentMinute, ChildStep, EdgeSum, Fork, SecondCount
from observatory.store.fetches import HIGH, LIMIT, LOW, TENANT, Fetches
from observatory.store.lists import any_named, any_of

MAX_IN_LIST = 500  # values of one IN list
# Forks are looked for among this many numbers back: a bound on the work, not on the time.
LOOKED_AT = 20_000
FAN = 50  # agents of a fork's children that are returned
T = TypeVar("T")
BY_SPAN = links.c.kind == literal_column("'span'")  # a literal: the partial index is not found by a parameter
# An open page reads this every second.
_SECONDS = (
    select(*(seconds.c[name] for name in SecondCount._fields))
    .where(seconds.c.tenant_id == TENANT, seconds.c.second.between(LOW, HIGH))
    .order_by(seconds.c.second)
)
_FIRST_SINCE = (
    select(steps.c.seq)
    .where(steps.c.tenant_id == TENANT, steps.c.at_ns >= LOW)
    .order_by(steps.c.at_ns, steps.c.seq)
    .limit(1)
)
_CHILDREN_SINCE = (
    select(links.c.parent_key, links.c.seq, steps.c.agent_no, steps.c.at_ns)
    .select_from(links.join(steps, and_(steps.c.tenant_id == links.c.tenant_id, steps.c.seq == links.c.seq)))
    .where(links.c.tenant_id == TENANT, links.c.seq > LOW, links.c.kind != "span")
    .where(steps.c.at_ns >= HIGH)
    .order_by(links.c.seq.desc())
    .limit(LIMIT)
)


class StepLocation(NamedTuple):
    """The columns of a step that an edge needs."""

    seq: int
    session_no: int
    agent_no: int
    at_ns: int
    failed: bool


class MinuteCounterReads(Fetches):
    async def placed(self, tenant_id: str, keys: Collection[int]) -> dict[int, StepLocation]:
        """Steps by the keys of their names."""
        return dict(await self._placed(tenant_id, "name_key", keys))

    async def spanned(self, tenant_id: str, keys: Collection[int]) -> list[tuple[int, StepLocation]]:
        """Steps by the keys of their spans, in order; several may have one."""
        found = await self._placed(tenant_id, "span_key", keys)
        return sorted(found, key=lambda pair: pair[1].seq)

    async def _placed(
        self, tenant_id: str, column: str, keys: Collection[int]
    ) -> list[tuple[int, StepLocation]]:
        found = []
        for part in parts(sorted(keys)):
            query = select(steps.c[column], *_PLACED).where(
                steps.c.tenant_id == tenant_id, any_of(steps.c[column], part)
            )
            found += [(row[0], _placed(*row[1:])) for row in await self.fetch(tenant_id, query)]
        return found

    async def waiting_for(
        self, tenant_id: str, keys: Collection[int]
    ) -> dict[int, list[tuple[StepLocation, str]]]:
        """Steps that named a parent by these keys, and the kind of the link, by key."""
        found: dict[int, list[tuple[StepLocation, str]]] = {}
        for part in parts(sorted(keys)):
            for row in await self.fetch(tenant_id, _WAITING_FOR, tenant=tenant_id, keys=part):
                found.setdefault(row[0], []).append((_placed(*row[2:]), row[1]))
        return found

    async def names_spans(self, tenant_id: str) -> bool:
        """Whether any step named its parent by a span."""
        query = select(links.c.seq).where(links.c.tenant_id == tenant_id, BY_SPAN).limit(1)
        return bool(await self.fetch(tenant_id, query))

    async def waiting_for_spans(
        self, tenant_id: str, keys: Collection[int]
    ) -> dict[int, list[tuple[int, int]]]:
        """Numbers and sessions of steps that named a parent by these spans, by key."""
        found: dict[int, list[tuple[int, int]]] = {}
        for part in parts(sorted(keys)):
            query = select(links.c.parent_key, links.c.seq, links.c.session_no).where(
                links.c.tenant_id == tenant_id, any_of(links.c.parent_key, part), BY_SPAN
            )
            for row in await self.fetch(tenant_id, query):
                found.setdefault(row[0], []).append((row[1], row[2]))
        return found

    async def agent_minutes(self, tenant_id: str, first: int, last: int) -> list[AgentMinute]:
        table = agent_minutes
        query = select(*(table.c[name] for name in AgentMinute._fields)).where(
            table.c.tenant_id == tenant_id, table.c.minute.between(first, last)
        )
        return [AgentMinute(*row) for row in await self.fetch(tenant_id, query)]

    async def edge_sums(self, tenant_id: str, first: int, last: int) -> list[EdgeSum]:
        table = edge_minutes.c
        query = (
            select(
                table.from_no,
                table.to_no,
                table.kind,
                func.sum(table.messages),
                func.sum(table.failures),
                func.sum(table.latency_ms),
                func.sum(case((table.minute == last, table.messages), else_=0)),
                func.sum(case((table.minute == last - 1, table.messages), else_=0)),
                func.sum(case((table.minute >= last - 1, table.failures), else_=0)),
                func.sum(case((table.minute >= last - 1, table.latency_ms), else_=0)),
            )
            .where(table.tenant_id == tenant_id, table.minute.between(first, last))
            .group_by(table.from_no, table.to_no, table.kind)
        )
        rows = await self.fetch(tenant_id, query)
        return [EdgeSum(row[0], row[1], row[2], *map(int, row[3:])) for row in rows]

    async def seconds(self, tenant_id: str, first: int, last: int) -> list[SecondCount]:
        found = await self.fetch(tenant_id, _SECONDS, tenant=tenant_id, low=first, high=last)
        return [SecondCount(*row) for row in found]

    async def children_since(self, tenant_id: str, after: int, since_ns: int, limit: int) -> list[ChildStep]:
        # Find where that time begins by its index: in an idle mesh, all links would be walked otherwise.
        first = await self.fetch(tenant_id, _FIRST_SINCE, tenant=tenant_id, low=since_ns)
        if not first:
            return []
        past = max(after, first[0][0] - 1)
        found = await self.fetch(
            tenant_id, _CHILDREN_SINCE, tenant=tenant_id, low=past, high=since_ns, most=limit
        )
        return [ChildStep(*row) for row in reversed(found)]

    async def split_at(self, tenant_id: str, keys: Collection[int]) -> dict[int, Fork]:
        found = await self.placed(tenant_id, keys)
        return {
            key: Fork(step.seq, step.agent_no, step.session_no, step.at_ns, 0, ())
            for key, step in found.items()
        }

    async def forks(self, tenant_id: str, since_ns: int, until_ns: int, limit: int) -> list[Fork]:
        in_time = (steps.c.tenant_id == tenant_id, steps.c.at_ns.between(since_ns, until_ns))
        last = select(steps.c.seq).where(*in_time).order_by(steps.c.at_ns.desc()).limit(1)
        newest = await self.fetch(tenant_id, last)
        if not newest:
            return []
        span = links.c.seq.between(newest[0][0] - LOOKED_AT, newest[0][0])
        named = (links.c.tenant_id == tenant_id, span, links.c.kind != "span")
        grouped = (
            select(links.c.parent_key, func.count(), func.max(links.c.seq))
            .where(*named)
            .group_by(links.c.parent_key)
            .having(func.count() > 1)
            .order_by(func.count().desc(), func.max(links.c.seq).desc())
            .limit(limit * 2)
        )
        wide = [row[0] for row in await self.fetch(tenant_id, grouped)]
        heads = await self.placed(tenant_id, wide)
        children = await self._children(tenant_id, list(heads), since_ns, until_ns)
        found: list[Fork] = []
        for key, step in heads.items():
            near = [child for child in children.get(key, ()) if child.seq != step.seq]
            if len(near) > 1:
                child_agents = tuple(sorted({child.agent_no for child in near} - {0}))[:FAN]
                found.append(
                    Fork(step.seq, step.agent_no, step.session_no, step.at_ns, len(near), child_agents)
                )
        return sorted(found, key=lambda fork: (-fork.children, -fork.seq))[:limit]

    async def _children(
        self, tenant_id: str, keys: Collection[int], since_ns: int, until_ns: int
    ) -> dict[int, list[StepLocation]]:
        joined = links.join(steps, and_(steps.c.tenant_id == links.c.tenant_id, steps.c.seq == links.c.seq))
        query = (
            select(links.c.parent_key, *_PLACED)
            .select_from(joined)
            .where(links.c.tenant_id == tenant_id, any_of(links.c.parent_key, keys), links.c.kind != "span")
            .where(steps.c.at_ns.between(since_ns, until_ns))
            .order_by(links.c.seq)
            .limit(LOOKED_AT)
        )
        found: dict[int, list[StepLocation]] = {}
        for row in await self.fetch(tenant_id, query) if keys else []:
            found.setdefault(row[0], []).append(_placed(*row[1:]))
        return found


_PLACED = (steps.c.seq, steps.c.session_no, steps.c.agent_no, steps.c.at_ns, steps.c.state, steps.c.status)
# Run with every batch.
_WAITING_FOR = (
    select(links.c.parent_key, links.c.kind, *_PLACED)
    .select_from(links.join(steps, and_(steps.c.tenant_id == links.c.tenant_id, steps.c.seq == links.c.seq)))
    .where(links.c.tenant_id == TENANT, any_named(links.c.parent_key, "keys"), links.c.kind != "span")
)


def _placed(
    seq: int, session_no: int, agent_no: int, at_ns: int, state: str, status: str | None
) -> StepLocation:
    return StepLocation(seq, session_no, agent_no, at_ns, state == "refused" or status == "failure")


def parts(values: Collection[T], size: int = MAX_IN_LIST) -> Iterator[list[T]]:
    left = iter(values)
    while some := list(islice(left, size)):
        yield some

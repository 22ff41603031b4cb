"""Whole sessions forward: what the spread of a fact and the blast of a step are worked out from.

What goes through a hundred sessions one after the other asks many times, for little each time: so the
statements are composed once for so many sessions (a list that is shorter repeats its first), and those of one
round go to the database together. Children in other sessions are found by the crossings, and so are sessions
that are likely to be wanted next.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, Select, and_, bindparam, func, or_, select

from observatory.insight.cascade import Downstream, TaintRow
from observatory.insight.facts import PLACE_BITS, Crossing, Spread, StepRow, UseRow
from observatory.store.derived_tables import crossings, facts, links, steps, uses
from observatory.store.fetches import LIMIT, LOW, MOST, TENANT, Fetches

DENSE = 4  # one in so many
SIZES = (1, 8, 64, MOST)  # sessions of one statement
FIRST = bindparam("first", type_=BigInteger)  # the first fact
Question = Select[Any]
Values = dict[str, Any]


class _Asked(NamedTuple):
    """Of so many sessions past a number. `dense` is read through, `old` the earliest; the rest as it lies."""

    extent: Question
    led_to: Question
    counted: Question
    spread: tuple[Question, ...]  # steps, facts, uses, own links, crossings
    spread_old: Question
    spread_dense: tuple[Question, ...]
    blast: tuple[Question, ...]  # steps with their links, facts, uses, crossings
    blast_old: Question
    blast_dense: tuple[Question, ...]


@cache
def _asked(size: int) -> _Asked:
    among = [bindparam(f"s{place}", type_=BigInteger) for place in range(size)]
    past = and_(steps.c.tenant_id == TENANT, steps.c.seq >= LOW)
    mine = and_(past, steps.c.session_no.in_(among))
    through = and_(past, (steps.c.session_no + 0).in_(among))
    made = and_(facts.c.tenant_id == TENANT, facts.c.session_no.in_(among), facts.c.fact_id >= FIRST)
    used = facts.join(uses, and_(uses.c.tenant_id == TENANT, uses.c.fact_id == facts.c.fact_id))

    newest = select(func.max(steps.c.seq)).where(steps.c.tenant_id == TENANT).scalar_subquery()
    counted = select(steps.c.session_no, func.count()).where(mine).group_by(steps.c.session_no)
    known = select(facts.c.fact_id, facts.c.session_no).where(made).limit(LIMIT)
    stepped = select(*(steps.c[name] for name in StepRow._fields)).limit(LIMIT)
    taken = select(*(uses.c[name] for name in UseRow._fields)).select_from(used).where(made).limit(LIMIT)
    linked = select(links.c.parent_key, links.c.seq, links.c.session_no).limit(2 * LIMIT)
    since = and_(links.c.tenant_id == TENANT, links.c.seq >= LOW)
    out = and_(crossings.c.tenant_id == TENANT, crossings.c.from_no.in_(among), crossings.c.kind != "use")
    crossed = select(*(crossings.c[name] for name in Crossing._fields)).where(out).limit(LIMIT)

    # Steps with their links: a row a parent, one without any when it has none. Both lie side by side by their
    # session; what is read through is met by number.
    tainted = select(*(steps.c[name] for name in TaintRow._fields[:-2]), links.c.parent_key, links.c.kind)
    its = and_(links.c.tenant_id == TENANT, links.c.seq == steps.c.seq)
    beside = steps.outerjoin(links, and_(its, links.c.session_no == steps.c.session_no))
    lying = tainted.select_from(beside).where(mine).limit(LIMIT)
    through_all = tainted.select_from(steps.outerjoin(links, its)).where(through).limit(LIMIT)
    shared = select(uses.c.fact_id, uses.c.seq, uses.c.kind, uses.c.weight, uses.c.session_no)
    shared = shared.select_from(used).where(made).limit(LIMIT)

    return _Asked(
        select(func.count(), newest).where(mine),
        _led_to(among),
        counted,
        (stepped.where(mine), known, taken, linked.where(since, links.c.session_no.in_(among)), crossed),
        stepped.where(mine).order_by(steps.c.seq),
        (
            stepped.where(through).order_by(steps.c.seq),
            known,
            taken,
            linked.where(since, (links.c.session_no + 0).in_(among)),
            crossed,
        ),
        (lying, known, shared, crossed),
        lying.order_by(steps.c.seq),
        (through_all, known, shared, crossed),
    )


def _led_to(among: list[Any]) -> Question:
    on = and_(crossings.c.tenant_id == TENANT, or_(crossings.c.seq >= LOW, crossings.c.kind == "use"))
    onward = select(crossings.c.session_no.label("no"))
    found = onward.where(on, crossings.c.from_no.in_(among)).cte("found", recursive=True)
    found = found.union(onward.where(on, crossings.c.from_no == found.c.no))
    return select(found.c.no).limit(LIMIT)


def _values(tenant_id: str, sessions: Collection[int], after: int, limit: int) -> tuple[_Asked, Values]:
    """What to ask, and with what."""
    among = sorted(sessions)
    size = next(size for size in SIZES if size >= len(among))
    among += among[:1] * (size - len(among))
    values: Values = {f"s{place}": session_no for place, session_no in enumerate(among)}
    values |= {"tenant": tenant_id, "low": after, "first": after << PLACE_BITS, "most": limit + 1}
    return _asked(size), values


class SpreadReads(Fetches):
    async def led_to(
        self, tenant_id: str, sessions: Collection[int], after: int, most: int
    ) -> dict[int, int]:
        asked, values = _values(tenant_id, sessions, after, most - 1)
        found = [row[0] for row in await self.fetch(tenant_id, asked.led_to, **values)]
        if not found:
            return {}
        asked, values = _values(tenant_id, found, after, MOST)
        counts = {row[0]: row[1] for row in await self.fetch(tenant_id, asked.counted, **values)}
        return {session_no: counts.get(session_no, 0) for session_no in found}

    async def _extent(
        self, tenant_id: str, sessions: Collection[int], after: int, limit: int
    ) -> tuple[_Asked, Values, int, bool]:
        """What to ask and with what; how many steps these are; and whether they are so much of all there is
        since then that the table is better read through than looked up in."""
        asked, values = _values(tenant_id, sessions, after, limit)
        ((count, head),) = await self.fetch(tenant_id, asked.extent, **values)
        return asked, values, count, (head or 0) - after < DENSE * count

    async def spread(self, tenant_id: str, sessions: Collection[int], after: int, limit: int) -> Spread:
        asked, values, count, dense = await self._extent(tenant_id, sessions, after, limit)
        first, *more = asked.spread_dense if dense else asked.spread
        if count > limit and not dense:
            first = asked.spread_old
        rows, known, taken, found, abroad = await self.fetch_each(tenant_id, (first, *more), **values)
        rows.sort(key=itemgetter(0))
        cut = len(found) >= 2 * limit or max(len(rows), len(known), len(taken), len(abroad)) > limit
        return Spread(rows[:limit], found, known[:limit], taken[:limit], cut, abroad)

    async def downstream(
        self, tenant_id: str, sessions: Collection[int], after: int, limit: int
    ) -> Downstream:
        asked, values, count, dense = await self._extent(tenant_id, sessions, after, limit)
        first, *more = asked.blast_dense if dense else asked.blast
        if count > limit:  # the oldest are kept, the step asked about among them
            first = first.order_by(steps.c.seq) if dense else asked.blast_old
        rows, known, taken, abroad = await self.fetch_each(tenant_id, (first, *more), **values)
        cut = max(len(rows), len(known), len(taken), len(abroad)) > limit
        names = {row[1]: row[0] for row in rows} if abroad else {}
        beyond = [
            (names[one[2]], one[3], one[1], one[4], one[0])
            for one in abroad[:limit]
            if one[2] in names and one[4] != "span"  # by name: a span is of its own session
        ]
        return Downstream(rows[:limit], known[:limit], taken[:limit], beyond, cut)

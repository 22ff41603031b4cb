"""Whole sessions forward: what the spread of a fact and the blast of a step are worked out from.

What goes through a hundred sessions one after the other asks a hundred times, for little each time: so the
statements are composed once for so many sessions (a list that is shorter repeats its first), and those of one
round go to the database together, those that look for links elsewhere beside the others: they take as long
and find little.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from functools import cache
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, Select, and_, bindparam, func, select, union_all

from observatory.insight.cascade import Downstream, TaintRow
from observatory.insight.facts import PLACE_BITS, Spread, StepRow, UseRow
from observatory.store.derived_tables import facts, links, steps, uses
from observatory.store.fetches import LIMIT, LOW, MOST, TENANT, Fetches

DENSE = 4  # one in so many
SIZES = (1, 8, 64, MOST)  # sessions of one statement
FIRST = bindparam("first", type_=BigInteger)  # the first fact
Question = Select[Any]


class _Asked(NamedTuple):
    """Of so many sessions past a number. `dense` is read through, `old` the earliest; the rest as it lies."""

    extent: Question
    spread: tuple[Question, ...]  # steps, facts, uses, own links, links of other sessions
    spread_old: Question
    spread_dense: tuple[Question, ...]  # steps, facts, uses, all links
    blast: tuple[Question, ...]  # steps with their links, facts, uses, links of other sessions by name
    blast_old: Question
    blast_dense: tuple[Question, ...]  # steps with their links, facts, uses, all links of other sessions


@cache
def _asked(size: int) -> _Asked:
    among = [bindparam(f"s{place}", type_=BigInteger) for place in range(size)]
    past = and_(steps.c.tenant_id == TENANT, steps.c.seq >= LOW)
    mine = and_(past, steps.c.session_no.in_(among))
    through = and_(past, (steps.c.session_no + 0).in_(among))
    made = and_(facts.c.tenant_id == TENANT, facts.c.session_no.in_(among), facts.c.fact_id >= FIRST)
    used = facts.join(uses, and_(uses.c.tenant_id == TENANT, uses.c.fact_id == facts.c.fact_id))

    newest = select(func.max(steps.c.seq)).where(steps.c.tenant_id == TENANT).scalar_subquery()
    stepped = select(*(steps.c[name] for name in StepRow._fields)).limit(LIMIT)
    known = select(facts.c.fact_id).where(made).limit(LIMIT)
    taken = select(*(uses.c[name] for name in UseRow._fields)).select_from(used).where(made).limit(LIMIT)
    linked = select(links.c.parent_key, links.c.seq, links.c.session_no)
    own = steps.join(links, and_(links.c.tenant_id == TENANT, links.c.seq == steps.c.seq))
    # Not as a join: many steps may share a span, and a link to it counts once.
    keys = union_all(select(steps.c.name_key).where(mine), select(steps.c.span_key).where(mine))
    abroad = linked.where(
        links.c.tenant_id == TENANT, links.c.session_no.not_in(among), links.c.parent_key.in_(keys)
    )
    since = and_(links.c.tenant_id == TENANT, links.c.seq >= LOW)

    # Steps with their links: a row a parent, one without any when it has none.
    tainted = select(*(steps.c[name] for name in TaintRow._fields[:-2]), links.c.parent_key, links.c.kind)
    tainted = tainted.select_from(
        steps.outerjoin(links, and_(links.c.tenant_id == TENANT, links.c.seq == steps.c.seq))
    ).limit(LIMIT)
    added = select(facts.c.fact_id, facts.c.seq).where(made).limit(LIMIT)
    shared = select(uses.c.fact_id, uses.c.seq, uses.c.kind, uses.c.weight, uses.c.session_no)
    shared = shared.select_from(used).where(made).limit(LIMIT)
    # By name: a span is of its own session.
    named = and_(links.c.tenant_id == TENANT, links.c.parent_key == steps.c.name_key, links.c.kind != "span")
    beyond = select(steps.c.seq, links.c.seq, links.c.session_no, links.c.kind)
    beyond = beyond.select_from(steps.join(links, named)).where(mine, links.c.session_no.not_in(among))
    others = select(links.c.parent_key, links.c.seq, links.c.session_no, links.c.kind)
    others = others.where(since, (links.c.session_no + 0).not_in(among), links.c.kind != "span")

    return _Asked(
        select(func.count(), newest).where(mine),
        (
            stepped.where(mine),
            known,
            taken,
            linked.select_from(own).where(mine).limit(2 * LIMIT),
            abroad.limit(LIMIT),
        ),
        stepped.where(mine).order_by(steps.c.seq),
        (
            stepped.where(through).order_by(steps.c.seq),
            known,
            taken,
            linked.where(since).limit(2 * DENSE * LIMIT),
        ),
        (tainted.where(mine), added, shared, beyond.limit(LIMIT)),
        tainted.where(mine).order_by(steps.c.seq),
        (tainted.where(through), added, shared, others.limit(DENSE * LIMIT)),
    )


class SpreadReads(Fetches):
    async def _extent(
        self, tenant_id: str, sessions: Collection[int], after: int, limit: int
    ) -> tuple[_Asked, dict[str, Any], int, bool]:
        """What to ask and with what; how many steps these are; and whether they are so much of all there is
        since then that the table is better read through than looked up in."""
        among = sorted(sessions)
        size = next(size for size in SIZES if size >= len(among))
        among += among[:1] * (size - len(among))
        values: dict[str, Any] = {f"s{place}": session_no for place, session_no in enumerate(among)}
        values |= {"tenant": tenant_id, "low": after, "first": after << PLACE_BITS, "most": limit + 1}
        asked = _asked(size)
        ((count, head),) = await self.fetch(tenant_id, asked.extent, **values)
        return asked, values, count, (head or 0) - after < DENSE * count

    async def spread(self, tenant_id: str, sessions: Collection[int], after: int, limit: int) -> Spread:
        asked, values, count, dense = await self._extent(tenant_id, sessions, after, limit)
        if dense:
            rows, known, taken, found = await self.fetch_each(tenant_id, asked.spread_dense, **values)
            more = len(found) >= 2 * DENSE * limit
        else:
            first = asked.spread[0] if count <= limit else asked.spread_old
            (rows, known, taken, found), (abroad,) = await asyncio.gather(
                self.fetch_each(tenant_id, (first, *asked.spread[1:-1]), **values),
                self.fetch_each(tenant_id, asked.spread[-1:], **values),
            )
            more = len(found) >= 2 * limit or len(abroad) > limit
            found += abroad
        rows.sort(key=itemgetter(0))
        cut = more or max(len(known), len(taken), len(rows)) > limit
        return Spread(rows[:limit], found, known[:limit], taken[:limit], cut)

    async def downstream(
        self, tenant_id: str, sessions: Collection[int], after: int, limit: int
    ) -> Downstream:
        asked, values, count, dense = await self._extent(tenant_id, sessions, after, limit)
        if dense:
            first, *more = asked.blast_dense
        else:
            first, *more = asked.blast
        if count > limit:  # the oldest are kept, the step asked about among them
            first = first.order_by(steps.c.seq) if dense else asked.blast_old
        (rows, known, taken), (beyond,) = await asyncio.gather(
            self.fetch_each(tenant_id, (first, *more[:-1]), **values),
            self.fetch_each(tenant_id, more[-1:], **values),
        )
        cut = max(len(known), len(taken), len(rows)) > limit
        if dense:
            cut = cut or len(beyond) >= DENSE * limit
            numbers = {row[1]: row[0] for row in rows} if beyond else {}
            beyond = [(numbers[row[0]], *row[1:]) for row in beyond if row[0] in numbers]
        else:
            cut = cut or len(beyond) > limit
        return Downstream(rows[:limit], known[:limit], taken[:limit], beyond[:limit], cut)

"""Reads of whole sessions for the spread of a fact and the blast radius of a step.

Following a hundred sessions one after the other takes many queries that each read little: so statements are
composed once for a fixed number of sessions (a shorter list repeats its first), and those of one round go to
the database together. Children in other sessions are found by the crossings, and so are sessions that are
likely to be needed next. The database encodes each column as one list: a hundred thousand rows are read that
way in a quarter of the time that as many objects take.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from functools import cache
from itertools import zip_longest
from typing import Any, NamedTuple, TypeVar, cast

import msgspec
import numpy as np
from sqlalchemy import BigInteger, Select, Text, and_, bindparam, case, func, literal, or_, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from observatory.derived.tables import crossings, facts, links, steps, uses
from observatory.features.graph.types_spread import (
    DECLARED,
    LINK_KINDS,
    NEAR,
    PLACE_BITS,
    REFUSED,
    STATES,
    USE_KINDS,
    Columns,
    CrossingColumns,
    FactColumns,
    LinkColumns,
    Spread,
    StepColumns,
    UseColumns,
)
from observatory.store.fetches import LIMIT, LOW, MAX_IN_VALUES, TENANT, Fetches

SIZES = (1, 8, 64, MAX_IN_VALUES)  # sessions of one statement
FIRST = bindparam("first", type_=BigInteger)  # the first fact
Question = Select[Any]
Values = dict[str, Any]
C = TypeVar("C", bound=Columns)
S = TypeVar("S", StepColumns, LinkColumns)
_decode_names = msgspec.json.Decoder(list[str | None]).decode
_decode_figures = msgspec.json.Decoder(list[float]).decode  # numpy takes three times as long


class _Listed(FunctionElement[str]):
    """All values of a column as one JSON list."""

    type = Text()
    inherit_cache = True


@compiles(_Listed, "sqlite")
def _listed_sqlite(element: Any, compiler: Any, **options: Any) -> str:
    return f"json_group_array({compiler.process(element.clauses, **options)})"


@compiles(_Listed, "postgresql")
def _listed_postgres(element: Any, compiler: Any, **options: Any) -> str:
    return f"CAST(json_agg({compiler.process(element.clauses, **options)}) AS TEXT)"


def _listed(rows: Question) -> Question:
    """One row: a list for each column."""
    among = rows.subquery()
    return cast(Question, select(*(_Listed(column) for column in among.c)).select_from(among))


class _Statements(NamedTuple):
    """The statements for a fixed number of sessions after a number."""

    led_to: Question
    counted: Question
    spread: tuple[Question, ...]  # steps, links, facts, uses, crossings
    blast: tuple[Question, ...]  # the same with state, status and tool of each step
    oldest: tuple[Question, Question]  # the earliest steps, without these and with them


@cache
def _statements(size: int) -> _Statements:
    among = [bindparam(f"s{place}", type_=BigInteger) for place in range(size)]
    mine = and_(steps.c.tenant_id == TENANT, steps.c.seq >= LOW, steps.c.session_no.in_(among))
    made = and_(facts.c.tenant_id == TENANT, facts.c.session_no.in_(among), facts.c.fact_id >= FIRST)
    used = and_(uses.c.tenant_id == TENANT, uses.c.from_no.in_(among), uses.c.fact_id >= FIRST)
    out = and_(crossings.c.tenant_id == TENANT, crossings.c.from_no.in_(among), crossings.c.kind != "use")
    since = and_(links.c.tenant_id == TENANT, links.c.seq >= LOW, links.c.session_no.in_(among))

    plain = select(*(steps.c[name] for name in StepColumns.__slots__[:-3])).where(mine)
    whole = plain.add_columns(_code(steps.c.state, STATES, REFUSED), steps.c.status, steps.c.tool)
    kind = _code(links.c.kind, LINK_KINDS, DECLARED)
    linked = select(links.c.seq, links.c.parent_key, links.c.session_no, kind)
    known = select(facts.c.fact_id, facts.c.session_no).where(made)
    kind = _code(uses.c.kind, USE_KINDS, NEAR)
    taken = select(kind, *(uses.c[name] for name in UseColumns.__slots__[1:])).where(used)
    kind = _code(crossings.c.kind, LINK_KINDS, DECLARED)
    crossed = select(*(crossings.c[name] for name in CrossingColumns.__slots__[:-1]), kind).where(out)
    others = (
        _listed(linked.where(since).limit(2 * LIMIT)),
        _listed(known.limit(LIMIT)),
        _listed(taken.limit(LIMIT)),
        _listed(crossed.limit(LIMIT)),
    )
    return _Statements(
        _led_to(among),
        select(steps.c.session_no, func.count()).where(mine).group_by(steps.c.session_no),
        (_listed(plain.limit(LIMIT)), *others),
        (_listed(whole.limit(LIMIT)), *others),
        (
            _listed(plain.order_by(steps.c.seq).limit(LIMIT)),
            _listed(whole.order_by(steps.c.seq).limit(LIMIT)),
        ),
    )


def _code(column: Any, names: Sequence[str], unknown: int) -> Any:
    """The index of a value in a list."""
    known = [(column == name, literal(place)) for place, name in enumerate(names) if place != unknown]
    return case(*known, else_=literal(unknown)).label(column.name)


def _led_to(among: list[Any]) -> Question:
    on = and_(crossings.c.tenant_id == TENANT, or_(crossings.c.seq >= LOW, crossings.c.kind == "use"))
    onward = select(crossings.c.session_no.label("no"))
    found = onward.where(on, crossings.c.from_no.in_(among)).cte("found", recursive=True)
    found = found.union(onward.where(on, crossings.c.from_no == found.c.no))
    return select(found.c.no).limit(LIMIT)


def _values(tenant_id: str, sessions: Collection[int], after: int, limit: int) -> tuple[_Statements, Values]:
    """The statements and their parameters."""
    among = sorted(sessions)
    size = next(size for size in SIZES if size >= len(among))
    among += among[:1] * (size - len(among))
    values: Values = {f"s{place}": session_no for place, session_no in enumerate(among)}
    values |= {"tenant": tenant_id, "low": after, "first": after << PLACE_BITS, "most": limit + 1}
    return _statements(size), values


class SpreadQueries(Fetches):
    async def led_to(
        self, tenant_id: str, sessions: Collection[int], after: int, most: int
    ) -> dict[int, int]:
        statements, values = _values(tenant_id, sessions, after, most - 1)
        found = [row[0] for row in await self.fetch(tenant_id, statements.led_to, **values)]
        if not found:
            return {}
        statements, values = _values(tenant_id, found, after, MAX_IN_VALUES)
        counts = {row[0]: row[1] for row in await self.fetch(tenant_id, statements.counted, **values)}
        return {session_no: counts.get(session_no, 0) for session_no in found}

    async def spread(self, tenant_id: str, sessions: Collection[int], after: int, limit: int) -> Spread:
        return await self._sessions(tenant_id, sessions, after, limit, False)

    async def downstream(self, tenant_id: str, sessions: Collection[int], after: int, limit: int) -> Spread:
        return await self._sessions(tenant_id, sessions, after, limit, True)

    async def _sessions(
        self, tenant_id: str, sessions: Collection[int], after: int, limit: int, whole: bool
    ) -> Spread:
        statements, values = _values(tenant_id, sessions, after, limit)
        first, *more = await self.fetch_each(
            tenant_id, statements.blast if whole else statements.spread, **values
        )
        found = await asyncio.to_thread(_columns, StepColumns, first)
        if len(found) > limit:  # the oldest are kept, the requested step among them
            (first,) = await self.fetch_each(tenant_id, (statements.oldest[whole],), **values)
            found = await asyncio.to_thread(_columns, StepColumns, first)
        return await asyncio.to_thread(_spread, found, more, limit)


def _spread(found: StepColumns, more: list[list[Any]], limit: int) -> Spread:
    linked, known = _columns(LinkColumns, more[0]), _columns(FactColumns, more[1])
    taken, abroad = _columns(UseColumns, more[2]), _columns(CrossingColumns, more[3])
    cut = len(linked) > 2 * limit or max(map(len, (found, known, taken, abroad))) > limit
    found = _sorted(found).taken(slice(limit))
    # Read one after the other: a link of a step that came in between, or was left out, is dropped.
    last = int(found.seq[-1]) if len(found) else -1
    linked = _sorted(linked)
    linked = linked.taken(slice(int(np.searchsorted(linked.seq, last, "right"))))
    some = slice(limit)
    return Spread(found, linked, known.taken(some), taken.taken(some), abroad.taken(some), cut)


def _sorted(rows: S) -> S:
    """By number; rows of one session mostly are sorted already."""
    if (rows.seq[1:] >= rows.seq[:-1]).all():
        return rows
    return rows.taken(np.argsort(rows.seq, kind="stable"))


def _columns(kind: type[C], rows: list[Any]) -> C:
    """From the lists of one row; the last may not have been selected."""
    made: list[Any] = []
    for name, text in zip_longest(kind.__slots__, rows[0]):
        dtype = kind.types.get(name, np.int64)
        if text is None or text == "[]":  # not asked for, or nothing was found
            made.append(np.full(len(made[0]) if made else 0, None if dtype is object else 0, dtype))
        elif dtype is np.int64:
            made.append(np.fromstring(text[1:-1], dtype, sep=","))
        else:
            made.append(np.array((_decode_names if dtype is object else _decode_figures)(text), dtype))
    return kind(*made)

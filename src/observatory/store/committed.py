"""Reads the record in sequence order, events and messages in one query: the input of the folds.

A message is returned as it was archived; the end of a hold has its own sequence number, for which `ended`
reads the message again. So the folded data does not depend on when it is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Select,
    and_,
    case,
    func,
    literal_column,
    null,
    select,
)

from observatory.derived.ports import CommittedEvent
from observatory.pipeline.state import HOME_TENANT
from observatory.store import tables
from observatory.store.fetches import HIGH, LOW, TENANT, Fetches
from observatory.store.keys import SEQ_MASK
from observatory.store.lists import among_numbers, any_named
from observatory.store.shapes import TableShape

PAGE_BYTES = 4_000_000  # of content in a page, not counting its last message: bounds memory
MESSAGE, TRACE = CommittedEvent._fields.index("message_id"), -1  # positions in a row
NOWHERE = (0, None)

HEADS = (
    select(tables.tenants.c.tenant_id, tables.chain_heads.c.sequence_number)
    .join(tables.chain_heads, tables.chain_heads.c.tenant_id == tables.tenants.c.tenant_id)
    .where(tables.tenants.c.disabled_ns.is_(None))
)


def _place(which: ColumnElement[bool]) -> Select[Any]:
    c = tables.sessions.c
    return select(c.session_no, c.trace_id, c.session_id).where(c.tenant_id == TENANT, which)


PLACES = (
    _place(any_named(tables.sessions.c.session_no, "numbers")),
    _place(any_named(tables.sessions.c.trace_id, "traces")),
)


class CommittedReads(Fetches):
    """The `Commits` port over any store that can `fetch` rows."""

    _shape: TableShape
    dialect: str

    async def heads(self) -> dict[str, int]:
        # Read as the home tenant, to which the row policies show these two tables completely.
        return {row[0]: row[1] for row in await self.fetch(HOME_TENANT, HEADS)}

    async def committed(self, tenant_id: str, after: int, limit: int) -> list[CommittedEvent]:
        until = after + limit if limit < 2 else await self._fitting(tenant_id, after, limit)
        # Bounded on both sides: numbers have no gaps, and a limit alone would not stop the join.
        rows = await self.fetch(tenant_id, self._pages, tenant=tenant_id, low=after + 1, high=until)
        return await self._placed(tenant_id, rows)

    async def _placed(self, tenant_id: str, rows: Sequence[Any]) -> list[CommittedEvent]:
        """On PostgreSQL sessions are read separately: by number or, for the gateway's events, by trace.

        No join: the trace would have to be cast, row policies prevent an index for a cast, and until there
        are statistics every row is compared with every session of the tenant instead of looking one up.
        """
        if self.dialect == "sqlite":
            return [CommittedEvent(*row) for row in rows]
        asked: dict[str, Any] = {"numbers": list({row[1] for row in rows if row[1]})}
        asked["traces"] = list({row[TRACE] for row in rows if row[MESSAGE] is None})
        found: dict[int | str, Any] = {}
        for query in PLACES:
            for number, trace, name in await self.fetch(tenant_id, query, tenant=tenant_id, **asked):
                found[number] = found[trace] = (number, name)
        return [
            CommittedEvent(
                row[0], *found.get(row[TRACE] if row[MESSAGE] is None else row[1], NOWHERE), *row[3:-1]
            )
            for row in rows
        ]

    @cached_property
    def _pages(self) -> Select[Any]:
        query = self._numbers(TENANT, self._shape.messages.c.state, self._shape.payloads.c.raw)
        return query.where(*self._shape.between(TENANT, LOW, HIGH)).order_by(self._shape.order())

    @cached_property
    def _sizes(self) -> Select[Any]:
        shape, payloads = self._shape, self._shape.payloads
        size = func.coalesce(func.length(payloads.c.raw), literal_column("0"))
        source = shape.events.outerjoin(payloads, shape.same_row(payloads))
        query = select(shape.sequence(), size).select_from(source)
        return query.where(*shape.between(TENANT, LOW, HIGH)).order_by(shape.order())

    async def _fitting(self, tenant_id: str, after: int, limit: int) -> int:
        """The last number that fits into a page, by count or by size. Sizes are read without the content."""
        until, total = after, 0
        span: dict[str, Any] = {"low": after + 1, "high": after + limit}
        for number, length in await self.fetch(tenant_id, self._sizes, tenant=tenant_id, **span):
            until, total = number, total + length
            if total >= PAGE_BYTES:
                break
        return until

    async def ended(self, tenant_id: str, numbers: Sequence[int]) -> list[CommittedEvent]:
        shape, holds, rewrites = self._shape, tables.holds, tables.rewrites
        state = case(
            (holds.c.state == "released", "forwarded"), (holds.c.state == "held", "held"), else_="rejected"
        )
        shredded = shape.payloads.c.raw.is_(None)
        raw = case(
            (shredded, null()), (rewrites.c.raw.is_not(None), rewrites.c.raw), else_=shape.payloads.c.raw
        )
        mine = and_(holds.c.tenant_id == tenant_id, holds.c.sequence_number == shape.sequence())
        theirs = and_(rewrites.c.tenant_id == tenant_id, rewrites.c.sequence_number == holds.c.rewrite_seq)
        query = self._numbers(tenant_id, state, raw, (holds, mine, False), (rewrites, theirs, True))
        named = query.where(among_numbers(shape.events))
        rows = await self.fetch(tenant_id, named, tenant=tenant_id, numbers=list(numbers))
        return await self._placed(tenant_id, rows)

    def _numbers(
        self, tenant_id: Any, state: ColumnElement[Any], raw: ColumnElement[Any], *joins: Any
    ) -> Select[Any]:
        shape, messages, sessions = self._shape, self._shape.messages, tables.sessions
        source = shape.events.outerjoin(messages, shape.same_row(messages)).outerjoin(
            shape.payloads, shape.same_row(shape.payloads)
        )
        place: list[ColumnElement[Any]] = [func.coalesce(messages.c.session_no, literal_column("0")), null()]
        trace: list[ColumnElement[Any]] = []
        if self.dialect == "sqlite":
            number = shape.events.c.session_key.op("&")(SEQ_MASK)
            mine = and_(sessions.c.tenant_id == tenant_id, sessions.c.session_no == number)
            source = source.outerjoin(sessions, mine)
            place = [func.coalesce(sessions.c.session_no, literal_column("0")), sessions.c.session_id]
        else:
            trace = [shape.events.c.trace_id]
        for table, on, outer in joins:
            source = source.join(table, on, isouter=outer)
        return select(
            shape.sequence(),
            *place,
            shape.events.c.record,
            messages.c.message_id,
            messages.c.step_id,
            messages.c.message_type,
            state,
            messages.c.parents,
            messages.c.parent_inferred,
            messages.c.entropy,
            raw,
            *trace,
        ).select_from(source)

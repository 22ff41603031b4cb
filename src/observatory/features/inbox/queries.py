"""Reads of agents' inboxes: one set of queries for both databases, mixed into `Reads`.

A delivery is read with what never changes about it: its session, the span it continues (of the message it
carries, else of the event that caused it), its sender. Its content is the archived message's bytes, or the
bytes a person replaced them with; content that was shredded is absent, and a rewritten message never shows
the original. Content is read once for each message, however many agents it goes to.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import msgspec
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    FromClause,
    Select,
    and_,
    bindparam,
    func,
    literal_column,
    select,
    text,
)

from observatory.features.kill_switch.queries import spelt
from observatory.pipeline.ports import CommittedDelivery, InboxDelivery, KillSwitchCoverage, PendingFilter
from observatory.protocol.scopes import COLUMNS
from observatory.store import tables
from observatory.store.fetches import HIGH, LIMIT, LOW, TENANT, Fetches, portions
from observatory.store.keys import SEQ_MASK
from observatory.store.lists import among_numbers, any_named, any_of, tenant_base
from observatory.store.shapes import TableShape

# Spelled as in the partial index, so that the index is used.
PENDING: ColumnElement[bool] = literal_column("deliveries.state = 'pending'")
# Runs after every commit of a tenant with open channels, so it is plain SQL: composing it costs as much as
# running it. By the primary key alone: with the state named, the index of pending rows would be scanned.
ARRIVALS = text(
    "SELECT sequence_number, agent_no, kind, state, "
    "(SELECT access_version FROM chain_heads WHERE tenant_id = :tenant) FROM deliveries "
    "WHERE tenant_id = :tenant AND sequence_number >= :number "
    "AND (sequence_number > :number OR agent_no > :agent) ORDER BY sequence_number, agent_no LIMIT :most"
).bindparams(bindparam("number", type_=BigInteger), bindparam("agent", type_=BigInteger))
NAMED = 50  # numbers of one query
AGENT = bindparam("agent", type_=BigInteger)
LAST = (1 << 62) - 1
Key = tuple[int, int]


class _Event(msgspec.Struct):
    """The only member needed of the event that caused a delivery."""

    span_id: str


class InboxReads(Fetches):
    """The `Inbox` port over any store that can `fetch` rows."""

    _shape: TableShape

    async def arrivals(self, tenant_id: str, after: Key, limit: int) -> list[CommittedDelivery]:
        place = {"number": after[0], "agent": after[1], "most": limit}
        rows = await self.fetch(tenant_id, ARRIVALS, "", tenant=tenant_id, **place)
        return [CommittedDelivery(*row) for row in rows]

    async def pending(self, tenant_id: str, where: PendingFilter, limit: int) -> list[InboxDelivery]:
        query = self._waiting[where.kind is not None]
        values: dict[str, Any] = {"agent": where.agent_no, "low": where.after + 1, "most": limit}
        values["high"] = LAST if where.until is None else where.until
        if where.kind is not None:
            values["kind"] = where.kind
        rows = await self.fetch(tenant_id, query, tenant=tenant_id, **values)
        return await self._deliveries_of(tenant_id, rows, True)

    @cached_property
    def _waiting(self) -> list[Select[Any]]:
        """For one agent: of any kind, of one kind."""
        columns = tables.deliveries.c
        number = columns.sequence_number
        query = self._all_columns.where(columns.agent_no == AGENT, PENDING, number >= LOW, number <= HIGH)
        query = query.order_by(number).limit(LIMIT)
        return [query, query.where(columns.kind == bindparam("kind"))]

    async def deliveries(self, tenant_id: str, keys: Sequence[Key], content: bool) -> list[InboxDelivery]:
        wanted = set(keys)
        rows: list[Any] = []
        for numbers in portions(sorted({number for number, _ in wanted}), NAMED):
            # Numbers delivered to many agents are read whole and filtered here.
            agents = {agent_no for number, agent_no in wanted if number in set(numbers)}
            values: dict[str, Any] = {"numbers": numbers}
            if is_one := len(agents) == 1:
                values["agent"] = agents.pop()
            query = self._by_numbers[is_one]
            found = await self.fetch(tenant_id, query, tenant=tenant_id, **values)
            rows += [row for row in found if (row[0], row[1]) in wanted]
        rows.sort(key=lambda row: (row[0], row[1]))
        return await self._deliveries_of(tenant_id, rows, content)

    @cached_property
    def _by_numbers(self) -> list[Select[Any]]:
        """For any agents; for one agent."""
        columns = tables.deliveries.c
        query = self._all_columns.where(any_named(columns.sequence_number, "numbers"))
        return [query, query.where(columns.agent_no == AGENT)]

    async def paused_sessions(self, tenant_id: str, agent_no: int) -> list[str]:
        sessions = tables.sessions.c
        # SQLite prefers the primary key of a table without rowid and would read every member.
        lite = "key" in self._shape.events.c
        paused: Select[Any] = (
            select(literal_column("session_no"))
            .select_from(text("members INDEXED BY members_paused" if lite else "members"))
            .where(
                literal_column("tenant_id") == tenant_id,
                literal_column("agent_no") == agent_no,
                literal_column("paused_ns IS NOT NULL"),
            )
        )
        query = select(sessions.session_id).where(
            sessions.tenant_id == tenant_id, sessions.session_no.in_(paused)
        )
        return sorted(row[0] for row in await self.fetch(tenant_id, query))

    async def instructed(self, tenant_id: str, agent_no: int) -> int:
        columns = tables.deliveries.c
        query = select(columns.body).where(
            columns.tenant_id == tenant_id,
            columns.agent_no == agent_no,
            PENDING,
            columns.kind == "instruction",
        )
        bodies = [msgspec.json.decode(row[0]) for row in await self.fetch(tenant_id, query)]
        return max((int(body["version"]) for body in bodies), default=0)

    async def stops(self, tenant_id: str) -> KillSwitchCoverage:
        switches, agents = tables.kill_switches.c, tables.agents.c
        engaged = await self.fetch(
            tenant_id,
            select(switches.scope, switches.target).where(
                switches.tenant_id == tenant_id, switches.state == "engaged"
            ),
        )
        if any(row[0] == "global" for row in engaged):
            return KillSwitchCoverage(everyone=True)
        covered: set[int] = set()
        for scope, target in engaged:
            column = agents[COLUMNS[scope]]
            same = await spelt(self, tenant_id, column.key, target)
            query = select(agents.agent_no).where(agents.tenant_id == tenant_id, any_of(column, same))
            covered.update(row[0] for row in await self.fetch(tenant_id, query))
        return KillSwitchCoverage(agents=frozenset(covered))

    @cached_property
    def _all_columns(self) -> Select[Any]:
        """Everything but the content. The order of columns is that of `_deliveries_of`."""
        shape, deliveries = self._shape, tables.deliveries
        sessions, senders, holds = tables.sessions, tables.agents, tables.holds
        # A message's own event, also when it was released or rerouted; else the event of the command.
        cause = func.coalesce(deliveries.c.message_seq, deliveries.c.sequence_number)
        source = (
            deliveries.outerjoin(sessions, _same(deliveries.c, sessions.c, "session_no"))
            .outerjoin(
                senders,
                and_(
                    senders.c.tenant_id == deliveries.c.tenant_id,
                    senders.c.agent_no == deliveries.c.sender_no,
                ),
            )
            .outerjoin(
                holds,
                and_(
                    holds.c.tenant_id == deliveries.c.tenant_id,
                    holds.c.sequence_number == deliveries.c.message_seq,
                ),
            )
            .outerjoin(shape.events, numbered(shape.events, cause))
            .outerjoin(shape.messages, numbered(shape.messages, deliveries.c.message_seq))
        )
        return (
            select(
                deliveries.c.sequence_number,
                deliveries.c.agent_no,
                deliveries.c.kind,
                deliveries.c.created_ns,
                deliveries.c.given_ns,
                deliveries.c.session_no,
                deliveries.c.body,
                deliveries.c.message_seq,
                sessions.c.session_id,
                sessions.c.trace_id,
                senders.c.agent_id,
                senders.c.entity_id,
                shape.events.c.record,
                shape.messages.c.message_id,
                shape.messages.c.message_type,
                holds.c.rewrite_seq,
            )
            .select_from(source)
            .where(deliveries.c.tenant_id == TENANT)
        )

    async def _deliveries_of(self, tenant_id: str, rows: Sequence[Any], content: bool) -> list[InboxDelivery]:
        raws: dict[tuple[int, int | None], bytes | None] = {}
        if content:
            raws = await self._contents(tenant_id, {(row[7], row[15]) for row in rows if row[7] is not None})
        made = []
        for row in rows:
            in_session = row[5] != 0
            span = msgspec.json.decode(row[12], type=_Event).span_id if row[12] is not None else None
            made.append(
                InboxDelivery(
                    sequence_number=row[0],
                    agent_no=row[1],
                    kind=row[2],
                    created_ns=row[3],
                    given_ns=row[4],
                    session_no=row[5],
                    body=row[6],
                    session_id=row[8] if in_session else None,
                    trace_id=row[9] if in_session else None,
                    span_id=span if in_session else None,
                    sender_id=row[10],
                    sender_entity=row[11],
                    message_id=row[13],
                    message_type=row[14],
                    raw=raws.get((row[7], row[15])),
                )
            )
        return made

    async def _contents(
        self, tenant_id: str, wanted: Iterable[tuple[int, int | None]]
    ) -> dict[tuple[int, int | None], bytes | None]:
        """(message, rewrite in force) → the bytes to deliver."""
        names = list(wanted)
        rewrites = tables.rewrites
        archived = [number for number, rewrite in names if rewrite is None]
        found: dict[int, bytes | None] = {}
        for numbers in portions(archived, NAMED):
            rows = await self.fetch(tenant_id, self._raws, tenant=tenant_id, numbers=numbers)
            found |= {row[0]: None if row[1] is None else bytes(row[1]) for row in rows}
        rewritten: dict[int, bytes | None] = {}
        for numbers in portions([rewrite for _, rewrite in names if rewrite is not None], NAMED):
            query = select(rewrites.c.sequence_number, rewrites.c.raw).where(
                rewrites.c.tenant_id == tenant_id, any_of(rewrites.c.sequence_number, numbers)
            )
            rows = await self.fetch(tenant_id, query)
            rewritten |= {row[0]: None if row[1] is None else bytes(row[1]) for row in rows}
        return {
            (number, rewrite): found.get(number) if rewrite is None else rewritten.get(rewrite)
            for number, rewrite in names
        }

    @cached_property
    def _raws(self) -> Select[Any]:
        payloads = self._shape.payloads
        return select(number_column(payloads), payloads.c.raw).where(among_numbers(payloads))


def _same(left: Any, right: Any, column: str) -> ColumnElement[bool]:
    return and_(left.tenant_id == right.tenant_id, left[column] == right[column])


def numbered(table: FromClause, number: Any) -> ColumnElement[bool]:
    """The row of a big table with this number: by SQLite's packed key, or by the columns of the seed."""
    if "key" in table.c:
        return table.c.key == tenant_base().op("|")(number)
    return and_(table.c.tenant_id == TENANT, table.c.sequence_number == number)


def number_column(table: FromClause) -> ColumnElement[Any]:
    return table.c.key.op("&")(SEQ_MASK) if "key" in table.c else table.c.sequence_number


RECORD_QUERIES = (InboxReads,)

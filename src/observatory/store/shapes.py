"""The SQL of each database for the big tables: only what differs between them when reading.

SQLite finds rows by its packed key and narrow integer keys (ADR-024), PostgreSQL by the seed's columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from sqlalchemy import (
    CHAR,
    ColumnElement,
    FromClause,
    and_,
    case,
    cast,
    func,
    literal,
    literal_column,
    or_,
    select,
)

from observatory.protocol.clock import from_ns, to_ns
from observatory.store import tables
from observatory.store.keys import SEQ_MASK, entity_key
from observatory.store.lists import any_of

LAST_NS = to_ns("2261-12-31T23:59:59.999999999Z")
Where = list[ColumnElement[bool]]


class TableShape(Protocol):
    """SQL expressions of one database for the big tables."""

    events: FromClause
    messages: FromClause
    payloads: FromClause

    def sequence(self) -> ColumnElement[Any]: ...
    def order(self) -> ColumnElement[Any]: ...
    def same_row(self, table: FromClause) -> ColumnElement[bool]: ...
    def in_tenant(self, tenant_id: str, after: int | None, before: int | None) -> Where: ...
    def between(self, tenant_id: Any, low: Any, high: Any) -> Where: ...
    def of_trace(self, tenant_id: str, trace_id: str) -> ColumnElement[bool]: ...
    def of_session(self, tenant_id: str, session_no: int, trace_id: str) -> ColumnElement[bool]: ...
    def of_entity(self, tenant_id: str, entity_id: str) -> ColumnElement[bool]: ...
    def sent_by(self, tenant_id: str, entity_id: str) -> ColumnElement[bool]: ...
    def sent_by_any(self, tenant_id: str, entity_ids: Sequence[str]) -> ColumnElement[bool]: ...
    def in_time(self, tenant_id: str, since_ns: int | None, until_ns: int | None) -> Where: ...
    def severe(self, tenant_id: str, minimum: int) -> Where: ...


def edges(after: int | None, before: int | None) -> tuple[int, int]:
    """The first and the last number between two exclusive bounds."""
    return (after or 0) + 1, min(SEQ_MASK, (before or SEQ_MASK + 1) - 1)


def state_of(shape: TableShape) -> Any:
    """The state of a message: the archived row is final; a held message's later state is in its hold."""
    state = tables.holds.c.state
    return case(
        (state == "held", "held"),
        (state == "released", "forwarded"),
        (state.is_not(None), "rejected"),
        else_=shape.messages.c.state,
    )


class SqliteShape:
    events: FromClause = tables.audit_log
    messages: FromClause = tables.lite_messages
    payloads: FromClause = tables.lite_payloads

    def _number(self, tenant_id: Any) -> ColumnElement[Any]:
        heads = tables.chain_heads
        return select(heads.c.tenant_no).where(heads.c.tenant_id == tenant_id).scalar_subquery()

    def sequence(self) -> ColumnElement[Any]:
        return self.events.c.key.op("&")(SEQ_MASK)

    def order(self) -> ColumnElement[Any]:
        return self.events.c.key

    def same_row(self, table: FromClause) -> ColumnElement[bool]:
        return table.c.key == self.events.c.key

    def in_tenant(self, tenant_id: str, after: int | None, before: int | None) -> Where:
        return self.between(tenant_id, *edges(after, before))

    def between(self, tenant_id: Any, low: Any, high: Any) -> Where:
        base, key = self._number(tenant_id).op("<<")(40), self.events.c.key
        return [key >= base.op("|")(low), key <= base.op("|")(high)]

    def of_trace(self, tenant_id: str, trace_id: str) -> ColumnElement[bool]:
        sessions = tables.sessions
        keys = select(self._number(tenant_id).op("<<")(40).op("|")(sessions.c.session_no)).where(
            sessions.c.tenant_id == tenant_id, sessions.c.trace_id == trace_id
        )
        return self.events.c.session_key.in_(keys)

    def of_session(self, tenant_id: str, session_no: int, trace_id: str) -> ColumnElement[bool]:
        """By one key, so that the index returns them in order: several keys would need a sort, with
        payloads."""
        return self.events.c.session_key == self._number(tenant_id).op("<<")(40).op("|")(session_no)

    def of_entity(self, tenant_id: str, entity_id: str) -> ColumnElement[bool]:
        key = entity_key(tenant_id, entity_id)
        return or_(self.events.c.sender_key == key, self.events.c.recipient_key == key)

    def sent_by(self, tenant_id: str, entity_id: str) -> ColumnElement[bool]:
        return self.events.c.sender_key == entity_key(tenant_id, entity_id)

    def sent_by_any(self, tenant_id: str, entity_ids: Sequence[str]) -> ColumnElement[bool]:
        return any_of(self.events.c.sender_key, [entity_key(tenant_id, one) for one in entity_ids])

    def in_time(self, tenant_id: str, since_ns: int | None, until_ns: int | None) -> Where:
        where: Where = [self.events.c.tenant_no == self._number(tenant_id)]
        if since_ns is not None:
            where.append(self.events.c.ts_ns >= since_ns)
        if until_ns is not None:
            where.append(self.events.c.ts_ns < until_ns)
        return where

    def severe(self, tenant_id: str, minimum: int) -> Where:
        where: Where = [self.events.c.severity >= minimum]
        if minimum >= 17:  # written exactly as in the partial index, so that it is used
            where += [literal_column("severity >= 17"), self.events.c.tenant_no == self._number(tenant_id)]
        return where


class PostgresShape:
    """The seed's columns. The tenant is in every query, in addition to the policy that enforces it."""

    events: FromClause = tables.audit_events
    messages: FromClause = tables.pg_messages
    payloads: FromClause = tables.pg_payloads

    def sequence(self) -> ColumnElement[Any]:
        return self.events.c.sequence_number

    def order(self) -> ColumnElement[Any]:
        return self.events.c.sequence_number

    def same_row(self, table: FromClause) -> ColumnElement[bool]:
        mine = self.events.c
        return and_(table.c.tenant_id == mine.tenant_id, table.c.sequence_number == mine.sequence_number)

    def in_tenant(self, tenant_id: str, after: int | None, before: int | None) -> Where:
        where: Where = [self.events.c.tenant_id == tenant_id]
        if after is not None:
            where.append(self.events.c.sequence_number > after)
        if before is not None:
            where.append(self.events.c.sequence_number < before)
        return where

    def between(self, tenant_id: Any, low: Any, high: Any) -> Where:
        number = self.events.c.sequence_number
        return [self.events.c.tenant_id == tenant_id, number >= low, number <= high]

    def of_trace(self, tenant_id: str, trace_id: str) -> ColumnElement[bool]:
        # Compared as CHAR: with text the index on the CHAR(32) column would not be used.
        return self.events.c.trace_id == cast(trace_id, CHAR(32))

    def of_session(self, tenant_id: str, session_no: int, trace_id: str) -> ColumnElement[bool]:
        return and_(self.of_trace(tenant_id, trace_id), self.messages.c.session_no == session_no)

    def of_entity(self, tenant_id: str, entity_id: str) -> ColumnElement[bool]:
        received = self._named(self.events.c.recipient_key, "av.recipient.entity_id", tenant_id, entity_id)
        return or_(self.sent_by(tenant_id, entity_id), received)

    def sent_by(self, tenant_id: str, entity_id: str) -> ColumnElement[bool]:
        return self._named(self.events.c.sender_key, "av.sender.entity_id", tenant_id, entity_id)

    def sent_by_any(self, tenant_id: str, entity_ids: Sequence[str]) -> ColumnElement[bool]:
        """Two flat lists: thousands of separate conditions would exceed the database's nesting limit."""
        keys = [entity_key(tenant_id, one) for one in entity_ids]
        text = func.jsonb_extract_path_text(self.events.c.attributes, literal("av.sender.entity_id"))
        return and_(any_of(self.events.c.sender_key, keys), any_of(text, entity_ids))

    def _named(
        self, key: ColumnElement[Any], name: str, tenant_id: str, entity_id: str
    ) -> ColumnElement[bool]:
        """By the hashed key, then by the text: `@>` is not leakproof, so under a policy it cannot use its
        index."""
        text = self.events.c.attributes.op("@>", is_comparison=True)(func.jsonb_build_object(name, entity_id))
        return and_(key == entity_key(tenant_id, entity_id), text)

    def in_time(self, tenant_id: str, since_ns: int | None, until_ns: int | None) -> Where:
        """By the column, which is rounded to µs; rows at the boundary are compared by their exact text."""
        column = self.events.c.timestamp
        since_ns, until_ns = (None if ns is None else max(0, min(ns, LAST_NS)) for ns in (since_ns, until_ns))
        exact: ColumnElement[str] = literal_column(
            "(convert_from(record, 'UTF8')::jsonb ->> 'timestamp') COLLATE \"C\""
        )
        where: Where = []
        if since_ns is not None:
            low, high = _edges(since_ns)
            where += [column >= low, or_(column > high, exact >= from_ns(since_ns))]
        if until_ns is not None:
            low, high = _edges(until_ns)
            where += [column <= high, or_(column < low, exact < from_ns(until_ns))]
        return where

    def severe(self, tenant_id: str, minimum: int) -> Where:
        where: Where = [self.events.c.severity_number >= minimum]
        if minimum >= 17:  # written exactly as in the partial index, so that it is used
            where.append(literal_column("severity_number >= 17"))
        return where


def _edges(ns: int) -> tuple[datetime, datetime]:
    floor = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=ns // 1_000)
    return floor, floor + timedelta(microseconds=1 if ns % 1_000 else 0)

"""Queries that read a whole session at once, the same on both databases; mixed into `Reads`.

The gateway's time of a message is only in its audit record, so the database extracts it from there: a record
has no payload text and escapes every quote, so the key cannot occur twice. Step names are looked up by the
dedupe key and compared as text.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any

from sqlalchemy import (
    ColumnElement,
    FromClause,
    Select,
    Text,
    and_,
    case,
    cast,
    func,
    literal,
    literal_column,
    null,
    select,
)

from observatory.features.graph.types_session import SessionMessage
from observatory.protocol.steps import step_name
from observatory.store import tables
from observatory.store.fetches import TENANT, Fetches, portions
from observatory.store.keys import SEQ_BITS, SEQ_MASK, dedupe_key
from observatory.store.lists import any_named, any_of
from observatory.store.shapes import TableShape, state_of

OBSERVED = '"observed_timestamp":"'
TIME = 30  # characters of a timestamp in its canonical form


class SessionReads(Fetches):
    """The `Playback` port over any store that can `fetch` rows."""

    _shape: TableShape
    dialect: str

    async def play(
        self, tenant_id: str, session: Mapping[str, Any], limit: int, before: int | None = None
    ) -> list[SessionMessage]:
        shape = self._shape
        query = (
            self._played(tenant_id)
            .where(shape.of_session(tenant_id, session["session_no"], session["trace_id"]))
            .where(*shape.in_tenant(tenant_id, session["first_seq"] - 1, before))
            .order_by(shape.order().desc())
            .limit(limit)
        )
        rows = await self.fetch_plain(tenant_id, query)
        return [SessionMessage._make(row) for row in reversed(rows)]

    async def cut(
        self,
        tenant_id: str,
        session: Mapping[str, Any],
        limit: int,
        most_bytes: int,
        before: int | None = None,
    ) -> int | None:
        """The databases compute lengths without reading the values."""
        shape = self._shape
        own, put = func.length(shape.payloads.c.raw), func.length(tables.rewrites.c.raw)
        query = (
            select(shape.sequence().label("number"), case((put > own, put), else_=own).label("size"))
            .select_from(self._with_holds(tenant_id, self._sized))
            .where(shape.of_session(tenant_id, session["session_no"], session["trace_id"]))
            .where(*shape.in_tenant(tenant_id, session["first_seq"] - 1, before))
            .order_by(shape.order().desc())
            .limit(limit + 1)
        )
        each = query.subquery()  # most sessions are small: one row decides
        ((count, total),) = await self.fetch(tenant_id, select(func.count(), func.sum(each.c.size)))
        if count <= limit and int(total or 0) <= most_bytes:
            return None
        oldest, total = None, 0
        for index, (number, size) in enumerate(await self.fetch_plain(tenant_id, query)):
            total += size or 0
            if index == limit or (index and total > most_bytes):
                return oldest
            oldest = number
        return None

    async def lengths(self, tenant_id: str, numbers: Collection[int]) -> dict[int, int]:
        shape = self._shape
        joined = shape.events.join(shape.payloads, shape.same_row(shape.payloads))
        columns = select(shape.sequence(), func.length(shape.payloads.c.raw)).select_from(joined)
        rows = await self._numbered(tenant_id, columns, numbers)
        return {number: size or 0 for number, size in rows}

    async def records(self, tenant_id: str, numbers: Collection[int]) -> dict[int, bytes]:
        shape = self._shape
        columns = select(shape.sequence(), shape.events.c.record)
        return {row[0]: bytes(row[1]) for row in await self._numbered(tenant_id, columns, numbers)}

    async def played(self, tenant_id: str, numbers: Collection[int]) -> dict[int, tuple[int, SessionMessage]]:
        query = self._played(tenant_id).add_columns(self._shape.messages.c.session_no)
        found = await self._numbered(tenant_id, query, numbers)
        return {row[0]: (session_no, SessionMessage(*row)) for *row, session_no in found}

    async def _numbered(self, tenant_id: str, columns: Select[Any], numbers: Collection[int]) -> list[Any]:
        shape, base = self._shape, 0
        keys: Any = shape.order()
        found: list[Any] = []
        if self.dialect == "sqlite":
            heads = tables.chain_heads.c
            rows = await self.fetch(tenant_id, select(heads.tenant_no).where(heads.tenant_id == tenant_id))
            base = rows[0][0] << SEQ_BITS if rows else 0
        for portion in portions(numbers):
            query = columns.where(any_of(keys, [base | number for number in portion]))
            found += await self.fetch(tenant_id, query.where(*shape.in_tenant(tenant_id, None, None)))
        return found

    @property
    def _whole(self) -> FromClause:
        shape, messages = self._shape, self._shape.messages
        joined = shape.events.join(messages, shape.same_row(messages))
        return joined.join(shape.payloads, shape.same_row(shape.payloads))

    @property
    def _sized(self) -> FromClause:
        """The source for lengths. SQLite finds a session's rows without `messages`: a third faster."""
        if self.dialect != "sqlite":
            return self._whole
        return self._shape.events.join(self._shape.payloads, self._shape.same_row(self._shape.payloads))

    def _with_holds(self, tenant_id: str, source: FromClause) -> FromClause:
        shape = self._shape
        holds, rewrites = tables.holds, tables.rewrites
        held = and_(holds.c.tenant_id == tenant_id, holds.c.sequence_number == shape.sequence())
        put = and_(rewrites.c.tenant_id == tenant_id, rewrites.c.sequence_number == holds.c.rewrite_seq)
        return source.outerjoin(holds, held).outerjoin(rewrites, put)

    def _played(self, tenant_id: str) -> Select[Any]:
        shape, messages = self._shape, self._shape.messages
        holds, rewrites = tables.holds, tables.rewrites
        own = shape.payloads.c.raw
        return select(
            shape.sequence(),
            messages.c.message_id,
            messages.c.step_id,
            messages.c.message_type,
            state_of(shape),
            messages.c.parents,
            messages.c.parent_inferred,
            messages.c.entropy,
            self._observed(),
            # A shredded message has no content, even if it was rewritten.
            case((own.is_(None), null()), (rewrites.c.raw.is_not(None), rewrites.c.raw), else_=own),
            rewrites.c.sequence_number,
            holds.c.gate,
            holds.c.reason,
            holds.c.released_seq,
        ).select_from(self._with_holds(tenant_id, self._whole))

    def _observed(self) -> ColumnElement[str]:
        record: ColumnElement[Any] = self._shape.events.c.record
        if self.dialect == "sqlite":
            start = func.instr(record, literal(OBSERVED.encode())) + len(OBSERVED)
            return cast(func.substr(record, start, TIME), Text)
        start_sql = f"position(convert_to('{OBSERVED}', 'UTF8') in audit_events.record) + {len(OBSERVED)}"
        return literal_column(
            f"convert_from(substring(audit_events.record from {start_sql} for {TIME}), 'UTF8')"
        )

    async def steps_named(self, tenant_id: str, names: Collection[str]) -> dict[str, str]:
        shape, messages, sessions = self._shape, self._shape.messages, tables.sessions
        joined_session = and_(
            sessions.c.tenant_id == tenant_id, sessions.c.session_no == messages.c.session_no
        )
        source = shape.events.join(messages, shape.same_row(messages)).join(sessions, joined_session)
        columns = select(sessions.c.session_id, messages.c.step_id, messages.c.message_id)
        found: dict[str, str] = {}
        for portion in portions(names):
            keys = [dedupe_key(tenant_id, name) for name in portion]
            query = columns.select_from(source).where(
                any_of(messages.c.dedupe, keys), *shape.in_tenant(tenant_id, None, None)
            )
            for session_id, step_id, message_id in await self.fetch(tenant_id, query):
                found[step_name(session_id, step_id, message_id)] = session_id
        return {name: found[name] for name in names if name in found}

    async def steps_recorded(
        self, tenant_id: str, names: Collection[str]
    ) -> dict[str, tuple[str, bytes | None]]:
        """Runs with every request of spans, so the query is composed once, with the keys as a parameter."""
        found: dict[str, tuple[str, bytes | None]] = {}
        for portion in portions(names):
            keys = [dedupe_key(tenant_id, name) for name in portion]
            rows = await self.fetch(tenant_id, self._recorded, tenant=tenant_id, keys=keys)
            for session_id, step_id, message_id, raw in rows:
                name = step_name(session_id, step_id, message_id)
                found[name] = session_id, None if raw is None else bytes(raw)
        return {name: found[name] for name in names if name in found} if found else {}

    @cached_property
    def _recorded(self) -> Select[Any]:
        shape, messages, sessions = self._shape, self._shape.messages, tables.sessions
        joined_session = and_(sessions.c.tenant_id == TENANT, sessions.c.session_no == messages.c.session_no)
        source = self._whole.join(sessions, joined_session)
        columns = select(
            sessions.c.session_id, messages.c.step_id, messages.c.message_id, shape.payloads.c.raw
        )
        named = any_named(messages.c.dedupe, "keys")
        return columns.select_from(source).where(named, *shape.between(TENANT, 1, SEQ_MASK))

    async def annotations_page(
        self, tenant_id: str, where: Mapping[str, Any], before: str | None, limit: int
    ) -> list[dict[str, Any]]:
        annotations = tables.SMALL["annotations"]
        query = select(annotations).where(
            annotations.c.tenant_id == tenant_id, annotations.c.removed_ns.is_(None)
        )
        for column, value in where.items():
            query = query.where(annotations.c[column] == value)
        if before is not None:
            query = query.where(annotations.c.annotation_id < before)
        # Ids are UUIDv7: they sort by creation time.
        rows = await self.fetch(tenant_id, query.order_by(annotations.c.annotation_id.desc()).limit(limit))
        return [dict(row._mapping) for row in rows]

    async def low_confidence(
        self, tenant_id: str, below: float, after: int, before: int | None, limit: int
    ) -> list[int]:
        """Read from the archive itself, newest first: it stops as soon as the page is full."""
        shape, messages = self._shape, self._shape.messages
        holds, reviews = tables.holds, tables.reviews
        number = shape.sequence()
        joined = self._whole.outerjoin(
            holds, and_(holds.c.tenant_id == tenant_id, holds.c.sequence_number == number)
        ).outerjoin(reviews, and_(reviews.c.tenant_id == tenant_id, reviews.c.sequence_number == number))
        query: Select[Any] = (
            select(number)
            .select_from(joined)
            .where(*shape.in_tenant(tenant_id, after, before))
            .where(messages.c.message_type == "decision_log", reviews.c.sequence_number.is_(None))
            .where(state_of(shape) == "forwarded", self._confidence() < below)
            .order_by(shape.order().desc())
            .limit(limit)
        )
        return [row[0] for row in await self.fetch(tenant_id, query)]

    def _confidence(self) -> ColumnElement[Any]:
        if self.dialect == "sqlite":
            return literal_column("json_extract(CAST(payloads.raw AS TEXT), '$.cognition.confidence_score')")
        return literal_column(
            "((convert_from(payloads.raw, 'UTF8')::json #>> '{cognition,confidence_score}')::float8)"
        )

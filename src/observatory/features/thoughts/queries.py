"""Queries of the decision trail: one set for both databases, mixed into `Reads`."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import (
    ColumnElement,
    LargeBinary,
    Table,
    Text,
    and_,
    cast,
    func,
    literal_column,
    not_,
    or_,
    select,
)

from observatory.features.thoughts.types_rows import Row, StoredThought, ThoughtEvents, UnshreddedThought
from observatory.ledger.thoughts import Thought, ThoughtHashes
from observatory.protocol.thoughts import address_of
from observatory.store import tables
from observatory.store.fetches import Fetches, portions
from observatory.store.keys import entity_key
from observatory.store.lists import any_of
from observatory.store.shapes import TableShape

FEW = 10
MAX_SEALED = 1_000


class ThoughtReads(Fetches):
    """The `Thoughts` protocol over any store that can `fetch` rows."""

    _shape: TableShape
    dialect: str

    async def thoughts(self, tenant_id: str, session_id: str, start: int, limit: int) -> list[StoredThought]:
        records, events = tables.thought_records, self._shape.events
        query = (
            select(*self._as_stored(records), events.c.record)
            .select_from(records.outerjoin(events, self._announced_by(tenant_id)))
            .where(records.c.tenant_id == tenant_id, records.c.session_id == session_id)
            .where(records.c.record_index >= start)
            .order_by(records.c.record_index)
            .limit(limit)
        )
        return [_stored(row._mapping, row[-1]) for row in await self.fetch(tenant_id, query)]

    async def thoughts_left(
        self, tenant_id: str, after: int, limit: int, session_id: str | None = None
    ) -> list[UnshreddedThought]:
        records = tables.thought_records.c
        query = select(records.sequence_number, records.session_id, records.record_id, records.created_at)
        query = query.where(
            records.tenant_id == tenant_id,
            records.sequence_number > after,
            literal_column("shredded_by IS NULL"),  # spelled as in the partial index, so that it is used
        )
        if session_id is not None:
            query = query.where(records.session_id == session_id)
        rows = await self.fetch(tenant_id, query.order_by(records.sequence_number).limit(limit))
        return [UnshreddedThought(*row) for row in rows]

    async def thought_session(self, tenant_id: str, session_id: str) -> Row | None:
        sessions = tables.thought_sessions
        query = select(*self._as_stored(sessions)).where(
            sessions.c.tenant_id == tenant_id, sessions.c.session_id == session_id
        )
        rows = await self.fetch(tenant_id, query)
        return {name: _as_text(value) for name, value in rows[0]._mapping.items()} if rows else None

    def _as_stored(self, table: Table) -> list[ColumnElement[Any]]:
        """On SQLite text is read as bytes: invalid UTF-8 is then a broken record, not a failed read."""
        columns = list[ColumnElement[Any]](table.c)
        if self.dialect != "sqlite":
            return columns
        return [
            cast(column, LargeBinary).label(column.key) if isinstance(column.type, Text) else column
            for column in columns
        ]

    async def events_of_session(self, tenant_id: str, session_id: str) -> ThoughtEvents:
        events, address = self._shape.events, address_of(session_id)
        conditions: list[ColumnElement[bool]] = [events.c.recipient_key == entity_key(tenant_id, address)]
        if self.dialect != "sqlite":
            conditions.append(events.c.tenant_id == tenant_id)
        ((count,),) = await self.fetch(tenant_id, select(func.count()).select_from(events).where(*conditions))
        newest = select(events.c.record).where(*conditions).order_by(self._shape.order().desc()).limit(2)
        return ThoughtEvents(count, [bytes(row[0]) for row in await self.fetch(tenant_id, newest)])

    async def sealed_before(self, tenant_id: str, session_id: str) -> int | None:
        sessions, records = tables.thought_sessions.c, tables.thought_records.c
        query = select(records.sequence_number).where(
            sessions.tenant_id == tenant_id,
            sessions.session_id == session_id,
            sessions.sealed_ns.is_not(None),
            or_(sessions.session_no != 0, not_(sessions.caller.startswith("agt_")), _speaks_there()),
            records.tenant_id == tenant_id,
            records.session_id == session_id,
            records.record_index == sessions.records - 1,
        )
        rows = await self.fetch(tenant_id, query)
        return rows[0][0] if rows else None

    def _announced_by(self, tenant_id: str) -> ColumnElement[bool]:
        """A record's own event: by the packed key on SQLite (ADR-024), by its number on PostgreSQL."""
        number, events = tables.thought_records.c.sequence_number, self._shape.events
        if self.dialect == "sqlite":
            heads = tables.chain_heads
            tenant_no = select(heads.c.tenant_no).where(heads.c.tenant_id == tenant_id).scalar_subquery()
            return events.c.key == tenant_no.op("<<")(40).op("|")(number)
        return and_(events.c.tenant_id == tenant_id, events.c.sequence_number == number)

    async def thought_sessions_page(self, tenant_id: str, before: int | None, limit: int) -> list[Row]:
        sessions = tables.thought_sessions
        query = select(sessions).where(sessions.c.tenant_id == tenant_id)
        if before is not None:
            query = query.where(sessions.c.sequence_number < before)
        rows = await self.fetch(tenant_id, query.order_by(sessions.c.sequence_number.desc()).limit(limit))
        return [dict(row._mapping) for row in rows]

    async def sealed_among(self, tenant_id: str, session_ids: Collection[str]) -> set[str]:
        sessions = tables.thought_sessions.c
        # Spelled as in the partial index, so that it is used.
        sealed: ColumnElement[bool] = literal_column("sealed_ns IS NOT NULL")
        query = select(sessions.session_id).where(sessions.tenant_id == tenant_id, sealed)
        ids = set(session_ids)
        if len(ids) > FEW:  # read every second: one short query instead of a long one
            rows = await self.fetch(tenant_id, query.limit(MAX_SEALED))
            if len(rows) < MAX_SEALED:
                return ids & {row[0] for row in rows}
        found: set[str] = set()
        for portion in portions(ids):
            rows = await self.fetch(tenant_id, query.where(any_of(sessions.session_id, portion)))
            found |= {row[0] for row in rows}
        return found

    async def records_known(self, tenant_id: str, record_ids: Collection[str]) -> set[str]:
        records, found = tables.thought_records.c, set[str]()
        for portion in portions(set(record_ids)):
            query = select(records.record_id).where(
                records.tenant_id == tenant_id, any_of(records.record_id, portion)
            )
            found |= {row[0] for row in await self.fetch(tenant_id, query)}
        return found

    async def task_home(self, tenant_id: str, task_id: str, opened_by: str) -> str | None:
        tasks = tables.thought_tasks.c
        query = (
            select(tasks.session_id)
            .where(tasks.tenant_id == tenant_id, tasks.task_id == task_id, tasks.opened_by == opened_by)
            .order_by(tasks.opened_ns.desc())
            .limit(1)
        )
        rows = await self.fetch(tenant_id, query)
        return rows[0][0] if rows else None

    async def merkle_nodes(
        self, tenant_id: str, session_id: str, places: Collection[tuple[int, int]]
    ) -> dict[tuple[int, int], bytes]:
        nodes, found = tables.merkle_nodes.c, {}
        for portion in portions(places, 100):
            query = select(nodes.level, nodes.node_index, nodes.hash).where(
                nodes.tenant_id == tenant_id,
                nodes.session_id == session_id,
                any_of(nodes.level, sorted({level for level, _ in portion})),
                any_of(nodes.node_index, sorted({position for _, position in portion})),
            )
            for level, position, node in await self.fetch(tenant_id, query):
                if (level, position) in places:
                    found[level, position] = bytes(node)
        return found


def _speaks_there() -> ColumnElement[bool]:
    """The starting agent is a member of the mesh session of that name: it may have been first there."""
    thought, mesh, agents, members = (
        table.c for table in (tables.thought_sessions, tables.sessions, tables.agents, tables.members)
    )
    return (
        select(members.agent_no)
        .where(mesh.tenant_id == thought.tenant_id, mesh.session_id == thought.session_id)
        .where(agents.tenant_id == thought.tenant_id, agents.entity_id == thought.caller)
        .where(members.tenant_id == thought.tenant_id, members.session_no == mesh.session_no)
        .where(members.agent_no == agents.agent_no)
        .correlate(tables.thought_sessions)
        .exists()
    )


def _stored(cells: Any, event: bytes | None) -> StoredThought:
    """Values written by others than the gateway may have any type: verification reports them as broken."""
    row = {name: _as_text(value) if name != "content" else value for name, value in cells.items()}
    return StoredThought(
        Thought(
            record_id=row["record_id"],
            session_id=row["session_id"],
            task_id=row["task_id"],
            index=row["record_index"],
            type=row["type"],
            content=_as_bytes(row["content"]),
            author=row["author"],
            created_at=row["created_at"],
            references=_as_bytes(row["refs"]),
            audit_event_ids=_as_bytes(row["event_ids"]),
            predecessor_chain_hash=row["predecessor_chain_hash"],
        ),
        ThoughtHashes(row["content_hash"], row["chain_hash"], row["parent_chain_hash"]),
        row["sequence_number"],
        row["audit_event_id"],
        None if event is None else bytes(event),
        row["shredded_by"],
    )


def _as_text(value: Any) -> Any:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


def _as_bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogateescape")


RECORD_QUERIES = (ThoughtReads,)

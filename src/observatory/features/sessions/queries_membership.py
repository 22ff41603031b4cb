"""Reads of the record for session lists and agent pages; one set of queries for both databases.

Nothing here has an index of its own: queries that match few rows use the partial indexes of control, the
others walk a tenant's sessions, which are few compared with its messages.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Select,
    Text,
    and_,
    cast,
    func,
    literal,
    literal_column,
    or_,
    select,
    text,
)

from observatory.features.graph.queries_sessions import SessionReads
from observatory.features.sessions.queries_alarms import SEVERE
from observatory.features.sessions.types_membership import AgentInSession, Rows, SessionSearch
from observatory.store import tables
from observatory.store.fetches import TENANT
from observatory.store.lists import any_of

VIOLATION = '"event_type":"schema_violation"'
SECOND = 19  # characters of a time up to its second
# SQLite prefers the primary key of a table without rowid and would read every member.
_NUMBER: ColumnElement[Any] = literal_column("session_no")
_PAUSED_IN = {
    dialect: select(_NUMBER, func.count())
    .select_from(text(source))
    .where(literal_column("tenant_id") == TENANT, literal_column("paused_ns IS NOT NULL"))
    .group_by(_NUMBER)
    for dialect, source in (("sqlite", "members INDEXED BY members_paused"), ("postgresql", "members"))
}
_DECIDING_IN = select(tables.decisions.c.session_no).where(
    tables.decisions.c.tenant_id == TENANT,
    literal_column("state = 'pending'"),  # as the partial index spells it
)


class MembershipQueries(SessionReads):
    """The `Rooms` protocol over any store that can `fetch` rows."""

    async def paused_in(self, tenant_id: str) -> dict[int, int]:
        found = await self.fetch(tenant_id, _PAUSED_IN[self.dialect], tenant=tenant_id)
        return {row[0]: row[1] for row in found}

    async def deciding_in(self, tenant_id: str) -> set[int]:
        return {row[0] for row in await self.fetch(tenant_id, _DECIDING_IN, tenant=tenant_id)}

    async def sessions_found(
        self, tenant_id: str, sought: SessionSearch, before: int | None, limit: int, severity: str | None
    ) -> Rows:
        sessions, members = tables.sessions, tables.members.c
        tests = [func.lower(sessions.c.session_id).startswith(sought.begins.lower(), autoescape=True)]
        if sought.agents:
            there = select(members.session_no).where(
                members.tenant_id == tenant_id, any_of(members.agent_no, sorted(sought.agents))
            )
            tests.append(sessions.c.session_no.in_(there))
        if sought.numbers:
            tests.append(any_of(sessions.c.session_no, sorted(sought.numbers)))
        return await self.newest_sessions(tenant_id, before, limit, severity, or_(*tests))

    async def sessions_page(
        self, tenant_id: str, before: int | None, limit: int, severity: str | None = None
    ) -> list[dict[str, Any]]:
        """Sessions by last activity, newest first; `before` is the `last_seq` of the page before."""
        return await self.newest_sessions(tenant_id, before, limit, severity)

    async def newest_sessions(
        self,
        tenant_id: str,
        before: int | None,
        limit: int,
        severity: str | None,
        *tests: ColumnElement[bool],
    ) -> Rows:
        """By last activity, newest first; `before` is the `last_seq` of the page before."""
        sessions = tables.sessions
        query = select(sessions).where(sessions.c.tenant_id == tenant_id, sessions.c.messages > 0, *tests)
        if severity is not None:
            query = query.where(SEVERE, sessions.c.severity == severity)
        if before is not None:
            query = query.where(sessions.c.last_seq < before)
        found = await self.fetch(tenant_id, query.order_by(sessions.c.last_seq.desc()).limit(limit))
        return [dict(row._mapping) for row in found]

    async def memberships_of(
        self, tenant_id: str, agent_no: int, since_ns: int, before: int | None, limit: int
    ) -> list[AgentInSession]:
        sessions, members, holds = tables.sessions, tables.members, tables.holds
        here = and_(
            members.c.tenant_id == sessions.c.tenant_id,
            members.c.session_no == sessions.c.session_no,
            members.c.agent_no == agent_no,
        )
        waiting = (
            select(func.count())
            .where(holds.c.tenant_id == tenant_id, holds.c.session_no == sessions.c.session_no)
            .where(holds.c.agent_no == agent_no, literal_column("holds.state = 'held'"))
            .scalar_subquery()
        )
        named = [column.label(f"session_{column.name}") for column in sessions.c]
        query = (
            select(*named, *(column.label(f"member_{column.name}") for column in members.c), waiting)
            .select_from(sessions.join(members, here))
            .where(sessions.c.tenant_id == tenant_id)
            .where(or_(members.c.messages > 0, members.c.paused_ns.is_not(None)))
        )
        if since_ns:
            query = query.where(sessions.c.last_ns >= since_ns)
        if before is not None:
            query = query.where(members.c.last_seq < before)
        query = query.order_by(members.c.last_seq.desc()).limit(limit)
        return [_room(row) for row in await self.fetch(tenant_id, query)]

    async def spoken_in(
        self, tenant_id: str, agents: Collection[int], after: int
    ) -> list[tuple[int, int, bool, bool]]:
        members = tables.members.c
        spoke, paused = members.last_seq >= after, members.paused_ns.is_not(None)
        query = select(members.agent_no, members.session_no, spoke, paused).where(
            members.tenant_id == tenant_id, any_of(members.agent_no, sorted(agents)), or_(spoke, paused)
        )
        found = await self.fetch(tenant_id, query)
        return [(row[0], row[1], bool(row[2]), bool(row[3])) for row in found]

    async def counts_after(self, tenant_id: str, after: int, limit: int) -> dict[int, tuple[int, int]]:
        shape, messages = self._shape, self._shape.messages
        second = func.substr(cast(self._observed(), Text), 1, SECOND).label("second")
        some: Select[Any] = (
            select(
                second,
                messages.c.message_id.is_not(None).label("is_message"),
                (self._place_of(VIOLATION) > 0).label("is_violation"),
            )
            .select_from(shape.events.outerjoin(messages, shape.same_row(messages)))
            .where(*shape.in_tenant(tenant_id, after, None))
            .order_by(shape.order().desc())
            .limit(limit)
        )
        rows = some.subquery()
        counted = [
            func.sum(func.coalesce(cast(rows.c[name], BigInteger), 0))
            if self.dialect == "sqlite"
            else func.count().filter(rows.c[name])
            for name in ("is_message", "is_violation")
        ]
        found = await self.fetch(tenant_id, select(rows.c.second, *counted).group_by(rows.c.second))
        return {_second(row[0]): (int(row[1]), int(row[2])) for row in found}

    def _place_of(self, word: str) -> ColumnElement[int]:
        record: ColumnElement[Any] = self._shape.events.c.record
        if self.dialect == "sqlite":
            return func.instr(record, literal(word.encode()))
        return literal_column(f"position(convert_to('{word}', 'UTF8') in audit_events.record)")

    async def size_bytes(self) -> int | None:
        if self.dialect == "sqlite":
            pages = text("SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()")
            return int((await self.fetch("", pages))[0][0])
        return int((await self.fetch("", text("SELECT pg_database_size(current_database())")))[0][0])


def _room(row: Any) -> AgentInSession:
    *columns, held = row
    found: dict[str, Any] = dict(zip(row._mapping.keys(), columns, strict=False))
    return AgentInSession(
        {name.removeprefix("session_"): value for name, value in found.items() if name in _SESSION},
        {name.removeprefix("member_"): value for name, value in found.items() if name in _MEMBER},
        held,
    )


_SESSION = {f"session_{column.name}" for column in tables.sessions.c}
_MEMBER = {f"member_{column.name}" for column in tables.members.c}


def _second(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())

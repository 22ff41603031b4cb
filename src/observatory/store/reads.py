"""Reading the record: one set of queries for both databases.

What differs between them is a `Shape` (shapes.py); everything else is composed here. Every query
names its tenant; there is no way to ask without one. Rows are committed rows, in sequence order.
"""

from __future__ import annotations

import time
from typing import Any

import msgspec
from sqlalchemy import Select, and_, select

from observatory.ledger.chain import GENESIS_HASH
from observatory.ports import EventFilter, MessageFilter, StoredEvent, StoredMessage
from observatory.protocol.identity import agent_entity_id, canonical_uuid, counter_of
from observatory.protocol.otel import trace_id_of_session
from observatory.protocol.steps import step_name
from observatory.state import Principal
from observatory.store import tables
from observatory.store.alarms import AlarmReads
from observatory.store.committed import CommittedReads
from observatory.store.federation import FederationReads
from observatory.store.fleet import FleetReads
from observatory.store.holds import HoldReads
from observatory.store.inbox import InboxReads, any_of
from observatory.store.insight_live import LiveReads
from observatory.store.insight_rooms import RoomReads
from observatory.store.keys import dedupe_key
from observatory.store.log import LogReads
from observatory.store.payloads import PayloadReads
from observatory.store.shapes import Shape, Where, state_of
from observatory.store.standstill import Standstill
from observatory.store.thoughts import ThoughtReads
from observatory.store.traffic import TrafficReads


class Reads(
    HoldReads,
    Standstill,
    TrafficReads,
    InboxReads,
    RoomReads,
    CommittedReads,
    AlarmReads,
    FleetReads,
    LiveReads,
    FederationReads,
    LogReads,
    ThoughtReads,
    PayloadReads,
):
    """Archive and Directory over any store that can `fetch` rows."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape

    async def head(self, tenant_id: str) -> tuple[int, str]:
        heads = tables.chain_heads
        query = select(heads.c.sequence_number, heads.c.event_hash).where(heads.c.tenant_id == tenant_id)
        rows = await self.fetch(tenant_id, query)
        return (rows[0][0], rows[0][1]) if rows else (0, GENESIS_HASH)

    async def events(
        self, tenant_id: str, where: EventFilter, limit: int, newest_first: bool
    ) -> list[StoredEvent]:
        shape = self._shape
        query = select(shape.sequence(), shape.events.c.record, shape.events.c.leaf_hash)
        query = self._ordered(query, self._event_tests(tenant_id, where), limit, newest_first)
        return [
            StoredEvent(seq, bytes(record), bytes(leaf))
            for seq, record, leaf in await self.fetch(tenant_id, query)
        ]

    async def messages(
        self, tenant_id: str, where: MessageFilter, limit: int, newest_first: bool
    ) -> list[StoredMessage]:
        shape = self._shape
        tests = shape.in_tenant(tenant_id, where.after, where.before)
        if where.session_id is not None:
            tests.append(shape.of_trace(tenant_id, trace_id_of_session(where.session_id)))
        if where.agent is not None:
            tests.append(shape.sent_by(tenant_id, agent_entity_id(tenant_id, where.agent)))
        if where.message_type is not None:
            tests.append(shape.messages.c.message_type == where.message_type)
        if where.state is not None:
            tests.append(state_of(shape) == where.state)
        query = self._ordered(self._message_query(tenant_id), tests, limit, newest_first)
        return [_message(row) for row in await self.fetch(tenant_id, query)]

    async def message(self, tenant_id: str, id_text: str) -> StoredMessage | None:
        """Ids we minted carry their sequence number; all other names go through the dedupe key."""
        shape = self._shape
        name = canonical_uuid(id_text) or id_text
        query = self._message_query(tenant_id).where(
            shape.messages.c.dedupe == dedupe_key(tenant_id, name), *shape.in_tenant(tenant_id, None, None)
        )
        for found in map(_message, await self.fetch(tenant_id, query)):
            if name in (found.message_id, step_name(found.session_id, found.step_id, found.message_id)):
                return found
        number = counter_of(id_text)
        if number is None:
            return None
        tests = shape.in_tenant(tenant_id, number - 1, number + 1)
        rows = await self.fetch(tenant_id, self._message_query(tenant_id).where(*tests))
        return next((found for found in map(_message, rows) if found.message_id == id_text), None)

    async def rows(self, tenant_id: str, table: str, **where: Any) -> list[dict[str, Any]]:
        source = tables.SMALL[table]
        tests = [
            any_of(source.c[column], value) if isinstance(value, list) else source.c[column] == value
            for column, value in where.items()
        ]
        if "tenant_id" in source.c:
            tests.append(source.c.tenant_id == tenant_id)
        order = [source.c[name] for name in tables.AGE if name in source.c]
        found = await self.fetch(tenant_id, select(source).where(*tests).order_by(*order))
        return [dict(row._mapping) for row in found]

    async def sessions_page(
        self, tenant_id: str, before: int | None, limit: int, severity: str | None = None
    ) -> list[dict[str, Any]]:
        """Sessions by last activity, newest first; `before` is the `last_seq` of the page before."""
        return await self.newest_sessions(tenant_id, before, limit, severity)

    async def tenant_rows(self) -> list[dict[str, Any]]:
        """Every tenant of the house; only the home tenant's admin is shown this."""
        found = await self.fetch("tnt_default", select(tables.tenants).order_by(tables.tenants.c.created_ns))
        return [dict(row._mapping) for row in found]

    async def principal_by_key(self, public_id: str) -> tuple[Principal, bytes] | None:
        keys, now_ns = tables.api_keys, time.time_ns()
        query = select(keys).where(keys.c.public_id == public_id)
        rows = await self.fetch("", query, presented=public_id)
        if not rows:
            return None
        standing = await self._standing(rows[0]._mapping["tenant_id"], rows[0]._mapping["user_id"])
        # The row again, after the version: a version newer than the row it vouches for would let a key
        # that was revoked in between pass the corridor's check.
        rows = await self.fetch("", query, presented=public_id)
        row = rows[0]._mapping
        ended = row["revoked_ns"] is not None or (row["expires_ns"] or now_ns + 1) <= now_ns
        if standing is None or ended:
            return None
        principal = Principal(
            tenant_id=row["tenant_id"],
            role=row["role"],
            key_id=row["key_id"],
            user_id=row["user_id"],
            agent_id=row["agent_id"],
            scopes=tuple(msgspec.json.decode(row["scopes"])),
            access_version=standing[0],
            expires_ns=row["expires_ns"],
        )
        return principal, bytes(row["key_hash"])

    async def login_by_token(self, token_hash: bytes) -> dict[str, Any] | None:
        """A login link or a browser's cookie, with the user's present role; None once ended or expired."""
        logins = tables.logins
        query = select(logins).where(logins.c.token_hash == token_hash)
        rows = await self.fetch("", query, presented=token_hash.hex())
        if not rows:
            return None
        standing = await self._standing(rows[0]._mapping["tenant_id"], rows[0]._mapping["user_id"])
        rows = await self.fetch(
            "", query, presented=token_hash.hex()
        )  # as for keys: the row after the version
        if standing is None or not rows:
            return None
        row = dict(rows[0]._mapping)
        if row["ended_ns"] is not None or row["expires_ns"] <= time.time_ns():
            return None
        return row | {"access_version": standing[0], "role": standing[1]}

    async def _standing(self, tenant_id: str, user_id: str | None) -> tuple[int, str] | None:
        """(access version, user's role) while tenant and user are in good standing."""
        tenants, heads, users = tables.tenants, tables.chain_heads, tables.users
        query: Select[Any] = (
            select(heads.c.access_version, tenants.c.disabled_ns)
            .join(tenants, tenants.c.tenant_id == heads.c.tenant_id)
            .where(heads.c.tenant_id == tenant_id)
        )
        found = await self.fetch(tenant_id, query)
        if not found or found[0][1] is not None:
            return None
        if user_id is None:
            return found[0][0], ""
        mine = and_(users.c.tenant_id == tenant_id, users.c.user_id == user_id)
        user = await self.fetch(tenant_id, select(users.c.role, users.c.disabled_ns).where(mine))
        return None if not user or user[0][1] is not None else (found[0][0], user[0][0])

    def _event_tests(self, tenant_id: str, where: EventFilter) -> Where:
        shape = self._shape
        tests = shape.in_tenant(tenant_id, where.after, where.before)
        if where.trace_id is not None:
            tests.append(shape.of_trace(tenant_id, where.trace_id))
        if where.entity_id is not None:
            tests.append(shape.of_entity(tenant_id, where.entity_id))
        if where.since_ns is not None or where.until_ns is not None:
            tests += shape.in_time(tenant_id, where.since_ns, where.until_ns)
        if where.severity_min is not None:
            tests += shape.severe(tenant_id, where.severity_min)
        return tests

    def _ordered(self, query: Select[Any], tests: Where, limit: int, newest_first: bool) -> Select[Any]:
        order = self._shape.order()
        return query.where(*tests).order_by(order.desc() if newest_first else order).limit(limit)

    def _message_query(self, tenant_id: str) -> Select[Any]:
        shape, messages, sessions = self._shape, self._shape.messages, tables.sessions
        holds, rewrites = tables.holds, tables.rewrites
        joined = (
            shape.events.join(messages, shape.same_row(messages))
            .join(shape.payloads, shape.same_row(shape.payloads))
            .join(
                sessions,
                and_(sessions.c.tenant_id == tenant_id, sessions.c.session_no == messages.c.session_no),
            )
            .outerjoin(
                holds, and_(holds.c.tenant_id == tenant_id, holds.c.sequence_number == shape.sequence())
            )
            .outerjoin(
                rewrites,
                and_(rewrites.c.tenant_id == tenant_id, rewrites.c.sequence_number == holds.c.rewrite_seq),
            )
        )
        return select(
            shape.sequence(),
            messages.c.message_id,
            sessions.c.session_id,
            messages.c.step_id,
            messages.c.message_type,
            state_of(shape),
            messages.c.parents,
            messages.c.parent_inferred,
            shape.payloads.c.raw,
            rewrites.c.raw,
            messages.c.entropy,
            shape.payloads.c.shredded_by,
        ).select_from(joined)


def _message(row: Any) -> StoredMessage:
    raw, rewritten = (None if content is None else bytes(content) for content in row[8:10])
    return StoredMessage(
        row[0], row[1], row[2], row[3], row[4], row[5], row[6], bool(row[7]), raw, rewritten, row[10], row[11]
    )

"""Reads the record: one set of queries for both databases.

What differs between them is a `Shape` (shapes.py); everything else is here. Every query names its tenant;
none works without one. Rows are committed rows, in sequence order.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Select, and_, bindparam, or_, select

from observatory.ledger.chain import GENESIS_HASH
from observatory.pipeline.ports import EventFilter, MessageFilter, StoredEvent, StoredMessage
from observatory.pipeline.state import Principal
from observatory.protocol.clock import to_ns
from observatory.protocol.identity import agent_entity_id, canonical_uuid, counter_of
from observatory.protocol.otel import trace_id_of_session
from observatory.protocol.steps import step_name
from observatory.store import tables
from observatory.store.committed import CommittedReads
from observatory.store.fetches import HIGH, LIMIT, LOW, TENANT
from observatory.store.keys import dedupe_key
from observatory.store.lists import any_named
from observatory.store.live_reads import LiveReads
from observatory.store.shapes import TableShape, Where, edges, state_of

_heads = tables.chain_heads.c
HEAD = select(_heads.sequence_number, _heads.event_hash).where(_heads.tenant_id == TENANT)
KEY = select(tables.api_keys).where(tables.api_keys.c.public_id == bindparam("shown"))
KEY_MAKER = select(tables.api_keys.c.created_by).where(
    tables.api_keys.c.tenant_id == TENANT, tables.api_keys.c.key_id == bindparam("key")
)
MAX_KEY_CHAIN = 8  # length of a chain of keys created with keys
ENDS = select(tables.api_keys.c.revoked_ns, tables.api_keys.c.expires_ns).where(
    tables.api_keys.c.tenant_id == TENANT, tables.api_keys.c.key_id == bindparam("key")
)
LOGIN = select(tables.logins).where(tables.logins.c.token_hash == bindparam("shown"))
STANDING = (
    select(_heads.access_version, tables.tenants.c.disabled_ns)
    .join(tables.tenants, tables.tenants.c.tenant_id == _heads.tenant_id)
    .where(_heads.tenant_id == TENANT)
)
USER = select(tables.users.c.role, tables.users.c.disabled_ns).where(
    tables.users.c.tenant_id == TENANT, tables.users.c.user_id == bindparam("user")
)


class _Recorded(msgspec.Struct):
    observed_timestamp: str


_recorded = msgspec.json.Decoder(_Recorded).decode


class Reads(CommittedReads, LiveReads):
    """Archive and Directory over any store that can `fetch` rows."""

    def __init__(self, shape: TableShape) -> None:
        self._shape = shape

    async def head(self, tenant_id: str) -> tuple[int, str]:
        rows = await self.fetch(tenant_id, HEAD, tenant=tenant_id)
        return (rows[0][0], rows[0][1]) if rows else (0, GENESIS_HASH)

    async def events(
        self, tenant_id: str, where: EventFilter, limit: int, newest_first: bool
    ) -> list[StoredEvent]:
        if where == EventFilter(after=where.after, before=where.before):
            low, high = edges(where.after, where.before)
            query = self._event_spans[newest_first]
            rows = await self.fetch(tenant_id, query, tenant=tenant_id, low=low, high=high, most=limit)
        else:
            tests = self._event_tests(tenant_id, where)
            if where.since_ns is not None or where.until_ns is not None:
                tests.append(await self._in_time(tenant_id, where.since_ns, where.until_ns))
            query = self._ordered(self._event_query(), tests, limit, newest_first)
            rows = await self.fetch(tenant_id, query)
        return [StoredEvent(seq, bytes(record), bytes(leaf)) for seq, record, leaf in rows]

    async def messages(
        self, tenant_id: str, where: MessageFilter, limit: int, newest_first: bool
    ) -> list[StoredMessage]:
        shape = self._shape
        if where == MessageFilter(after=where.after, before=where.before):
            low, high = edges(where.after, where.before)
            span = self._message_spans[newest_first]
            rows = await self.fetch(tenant_id, span, tenant=tenant_id, low=low, high=high, most=limit)
            return [_message(row) for row in rows]
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
        """Minted ids contain their sequence number; all other names are found by the dedupe key."""
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
        lists = {column: value for column, value in where.items() if isinstance(value, list)}
        named = {column: value for column, value in where.items() if column not in lists}
        absent = tuple(column for column, value in named.items() if value is None)
        query = _rows(table, tuple(named), absent, tuple(lists))
        values = {f"is_{column}": value for column, value in where.items() if value is not None}
        found = await self.fetch(tenant_id, query, tenant=tenant_id, **values)
        return [dict(row._mapping) for row in found]

    async def tenant_rows(self) -> list[dict[str, Any]]:
        """Every tenant of the deployment; visible only to the home tenant's admin."""
        found = await self.fetch("tnt_default", select(tables.tenants).order_by(tables.tenants.c.created_ns))
        return [dict(row._mapping) for row in found]

    async def principal_by_key(self, public_id: str) -> tuple[Principal, bytes] | None:
        now_ns = time.time_ns()
        rows = await self.fetch("", KEY, presented=public_id, shown=public_id)
        if not rows:
            return None
        standing = await self._standing(rows[0]._mapping["tenant_id"], rows[0]._mapping["user_id"])
        # Read the row again after the version: with a version newer than the row, a key revoked in between
        # would pass the pipeline's check.
        rows = await self.fetch("", KEY, presented=public_id, shown=public_id)
        row = rows[0]._mapping
        ended = row["revoked_ns"] is not None or (row["expires_ns"] or now_ns + 1) <= now_ns
        if standing is None or ended:
            return None
        principal = Principal(
            tenant_id=row["tenant_id"],
            role=row["role"],
            key_maker=await self._key_maker(row) if row["role"] == "agent" else None,
            key_id=row["key_id"],
            user_id=row["user_id"],
            agent_id=row["agent_id"],
            scopes=tuple(msgspec.json.decode(row["scopes"])),
            access_version=standing[0],
            expires_ns=row["expires_ns"],
        )
        return principal, bytes(row["key_hash"])

    async def _key_maker(self, row: Mapping[str, Any]) -> str:
        """The user who created a key; for a key created with another key, that key's creator."""
        maker, tenant_id = str(row["created_by"]), row["tenant_id"]
        for _ in range(MAX_KEY_CHAIN):
            if not maker.startswith("key_"):
                break
            found = await self.fetch(tenant_id, KEY_MAKER, tenant=tenant_id, key=maker)
            if not found:
                break
            maker = str(found[0][0])
        return maker

    async def login_by_token(self, token_hash: bytes) -> dict[str, Any] | None:
        """A login link or browser cookie, with the user's current role; None once it or its key has ended."""
        rows = await self.fetch("", LOGIN, presented=token_hash.hex(), shown=token_hash)
        if not rows:
            return None
        standing = await self._standing(rows[0]._mapping["tenant_id"], rows[0]._mapping["user_id"])
        # As for keys: read the row after the version.
        rows = await self.fetch("", LOGIN, presented=token_hash.hex(), shown=token_hash)
        if standing is None or not rows:
            return None
        row = dict(rows[0]._mapping)
        if row["key_id"] is not None:  # a sign-in ends with the key it comes from (S1182)
            key = await self.fetch(row["tenant_id"], ENDS, tenant=row["tenant_id"], key=row["key_id"])
            if not key or key[0][0] is not None:
                return None
            row["expires_ns"] = min(row["expires_ns"], key[0][1] or row["expires_ns"])
        if row["ended_ns"] is not None or row["expires_ns"] <= time.time_ns():
            return None
        return row | {"access_version": standing[0], "role": standing[1]}

    async def _standing(self, tenant_id: str, user_id: str | None) -> tuple[int, str] | None:
        """(access version, user's role); None if the tenant or the user is disabled."""
        found = await self.fetch(tenant_id, STANDING, tenant=tenant_id)
        if not found or found[0][1] is not None:
            return None
        if user_id is None:
            return found[0][0], ""
        user = await self.fetch(tenant_id, USER, tenant=tenant_id, user=user_id)
        return None if not user or user[0][1] is not None else (found[0][0], user[0][0])

    def _event_tests(self, tenant_id: str, where: EventFilter) -> Where:
        shape = self._shape
        tests = shape.in_tenant(tenant_id, where.after, where.before)
        if where.trace_id is not None:
            tests.append(shape.of_trace(tenant_id, where.trace_id))
        if where.entity_id is not None:
            tests.append(shape.of_entity(tenant_id, where.entity_id))
        if where.severity_min is not None:
            tests += shape.severe(tenant_id, where.severity_min)
        if where.senders:
            tests.append(shape.sent_by_any(tenant_id, where.senders))
        return tests

    async def _in_time(
        self, tenant_id: str, since_ns: int | None, until_ns: int | None
    ) -> ColumnElement[bool]:
        """Matches an event's own time or its time of recording (S1168): a wrong sender's clock hides
        nothing."""
        head, _ = await self.head(tenant_id)
        low = 1 if since_ns is None else await self._first_recorded(tenant_id, since_ns, head)
        high = head if until_ns is None else await self._first_recorded(tenant_id, until_ns, head) - 1
        shape = self._shape
        return or_(
            and_(*shape.in_time(tenant_id, since_ns, until_ns)), and_(*shape.between(tenant_id, low, high))
        )

    async def _first_recorded(self, tenant_id: str, at_ns: int, head: int) -> int:
        """The number of the first event recorded at `at_ns` or later; numbers are dense and ordered by
        time."""
        low, high = 1, head + 1
        while low < high:
            middle = (low + high) // 2
            found = await self.events(tenant_id, EventFilter(after=middle - 1, before=middle + 1), 1, False)
            if found and to_ns(_recorded(found[0].record).observed_timestamp) < at_ns:
                low = middle + 1
            else:
                high = middle
        return low

    def _ordered(self, query: Select[Any], tests: Where, limit: Any, newest_first: bool) -> Select[Any]:
        order = self._shape.order()
        return query.where(*tests).order_by(order.desc() if newest_first else order).limit(limit)

    def _event_query(self) -> Select[Any]:
        shape = self._shape
        return select(shape.sequence(), shape.events.c.record, shape.events.c.leaf_hash)

    # Executed after every commit by readers that follow the record: [oldest first, newest first].
    @cached_property
    def _event_spans(self) -> list[Select[Any]]:
        return self._spans(self._event_query())

    @cached_property
    def _message_spans(self) -> list[Select[Any]]:
        return self._spans(self._message_query(TENANT))

    def _spans(self, query: Select[Any]) -> list[Select[Any]]:
        tests = self._shape.between(TENANT, LOW, HIGH)
        return [self._ordered(query, tests, LIMIT, newest_first) for newest_first in (False, True)]

    def _message_query(self, tenant_id: Any) -> Select[Any]:
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


@lru_cache(512)
def _rows(
    table: str, named: tuple[str, ...], absent: tuple[str, ...], listed: tuple[str, ...]
) -> Select[Any]:
    source = tables.SMALL[table]
    tests = [
        source.c[column].is_(None) if column in absent else source.c[column] == bindparam(f"is_{column}")
        for column in named
    ]
    tests += [any_named(source.c[column], f"is_{column}") for column in listed]
    if "tenant_id" in source.c:
        tests.append(source.c.tenant_id == TENANT)
    return select(source).where(*tests).order_by(*(source.c[name] for name in tables.AGE if name in source.c))


def _message(row: Any) -> StoredMessage:
    raw, rewritten = (None if content is None else bytes(content) for content in row[8:10])
    return StoredMessage(
        row[0], row[1], row[2], row[3], row[4], row[5], row[6], bool(row[7]), raw, rewritten, row[10], row[11]
    )

"""Queries of the tenant's log: hashes of a level as one value, and checkpoints.

The database concatenates the hashes itself: one row instead of hundreds, so that neither the sealer at full
load nor a proof over a million events waits for rows one by one. The statements are written out per database:
composing them for every tile would take longer than running them.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from sqlalchemy import BigInteger, Text, TextClause, bindparam, text

from observatory.errors import StoreError
from observatory.features.transparency.queries_federation import FederationReads
from observatory.features.transparency.types_log import LogRows, StoredCheckpoint, bytes_of, number_of
from observatory.pipeline.ports import Store, StoredEvent
from observatory.pipeline.state import HOME_TENANT
from observatory.store.fetches import Fetches
from observatory.store.keys import SEQ_MASK as MAX_SIZE

# The inner query returns rows in key order, and they are concatenated in that order.
SQLITE = {
    "event": "SELECT record, leaf_hash FROM audit_log WHERE key = "
    "(SELECT tenant_no << 40 FROM chain_heads WHERE tenant_id = :tenant) + :first",
    "leaves": "SELECT group_concat(hex(leaf_hash), '') FROM (SELECT leaf_hash FROM audit_log "
    "WHERE key BETWEEN (SELECT tenant_no << 40 FROM chain_heads WHERE tenant_id = :tenant) + :first "
    "AND (SELECT tenant_no << 40 FROM chain_heads WHERE tenant_id = :tenant) + :last ORDER BY key)",
    "nodes": "SELECT group_concat(hex(hash), '') FROM (SELECT hash FROM log_nodes WHERE "
    "tenant_id = :tenant AND level = :level AND position BETWEEN :first AND :last ORDER BY position)",
}
POSTGRES = {
    "event": "SELECT record, leaf_hash FROM audit_events "
    "WHERE tenant_id = :tenant AND sequence_number = :first",
    "leaves": "SELECT string_agg(leaf_hash, ''::bytea ORDER BY sequence_number) FROM audit_events "
    "WHERE tenant_id = :tenant AND sequence_number BETWEEN :first AND :last",
    "nodes": "SELECT string_agg(hash, ''::bytea ORDER BY position) FROM log_nodes "
    "WHERE tenant_id = :tenant AND level = :level AND position BETWEEN :first AND :last",
}
BOTH = {
    "checkpoint": "SELECT size, root, note, signed_ns FROM checkpoints "
    "WHERE tenant_id = :tenant AND size <= :last ORDER BY size DESC LIMIT 1"
}


def _statements(statements: dict[str, str]) -> dict[str, TextClause]:
    """Numbers are bound with the columns' type: PostgreSQL would otherwise assume a shorter one."""
    return {
        name: text(sql).bindparams(
            bindparam("tenant", type_=Text),
            *(bindparam(mark, type_=BigInteger) for mark in ("level", "first", "last") if f":{mark}" in sql),
        )
        for name, sql in statements.items()
    }


STATEMENTS = {"sqlite": _statements(SQLITE | BOTH), "postgresql": _statements(POSTGRES | BOTH)}


class LogReads(Fetches):
    """The `LogRows` port over any store that can `fetch` rows."""

    dialect: str

    async def _run(self, name: str, tenant_id: str, **values: int) -> list[Any]:
        parameters: dict[str, Any] = {"tenant": tenant_id, **values}
        return await self.fetch(tenant_id, STATEMENTS[self.dialect][name], **parameters)

    async def hashes(self, tenant_id: str, level: int, first: int, count: int) -> bytes:
        if count <= 0:
            return b""
        if level == 0:  # index 0 is event 1
            rows = await self._run("leaves", tenant_id, first=first + 1, last=first + count)
        else:
            rows = await self._run("nodes", tenant_id, level=level, first=first, last=first + count - 1)
        value = rows[0][0]
        if value is None:
            return b""
        return bytes.fromhex(value) if self.dialect == "sqlite" else bytes_of(value)

    async def event(self, tenant_id: str, number: int) -> StoredEvent | None:
        rows = await self._run("event", tenant_id, first=number)
        return StoredEvent(number, bytes_of(rows[0][0]), bytes_of(rows[0][1])) if rows else None

    async def checkpoint(self, tenant_id: str, at_most: int | None = None) -> StoredCheckpoint | None:
        last = MAX_SIZE if at_most is None else at_most
        rows = await self._run("checkpoint", tenant_id, last=last)
        if not rows:
            return None
        size, root, note, signed_ns = rows[0]
        return StoredCheckpoint(number_of(size), bytes_of(root), bytes_of(note), number_of(signed_ns))


async def deployment_id(store: Store) -> str:
    """By the home tenant's first event: the same for every gateway, also after the deployment was moved."""
    assert isinstance(store, LogRows)
    while True:
        with suppress(StoreError):
            if first := await store.hashes(HOME_TENANT, 0, 0, 1):
                return first.hex()
        await asyncio.sleep(0.1)  # the deployment is being set up, or its database is away


RECORD_QUERIES = (
    LogReads,
    FederationReads,
)

"""Reads of archived messages that still have their bytes and can be shredded, oldest first."""

from __future__ import annotations

from sqlalchemy import and_, select

from observatory.store import tables
from observatory.store.fetches import Fetches
from observatory.store.shapes import TableShape


class PayloadReads(Fetches):
    _shape: TableShape

    async def unshredded_payloads(
        self, tenant_id: str, after: int, limit: int, session_no: int | None = None
    ) -> list[tuple[int, bytes]]:
        shape, holds = self._shape, tables.holds
        held = and_(
            holds.c.tenant_id == tenant_id,
            holds.c.sequence_number == shape.sequence(),
            holds.c.state == "held",
        )
        joined = shape.events.join(shape.payloads, shape.same_row(shape.payloads)).outerjoin(holds, held)
        tests = [*shape.in_tenant(tenant_id, after, None), shape.payloads.c.raw.is_not(None)]
        if session_no is not None:
            joined = joined.join(shape.messages, shape.same_row(shape.messages))
            tests += [
                shape.messages.c.session_no == session_no,
                shape.of_session(tenant_id, session_no, await self._trace(tenant_id, session_no)),
            ]
        query = (
            select(shape.sequence(), shape.events.c.record)
            .select_from(joined)
            .where(*tests, holds.c.sequence_number.is_(None))
            .order_by(shape.order())
            .limit(limit)
        )
        return [(row[0], bytes(row[1])) for row in await self.fetch(tenant_id, query)]

    async def _trace(self, tenant_id: str, session_no: int) -> str:
        sessions = tables.sessions
        query = select(sessions.c.trace_id).where(
            sessions.c.tenant_id == tenant_id, sessions.c.session_no == session_no
        )
        found = await self.fetch(tenant_id, query)
        return str(found[0][0]) if found else ""


RECORD_QUERIES = (PayloadReads,)

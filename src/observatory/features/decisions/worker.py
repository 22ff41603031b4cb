"""Decisions whose deadline has passed: the agent's own option is taken, or they expire (R380, R381).

Only finds and submits; each is looked at again under the tenant's lock, so two gateways that find the same
one end it once. Called by whoever keeps the time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from observatory.features.decisions import commands as decisions
from observatory.features.inbox.responses import Records, agent_of, by_deadline, request_of
from observatory.pipeline.committer import Committer
from observatory.pipeline.state import Principal, Submission
from observatory.protocol.answers import Rejected
from observatory.runtime.worker_context import Watch

# So many of a tenant at a time; the rest is found again at the next look.
LIMIT = 500
HOUSE_KEY = "sys_gateway"


async def due(store: Records, committer: Committer, watch: Watch, now_ns: int) -> int:
    """How many decisions of all tenants were handed in; raises what the committer and the store raise."""
    ended = 0
    for tenant_id, head in await watch.awake():
        pending = await store.rows(tenant_id, "decisions", state="pending")
        items = await overdue(store, tenant_id, pending, now_ns)
        if items:
            await committer.submit(tenant_id, items)
        elif not pending:
            watch.rest(tenant_id, head)
        ended += len(items)
    return ended


async def overdue(
    store: Records, tenant_id: str, pending: Iterable[dict[str, Any]], now_ns: int
) -> list[Submission]:
    """What ends the pending decisions of one tenant that are past their deadline."""
    house = Principal(tenant_id=tenant_id, role="admin", key_id=HOUSE_KEY)
    late = [row for row in pending if row["deadline_ns"] is not None and row["deadline_ns"] <= now_ns]
    items: list[Submission] = []
    for row in sorted(late, key=lambda row: row["deadline_ns"])[:LIMIT]:
        request = await request_of(store, tenant_id, row)
        if row["auto_option"] is None:
            items.append(decisions.expire(house, row["decision_id"], request.session_id, now_ns))
            continue
        agent = await agent_of(store, tenant_id, row["agent_no"])
        answer = by_deadline(house, row, request, agent["entity_id"], now_ns)
        assert not isinstance(answer, Rejected)  # every word of it passed the interceptor before
        items.append(answer)
    return items

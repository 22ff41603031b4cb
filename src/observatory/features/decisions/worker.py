"""Ends decisions whose deadline has passed: takes the agent's own option, or expires them (R380, R381).

Only finds and submits; each is checked again under the tenant's lock, so two gateways that find the same one
end it once. Called by the scheduler.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from observatory.features.decisions import commands as decisions
from observatory.features.decisions.responses import DecisionRecords, agent_of, by_deadline, request_of
from observatory.pipeline.commit.committer import Committer
from observatory.pipeline.state import Principal, Submission
from observatory.protocol.responses import Rejected
from observatory.runtime.worker_context import TenantWatch

# Per tenant and poll; the rest is found at the next poll.
LIMIT = 500
GATEWAY_KEY = "sys_gateway"


async def due(store: DecisionRecords, committer: Committer, watch: TenantWatch, now_ns: int) -> int:
    """How many decisions of all tenants were submitted; raises what the committer and the store raise."""
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
    store: DecisionRecords, tenant_id: str, pending: Iterable[dict[str, Any]], now_ns: int
) -> list[Submission]:
    """The commands and answers that end the overdue pending decisions of one tenant."""
    gateway = Principal(tenant_id=tenant_id, role="admin", key_id=GATEWAY_KEY)
    late = [row for row in pending if row["deadline_ns"] is not None and row["deadline_ns"] <= now_ns]
    items: list[Submission] = []
    for row in sorted(late, key=lambda row: row["deadline_ns"])[:LIMIT]:
        request = await request_of(store, tenant_id, row)
        if row["auto_option"] is None:
            items.append(decisions.expire(gateway, row["decision_id"], request.session_id, now_ns))
            continue
        agent = await agent_of(store, tenant_id, row["agent_no"])
        answer = by_deadline(gateway, row, request, agent["entity_id"], now_ns)
        assert not isinstance(answer, Rejected)  # its content already passed the interceptor
        items.append(answer)
    return items

"""The relay's background work: expire gates, confirm pauses, resume interrupted releases.

Law: it decides nothing. It finds what is due in committed rows and submits commands to the pipeline, which
checks again under the lock; when two gateways find the same work, it is done once.
"""

from __future__ import annotations

from observatory.features.relay import commands_gates as gates
from observatory.features.relay import commands_undo as reversal
from observatory.features.relay import release
from observatory.pipeline.state import Command
from observatory.runtime.worker_context import TenantWatch, WorkerContext

# Per tenant and poll; the rest is found by the next poll.
LIMIT = 500
EVER_NS = 2**63 - 1


async def expire_and_confirm(app: WorkerContext, watch: TenantWatch, now_ns: int) -> None:
    """Expire gates whose deadline has passed; confirm pauses whose agents have stopped sending."""
    for tenant_id, head in await watch.awake():
        who = app.gateway_principal(tenant_id)
        due = await app.store.gates_due(tenant_id, now_ns, LIMIT)
        acts: list[Command] = [gates.expire(who, session_id, number, now_ns) for session_id, number in due]
        acts += [
            reversal.confirm(who, row, row["session_id"], row["entity_id"], now_ns)
            for row in await app.store.pauses_acknowledged(tenant_id, LIMIT)
        ]
        if acts:
            await app.committer.submit(tenant_id, acts)
        elif not await app.store.gates_due(tenant_id, EVER_NS, 1):
            watch.rest(tenant_id, head)


async def resume_releases(app: WorkerContext, watch: TenantWatch, now_ns: int) -> None:
    """Continue releases whose gateway died half way; those of a kill-switch have stages of their own."""
    for tenant_id, head in await watch.awake():
        if await app.store.rows(tenant_id, "kill_switches", state="releasing"):
            continue
        who = app.gateway_principal(tenant_id)
        waiting = (await app.store.waiting(tenant_id))[:LIMIT]
        acts = [release.drain(who, session_id, now_ns) for session_id, _ in waiting]
        if acts:
            await app.committer.submit(tenant_id, acts)
        else:
            watch.rest(tenant_id, head)

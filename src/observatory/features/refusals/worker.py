"""The refusals worker: records counts whose minute is over, one event each (S1160).

It only finds and submits; each is checked again under the tenant's lock, so two gateways record it once. A
count changes no event number, so an otherwise idle tenant is found by the next poll all the same.
"""

from __future__ import annotations

from observatory.pipeline.refusals import MINUTE, TABLE, close_minute
from observatory.runtime.worker_context import TenantWatch, WorkerContext


async def due(context: WorkerContext, watch: TenantWatch, now_ns: int) -> None:
    for tenant_id, head in await watch.awake():
        principal = context.gateway_principal(tenant_id)
        counted = [row for row in await context.store.rows(tenant_id, TABLE) if row["counted"]]
        commands = [
            close_minute(principal, row["key_id"], row["kind"], now_ns)
            for row in counted
            if not row["began_ns"] <= now_ns < row["began_ns"] + MINUTE
        ]
        if commands:
            await context.committer.submit(tenant_id, commands)
        elif not counted:
            watch.rest(tenant_id, head)

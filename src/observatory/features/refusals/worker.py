"""Refusals that were counted and not told yet: when their minute is over, one event each (S1160).

Only finds and submits; each is looked at again under the tenant's lock, so two gateways tell it once. What is
counted moves no record, so a tenant that was left alone is found by the next look all the same.
"""

from __future__ import annotations

from observatory.features.refusals.commands import MINUTE, TABLE, conclude
from observatory.runtime.worker_context import Home, Watch


async def due(home: Home, watch: Watch, now_ns: int) -> None:
    for tenant_id, head in await watch.awake():
        who = home.principal_of_house(tenant_id)
        counted = [row for row in await home.store.rows(tenant_id, TABLE) if row["counted"]]
        acts = [
            conclude(who, row["key_id"], row["kind"], now_ns)
            for row in counted
            if not row["began_ns"] <= now_ns < row["began_ns"] + MINUTE
        ]
        if acts:
            await home.committer.submit(tenant_id, acts)
        elif not counted:
            watch.rest(tenant_id, head)

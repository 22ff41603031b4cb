"""The clock's share in the relay: gates nobody answered, pauses that took hold, lines left standing.

Law: it decides nothing. It finds what is due in committed rows and hands acts to the corridor, which looks
again under the lock; two gateways that find the same thing end it once.
"""

from __future__ import annotations

from observatory.features.relay import commands_gates as gates
from observatory.features.relay import commands_undo as reversal
from observatory.features.relay import release
from observatory.pipeline.state import Act
from observatory.runtime.worker_context import Home, Watch

# So many of a tenant at a time; the rest is found again at the next look.
LIMIT = 500
EVER_NS = 2**63 - 1


async def answer(house: Home, watch: Watch, now_ns: int) -> None:
    """End the gates whose time is over; confirm the pauses whose agents have kept still."""
    for tenant_id, head in await watch.awake():
        who = house.principal_of_house(tenant_id)
        due = await house.store.gates_due(tenant_id, now_ns, LIMIT)
        acts: list[Act] = [gates.expire(who, session_id, number, now_ns) for session_id, number in due]
        acts += [
            reversal.confirm(who, row, row["session_id"], row["entity_id"], now_ns)
            for row in await house.store.pauses_acknowledged(tenant_id, LIMIT)
        ]
        if acts:
            await house.committer.submit(tenant_id, acts)
        elif not await house.store.gates_due(tenant_id, EVER_NS, 1):
            watch.rest(tenant_id, head)


async def sweep(house: Home, watch: Watch, now_ns: int) -> None:
    """Go on with releases whose gateway died half way; a kill-switch's go in stages of their own."""
    for tenant_id, head in await watch.awake():
        if await house.store.rows(tenant_id, "kill_switches", state="releasing"):
            continue
        who = house.principal_of_house(tenant_id)
        waiting = (await house.store.waiting(tenant_id))[:LIMIT]
        acts = [release.drain(who, session_id, now_ns) for session_id, _ in waiting]
        if acts:
            await house.committer.submit(tenant_id, acts)
        else:
            watch.rest(tenant_id, head)

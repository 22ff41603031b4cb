"""The stager: hands on what a released kill-switch held, stage by stage, oldest first (ruling 26).

Law: it forwards nothing itself. It asks the corridor to drain sessions; each drain checks policy, pauses
and other kill-switches again under the lock, so two gateways may stage at once and nothing goes twice.
A stage is `kill_release_batch` messages; each is an audit event. It survives a kill -9: what is still held,
and that a switch is releasing, are rows.
"""

from __future__ import annotations

from typing import Any

from observatory.features.kill_switch import commands as kill_switch
from observatory.features.relay.release import LIMIT, drain
from observatory.pipeline.state import Act, Principal
from observatory.runtime.worker_context import Home, Watch

# So many sessions are drained in one submission.
AT_ONCE = 200


async def stage(house: Home, watch: Watch, now_ns: int) -> int:
    """One stage of every release under way; how many messages went on."""
    released = 0
    for tenant_id, head in await watch.awake():
        rows = await house.store.rows(tenant_id, kill_switch.TABLE, state="releasing")
        if rows:
            released += await _stage(house, tenant_id, rows, now_ns)
        else:
            watch.rest(tenant_id, head)
    return released


async def _stage(house: Home, tenant_id: str, switches: list[dict[str, Any]], now_ns: int) -> int:
    who = house.principal_of_house(tenant_id)
    released, finished = await _drain(house, who, now_ns)
    acts: list[Act] = []
    for row in switches:
        left = (await house.store.reach(tenant_id, **kill_switch.scope_filter(row))).held
        if released:
            acts.append(kill_switch.staged(who, row["kill_id"], released, left, now_ns))
        if finished:
            acts.append(kill_switch.finish(who, row["kill_id"], left, now_ns))
    if acts:
        await house.committer.submit(tenant_id, acts)
    return released


async def _drain(house: Home, who: Principal, now_ns: int) -> tuple[int, bool]:
    """At most one batch; whether nothing that is free to go waits any more."""
    left, waiting = max(1, house.settings.kill_release_batch), await house.store.waiting(who.tenant_id)
    total, nothing_left = 0, True
    while waiting and left > 0:
        acts: list[Act] = []
        share = left
        while waiting and share > 0 and len(acts) < AT_ONCE:
            session_id, count = waiting.pop(0)
            acts.append(drain(who, session_id, now_ns, min(share, LIMIT)))
            share -= count
        for verdict in await house.committer.submit(who.tenant_id, acts):
            if verdict.code != 200:
                nothing_left = False
                continue
            total += verdict.answer.released
            left -= verdict.answer.released
            nothing_left = nothing_left and verdict.answer.remaining == 0
    return total, nothing_left and not waiting

"""The release worker: forwards what a released kill switch held, stage by stage, oldest first (ruling 26).

Law: it forwards nothing itself. It asks the pipeline to drain sessions; each drain checks policy, pauses
and other kill switches again under the lock, so two gateways may work at once and nothing is sent twice.
A stage is `kill_release_batch` messages; each is an audit event. It survives a kill -9: what is still held,
and that a switch is releasing, are rows.
"""

from __future__ import annotations

from typing import Any

from observatory.features.kill_switch import commands as kill_switch
from observatory.features.relay.release import drain
from observatory.features.relay.types import MAX_RELEASED_AT_ONCE
from observatory.pipeline.state import Command, Principal
from observatory.runtime.worker_context import TenantWatch, WorkerContext

# Sessions drained in one submission.
AT_ONCE = 200


async def release_stage(app: WorkerContext, watch: TenantWatch, now_ns: int) -> int:
    """Runs one stage of every release in progress; returns how many messages were forwarded."""
    released = 0
    for tenant_id, head in await watch.awake():
        rows = await app.store.rows(tenant_id, kill_switch.TABLE, state="releasing")
        if rows:
            released += await _stage(app, tenant_id, rows, now_ns)
        else:
            watch.rest(tenant_id, head)
    return released


async def _stage(app: WorkerContext, tenant_id: str, switches: list[dict[str, Any]], now_ns: int) -> int:
    principal = app.gateway_principal(tenant_id)
    released, finished = await _drain(app, principal, now_ns)
    commands: list[Command] = []
    for row in switches:
        left = (await app.store.reach(tenant_id, **kill_switch.scope_filter(row))).held
        if released:
            commands.append(kill_switch.record_stage(principal, row["kill_id"], released, left, now_ns))
        if finished:
            commands.append(kill_switch.finish(principal, row["kill_id"], left, now_ns))
    if commands:
        await app.committer.submit(tenant_id, commands)
    return released


async def _drain(app: WorkerContext, principal: Principal, now_ns: int) -> tuple[int, bool]:
    """Drains at most one batch; returns also whether no message that may be forwarded is left."""
    left, waiting = max(1, app.settings.kill_release_batch), await app.store.waiting(principal.tenant_id)
    total, nothing_left = 0, True
    while waiting and left > 0:
        commands: list[Command] = []
        share = left
        while waiting and share > 0 and len(commands) < AT_ONCE:
            session_id, count = waiting.pop(0)
            commands.append(drain(principal, session_id, now_ns, min(share, MAX_RELEASED_AT_ONCE)))
            share -= count
        for verdict in await app.committer.submit(principal.tenant_id, commands):
            if verdict.code != 200:
                nothing_left = False
                continue
            total += verdict.answer.released
            left -= verdict.answer.released
            nothing_left = nothing_left and verdict.answer.remaining == 0
    return total, nothing_left and not waiting

"""Enforcement of one kill switch: agents that acknowledged it, agents that did not, and gateways.

The gateway holds messages in scope whether an agent acknowledges or not. A gateway judges every message by
the rules as committed, so one that was in touch with the database since the switch was engaged enforces it.
"""

from __future__ import annotations

import msgspec
from litestar import Response, Router, get
from litestar.params import FromPath

from observatory.features.kill_switch import commands
from observatory.features.kill_switch.routes import KillSwitchItem, existing, item_with_held
from observatory.features.schedule.types_rows import Row
from observatory.http.answers import json
from observatory.http.app_state import AppState, Call, Here
from observatory.http.permissions import require_permission
from observatory.pipeline.ports import EventFilter, Leases
from observatory.pipeline.state import HOME_TENANT
from observatory.protocol.clock import from_ns
from observatory.runtime.leader import PRESENT

MAX_NAMED = 200
# Events searched for the one that engaged it, around the time it was engaged.
SAME_TIME = 1_000
GONE_NS = 60_000_000_000
NO_EVENT = 0  # numbers begin at one


class UnacknowledgedAgent(msgspec.Struct, kw_only=True):
    """An agent that was notified and has not acknowledged; its messages are held all the same."""

    agent_id: str
    last_seen_at: str | None
    is_evicted: bool


class EnforcingGateway(msgspec.Struct, kw_only=True):
    name: str
    last_tick_at: str
    is_live: bool
    has_obeyed: bool


class KillSwitchStatus(KillSwitchItem, kw_only=True):
    """`later`: agents that came into its scope after it was engaged; they are notified when they connect."""

    agents: int
    told: int
    acknowledged: int
    later: int
    unheard: list[UnacknowledgedAgent]
    gateways: list[EnforcingGateway]
    event_id: str | None


@get(
    "/kill-switch/{kill_id:str}",
    summary="One kill switch, and who enforces and acknowledged it",
    operation_id="get_kill_switch",
)
async def get_kill_switch(request: Call, app: Here, kill_id: FromPath[str]) -> Response[bytes]:
    principal = await require_permission(request, app, "read")
    row = await existing(app, principal.tenant_id, kill_id)
    number, event_id = await _engaged_by(app, row)
    # Counted in the database: an open page requests this every two seconds, and a fleet may be large.
    acknowledgements = await app.store.acknowledgements(
        principal.tenant_id, number or NO_EVENT, MAX_NAMED, **commands.scope_filter(row)
    )
    standing = await item_with_held(app, row) | {
        "agents": acknowledgements.agents,
        "told": acknowledgements.told,
        "acknowledged": acknowledgements.acknowledged,
        "later": 0 if number is None else acknowledgements.later,
        "unheard": [_unheard(agent) for agent in acknowledgements.unheard],
        "gateways": await _gateways(app, row),
        "event_id": event_id,
    }
    return json(standing)


async def _engaged_by(app: AppState, row: Row) -> tuple[int | None, str | None]:
    """The number and the id of the event that engaged it, found by its time."""
    if row["engaged_ns"] is None:
        return None, None
    micro = row["engaged_ns"] // 1_000 * 1_000  # the precision both databases store times with
    where = EventFilter(since_ns=micro, until_ns=micro + 1_000)
    for event in await app.store.events(row["tenant_id"], where, SAME_TIME, newest_first=False):
        if b'"event_type":"kill_switch_engaged"' in event.record and row["kill_id"].encode() in event.record:
            record = msgspec.json.decode(event.record)
            return event.sequence_number, record["audit_event_id"]
    return None, None


def _unheard(agent: Row) -> dict[str, object]:
    return {
        "agent_id": agent["agent_id"],
        "last_seen_at": from_ns(agent["last_seen_ns"]) if agent["last_seen_ns"] else None,
        "is_evicted": agent["evicted_ns"] is not None,
    }


async def _gateways(app: AppState, row: Row) -> list[dict[str, object]]:
    """Live gateways, and those that went silent recently, whose state is unknown.

    Gateways belong to the deployment: other tenants see their number, and not their names.
    """
    items: list[dict[str, object]] = []
    is_home = row["tenant_id"] == HOME_TENANT
    for lease in await app.service(Leases).leases(PRESENT):
        is_live = lease.expires_ns > lease.now_ns
        if not is_live and (lease.expires_ns == 0 or lease.now_ns - lease.ticked_ns > GONE_NS):
            continue
        engaged_ns = row["engaged_ns"]
        items.append(
            {
                "name": lease.name.removeprefix(PRESENT) if is_home else f"gateway {len(items) + 1}",
                "last_tick_at": from_ns(lease.ticked_ns),
                "is_live": is_live,
                "has_obeyed": engaged_ns is not None and lease.ticked_ns >= engaged_ns,
            }
        )
    return items


stopped = Router(path="/v1", route_handlers=[get_kill_switch], tags=["God Mode"])

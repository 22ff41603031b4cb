"""Who has obeyed a kill-switch: agents that said so, agents that did not, and gateways in touch since.

The gateway holds what is in scope whether an agent obeys or not; what is told here is who knows. A gateway
judges every message by the rules as committed, so one that was in touch with the database since obeys.
"""

from __future__ import annotations

import msgspec
from litestar import Response, Router, get
from litestar.params import FromPath

from observatory.features.kill_switch import commands as acts
from observatory.features.kill_switch.routes import KillSwitchItem, existing, shown_with_held
from observatory.features.schedule.types_rows import Row
from observatory.http.answers import json
from observatory.http.app_state import Call, Here, House
from observatory.http.permissions import need
from observatory.pipeline.ports import EventFilter
from observatory.pipeline.state import HOME_TENANT
from observatory.protocol.clock import from_ns
from observatory.runtime.leader import PRESENT

MOST_NAMED = 200
# Events of the moment it was engaged that are looked through for the one that engaged it.
BESIDE = 1_000
GONE_NS = 60_000_000_000
NO_EVENT = 0  # numbers begin at one


class Unheard(msgspec.Struct, kw_only=True):
    """An agent that was told to stop and has not said that it knows; what it sends is held all the same."""

    agent_id: str
    last_seen_at: str | None
    is_evicted: bool


class ObeyingGateway(msgspec.Struct, kw_only=True):
    name: str
    last_tick_at: str
    is_live: bool
    has_obeyed: bool


class KillSwitchStanding(KillSwitchItem, kw_only=True):
    """`later`: agents that came into its scope after it was engaged; they are greeted with it."""

    agents: int
    told: int
    acknowledged: int
    later: int
    unheard: list[Unheard]
    gateways: list[ObeyingGateway]
    event_id: str | None


@get(
    "/kill-switch/{kill_id:str}",
    summary="One kill-switch, and who has obeyed it",
    operation_id="get_kill_switch",
)
async def get_kill_switch(request: Call, house: Here, kill_id: FromPath[str]) -> Response[bytes]:
    principal = await need(request, house, "read")
    row = await existing(house, principal.tenant_id, kill_id)
    number, event_id = await _engaged_by(house, row)
    # Counted where they are: the page asks every two seconds, and a fleet may be large.
    obeyed = await house.store.obeyed(
        principal.tenant_id, number or NO_EVENT, MOST_NAMED, **acts.scope_filter(row)
    )
    standing = await shown_with_held(house, row) | {
        "agents": obeyed.agents,
        "told": obeyed.told,
        "acknowledged": obeyed.acknowledged,
        "later": 0 if number is None else obeyed.later,
        "unheard": [_unheard(agent) for agent in obeyed.unheard],
        "gateways": await _gateways(house, row),
        "event_id": event_id,
    }
    return json(standing)


async def _engaged_by(house: House, row: Row) -> tuple[int | None, str | None]:
    """The number and the id of the event that engaged it, found by its time."""
    if row["engaged_ns"] is None:
        return None, None
    micro = row["engaged_ns"] // 1_000 * 1_000  # as exact as both databases keep a time
    where = EventFilter(since_ns=micro, until_ns=micro + 1_000)
    for event in await house.store.events(row["tenant_id"], where, BESIDE, newest_first=False):
        if b'"event_type":"kill_switch_engaged"' in event.record and row["kill_id"].encode() in event.record:
            told = msgspec.json.decode(event.record)
            return event.sequence_number, told["audit_event_id"]
    return None, None


def _unheard(agent: Row) -> dict[str, object]:
    return {
        "agent_id": agent["agent_id"],
        "last_seen_at": from_ns(agent["last_seen_ns"]) if agent["last_seen_ns"] else None,
        "is_evicted": agent["evicted_ns"] is not None,
    }


async def _gateways(house: House, row: Row) -> list[dict[str, object]]:
    """Those that live, and those that went silent just now: of these it is not known.

    Machines are the house's: other tenants see how many there are, and not what they are called.
    """
    told: list[dict[str, object]] = []
    is_home = row["tenant_id"] == HOME_TENANT
    for lease in await house.schedule.leases(PRESENT):
        is_live = lease.expires_ns > lease.now_ns
        if not is_live and (lease.expires_ns == 0 or lease.now_ns - lease.ticked_ns > GONE_NS):
            continue
        engaged_ns = row["engaged_ns"]
        told.append(
            {
                "name": lease.name.removeprefix(PRESENT) if is_home else f"gateway {len(told) + 1}",
                "last_tick_at": from_ns(lease.ticked_ns),
                "is_live": is_live,
                "has_obeyed": engaged_ns is not None and lease.ticked_ns >= engaged_ns,
            }
        )
    return told


stopped = Router(path="/v1", route_handlers=[get_kill_switch], tags=["God Mode"])

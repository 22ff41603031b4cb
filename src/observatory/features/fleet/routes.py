"""Fleet Command's words: the map of who works with whom, now or at any minute, and where clusters stand.

States and alarms come from the record, so they are current; rates, causal edges, forks and the replay from
the minute counters, a moment behind (`folded_until`). Rules S229–S234.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

import msgspec
from litestar import Response, Router, get
from litestar.enums import MediaType
from litestar.params import FromQuery, QueryParameter

from observatory.features.fleet import edges as traffic
from observatory.features.fleet.halted import around, facts_of
from observatory.features.fleet.layout import MINUTE, Asked, Scene, draw
from observatory.features.fleet.routes_regions import places_of
from observatory.http.answers import Refusal
from observatory.http.app_state import Call, Here, House
from observatory.http.permissions import need
from observatory.protocol import clock
from observatory.protocol.clock import from_ns

# Evicted agents are shown for so long; forks are looked for so far back, so many.
GONE_NS = 60 * MINUTE
FORKS_NS, FORKS = 5 * MINUTE, 20
SAMPLED = 20_000  # acknowledgements, the newest, that are looked at for latencies
Row = dict[str, Any]


@get("/fleet", summary="The map: nodes, edges, groups, alarms", operation_id="fleet_map")
async def fleet_map(
    request: Call,
    house: Here,
    layout: FromQuery[Literal["logical", "geographic"]] = "logical",
    level: FromQuery[Literal["cluster", "group", "agent"]] = "agent",
    cluster: Annotated[str | None, QueryParameter(description="Only this cluster.")] = None,
    group: Annotated[str | None, QueryParameter(description="Only this agent type.")] = None,
    at: Annotated[
        str | None, QueryParameter(description="The map as it was in the minute of that time.")
    ] = None,
    limit: Annotated[
        int, QueryParameter(ge=1, le=2_000, description="Above so many nodes the answer is by group.")
    ] = 500,
) -> Response[bytes]:
    """Cluster → group (agent type) → agent, the same in both layouts."""
    who = await need(request, house, "read")
    tenant_id, now_ns = who.tenant_id, house.clock()
    then_ns = None if at is None else time_of("at", at)
    if then_ns is not None and then_ns > now_ns:
        raise Refusal(400, "bad_time", "at lies in the future; leave it out for the map as it is now")
    folded = await house.derived.progress(tenant_id)
    scene = await (_live(house, tenant_id, now_ns) if then_ns is None else _then(house, tenant_id, then_ns))
    places = (await places_of(house, tenant_id))[0]
    until_ns = now_ns if then_ns is None else scene.now_ns
    forks = await house.derived.forks(tenant_id, until_ns - FORKS_NS, until_ns, FORKS)
    numbers = sorted({fork.session_no for fork in forks})
    sessions = await house.store.rows(tenant_id, "sessions", session_no=numbers) if numbers else []
    names = {row["session_no"]: row["session_id"] for row in sessions}
    asked = Asked(layout, level, cluster, group, limit)
    window_s = house.settings.violation_window_s
    shown = await asyncio.to_thread(draw, scene, asked, places, window_s, forks, names)
    head = {
        "as_of": from_ns(now_ns),
        "folded_until": from_ns(folded.at_ns) if folded.at_ns else None,
        "replayed": then_ns is not None,
        "minute": None if then_ns is None else _minute(then_ns),
    }
    return Response(msgspec.json.encode(head | shown), media_type=MediaType.JSON)


def _minute(then_ns: int) -> dict[str, str]:
    start_ns = then_ns - then_ns % MINUTE
    return {"from": from_ns(start_ns), "to": from_ns(start_ns + MINUTE)}


async def _live(house: House, tenant_id: str, now_ns: int) -> Scene:
    store, minute = house.store, now_ns // MINUTE
    agents = [
        row
        for row in await store.rows(tenant_id, "agents")
        if (row["evicted_ns"] or now_ns) > now_ns - GONE_NS
    ]
    pulses = {row["agent_no"]: row for row in await store.rows(tenant_id, "pulses")}
    found = await around(house, tenant_id)
    since_ns = now_ns - traffic.SINCE_S * traffic.SECOND
    recent_ns = now_ns - traffic.RECENT_S * traffic.SECOND
    sums = await house.derived.edge_sums(tenant_id, since_ns // MINUTE, minute)
    return Scene(
        agents=agents,
        facts={row["agent_no"]: facts_of(row, pulses.get(row["agent_no"]), found, now_ns) for row in agents},
        minutes=await house.derived.agent_minutes(tenant_id, minute - 1, minute),
        counts=await store.edges(tenant_id, since_ns, recent_ns),
        latencies=await store.latencies(tenant_id, since_ns, SAMPLED),
        # What was addressed is counted by its deliveries, which know who took it.
        sums=[one for one in sums if one.kind == "causal"],
        now_ns=now_ns,
    )


async def _then(house: House, tenant_id: str, then_ns: int) -> Scene:
    minute = then_ns // MINUTE
    end_ns = (minute + 1) * MINUTE
    agents = await house.store.rows(tenant_id, "agents")
    there = [
        row
        for row in agents
        if row["first_seen_ns"] < end_ns and (row["evicted_ns"] or end_ns) > end_ns - GONE_NS
    ]
    return Scene(
        there,
        None,
        await house.derived.agent_minutes(tenant_id, minute, minute),
        [],
        [],
        await house.derived.edge_sums(tenant_id, minute, minute),
        end_ns - 1,
    )


def time_of(name: str, text: str) -> int:
    try:
        return clock.to_ns(text)
    except ValueError as error:
        raise Refusal(400, "bad_time", f"{name}: expected {clock.EXPECTED}") from error


fleet = Router(path="/v1", route_handlers=[fleet_map], tags=["Fleet Command"])

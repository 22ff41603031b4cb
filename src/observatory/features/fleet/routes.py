"""Fleet Command's map over HTTP: agents and their traffic, now or at any minute.

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

from observatory.features.fleet import types_edges as traffic
from observatory.features.fleet.layout import MINUTE, MapData, MapQuery, draw_map
from observatory.features.fleet.queries_halted import facts_of, read_conditions
from observatory.features.fleet.routes_regions import places_of
from observatory.features.fleet.types_traffic import MapReads
from observatory.http.answers import Refusal, time_of
from observatory.http.app_state import AppState, Call, Here
from observatory.http.permissions import require_permission
from observatory.protocol.clock import from_ns

# Evicted agents are shown for this long; forks are looked for this far back, at most this many.
GONE_NS = 60 * MINUTE
FORKS_NS, FORKS = 5 * MINUTE, 20
SAMPLED = 20_000  # latencies are taken from this many acknowledgements, the newest
Row = dict[str, Any]


@get("/fleet", summary="The map: nodes, edges, groups, alarms", operation_id="fleet_map")
async def fleet_map(
    request: Call,
    app: Here,
    layout: FromQuery[Literal["logical", "geographic"]] = "logical",
    level: FromQuery[Literal["cluster", "group", "agent"]] = "agent",
    cluster: Annotated[str | None, QueryParameter(description="Only this cluster.")] = None,
    group: Annotated[str | None, QueryParameter(description="Only this agent type.")] = None,
    at: Annotated[
        str | None, QueryParameter(description="The map as it was in the minute of that time.")
    ] = None,
    limit: Annotated[
        int, QueryParameter(ge=1, le=2_000, description="Above this many nodes the answer is by group.")
    ] = 500,
) -> Response[bytes]:
    """Cluster → group (agent type) → agent, the same in both layouts."""
    principal = await require_permission(request, app, "read")
    tenant_id, now_ns = principal.tenant_id, app.clock()
    then_ns = None if at is None else time_of("at", at)
    if then_ns is not None and then_ns > now_ns:
        raise Refusal(400, "bad_time", "at is in the future; omit it for the current map")
    folded = await app.derived.progress(tenant_id)
    scene = await (_live(app, tenant_id, now_ns) if then_ns is None else _then(app, tenant_id, then_ns))
    places = (await places_of(app, tenant_id))[0]
    until_ns = now_ns if then_ns is None else scene.now_ns
    forks = await app.derived.queries(MapReads).forks(tenant_id, until_ns - FORKS_NS, until_ns, FORKS)
    numbers = sorted({fork.session_no for fork in forks})
    sessions = await app.store.rows(tenant_id, "sessions", session_no=numbers) if numbers else []
    names = {row["session_no"]: row["session_id"] for row in sessions}
    query = MapQuery(layout, level, cluster, group, limit)
    window_s = app.settings.violation_window_s
    drawing = await asyncio.to_thread(draw_map, scene, query, places, window_s, forks, names)
    head = {
        "as_of": from_ns(now_ns),
        "folded_until": from_ns(folded.at_ns) if folded.at_ns else None,
        "replayed": then_ns is not None,
        "minute": None if then_ns is None else _minute(then_ns),
    }
    return Response(msgspec.json.encode(head | drawing), media_type=MediaType.JSON)


def _minute(then_ns: int) -> dict[str, str]:
    start_ns = then_ns - then_ns % MINUTE
    return {"from": from_ns(start_ns), "to": from_ns(start_ns + MINUTE)}


async def _live(app: AppState, tenant_id: str, now_ns: int) -> MapData:
    store, minute = app.store, now_ns // MINUTE
    agents = [
        row
        for row in await store.rows(tenant_id, "agents")
        if (row["evicted_ns"] or now_ns) > now_ns - GONE_NS
    ]
    pulses = {row["agent_no"]: row for row in await store.rows(tenant_id, "pulses")}
    found = await read_conditions(app, tenant_id)
    since_ns = now_ns - traffic.SINCE_S * traffic.SECOND
    recent_ns = now_ns - traffic.RECENT_S * traffic.SECOND
    sums = await app.derived.queries(MapReads).edge_sums(tenant_id, since_ns // MINUTE, minute)
    return MapData(
        agents=agents,
        facts={row["agent_no"]: facts_of(row, pulses.get(row["agent_no"]), found, now_ns) for row in agents},
        minutes=await app.derived.queries(MapReads).agent_minutes(tenant_id, minute - 1, minute),
        counts=await store.edges(tenant_id, since_ns, recent_ns),
        latencies=await store.latencies(tenant_id, since_ns, SAMPLED),
        # Addressed messages are counted by their deliveries, which record the receiver.
        sums=[one for one in sums if one.kind == "causal"],
        now_ns=now_ns,
    )


async def _then(app: AppState, tenant_id: str, then_ns: int) -> MapData:
    minute = then_ns // MINUTE
    end_ns = (minute + 1) * MINUTE
    agents = await app.store.rows(tenant_id, "agents")
    there = [
        row
        for row in agents
        if row["first_seen_ns"] < end_ns and (row["evicted_ns"] or end_ns) > end_ns - GONE_NS
    ]
    return MapData(
        there,
        None,
        await app.derived.queries(MapReads).agent_minutes(tenant_id, minute, minute),
        [],
        [],
        await app.derived.queries(MapReads).edge_sums(tenant_id, minute, minute),
        end_ns - 1,
    )


fleet = Router(path="/v1", route_handlers=[fleet_map], tags=["Fleet Command"])

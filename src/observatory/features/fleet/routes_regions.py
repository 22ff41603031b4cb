"""Where clusters stand: found in their names, or said by operators; what stands nowhere is listed (S230)."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar import Response, Router, get, put
from litestar.params import JSONBody

from observatory.features.fleet import commands as acts
from observatory.features.fleet import regions as map_of
from observatory.features.fleet.regions import Place
from observatory.http.answers import Was, json
from observatory.http.app_state import Call, Here, House
from observatory.http.permissions import need
from observatory.pipeline.validation import judge_of
from observatory.protocol.answers import Fault
from observatory.protocol.clock import from_ns

MOST_PLACES = 200
Row = dict[str, Any]


async def places_of(house: House, tenant_id: str) -> tuple[dict[str, Place], Row | None]:
    rows = await house.store.rows(tenant_id, "knobs", name=acts.NAME)
    if not rows:
        return {}, None
    return msgspec.json.decode(rows[0]["value"], type=dict[str, Place]), rows[0]


@get("/fleet/regions", summary="Where clusters stand", operation_id="get_regions")
async def get_regions(request: Call, house: Here) -> Response[bytes]:
    who = await need(request, house, "read")
    return json(await _regions(house, who.tenant_id))


class Regions(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """All that operators say from now on: cluster (`*` at its end for any rest) → region, or lat and lon."""

    clusters: dict[str, Any]
    was: Was | None = None


@put("/fleet/regions", summary="Say where clusters stand", operation_id="put_regions")
async def put_regions(request: Call, house: Here, data: JSONBody[Regions]) -> Response[bytes]:
    """Replaces what was said before; an empty place keeps a cluster off the map."""
    who = await need(request, house, "operate")
    places, faults = _checked(data.clusters)
    verdict = await house.command(acts.change(who, places, faults, house.clock(), data.was))
    if verdict.code >= 400:
        return json(verdict.answer, verdict.code)
    return json(await _regions(house, who.tenant_id))


def _checked(asked: dict[str, Any]) -> tuple[Row, list[Fault]]:
    """As plain data, and every fault found."""
    faults: list[Fault] = []
    places: Row = {}
    if len(asked) > MOST_PLACES:
        return {}, [Fault(path="clusters", problem=f"at most {MOST_PLACES}; use * for many of one beginning")]
    for number, (cluster_id, value) in enumerate(asked.items()):
        path = f"clusters[{number}]"
        if not 1 <= len(cluster_id) <= 256 or not cluster_id.isprintable():
            faults.append(Fault(path=path, problem="a cluster's name has 1 to 256 printable characters"))
            continue
        found = list(judge_of(Place)(value, path, 2))
        if found:
            faults += found
            continue
        place = msgspec.convert(value, Place)
        problem = map_of.fault_in(cluster_id, place)
        if problem is not None:
            faults.append(Fault(path=path, problem=problem))
        places[cluster_id] = msgspec.to_builtins(place)
    return places, faults


async def _regions(house: House, tenant_id: str) -> Row:
    places, row = await places_of(house, tenant_id)
    agents = await house.store.rows(tenant_id, "agents")
    clusters = sorted({agent["cluster_id"] for agent in agents if agent["cluster_id"]})
    spots = {cluster: map_of.placed(cluster, places) for cluster in clusters}
    return {
        "clusters": places,
        "placed": [
            {
                "cluster_id": cluster,
                **spot._asdict(),
                "by": "name" if spot == map_of.region_of(cluster) else "operator",
            }
            for cluster, spot in spots.items()
            if spot is not None
        ],
        "unplaced": [cluster for cluster, spot in spots.items() if spot is None],
        "known": [region._asdict() for region in map_of.REGIONS.values()],
        "updated_at": None if row is None else from_ns(row["updated_ns"]),
        "updated_by": None if row is None else row["updated_by"],
    }


regions = Router(path="/v1", route_handlers=[get_regions, put_regions], tags=["Fleet Command"])

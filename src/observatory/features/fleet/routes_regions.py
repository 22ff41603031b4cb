"""Where clusters are on the map: found in their names, or set by operators; the rest is listed (S230)."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar import Response, Router, get, put
from litestar.params import JSONBody

from observatory.features.fleet import commands
from observatory.features.fleet import regions as map_of
from observatory.features.fleet.regions import ClusterPlace
from observatory.features.fleet.types_regions import REGIONS
from observatory.http.answers import Was, json
from observatory.http.app_state import AppState, Call, Here
from observatory.http.permissions import require_permission
from observatory.pipeline.validation import validator_of
from observatory.protocol.clock import from_ns
from observatory.protocol.responses import Fault

MAX_PLACES = 200
Row = dict[str, Any]


async def places_of(app: AppState, tenant_id: str) -> tuple[dict[str, ClusterPlace], Row | None]:
    rows = await app.store.rows(tenant_id, "knobs", name=REGIONS)
    if not rows:
        return {}, None
    return msgspec.json.decode(rows[0]["value"], type=dict[str, ClusterPlace]), rows[0]


@get("/fleet/regions", summary="Where clusters are", operation_id="get_regions")
async def get_regions(request: Call, app: Here) -> Response[bytes]:
    principal = await require_permission(request, app, "read")
    return json(await _regions(app, principal.tenant_id))


class Regions(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The whole setting: cluster (`*` at its end as a wildcard) → region, or lat and lon."""

    clusters: dict[str, Any]
    was: Was | None = None


@put("/fleet/regions", summary="Set where clusters are", operation_id="put_regions")
async def put_regions(request: Call, app: Here, data: JSONBody[Regions]) -> Response[bytes]:
    """Replaces the whole setting; an empty place keeps a cluster off the map."""
    principal = await require_permission(request, app, "operate")
    places, faults = _checked(data.clusters)
    verdict = await app.command(commands.change(principal, places, faults, app.clock(), data.was))
    if verdict.code >= 400:
        return json(verdict.answer, verdict.code)
    return json(await _regions(app, principal.tenant_id))


def _checked(clusters: dict[str, Any]) -> tuple[Row, list[Fault]]:
    """The places as plain data, and every fault found."""
    faults: list[Fault] = []
    places: Row = {}
    if len(clusters) > MAX_PLACES:
        return {}, [Fault(path="clusters", problem=f"at most {MAX_PLACES}; use * for many with one prefix")]
    for number, (cluster_id, value) in enumerate(clusters.items()):
        path = f"clusters[{number}]"
        if not 1 <= len(cluster_id) <= 256 or not cluster_id.isprintable():
            faults.append(Fault(path=path, problem="a cluster's name has 1 to 256 printable characters"))
            continue
        found = list(validator_of(ClusterPlace)(value, path, 2))
        if found:
            faults += found
            continue
        place = msgspec.convert(value, ClusterPlace)
        problem = map_of.place_problem(cluster_id, place)
        if problem is not None:
            faults.append(Fault(path=path, problem=problem))
        places[cluster_id] = msgspec.to_builtins(place)
    return places, faults


async def _regions(app: AppState, tenant_id: str) -> Row:
    places, row = await places_of(app, tenant_id)
    agents = await app.store.rows(tenant_id, "agents")
    clusters = sorted({agent["cluster_id"] for agent in agents if agent["cluster_id"]})
    spots = {cluster: map_of.cluster_region(cluster, places) for cluster in clusters}
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

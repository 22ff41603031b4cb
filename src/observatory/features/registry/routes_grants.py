"""Who gets the work of a capability or a cluster: `/v1/settings/routing`, and grants of operators (S1145)."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from litestar import Response, Router, get, post, put
from litestar.params import FromPath, JSONBody

from observatory.features.inbox.routes import NAME
from observatory.features.registry import commands_grants as acts
from observatory.features.registry.routes import Name
from observatory.http.answers import Refusal, json
from observatory.http.app_state import Call, Here
from observatory.http.permissions import need
from observatory.http.setting_rows import shown
from observatory.protocol.clock import from_ns
from observatory.protocol.rulebook import RoutingSettings

Words = Annotated[list[Name], msgspec.Meta(max_length=50)]


class GrantChange(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Capabilities by name, clusters as `cluster:<id>`."""

    grant: Words = []
    revoke: Words = []


@get("/settings/routing", summary="Who is asked for work", operation_id="get_routing_settings")
async def get_routing_settings(request: Call, house: Here) -> Response[bytes]:
    principal = await need(request, house, "read")
    return json(await shown(house, principal.tenant_id, acts.NAME, RoutingSettings))


@put("/settings/routing", summary="Change who is asked for work", operation_id="put_routing_settings")
async def put_routing_settings(request: Call, house: Here, data: JSONBody[dict[str, Any]]) -> Response[bytes]:
    """What is left out stays as it is; null takes the default. It counts for the next message."""
    principal = await need(request, house, "operate")
    verdict = await house.command(acts.settle(principal, data, house.clock()))
    if verdict.code >= 400:
        return json(verdict.answer, verdict.code)
    return json(await shown(house, principal.tenant_id, acts.NAME, RoutingSettings))


@get("/grants", summary="What operators gave to agents", operation_id="list_grants")
async def list_grants(request: Call, house: Here) -> Response[bytes]:
    principal = await need(request, house, "read")
    rows = await house.store.rows(principal.tenant_id, "grants", removed_ns=None)
    items = [
        {
            "agent_id": row["agent_id"],
            "entity_id": row["entity_id"],
            "capability": acts.word_of(row["address"]),
            "granted_at": from_ns(row["granted_ns"]),
            "granted_by": row["granted_by"],
        }
        for row in sorted(rows, key=lambda row: (row["agent_id"], row["address"]))
    ]
    return json({"items": items, "next_cursor": None})


@post(
    "/agents/{agent_id:str}/grants",
    status_code=200,
    summary="Give an agent the work of a capability or cluster, or take it",
    operation_id="change_grants",
)
async def change_grants(
    request: Call, house: Here, agent_id: FromPath[str], data: JSONBody[GrantChange]
) -> Response[bytes]:
    """It counts for the next message, and for work that waits. A word in both lists is taken."""
    principal = await need(request, house, "operate")
    if not NAME(agent_id):
        raise Refusal(404, "not_found", "that is no agent's name")
    grant, revoke = map(acts.address_of, data.grant), map(acts.address_of, data.revoke)
    act = acts.change(principal, agent_id, list(grant), list(revoke), house.clock())
    verdict = await house.command(act)
    return json(verdict.answer, verdict.code)


grants_router = Router(
    path="/v1",
    route_handlers=[get_routing_settings, put_routing_settings, list_grants, change_grants],
    tags=["Registry"],
)

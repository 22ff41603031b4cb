"""HTTP routes of routing settings and grants: which agents get work of a capability or cluster (S1145)."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from litestar import Response, Router, get, post, put
from litestar.params import FromPath, JSONBody

from observatory.features.registry import commands_grants as acts
from observatory.features.registry.routes import Name
from observatory.http.answers import AGENT_NAME, Refusal, json
from observatory.http.app_state import Call, Here
from observatory.http.permissions import require_permission
from observatory.http.setting_rows import setting_row
from observatory.protocol.clock import from_ns
from observatory.protocol.tenant_config import RoutingSettings

Grants = Annotated[list[Name], msgspec.Meta(max_length=50)]


class GrantChange(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Capabilities by name, clusters as `cluster:<id>`."""

    grant: Grants = []
    revoke: Grants = []


@get("/settings/routing", summary="Which agents get work", operation_id="get_routing_settings")
async def get_routing_settings(request: Call, app: Here) -> Response[bytes]:
    principal = await require_permission(request, app, "read")
    return json(await setting_row(app, principal.tenant_id, acts.NAME, RoutingSettings))


@put("/settings/routing", summary="Change which agents get work", operation_id="put_routing_settings")
async def put_routing_settings(request: Call, app: Here, data: JSONBody[dict[str, Any]]) -> Response[bytes]:
    """Fields left out keep their values; null restores the default. It applies from the next message on."""
    principal = await require_permission(request, app, "operate")
    verdict = await app.command(acts.change_routing(principal, data, app.clock()))
    if verdict.code >= 400:
        return json(verdict.answer, verdict.code)
    return json(await setting_row(app, principal.tenant_id, acts.NAME, RoutingSettings))


@get("/grants", summary="Capabilities and clusters granted to agents", operation_id="list_grants")
async def list_grants(request: Call, app: Here) -> Response[bytes]:
    principal = await require_permission(request, app, "read")
    rows = await app.store.rows(principal.tenant_id, "grants", removed_ns=None)
    items = [
        {
            "agent_id": row["agent_id"],
            "entity_id": row["entity_id"],
            "capability": acts.grant_name(row["address"]),
            "granted_at": from_ns(row["granted_ns"]),
            "granted_by": row["granted_by"],
        }
        for row in sorted(rows, key=lambda row: (row["agent_id"], row["address"]))
    ]
    return json({"items": items, "next_cursor": None})


@post(
    "/agents/{agent_id:str}/grants",
    status_code=200,
    summary="Grant or revoke capabilities and clusters of an agent",
    operation_id="change_grants",
)
async def change_grants(
    request: Call, app: Here, agent_id: FromPath[str], data: JSONBody[GrantChange]
) -> Response[bytes]:
    """It applies from the next message on and to waiting work. A name in both lists is revoked."""
    principal = await require_permission(request, app, "operate")
    if not AGENT_NAME(agent_id):
        raise Refusal(404, "not_found", "not a valid agent name")
    grant, revoke = map(acts.address_of, data.grant), map(acts.address_of, data.revoke)
    act = acts.change(principal, agent_id, list(grant), list(revoke), app.clock())
    verdict = await app.command(act)
    return json(verdict.answer, verdict.code)


grants_router = Router(
    path="/v1",
    route_handlers=[get_routing_settings, put_routing_settings, list_grants, change_grants],
    tags=["Registry"],
)

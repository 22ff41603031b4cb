"""The Registry's words: agents as the gateway knows them, and the version registry (N and N-1 as data)."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from litestar import Response, Router, get, put
from litestar.params import FromPath, FromQuery, JSONBody

from observatory.api.answers import Refusal, json
from observatory.api.gate import need
from observatory.api.house import Call, Here, House
from observatory.gateway import access
from observatory.projections.topology import COLOURS, node_state
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import agent_entity_id
from observatory.protocol.versions import VersionEntry, VersionStatus, parse_semver

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=256, pattern=r"^[^\x00-\x1f\x7f]+$")]


class VersionRow(msgspec.Struct, kw_only=True):
    version: Annotated[
        str, msgspec.Meta(min_length=1, max_length=128, description="semver, a leading v is fine")
    ]
    status: VersionStatus
    fields: list[Name] | None = None


class VersionsOfType(msgspec.Struct, kw_only=True):
    """The whole registry of one agent type; versions left out are retired."""

    agent_type: Name
    versions: Annotated[list[VersionRow], msgspec.Meta(min_length=1, max_length=200)]


@get("/versions", summary="The version registry", operation_id="list_versions")
async def list_versions(
    request: Call, house: Here, agent_type: FromQuery[str | None] = None
) -> Response[bytes]:
    principal = await need(request, house, "read")
    where = {} if agent_type is None else {"agent_type": agent_type}
    rows = await house.store.rows(principal.tenant_id, "versions", **where)
    items = [
        {
            "agent_type": row["agent_type"],
            "version": row["version"],
            "status": "unknown" if row["status"] == "seen" else row["status"],
            "fields": msgspec.json.decode(row["fields"]) if row["fields"] else None,
            "updated_at": from_ns(row["updated_ns"]),
            "updated_by": row["updated_by"],
        }
        for row in sorted(rows, key=lambda row: (row["agent_type"], -row["updated_ns"]))
    ]
    return json({"items": items, "next_cursor": None})


@put("/versions", summary="Set the versions of one agent type", operation_id="put_versions")
async def put_versions(request: Call, house: Here, data: JSONBody[VersionsOfType]) -> Response[bytes]:
    principal = await need(request, house, "operate")
    entries = []
    for row in data.versions:
        try:
            parse_semver(row.version)
        except ValueError as error:
            raise Refusal(
                422, "bad_version", "a version is semver with an optional leading v, e.g. v2.1.0"
            ) from error
        entries.append(
            VersionEntry(
                agent_type=data.agent_type, version=row.version, status=row.status, fields=row.fields
            )
        )
    for status in ("current", "previous"):
        if sum(entry.status == status for entry in entries) > 1:
            raise Refusal(422, "bad_registry", f"at most one version can be {status} (N and N-1)")
    if len({entry.version.removeprefix("v") for entry in entries}) < len(entries):
        raise Refusal(422, "bad_registry", "a version is named twice")
    verdict = await house.act(access.put_versions(principal, data.agent_type, entries, house.clock()))
    if verdict.code >= 400:
        raise Refusal(verdict.code, verdict.answer.reason, verdict.answer.detail or "not accepted")
    return json({"items": verdict.answer, "next_cursor": None}, verdict.code)


@get("/agents", summary="Agents known to this tenant", operation_id="list_agents")
async def list_agents(request: Call, house: Here) -> Response[bytes]:
    principal = await need(request, house, "read")
    rows = await house.store.rows(principal.tenant_id, "agents")
    items = [_agent(row, house) for row in sorted(rows, key=lambda row: -row["last_seen_ns"])]
    return json({"items": items, "next_cursor": None})


@get("/agents/{agent_id:str}", summary="One agent, by name or entity id", operation_id="get_agent")
async def get_agent(request: Call, house: Here, agent_id: FromPath[str]) -> Response[bytes]:
    principal = await need(request, house, "read")
    entity_id = agent_entity_id(principal.tenant_id, agent_id)
    rows = await house.store.rows(principal.tenant_id, "agents", entity_id=entity_id)
    if not rows:
        raise Refusal(404, "not_found", "no agent of this tenant has that name or id")
    return json(_agent(rows[0], house))


def _agent(row: dict[str, Any], house: House) -> dict[str, Any]:
    state = node_state(
        row["last_seen_ns"], row["violation_ns"], house.clock(), house.settings.violation_window_s
    )
    return {
        "agent_id": row["agent_id"],
        "entity_id": row["entity_id"],
        "entity_type": "agent",
        "tenant_id": row["tenant_id"],
        "display_name": row["agent_id"],
        "agent_type": row["agent_type"],
        "capability_version": row["capability_version"],
        "cluster_id": row["cluster_id"],
        "model": row["model"],
        "provider": row["provider"],
        "hub_address": row["hub_address"],
        "capabilities": [row["agent_type"]] if row["agent_type"] else [],
        "trust_level": row["trust_level"],
        "state": state,
        "colour": COLOURS[state],
        "ghost": row["messages"] == 0,
        "messages": row["messages"],
        "first_seen_at": from_ns(row["first_seen_ns"]),
        "last_seen_at": from_ns(row["last_seen_ns"]) if row["last_seen_ns"] else None,
    }


registry = Router(
    path="/v1", route_handlers=[list_versions, put_versions, list_agents, get_agent], tags=["Registry"]
)

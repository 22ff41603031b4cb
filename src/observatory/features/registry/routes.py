"""HTTP routes of the registry: agents and heartbeats, the Yellow Pages, versions (N and N-1 as data)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec
from litestar import Response, Router, get, post, put
from litestar.params import FromPath, FromQuery, JSONBody

from observatory.features.fleet.queries_halted import FleetConditions, facts_of, read_conditions
from observatory.features.fleet.types_node_states import COLOURS, MARKS, judge
from observatory.features.registry import commands as enrolment
from observatory.features.registry import commands_eviction as reaping
from observatory.features.registry import commands_grants as grants
from observatory.features.registry.capabilities import yellow_pages
from observatory.features.registry.commands_versions import change_versions
from observatory.features.registry.queries_routing import read_routing_config
from observatory.http.answers import (
    MAX_LIMIT,
    Cursor,
    Limit,
    Refusal,
    decode_cursor,
    encode_cursor,
    invalid_cursor,
    json,
)
from observatory.http.app_state import AppState, Call, Here
from observatory.http.authentication import allows
from observatory.http.permissions import principal_of, require_permission
from observatory.pipeline.agents import ADDRESS_COLUMNS, Liveness, addresses_of, claimed_addresses, types_of
from observatory.pipeline.authority import denied
from observatory.pipeline.rows import AgentRow
from observatory.pipeline.state import Principal, SubmissionResult, TenantConfig
from observatory.protocol import clock
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import agent_entity_id
from observatory.protocol.versions import VersionEntry, VersionStatus, parse_semver

Name = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=256,
        pattern=r"^[^\x00-\x1f\x7f]+$(?!\n)",
        extra={"expects": "1 to 256 characters without control characters"},
    ),
]
MAX_REPORTED = 4_096
CURSOR = re.compile(rb"a(\d{1,20})\.(\d{1,20})")


class VersionRow(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    version: Annotated[
        str, msgspec.Meta(min_length=1, max_length=128, description="semver, with an optional leading v")
    ]
    status: VersionStatus
    fields: list[Name] | None = None


class VersionsOfType(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The whole registry of one agent type; versions left out are retired."""

    agent_type: Name
    versions: Annotated[list[VersionRow], msgspec.Meta(min_length=1, max_length=200)]
    was: Annotated[dict[Name, VersionStatus], msgspec.Meta(max_length=1_000)] | None = None
    """The registered versions you read, {} for none: 409 when they have changed since."""


class NewAgent(msgspec.Struct, kw_only=True):
    """An agent to register. Fields left out keep their values; only the server sets the trust level."""

    agent_id: Name
    agent_type: Name | None = None
    capabilities: Annotated[list[Name], msgspec.Meta(max_length=50)] | None = None
    cluster_id: Name | None = None
    model: Name | None = None
    provider: Name | None = None
    display_name: Name | None = None
    hub_address: Name | None = None
    owner: Annotated[Name, msgspec.Meta(description="Id of the user responsible for it")] | None = None
    team_id: Name | None = None
    workspace_id: Name | None = None


class HeartbeatBody(msgspec.Struct, kw_only=True):
    """A heartbeat. Liveness uses the gateway's clock; `timestamp` is the agent's."""

    agent_id: Name
    type: Literal["heartbeat"] = "heartbeat"
    cluster_id: Name | None = None
    timestamp: Annotated[str, msgspec.Meta(max_length=64)] | None = None
    status: Name | None = None
    current_task: dict[str, Any] | None = None
    resource_usage: dict[str, Any] | None = None


@get("/versions", summary="The version registry", operation_id="list_versions")
async def list_versions(
    request: Call, app: Here, agent_type: FromQuery[str | None] = None
) -> Response[bytes]:
    principal = await require_permission(request, app, "read")
    where = {} if agent_type is None else {"agent_type": agent_type}
    rows = await app.store.rows(principal.tenant_id, "versions", **where)
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
async def put_versions(request: Call, app: Here, data: JSONBody[VersionsOfType]) -> Response[bytes]:
    principal = await require_permission(request, app, "operate")
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
    verdict = await app.act(change_versions(principal, data.agent_type, entries, app.clock(), data.was))
    _accepted(verdict)
    return json({"items": verdict.answer, "next_cursor": None}, verdict.code)


@post("/agents", summary="Register or update an agent", operation_id="register_agent")
async def register_agent(request: Call, app: Here, data: JSONBody[NewAgent]) -> Response[bytes]:
    principal = await require_agent_access(request, app, data.agent_id)
    fields = {
        name: value
        for name, value in msgspec.structs.asdict(data).items()
        if value is not None and name not in ("agent_id", "owner")
    }
    if data.capabilities is not None:
        fields["capabilities"] = msgspec.json.encode(list(dict.fromkeys(data.capabilities))).decode()
    if data.owner is not None:
        users = await app.store.rows(principal.tenant_id, "users", user_id=data.owner)
        if not users or users[0]["disabled_ns"] is not None:
            raise Refusal(422, "bad_owner", "the owner must be the id of a user of this tenant")
        fields["owner_id"] = data.owner
    act = enrolment.register(principal, data.agent_id, fields, app.clock())
    verdict = (await app.committer.submit(principal.tenant_id, [act]))[0]
    _accepted(verdict)
    entity_id = verdict.answer["entity_id"]
    row = (await app.store.rows(principal.tenant_id, "agents", entity_id=entity_id))[0]
    return json(await _agent_item(row, app), verdict.code)


@post("/heartbeat", status_code=200, summary="Send an agent's heartbeat", operation_id="heartbeat")
async def heartbeat(request: Call, app: Here, data: JSONBody[HeartbeatBody]) -> Response[bytes]:
    principal = await require_agent_access(request, app, data.agent_id)
    if data.timestamp is not None:
        try:
            clock.parse(data.timestamp)
        except ValueError as error:
            raise Refusal(422, "bad_time", f"timestamp must be {clock.EXPECTED}") from error
    fields: dict[str, Any] = {}
    for name, value in (("task", data.current_task), ("usage", data.resource_usage)):
        if value is not None:
            fields[name] = msgspec.json.encode(value).decode()
            if len(fields[name]) > MAX_REPORTED:
                raise Refusal(
                    422,
                    "too_large",
                    f"current_task and resource_usage take at most {MAX_REPORTED} bytes each",
                )
    fields |= {
        name: getattr(data, name) for name in ("status", "cluster_id") if getattr(data, name) is not None
    }
    entity_id = agent_entity_id(principal.tenant_id, data.agent_id)
    known = await app.store.rows(principal.tenant_id, "agents", entity_id=entity_id)
    number = known[0]["agent_no"] if known else None
    act = enrolment.record_heartbeat(principal, data.agent_id, number, fields, app.clock())
    verdict = (await app.committer.submit(principal.tenant_id, [act]))[0]
    _accepted(verdict)
    return json(verdict.answer)


@get("/agents", summary="Agents known to this tenant", operation_id="list_agents")
async def list_agents(
    request: Call,
    app: Here,
    capability: FromQuery[str | None] = None,
    cluster: FromQuery[str | None] = None,
    liveness: FromQuery[Liveness | None] = None,
    cursor: Cursor = None,
    limit: Limit = MAX_LIMIT,
) -> Response[bytes]:
    """The most recently active first. An agent active while you page moves to the front of the first page."""
    principal = await require_permission(request, app, "read")
    to_item = await _item_builder(app, principal.tenant_id)
    items: list[dict[str, Any]] = []
    last, following = None, None
    for row in await _newest_first(app, principal.tenant_id, _read_position(cursor)):
        item = to_item(row)
        if (
            (capability is not None and capability not in item["capabilities"])
            or (cluster is not None and cluster != item["cluster_id"])
            or (liveness is not None and liveness != item["liveness"])
        ):
            continue
        if len(items) == limit:
            following = last
            break
        items.append(item)
        last = encode_cursor(b"a%d.%d" % _position(row))
    return json({"items": items, "next_cursor": following})


def _position(row: dict[str, Any]) -> tuple[int, int]:
    """An agent's position in the list: when it was last active, then its number."""
    return row["last_seen_ns"], row["agent_no"]


def _read_position(cursor: str | None) -> tuple[int, int] | None:
    if cursor is None:
        return None
    match = CURSOR.fullmatch(decode_cursor(cursor))
    if match is None:
        raise invalid_cursor()
    return int(match[1]), int(match[2])


@get("/agents/{agent_id:str}", summary="One agent, by name or entity id", operation_id="get_agent")
async def get_agent(request: Call, app: Here, agent_id: FromPath[str]) -> Response[bytes]:
    principal = await require_permission(request, app, "read")
    entity_id = agent_entity_id(principal.tenant_id, agent_id)
    rows = await app.store.rows(principal.tenant_id, "agents", entity_id=entity_id)
    if not rows:
        raise Refusal(404, "not_found", "no agent of this tenant has that name or id")
    return json(await _agent_item(rows[0], app))


@get("/capabilities", summary="Yellow Pages: agents by capability", operation_id="list_capabilities")
async def list_capabilities(request: Call, app: Here) -> Response[bytes]:
    principal = await require_permission(request, app, "read")
    tenant_id = principal.tenant_id
    pages = yellow_pages(
        await agents_of(app, tenant_id),
        await app.store.rows(tenant_id, "breakers"),
        await app.store.rows(tenant_id, "routes"),
    )
    return json({"items": pages, "next_cursor": None})


async def require_agent_access(request: Call, app: AppState, agent_id: str) -> Principal:
    """Who may act for this agent: an operator, an admin, or an agent's key (if bound, then this agent's)."""
    principal = await principal_of(request, app)
    tenant_id = principal.tenant_id
    may = allows(principal, "send" if principal.role == "agent" else "operate")
    if principal.agent_id is not None:
        may = may and agent_entity_id(tenant_id, principal.agent_id) == agent_entity_id(tenant_id, agent_id)
    if not may:
        await app.act(denied(principal, "speak for this agent", app.clock()))
        raise Refusal(403, "not_allowed", "only the agent itself, an operator or an admin may do this")
    return principal


async def agents_of(app: AppState, tenant_id: str) -> list[dict[str, Any]]:
    to_item = await _item_builder(app, tenant_id)
    return [to_item(row) for row in await _newest_first(app, tenant_id)]


async def _newest_first(
    app: AppState, tenant_id: str, after: tuple[int, int] | None = None
) -> list[dict[str, Any]]:
    rows = await app.store.rows(tenant_id, "agents")
    return sorted(
        (row for row in rows if after is None or _position(row) < after), key=_position, reverse=True
    )


async def _item_builder(app: AppState, tenant_id: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A function from an agent's row to its item."""
    pulses = {row["agent_no"]: row for row in await app.store.rows(tenant_id, "pulses")}
    context, book = await read_conditions(app, tenant_id), await read_routing_config(app, tenant_id)
    return lambda row: _agent(row, pulses.get(row["agent_no"]), app, context, book)


async def _agent_item(row: dict[str, Any], app: AppState) -> dict[str, Any]:
    tenant_id = row["tenant_id"]
    context, book = await read_conditions(app, tenant_id), await read_routing_config(app, tenant_id)
    return _agent(row, await _pulse(row, app), app, context, book)


async def _pulse(row: dict[str, Any], app: AppState) -> dict[str, Any] | None:
    rows = await app.store.rows(row["tenant_id"], "pulses", agent_no=row["agent_no"])
    return rows[0] if rows else None


def _accepted(verdict: SubmissionResult) -> None:
    if verdict.code >= 400:
        raise Refusal(verdict.code, verdict.answer.reason, verdict.answer.detail or "not accepted")


def _agent(
    row: dict[str, Any],
    pulse: dict[str, Any] | None,
    app: AppState,
    context: FleetConditions,
    book: TenantConfig,
) -> dict[str, Any]:
    now_ns = app.clock()
    beat: dict[str, Any] = pulse or dict.fromkeys(("heartbeat_ns", "status", "task", "usage"))
    facts = facts_of(row, pulse, context, now_ns)
    state, _, reason = judge(facts, now_ns, app.settings.violation_window_s)
    agent = AgentRow(**{name: row[name] for name in ADDRESS_COLUMNS})
    gets = addresses_of(agent, book)
    return {
        "agent_id": row["agent_id"],
        "entity_id": row["entity_id"],
        "entity_type": "agent",
        "tenant_id": row["tenant_id"],
        "display_name": row["display_name"] or row["agent_id"],
        "agent_type": row["agent_type"],
        "capability_version": row["capability_version"],
        "cluster_id": row["cluster_id"],
        "model": row["model"],
        "provider": row["provider"],
        "hub_address": row["hub_address"],
        "capabilities": types_of(agent, book),
        "granted": sorted(map(grants.grant_name, book.grants.get(agent.entity_id, ()))),
        "requested": [grants.grant_name(one) for one in claimed_addresses(agent) if one not in gets],
        "owner": row["owner_id"],
        "team_id": row["team_id"],
        "workspace_id": row["workspace_id"],
        "trust_level": row["trust_level"],
        "state": state,
        "colour": COLOURS[state],
        "mark": MARKS[state],
        "state_reason": reason,
        "liveness": facts.liveness,
        "status": beat["status"],
        "task": msgspec.json.decode(beat["task"]) if beat["task"] else None,
        "usage": msgspec.json.decode(beat["usage"]) if beat["usage"] else None,
        "last_heartbeat_at": from_ns(beat["heartbeat_ns"]) if beat["heartbeat_ns"] else None,
        "paused_at": from_ns(row["paused_ns"]) if row["paused_ns"] else None,
        "paused_by": row["paused_by"],
        "evicted_at": from_ns(row["evicted_ns"]) if row["evicted_ns"] else None,
        "ghost": row["messages"] == 0,
        "messages": row["messages"],
        "first_seen_at": from_ns(row["first_seen_ns"]),
        "last_seen_at": from_ns(row["last_seen_ns"]) if row["last_seen_ns"] else None,
        "certificate": row["certificate"],
    }


class Dismissal(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    note: Annotated[str, msgspec.Meta(max_length=4_000)] | None = None


@post(
    "/agents/{agent_id:str}/evict",
    status_code=200,
    summary="Evict an agent; its undelivered work is rerouted to another of its type",
    operation_id="evict_agent",
)
async def evict_agent(
    request: Call, app: Here, agent_id: FromPath[str], data: JSONBody[Dismissal]
) -> Response[bytes]:
    who = await require_permission(request, app, "operate")
    entity_id = agent_entity_id(who.tenant_id, agent_id)
    verdict = await app.command(reaping.evict_by_operator(who, entity_id, data.note, app.clock()))
    return json(verdict.answer, verdict.code)


registry = Router(
    path="/v1",
    route_handlers=[
        evict_agent,
        list_versions,
        put_versions,
        register_agent,
        heartbeat,
        list_agents,
        get_agent,
        list_capabilities,
    ],
    tags=["Registry"],
)

"""HTTP routes of the Routing Logic Manager: traffic weights, circuit breakers, edges, leaving a session."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import msgspec
from litestar import Response, Router, get, post, put
from litestar.params import FromPath, JSONBody

from observatory.features.fleet import types_edges as traffic
from observatory.features.registry import circuit_breaker as breaker
from observatory.features.registry import commands as enrolment
from observatory.features.registry import router
from observatory.features.registry.routes import Name, agents_of, require_agent_access
from observatory.http.answers import Refusal, json
from observatory.http.app_state import Call, Here
from observatory.http.permissions import require_permission
from observatory.pipeline.rows import BreakerRow
from observatory.pipeline.state import SubmissionResult
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import canonical_id
from observatory.protocol.tenant_config import Route

# Latencies are computed from this many of the newest acknowledgements.
MAX_SAMPLES = 20_000


class RouteChange(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Traffic weights of a capability. A target is `cluster:<id>` or an agent's id."""

    capability: Name
    weights: Annotated[dict[Name, float], msgspec.Meta(max_length=200)]
    was: Annotated[dict[Name, float], msgspec.Meta(max_length=200)] | None = None
    """The weights you read, {} for none: 409 when they have changed since. Left out: not compared."""


class Circuit(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    state: Literal["open", "closed"]


class Leaving(msgspec.Struct, kw_only=True):
    agent_id: Name


@get("/routes", summary="Traffic weights of every capability that has any", operation_id="list_routes")
async def list_routes(request: Call, app: Here) -> Response[bytes]:
    principal = await require_permission(request, app, "read")
    rows = await app.store.rows(principal.tenant_id, "routes")
    items = [_route(row) for row in sorted(rows, key=lambda row: row["capability"])]
    return json({"items": items, "next_cursor": None})


@put("/routes", summary="Set the traffic weights of a capability", operation_id="put_route")
async def put_route(request: Call, app: Here, data: JSONBody[RouteChange]) -> Response[bytes]:
    principal = await require_permission(request, app, "operate")
    problem = problem_with_weights(data.weights)
    if problem is not None:
        raise Refusal(422, "bad_weights", problem)
    given = Route(capability=data.capability, weights=data.weights)
    verdict = await app.command(router.put_route(principal, given, app.clock(), data.was))
    return json(_route(_accepted(verdict).answer))


def problem_with_weights(weights: dict[str, float]) -> str | None:
    """What is wrong with the weights; None when they are valid."""
    if not weights:
        return "weights must name at least one target: cluster:<id> or an agent's id"
    if any(target.startswith(("type:", "session:")) or target == "cluster:" for target in weights):
        return "a target is cluster:<id> or an agent's id"
    if not all(math.isfinite(weight) for weight in weights.values()):
        return "a weight must be a finite number"
    if any(weight < 0 for weight in weights.values()):
        return "a weight may not be negative; 0 keeps work away from a target"
    total = sum(weights.values())
    if total <= 0 or not math.isfinite(total):
        return "the weights may not all be zero, and their sum must be finite"
    return None


@get("/breakers", summary="The circuit of every capability that has one", operation_id="list_breakers")
async def list_breakers(request: Call, app: Here) -> Response[bytes]:
    principal = await require_permission(request, app, "read")
    rows = await app.store.rows(principal.tenant_id, "breakers")
    items = [_breaker(row) for row in sorted(rows, key=lambda row: row["capability"])]
    return json({"items": items, "next_cursor": None})


@post(
    "/breakers/{capability:str}",
    status_code=200,
    summary="Force a circuit open, or close it",
    operation_id="set_breaker",
)
async def set_breaker(
    request: Call, app: Here, capability: FromPath[str], data: JSONBody[Circuit]
) -> Response[bytes]:
    principal = await require_permission(request, app, "operate")
    if not 1 <= len(capability) <= 256 or not capability.isprintable():
        raise Refusal(422, "bad_request", "a capability is 1 to 256 characters without control characters")
    act = breaker.force_state(principal, capability, data.state, app.clock())
    row: BreakerRow = _accepted(await app.command(act)).answer
    return json(_breaker(msgspec.structs.asdict(row)))


@get("/edges", summary="Traffic between agents: rate, latency, status", operation_id="list_edges")
async def list_edges(request: Call, app: Here) -> Response[bytes]:
    principal = await require_permission(request, app, "read")
    tenant_id, now_ns = principal.tenant_id, app.clock()
    since_ns = now_ns - traffic.SINCE_S * traffic.SECOND
    counts = await app.store.edges(tenant_id, since_ns, now_ns - traffic.RECENT_S * traffic.SECOND)
    latencies = await app.store.latencies(tenant_id, since_ns, MAX_SAMPLES)
    numbers = {row["entity_id"]: row["agent_no"] for row in await app.store.rows(tenant_id, "agents")}
    known = {
        numbers[item["entity_id"]]: item
        for item in await agents_of(app, tenant_id)
        if item["entity_id"] in numbers
    }
    return json({"items": traffic.edges(counts, latencies, known, now_ns), "next_cursor": None})


@post(
    "/sessions/{session_id:str}/leave",
    status_code=200,
    summary="Remove an agent from a session",
    operation_id="leave_session",
)
async def leave_session(
    request: Call, app: Here, session_id: FromPath[str], data: JSONBody[Leaving]
) -> Response[bytes]:
    principal = await require_agent_access(request, app, data.agent_id)
    act = enrolment.leave_session_command(principal, canonical_id(session_id), data.agent_id, app.clock())
    verdict = (await app.committer.submit(principal.tenant_id, [act]))[0]
    return json(_accepted(verdict).answer)


def _accepted(verdict: SubmissionResult) -> SubmissionResult:
    if verdict.code >= 400:
        raise Refusal(verdict.code, verdict.answer.reason, verdict.answer.detail or "not accepted")
    return verdict


def _route(row: dict[str, Any]) -> dict[str, Any]:
    weights: dict[str, float] = msgspec.json.decode(row["weights"])
    total = sum(weights.values())
    return {
        "capability": row["capability"],
        "weights": weights,
        "shares": {target: round(weight / total, 6) for target, weight in weights.items()},
        "updated_at": from_ns(row["updated_ns"]),
        "updated_by": row["updated_by"],
    }


def _breaker(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "capability": row["capability"],
        "state": row["state"],
        "successes": row["successes"],
        "failures": row["failures"],
        "window_started_at": from_ns(row["window_ns"]),
        "opened_at": from_ns(row["opened_ns"]) if row["opened_ns"] else None,
        "reason": row["reason"],
        "forced_by": row["forced_by"],
    }


routing = Router(
    path="/v1",
    route_handlers=[
        list_routes,
        put_route,
        list_breakers,
        set_breaker,
        list_edges,
        leave_session,
    ],
    tags=["Registry"],
)

"""The Routing Logic Manager's words: traffic weights, circuits, edges, and leaving a room."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import msgspec
from litestar import Response, Router, get, post, put
from litestar.params import FromPath, JSONBody

from observatory.features.fleet import edges as traffic
from observatory.features.registry import circuit_breaker as breaker
from observatory.features.registry import commands as enrolment
from observatory.features.registry import router
from observatory.features.registry.routes import Name, agents_of, teller
from observatory.http.answers import Refusal, json
from observatory.http.app_state import Call, Here
from observatory.http.permissions import need
from observatory.pipeline.rows import Breaker
from observatory.pipeline.state import Verdict
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import canonical_id
from observatory.protocol.rulebook import Route

# So many acknowledgements, the newest, are looked at for latencies.
SAMPLED = 20_000


class RouteChange(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """How work for a capability is shared out. A target is `cluster:<id>` or an agent's id."""

    capability: Name
    weights: Annotated[dict[Name, float], msgspec.Meta(max_length=200)]
    was: Annotated[dict[Name, float], msgspec.Meta(max_length=200)] | None = None
    """The weights that were seen, {} for none: 409 when they are others by now. Left out: not compared."""


class Circuit(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    state: Literal["open", "closed"]


class Leaving(msgspec.Struct, kw_only=True):
    agent_id: Name


@get("/routes", summary="Traffic weights of every capability that has any", operation_id="list_routes")
async def list_routes(request: Call, house: Here) -> Response[bytes]:
    principal = await need(request, house, "read")
    rows = await house.store.rows(principal.tenant_id, "routes")
    items = [_route(row) for row in sorted(rows, key=lambda row: row["capability"])]
    return json({"items": items, "next_cursor": None})


@put("/routes", summary="Share out the work for a capability anew", operation_id="put_route")
async def put_route(request: Call, house: Here, data: JSONBody[RouteChange]) -> Response[bytes]:
    principal = await need(request, house, "operate")
    problem = fault_in(data.weights)
    if problem is not None:
        raise Refusal(422, "bad_weights", problem)
    given = Route(capability=data.capability, weights=data.weights)
    verdict = await house.command(router.put_route(principal, given, house.clock(), data.was))
    return json(_route(_accepted(verdict).answer))


def fault_in(weights: dict[str, float]) -> str | None:
    """What is wrong with them, in a sentence; None when they can be used."""
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
async def list_breakers(request: Call, house: Here) -> Response[bytes]:
    principal = await need(request, house, "read")
    rows = await house.store.rows(principal.tenant_id, "breakers")
    items = [_breaker(row) for row in sorted(rows, key=lambda row: row["capability"])]
    return json({"items": items, "next_cursor": None})


@post(
    "/breakers/{capability:str}",
    status_code=200,
    summary="Open or close a circuit by hand",
    operation_id="set_breaker",
)
async def set_breaker(
    request: Call, house: Here, capability: FromPath[str], data: JSONBody[Circuit]
) -> Response[bytes]:
    principal = await need(request, house, "operate")
    if not 1 <= len(capability) <= 256 or not capability.isprintable():
        raise Refusal(422, "bad_request", "a capability is 1 to 256 characters without control characters")
    act = breaker.force(principal, capability, data.state, house.clock())
    row: Breaker = _accepted(await house.command(act)).answer
    return json(_breaker(msgspec.structs.asdict(row)))


@get("/edges", summary="What goes between agents: rate, latency, status", operation_id="list_edges")
async def list_edges(request: Call, house: Here) -> Response[bytes]:
    principal = await need(request, house, "read")
    tenant_id, now_ns = principal.tenant_id, house.clock()
    since_ns = now_ns - traffic.SINCE_S * traffic.SECOND
    counts = await house.store.edges(tenant_id, since_ns, now_ns - traffic.RECENT_S * traffic.SECOND)
    spent = await house.store.latencies(tenant_id, since_ns, SAMPLED)
    numbers = {row["entity_id"]: row["agent_no"] for row in await house.store.rows(tenant_id, "agents")}
    known = {
        numbers[item["entity_id"]]: item
        for item in await agents_of(house, tenant_id)
        if item["entity_id"] in numbers
    }
    return json({"items": traffic.edges(counts, spent, known, now_ns), "next_cursor": None})


@post(
    "/sessions/{session_id:str}/leave",
    status_code=200,
    summary="An agent leaves a room",
    operation_id="leave_session",
)
async def leave_session(
    request: Call, house: Here, session_id: FromPath[str], data: JSONBody[Leaving]
) -> Response[bytes]:
    principal = await teller(request, house, data.agent_id)
    act = enrolment.leave_room(principal, canonical_id(session_id), data.agent_id, house.clock())
    verdict = (await house.committer.submit(principal.tenant_id, [act]))[0]
    return json(_accepted(verdict).answer)


def _accepted(verdict: Verdict) -> Verdict:
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

"""The whole HTTP face: raw routes first, then Litestar, behind one Host check.

Every failure is mapped to an answer here and nowhere else; each has `status`, `reason` and a sentence in
`detail`, and none quotes a payload or a secret.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any

from litestar import Litestar, Response, Router, get
from litestar.di import Provide
from litestar.enums import MediaType
from litestar.exceptions import HTTPException, NotFoundException, ValidationException
from litestar.handlers import BaseRouteHandler
from litestar.openapi import OpenAPIConfig
from litestar.params import FromPath

from observatory.errors import GatewayStopped, NotDurable, ObservatoryError, QueueFull
from observatory.features.access.routes import god_mode
from observatory.features.access.routes_sign_ins import SIGN_IN, sign_ins
from observatory.features.alerting.routes import alert_rules_router
from observatory.features.alerting.routes_scaling import scaling_router
from observatory.features.alerting.routes_tray import alerts
from observatory.features.annotations.routes import annotations_router
from observatory.features.annotations.routes_reviews import reviews
from observatory.features.archive.routes import forensics
from observatory.features.archive.routes_records import audit_reading
from observatory.features.archive.routes_violations import violations_router
from observatory.features.backup.routes import exports_router
from observatory.features.budgets.routes import budgets
from observatory.features.cascade.routes import cascade_router
from observatory.features.certificates.routes import certificates_router
from observatory.features.compare.routes import compare
from observatory.features.costs.routes import costs
from observatory.features.decisions.routes import decisions
from observatory.features.decisions.routes_settings import decision_settings_router
from observatory.features.decisions.routes_waiting import waiting_router
from observatory.features.drift.routes import drift_router
from observatory.features.exporters.routes import exporters_router
from observatory.features.facts.routes import facts
from observatory.features.facts.routes_infection import infection
from observatory.features.facts.routes_memory import memory
from observatory.features.fleet.routes import fleet
from observatory.features.fleet.routes_panels import panels
from observatory.features.fleet.routes_regions import regions
from observatory.features.graph.routes import dag
from observatory.features.hooks.routes import hooks_router
from observatory.features.hooks.routes_calls import hook_door
from observatory.features.inbox.routes import channel
from observatory.features.instructions.routes import instructions
from observatory.features.kill_switch.enforcement import stopped
from observatory.features.kill_switch.routes import kill_switch
from observatory.features.loops.routes import entropy
from observatory.features.loops.routes_settings import detectors
from observatory.features.otlp.routes_status import otlp_router
from observatory.features.policies.routes import policies
from observatory.features.redaction.routes import redaction_router
from observatory.features.registry.routes import registry
from observatory.features.registry.routes_grants import grants_router
from observatory.features.registry.routes_routing import routing
from observatory.features.relay.routes import relay
from observatory.features.relay.routes_acts import acts
from observatory.features.relay.routes_agents import agent_rooms
from observatory.features.relay.routes_holds import holds
from observatory.features.schedule.routes import jobs_router
from observatory.features.schedule.routes_dead_letters import dead_letters_router
from observatory.features.schedule.routes_leader import scheduler_router
from observatory.features.search.routes import search_router
from observatory.features.search.routes_views import views
from observatory.features.sessions.routes import sessions
from observatory.features.thoughts.routes import thoughts_router
from observatory.features.transparency.health import unsigned
from observatory.features.transparency.routes import proof_log
from observatory.features.transparency.routes_peers import peers_router
from observatory.features.transparency.routes_witness import witness_router
from observatory.features.verification.routes_evidence import evidence_router
from observatory.features.webhooks.routes import webhooks_router
from observatory.features.webhooks.routes_log import webhook_log_router
from observatory.http import openapi
from observatory.http.answers import Refusal, json
from observatory.http.app_state import Call, Here, House
from observatory.http.bodies import judge_body, misfit
from observatory.http.insight import insight
from observatory.http.metrics import told as metrics_told
from observatory.http.permissions import OPEN, admit, need
from observatory.http.web_ui import PAGES, WINDOWS
from observatory.protocol.answers import Refused

log = logging.getLogger("observatory.http")
SECURITY = {
    "content-security-policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; frame-ancestors 'none'",
}
Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]


@get("/healthz", summary="The process is up", operation_id="healthz", tags=["Health"], opt=OPEN)
async def healthz() -> Response[bytes]:
    return json({"status": "ok"})


@get(
    "/readyz",
    summary="The gateway can store what it is sent",
    operation_id="readyz",
    tags=["Health"],
    opt=OPEN,
)
async def readyz(house: Here) -> Response[bytes]:
    if house.stopping:
        return json({"status": "not_ready", "detail": "the gateway is stopping"}, 503)
    try:
        await house.store.ping()
    except ObservatoryError as error:
        return json({"status": "not_ready", "detail": str(error)}, 503)
    if house.committer.struggling:
        return json({"status": "not_ready", "detail": "the last commit could not be made durable"}, 503)
    told: dict[str, Any] = {"database": house.store.dialect, "waiting": house.committer.waiting[0]}
    if house.sealer.refused:  # what is sent is stored all the same
        told["detail"] = unsigned(house)
    return json({"status": "ready", **told})


@get(
    "/metrics",
    summary="Prometheus metrics",
    operation_id="metrics",
    tags=["Health"],
    media_type=MediaType.TEXT,
)
async def metrics(request: Call, house: Here) -> Response[str]:
    await need(request, house, "read")
    return Response(await metrics_told(house), media_type="text/plain; version=0.0.4")


@get("/docs", include_in_schema=False, opt=OPEN)
async def docs() -> Response[bytes]:
    return _page("docs.html")


@get("/pages/{name:str}", include_in_schema=False, opt=OPEN)
async def script(name: FromPath[str]) -> Response[bytes]:
    return _page(name)


@get("/schemas/{name:str}", include_in_schema=False, opt=OPEN)
async def schema(request: Call, name: FromPath[str]) -> Response[bytes]:
    documents = openapi.documents(request.app)
    if name not in documents:
        raise Refusal(404, "not_found", f"schemas are: {', '.join(sorted(documents))}")
    return json(documents[name])


def _page(name: str) -> Response[bytes]:
    path = PAGES / name
    kinds = {".html": "text/html", ".js": "text/javascript"}
    if Path(name).name != name or path.suffix not in kinds or not path.exists():
        raise Refusal(404, "not_found", "there is no such page")
    return Response(path.read_bytes(), media_type=kinds[path.suffix], headers=SECURITY)


def _refusal(_: Call, error: Refusal) -> Response[bytes]:
    answer = json(error.answer, error.code)
    if error.code == 401:
        answer.headers["www-authenticate"] = "Bearer"
    return answer


def _store_error(_: Call, error: ObservatoryError) -> Response[bytes]:
    if isinstance(error, QueueFull):
        answer = json(Refused(reason="queue_full", detail=str(error)), 429)
        answer.headers["retry-after"] = str(error.retry_after_s)
        return answer
    if isinstance(error, NotDurable | GatewayStopped):
        answer = json(Refused(reason="not_durable", detail="the store cannot be reached now; try again"), 503)
        answer.headers["retry-after"] = "1"
        return answer
    log.error("a request failed: %s", type(error).__name__)
    return json(Refused(reason="internal_error", detail="the request failed; nothing was changed"), 500)


def _http_error(request: Call, error: HTTPException) -> Response[bytes]:
    reasons = {400: "bad_request", 404: "not_found", 405: "method_not_allowed", 413: "too_large"}
    if isinstance(error, ValidationException):
        return _refusal(request, misfit(request, error))
    return json(
        Refused(reason=reasons.get(error.status_code, "error"), detail=error.detail), error.status_code
    )


def _too_deep(_: Call, error: RecursionError) -> Response[bytes]:
    return json(Refused(reason="bad_request", detail="the body is nested too deep"), 400)


def _unexpected(_: Call, error: Exception) -> Response[bytes]:
    log.error("a request failed: %s", type(error).__name__, exc_info=error)
    return json(Refused(reason="internal_error", detail="the request failed"), 500)


HANDLERS: list[Any] = [
    healthz,
    readyz,
    metrics,
    *WINDOWS,
    docs,
    script,
    schema,
    *SIGN_IN,
    forensics,
    proof_log,
    audit_reading,
    evidence_router,
    exports_router,
    violations_router,
    peers_router,
    jobs_router,
    scheduler_router,
    dead_letters_router,
    webhook_log_router,
    webhooks_router,
    exporters_router,
    otlp_router,
    witness_router,
    hooks_router,
    hook_door,
    certificates_router,
    registry,
    routing,
    channel,
    holds,
    relay,
    sessions,
    dag,
    compare,
    annotations_router,
    reviews,
    entropy,
    detectors,
    fleet,
    panels,
    alerts,
    alert_rules_router,
    scaling_router,
    agent_rooms,
    waiting_router,
    regions,
    costs,
    decisions,
    decision_settings_router,
    grants_router,
    god_mode,
    sign_ins,
    policies,
    redaction_router,
    budgets,
    kill_switch,
    stopped,
    acts,
    instructions,
    insight,
    facts,
    infection,
    cascade_router,
    memory,
    drift_router,
    search_router,
    views,
    thoughts_router,
]


async def _not_served(*_: Any) -> None:
    raise NotFoundException


# Litestar describes the routes only where it serves pages of its own, which load scripts of strangers.
UNSERVED = Router("/internal-openapi", route_handlers=[], guards=[_not_served], include_in_schema=False)

# Stands for a slash inside a name (`/v1/agents/team%2Fwriter`) while the path is taken apart: a noncharacter.
SLASH = "\ufdd0"


async def _before(request: Call) -> None:
    """Names get their slashes back; then the body is judged."""
    for name, value in request.scope["path_params"].items():
        if isinstance(value, str) and SLASH in value:
            request.scope["path_params"][name] = value.replace(SLASH, "/")
    await judge_body(request)


def litestar_app(house: House | None) -> Litestar:
    """Without a house it can only describe itself: that is how `schemas/` is generated."""

    async def give_house() -> House:
        assert house is not None
        return house

    return assembled(give_house)


def assembled(give_house: Callable[[], Awaitable[House]]) -> Litestar:
    """All doors over a house that is asked for with each request: it may be known later than they are."""

    async def known(request: Any, route: BaseRouteHandler) -> None:
        await admit(request, await give_house(), route)

    return Litestar(
        route_handlers=HANDLERS,
        guards=[known],
        dependencies={"house": Provide(give_house)},
        before_request=_before,
        exception_handlers={
            Refusal: _refusal,
            ObservatoryError: _store_error,
            RecursionError: _too_deep,
            HTTPException: _http_error,
            Exception: _unexpected,
        },
        openapi_config=OpenAPIConfig(
            title="Hypervisor Observatory", version="0.1.0", openapi_router=UNSERVED
        ),
        request_max_body_size=1 << 20,
        logging_config=None,
    )

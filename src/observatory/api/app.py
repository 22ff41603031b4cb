"""The whole HTTP face: raw routes first, then Litestar, behind one Host check.

Every failure is mapped to an answer here and nowhere else; each has `status`, `reason` and a sentence in
`detail`, and none quotes a payload or a secret.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Annotated, Any

from litestar import Litestar, Response, get
from litestar.datastructures import Cookie
from litestar.di import Provide
from litestar.enums import MediaType
from litestar.exceptions import HTTPException, ValidationException
from litestar.openapi import OpenAPIConfig
from litestar.params import FromPath, FromQuery, QueryParameter
from litestar.response import Redirect

from observatory.api import openapi
from observatory.api.acts import acts
from observatory.api.agent_rooms import agent_rooms
from observatory.api.alert_rules import alert_rules_router
from observatory.api.alerts import alerts
from observatory.api.annotations import annotations_router
from observatory.api.answers import Refusal, json
from observatory.api.audit_records import audit_reading
from observatory.api.auth import COOKIE
from observatory.api.budgets import budgets
from observatory.api.cascade import cascade_router
from observatory.api.certificates import certificates_router
from observatory.api.channel import channel
from observatory.api.compare import compare
from observatory.api.costs import costs
from observatory.api.dag import dag
from observatory.api.dead_letters import dead_letters_router
from observatory.api.decisions import decisions
from observatory.api.detectors import detectors
from observatory.api.drift import drift_router
from observatory.api.entropy import entropy
from observatory.api.evidence import evidence_router
from observatory.api.exporters import exporters_router
from observatory.api.exports import exports_router
from observatory.api.facts import facts
from observatory.api.fleet import fleet
from observatory.api.forensics import forensics
from observatory.api.gate import need, principal_of
from observatory.api.god_mode import god_mode
from observatory.api.holds import holds
from observatory.api.hook_door import hook_door
from observatory.api.hooks import hooks_router
from observatory.api.house import Call, Here, House
from observatory.api.infection import infection
from observatory.api.insight import insight
from observatory.api.instructions import instructions
from observatory.api.jobs import jobs_router
from observatory.api.kill_switch import kill_switch
from observatory.api.log import proof_log
from observatory.api.log_health import unsigned
from observatory.api.memory import memory
from observatory.api.metrics import told as metrics_told
from observatory.api.otlp_status import otlp_router
from observatory.api.panels import panels
from observatory.api.peers import peers_router
from observatory.api.policies import policies
from observatory.api.redaction import redaction_router
from observatory.api.regions import regions
from observatory.api.registry import registry
from observatory.api.relay import relay
from observatory.api.reviews import reviews
from observatory.api.routing import routing
from observatory.api.scaling_triggers import scaling_router
from observatory.api.scheduler import scheduler_router
from observatory.api.search import search_router
from observatory.api.sessions import sessions
from observatory.api.stopped import stopped
from observatory.api.thoughts import thoughts_router
from observatory.api.views import views
from observatory.api.violations import violations_router
from observatory.api.waiting import waiting_router
from observatory.api.webhook_log import webhook_log_router
from observatory.api.webhooks import webhooks_router
from observatory.api.windows_door import WINDOWS, page_of_ours
from observatory.api.witness import witness_router
from observatory.errors import GatewayStopped, NotDurable, ObservatoryError, QueueFull
from observatory.gateway import access
from observatory.protocol.answers import Refused
from observatory.protocol.credentials import digest, new_token
from observatory.protocol.document import parse

log = logging.getLogger("observatory.api")
PAGES = Path(__file__).parent / "pages"
SECURITY = {
    "content-security-policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}
Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]


@get("/healthz", summary="The process is up", operation_id="healthz", tags=["Health"])
async def healthz() -> Response[bytes]:
    return json({"status": "ok"})


@get("/readyz", summary="The gateway can store what it is sent", operation_id="readyz", tags=["Health"])
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


@get("/docs", include_in_schema=False)
async def docs() -> Response[bytes]:
    return _page("docs.html")


@get("/pages/{name:str}", include_in_schema=False)
async def script(name: FromPath[str]) -> Response[bytes]:
    return _page(name)


@get("/schemas/{name:str}", include_in_schema=False)
async def schema(request: Call, name: FromPath[str]) -> Response[bytes]:
    documents = openapi.documents(request.app)
    if name not in documents:
        raise Refusal(404, "not_found", f"schemas are: {', '.join(sorted(documents))}")
    return json(documents[name])


@get("/login", include_in_schema=False)
async def login(
    request: Call,
    house: Here,
    token: FromQuery[str] = "",
    next_page: Annotated[str, QueryParameter(name="next")] = "/",
) -> Response[Any]:
    """One click: the link's token becomes the browser's cookie, and is worth nothing afterwards."""
    found = await house.auth.by_link(token)
    if found is None:
        if "text/html" in request.headers.get("accept", ""):  # a person: the page says it, and takes a key
            return Redirect("/?login=used", status_code=303)
        raise Refusal(
            401,
            "unauthorized",
            "this login link was used or is too old; run `observatory login` for a new one",
        )
    principal, link_id = found
    now_ns, secret = house.clock(), new_token()
    hours = house.settings.cookie_hours
    row = {
        "token_hash": digest(secret),
        "kind": "cookie",
        "expires_ns": now_ns + hours * 3600 * 1_000_000_000,
    }
    verdict = await house.act(access.sign_in(principal, link_id, row, now_ns))
    if verdict.code != 200:
        raise Refusal(
            verdict.code, verdict.answer.reason, "the sign-in could not be stored; try the link again"
        )
    secure = house.settings.are_cookies_secure
    cookie = Cookie(
        key=f"__Host-{COOKIE}" if secure else COOKIE,
        value=secret,
        httponly=True,
        samesite="lax",
        secure=secure,
        path="/",
        max_age=hours * 3600,
    )
    return Redirect(page_of_ours(next_page), status_code=303, cookies=[cookie])


@get("/logout", include_in_schema=False)
async def logout(request: Call, house: Here) -> Response[Any]:
    principal = await principal_of(request, house)
    if principal.key_id.startswith("log_"):
        await house.act(access.sign_out(principal, house.clock()))
    return Redirect("/", status_code=303)


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


def _http_error(_: Call, error: HTTPException) -> Response[bytes]:
    reasons = {400: "bad_request", 404: "not_found", 405: "method_not_allowed", 413: "too_large"}
    detail = error.detail
    if isinstance(error, ValidationException):
        # Litestar's text may quote the input; ours names the place and the rule only.
        told = [extra for extra in error.extra or [] if isinstance(extra, dict)]
        named = ", ".join(str(extra["key"]) for extra in told if extra.get("key"))
        detail = f"not valid: {named or 'the body'}; see /docs for the expected form"
        in_body = not named or any(extra.get("source") == "body" for extra in told)
        return json(Refused(reason="bad_request", detail=detail), 422 if in_body else 400)
    return json(Refused(reason=reasons.get(error.status_code, "error"), detail=detail), error.status_code)


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
    login,
    logout,
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
    god_mode,
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


# Stands for a slash inside a name (`/v1/agents/team%2Fwriter`) while the path is taken apart: a noncharacter.
SLASH = "\ufdd0"


async def _before(request: Call) -> None:
    """Names get their slashes back; then the body is looked at."""
    for name, value in request.scope["path_params"].items():
        if isinstance(value, str) and SLASH in value:
            request.scope["path_params"][name] = value.replace(SLASH, "/")
    await _check_body(request)


async def _check_body(request: Call) -> None:
    """A command's body is JSON by name, and holds no key twice: parsers must agree on it."""
    if request.method not in ("POST", "PUT", "PATCH"):
        return None
    body = await request.body()
    if not body:
        return None
    if request.content_type[0] not in ("application/json", ""):
        raise Refusal(415, "unsupported_media_type", "send Content-Type application/json")
    document = parse(body)
    if document is None or not document.clean:
        raise Refusal(400, "bad_request", "the body is not JSON that every parser reads alike; see /docs")
    return None


def litestar_app(house: House | None) -> Litestar:
    """Without a house it can only describe itself: that is how `schemas/` is generated."""

    async def give_house() -> House:
        assert house is not None
        return house

    return assembled(give_house)


def assembled(give_house: Callable[[], Awaitable[House]]) -> Litestar:
    """All doors over a house that is asked for with each request: it may be known later than they are."""
    return Litestar(
        route_handlers=HANDLERS,
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
            title="Hypervisor Observatory", version="0.1.0", path="/internal-openapi"
        ),
        request_max_body_size=1 << 20,
        logging_config=None,
    )

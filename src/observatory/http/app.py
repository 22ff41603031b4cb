"""The Litestar application: every route that is not raw ASGI, and the mapping of errors to responses.

Every failure is mapped to a response here and nowhere else; each has `status`, `reason` and a sentence in
`detail`, and none quotes a payload or a secret.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from pathlib import Path
from typing import Any

from litestar import Litestar, Response, Router, get
from litestar.datastructures import State
from litestar.di import Provide
from litestar.enums import MediaType
from litestar.exceptions import HTTPException, NotFoundException, ValidationException
from litestar.handlers import BaseRouteHandler
from litestar.openapi import OpenAPIConfig
from litestar.params import FromPath

from observatory.errors import GatewayStopped, NotDurable, ObservatoryError, QueueFull
from observatory.http import openapi
from observatory.http.answers import Refusal, json
from observatory.http.app_state import AppState, Call, Here
from observatory.http.bodies import invalid_parameters, validate_body
from observatory.http.feature import Feature
from observatory.http.metrics import render_metrics
from observatory.http.permissions import OPEN, require_key, require_permission
from observatory.http.web_ui import PAGES, WINDOWS
from observatory.protocol.responses import Refused

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
    summary="The gateway can store messages",
    operation_id="readyz",
    tags=["Health"],
    opt=OPEN,
)
async def readyz(app: Here) -> Response[bytes]:
    if app.stopping:
        return json({"status": "not_ready", "detail": "the gateway is stopping"}, 503)
    try:
        await app.store.ping()
    except ObservatoryError as error:
        return json({"status": "not_ready", "detail": str(error)}, 503)
    if app.committer.is_store_failing:
        return json({"status": "not_ready", "detail": "the last commit could not be made durable"}, 503)
    body: dict[str, Any] = {"database": app.store.dialect, "waiting": app.committer.waiting[0]}
    if found := [sentence for warning in app.warnings if (sentence := warning())]:
        body["detail"] = "; ".join(found)
    return json({"status": "ready", **body})


@get(
    "/metrics",
    summary="Prometheus metrics",
    operation_id="metrics",
    tags=["Health"],
    media_type=MediaType.TEXT,
)
async def metrics(request: Call, app: Here) -> Response[str]:
    await require_permission(request, app, "read")
    return Response(await render_metrics(app), media_type="text/plain; version=0.0.4")


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
        return _refusal(request, invalid_parameters(request, error))
    return json(
        Refused(reason=reasons.get(error.status_code, "error"), detail=error.detail), error.status_code
    )


def _too_deep(_: Call, error: RecursionError) -> Response[bytes]:
    return json(Refused(reason="bad_request", detail="the body is nested too deep"), 400)


def _unexpected(_: Call, error: Exception) -> Response[bytes]:
    log.error("a request failed: %s", type(error).__name__, exc_info=error)
    return json(Refused(reason="internal_error", detail="the request failed"), 500)


HANDLERS: list[Any] = [healthz, readyz, metrics, *WINDOWS, docs, script, schema]


async def _not_served(*_: Any) -> None:
    raise NotFoundException


# Litestar describes the routes only where it serves its own pages, which load third-party scripts.
UNSERVED = Router("/internal-openapi", route_handlers=[], guards=[_not_served], include_in_schema=False)

# Stands for a slash inside a name (`/v1/agents/team%2Fwriter`) while the path is routed: a noncharacter.
SLASH = "\ufdd0"


async def _before(request: Call) -> None:
    """Restore the slashes inside names, then validate the body."""
    for name, value in request.scope["path_params"].items():
        if isinstance(value, str) and SLASH in value:
            request.scope["path_params"][name] = value.replace(SLASH, "/")
    await validate_body(request)


def litestar_app(app: AppState | None, features: Sequence[Feature]) -> Litestar:
    """Without state it can only describe itself: that is how `schemas/` is generated."""

    async def get_app() -> AppState:
        assert app is not None
        return app

    return assembled(get_app, features)


def assembled(get_app: Callable[[], Awaitable[AppState]], features: Sequence[Feature]) -> Litestar:
    """All routes. The state is asked for with each request: it may be built after them."""

    async def known(request: Any, route: BaseRouteHandler) -> None:
        await require_key(request, await get_app(), route)

    return Litestar(
        route_handlers=[*HANDLERS, *(route for feature in features for route in feature.routes)],
        state=State({"features": tuple(features)}),
        guards=[known],
        dependencies={"app": Provide(get_app)},
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

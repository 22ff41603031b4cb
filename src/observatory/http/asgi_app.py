"""The ASGI application: checks that every request must pass, and dispatch to the endpoint.

The ingest route and the sockets are raw ASGI, because a framework costs more than the message; the
rest is Litestar.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import ExitStack
from typing import Any
from urllib.parse import unquote

import msgspec

from observatory.errors import QueueFull
from observatory.http.app import SLASH, litestar_app
from observatory.http.app_state import AppState
from observatory.http.cors import Cors, answer_preflight, is_preflight, with_cors_headers
from observatory.http.ingest import Ingest
from observatory.http.limits import UNPACKED
from observatory.http.live import Live
from observatory.http.request_metrics import OTHER, CountedSend
from observatory.http.sockets import STOPPING, Socket
from observatory.protocol.responses import Refused

log = logging.getLogger("observatory.requests")
MESSAGES = "/v1/messages"
FOREIGN_HOST = "this Host is not served; add it to allowed_hosts (OBSERVATORY_ALLOWED_HOSTS)"
TOO_MANY = "too many sockets and streams are open; connect again later"
HSTS = ((b"strict-transport-security", b"max-age=31536000"),)
Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]


class AsgiApp:
    """The ASGI application."""

    def __init__(self, app: AppState) -> None:
        self._app = app
        self._is_tls = app.settings.is_tls
        self._litestar = litestar_app(app, app.features)
        self._ingest = Ingest(app)
        self._live = Live(app)
        registered = [one.endpoints(app, self, self._ingest) for one in app.features if one.endpoints]
        self._http = {one.path: one for endpoints in registered for one in endpoints.http}
        self._sockets = [one for endpoints in registered for one in endpoints.sockets]
        self.listeners = [one for endpoints in registered for one in endpoints.listeners]
        self._cors = Cors(app.settings.cors_origins)

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        """Count and time each request. Endpoints are named by route template, never by request path."""
        if scope["type"] != "http":
            await self._enter(scope, receive, send)
            return
        hsts = HSTS if self._is_tls and not _is_local(scope) else ()
        metrics, response, began = self._app.request_metrics, CountedSend(send, *hsts), time.perf_counter()
        metrics.enter()
        try:
            await self._enter(scope, receive, response)
        except Exception as error:
            log.error("a request failed: %s", type(error).__name__, exc_info=error)
            if response.code:
                raise
            await _refuse("http", receive, response, 500, "internal_error", "the request failed")
        finally:
            self._app.bounds.held -= scope.get(UNPACKED, 0)
            took = time.perf_counter() - began
            endpoint = scope.get("path_template") or OTHER
            metrics.leave(scope["method"], endpoint, response.code, took)
            log_requests = self._app.settings.log_requests
            if log_requests == "all" or (log_requests == "doors" and endpoint != MESSAGES):
                _log_request(scope, endpoint, response.code, took)

    async def _enter(self, scope: Event, receive: Receive, send: Send) -> None:
        kind, headers = scope["type"], scope.get("headers", ())
        if kind == "lifespan":
            await self._litestar(scope, receive, send)  # type: ignore[arg-type]
            return
        known = dict(headers)
        if kind == "http" and self._cors.concerns(scope["path"]):
            origin = self._cors.origin_of(known)
            if origin is not None and is_preflight(scope, known):
                await answer_preflight(origin, send)
                return
            send = with_cors_headers(origin, send)
        if len(known) != len(headers):
            names = [name for name, _ in headers]
            if names.count(b"authorization") > 1 or names.count(b"host") > 1:
                await _refuse(
                    kind, receive, send, 400, "ambiguous", "send one Host and one Authorization header"
                )
                return
        if not self._app.auth.is_host_allowed(known):
            await _refuse(kind, receive, send, 421, "foreign_host", FOREIGN_HOST)
            return
        path = scope["path"]
        if kind == "http" and ("\0" in path or b"%00" in scope["query_string"]):
            # No id or text may hold it, and PostgreSQL would fail on it.
            await _refuse(kind, receive, send, 400, "bad_request", "a URL must not hold U+0000")
            return
        if kind == "http":
            if path == MESSAGES and scope["method"] == "POST":
                scope["path_template"] = MESSAGES
                await self._ingest.post(scope, receive, send)
            elif (raw := self._http.get(path)) is not None and raw.method in (None, scope["method"]):
                scope["path_template"] = path
                await raw.call(scope, receive, send)
            else:
                if path.startswith("/v1/") and b"%2f" in scope.get("raw_path", b"").lower():
                    scope["path"] = _with_slashes_kept(scope["raw_path"])
                await self._litestar(scope, receive, send)  # type: ignore[arg-type]
            return
        socket = Socket(scope, receive, send)
        with ExitStack() as stack:
            try:
                if socket.transport == "websocket":  # others hold no connection of their own
                    stack.enter_context(self._app.bounds.last())
            except QueueFull:
                await socket.turn_away(1013, TOO_MANY)
                return
            await self._converse(socket, path, receive, send)

    async def _converse(self, socket: Socket, path: str, receive: Receive, send: Send) -> None:
        metrics = self._app.request_metrics
        if path == "/v1/ingest":
            with metrics.socket(path):
                await self._ingest.socket(socket)
        elif path == "/v1/live":
            with metrics.socket(path):
                await self._live.socket(socket)
        else:
            await self._registered_socket(path, socket, receive, send)
        if socket.leaving:
            await socket.close(1001, STOPPING)

    async def _registered_socket(self, path: str, socket: Socket, receive: Receive, send: Send) -> None:
        for one in self._sockets:
            if (found := one.match(path)) is not None:
                with self._app.request_metrics.socket(one.template):
                    await one.call(socket, found)
                return
        await receive()
        await send({"type": "websocket.close", "code": 4404, "reason": "there is no such socket"})


def _is_local(scope: Event) -> bool:
    """A browser applies HSTS to a name on every port: for localhost it would break other local servers."""
    host = next((text for name, text in scope["headers"] if name == b"host"), b"")
    return host.partition(b":")[0].lower() == b"localhost"


def _with_slashes_kept(raw_path: bytes) -> str:
    """The unescaped path, where slashes inside a name stay marked: they separate no path segments."""
    return unquote(re.sub(rb"%2[fF]", SLASH.encode(), raw_path).decode("utf-8", "replace"), errors="replace")


def _log_request(scope: Event, endpoint: str, code: int, took: float) -> None:
    """Log one line per request: caller, endpoint, status, time. Never a body, a query, a path or a header."""
    who = scope.get("observatory.who")
    fields: dict[str, Any] = {"method": scope["method"], "endpoint": endpoint, "code": code}
    fields["ms"] = round(took * 1_000, 1)
    if who is not None:
        fields |= {"tenant": who.tenant_id, "key": who.key_id}
    log.info("answered", extra={"fields": fields})


async def _refuse(kind: str, receive: Receive, send: Send, code: int, reason: str, detail: str) -> None:
    if kind == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 4403, "reason": detail})
        return
    body = msgspec.json.encode(Refused(reason=reason, detail=detail))
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": code, "headers": headers})
    await send({"type": "http.response.body", "body": body})

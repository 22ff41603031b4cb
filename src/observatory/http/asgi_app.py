"""The ASGI application: what every request must be before a door opens, and which door it is for.

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
from observatory.features.inbox import routes as channel
from observatory.features.mcp.routes import PATH as MCP
from observatory.features.mcp.routes import McpDoor
from observatory.features.otlp.routes import PATHS as OTLP
from observatory.features.otlp.routes import OtlpIn
from observatory.http.app import SLASH, litestar_app
from observatory.http.app_state import House
from observatory.http.cors import Cors, is_asking, permit, telling
from observatory.http.ingest import Ingest
from observatory.http.limits import UNPACKED
from observatory.http.live import Live
from observatory.http.metrics_of_requests import OTHER, Visit
from observatory.http.sockets import STOPPING, Socket
from observatory.protocol.answers import Refused

log = logging.getLogger("observatory.requests")
MESSAGES = "/v1/messages"
FOREIGN_HOST = "this Host is not served; add it to allowed_hosts (OBSERVATORY_ALLOWED_HOSTS)"
TOO_MANY = "too many sockets and streams are open; connect again later"
STRICT = ((b"strict-transport-security", b"max-age=31536000"),)
Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]


class Face:
    """The ASGI application."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._is_tls = house.settings.is_tls
        self._litestar = litestar_app(house)
        self._ingest = Ingest(house)
        self.otlp = OtlpIn(house, self._ingest)
        self._live = Live(house)
        self._channel = channel.AgentChannel(house)
        self._mcp = McpDoor(house, self)
        self._cors = Cors(house.settings.cors_origins)

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        """Counts and times what passes. A door is told by its route's template, never by what was asked."""
        if scope["type"] != "http":
            await self._enter(scope, receive, send)
            return
        strict = STRICT if self._is_tls and not _is_local(scope) else ()
        doors, visit, began = self._house.doors, Visit(send, *strict), time.perf_counter()
        doors.enter()
        try:
            await self._enter(scope, receive, visit)
        except Exception as error:
            log.error("a request failed: %s", type(error).__name__, exc_info=error)
            if visit.code:
                raise
            await _refuse("http", receive, visit, 500, "internal_error", "the request failed")
        finally:
            self._house.bounds.held -= scope.get(UNPACKED, 0)
            took = time.perf_counter() - began
            door = scope.get("path_template") or OTHER
            doors.leave(scope["method"], door, visit.code, took)
            wanted = self._house.settings.log_requests
            if wanted == "all" or (wanted == "doors" and door != MESSAGES):
                _tell(scope, door, visit.code, took)

    async def _enter(self, scope: Event, receive: Receive, send: Send) -> None:
        kind, headers = scope["type"], scope.get("headers", ())
        if kind == "lifespan":
            await self._litestar(scope, receive, send)  # type: ignore[arg-type]
            return
        known = dict(headers)
        if kind == "http" and self._cors.concerns(scope["path"]):
            origin = self._cors.origin_of(known)
            if origin is not None and is_asking(scope, known):
                await permit(origin, send)
                return
            send = telling(origin, send)
        if len(known) != len(headers):
            names = [name for name, _ in headers]
            if names.count(b"authorization") > 1 or names.count(b"host") > 1:
                await _refuse(
                    kind, receive, send, 400, "ambiguous", "send one Host and one Authorization header"
                )
                return
        if not self._house.auth.host_is_ours(known):
            await _refuse(kind, receive, send, 421, "foreign_host", FOREIGN_HOST)
            return
        path = scope["path"]
        if kind == "http" and ("\0" in path or b"%00" in scope["query_string"]):
            # No id or word of ours holds it, and PostgreSQL would fail on it.
            await _refuse(kind, receive, send, 400, "bad_request", "a URL must not hold U+0000")
            return
        if kind == "http":
            if path == MESSAGES and scope["method"] == "POST":
                scope["path_template"] = MESSAGES
                await self._ingest.post(scope, receive, send)
            elif path in OTLP and scope["method"] == "POST":
                scope["path_template"] = path
                await self.otlp.post(scope, receive, send)
            elif path == MCP:
                scope["path_template"] = MCP
                await self._mcp(scope, receive, send)
            else:
                if path.startswith("/v1/") and b"%2f" in scope.get("raw_path", b"").lower():
                    scope["path"] = _with_slashes_kept(scope["raw_path"])
                await self._litestar(scope, receive, send)  # type: ignore[arg-type]
            return
        socket = Socket(scope, receive, send)
        with ExitStack() as stack:
            try:
                if socket.transport == "websocket":  # others hold no connection of their own
                    stack.enter_context(self._house.bounds.last())
            except QueueFull:
                await socket.turn_away(1013, TOO_MANY)
                return
            await self._converse(socket, path, receive, send)

    async def _converse(self, socket: Socket, path: str, receive: Receive, send: Send) -> None:
        doors = self._house.doors
        if path == "/v1/ingest":
            with doors.socket(path):
                await self._ingest.socket(socket)
        elif path == "/v1/live":
            with doors.socket(path):
                await self._live.socket(socket)
        elif (found := channel.PATH(path)) is not None:
            with doors.socket("/v1/agents/{agent_id}/channel"):
                await self._channel.socket(socket, found[1])
        else:
            await receive()
            await send({"type": "websocket.close", "code": 4404, "reason": "there is no such socket"})
        if socket.leaving:
            await socket.close(1001, STOPPING)


def _is_local(scope: Event) -> bool:
    """A browser keeps this for a name whatever the port: on this machine it would shut out its neighbours."""
    host = next((text for name, text in scope["headers"] if name == b"host"), b"")
    return host.partition(b":")[0].lower() == b"localhost"


def _with_slashes_kept(raw_path: bytes) -> str:
    """The path, unescaped, but for slashes that belong to a name: they are no step to another folder."""
    return unquote(re.sub(rb"%2[fF]", SLASH.encode(), raw_path).decode("utf-8", "replace"), errors="replace")


def _tell(scope: Event, door: str, code: int, took: float) -> None:
    """One line a request: who, which door, how it went. Never a body, a query, a path or a header."""
    who = scope.get("observatory.who")
    fields: dict[str, Any] = {"method": scope["method"], "door": door, "code": code}
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

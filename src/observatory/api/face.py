"""The ASGI application: what every request must be before a door opens, and which door it is for.

The ingest route and the sockets are raw ASGI, because a framework costs more than the message; the
rest is Litestar.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import msgspec

from observatory.api import channel
from observatory.api.app import litestar_app
from observatory.api.house import House
from observatory.api.ingest import Ingest
from observatory.api.live import Live
from observatory.api.mcp_door import PATH as MCP
from observatory.api.mcp_door import McpDoor
from observatory.api.sockets import Socket
from observatory.protocol.answers import Refused

FOREIGN_HOST = "this Host is not served; add it to allowed_hosts (OBSERVATORY_ALLOWED_HOSTS)"
Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]


class Face:
    """The ASGI application."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._litestar = litestar_app(house)
        self._ingest = Ingest(house)
        self._live = Live(house)
        self._channel = channel.AgentChannel(house)
        self._mcp = McpDoor(house, self)

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        kind, headers = scope["type"], scope.get("headers", ())
        if kind == "lifespan":
            await self._litestar(scope, receive, send)  # type: ignore[arg-type]
            return
        if not self._house.auth.host_is_ours(dict(headers)):
            await _refuse(kind, receive, send, 421, "foreign_host", FOREIGN_HOST)
            return
        if sum(name == b"authorization" for name, _ in headers) > 1:
            await _refuse(kind, receive, send, 400, "ambiguous", "send one Authorization header")
            return
        path = scope["path"]
        if kind == "http" and ("\0" in path or b"%00" in scope["query_string"]):
            # No id or word of ours holds it, and PostgreSQL would fail on it.
            await _refuse(kind, receive, send, 400, "bad_request", "a URL must not hold U+0000")
            return
        if kind == "http":
            if path == "/v1/messages" and scope["method"] == "POST":
                await self._ingest.post(scope, receive, send)
            elif path == MCP:
                await self._mcp(scope, receive, send)
            else:
                await self._litestar(scope, receive, send)  # type: ignore[arg-type]
            return
        socket = Socket(scope, receive, send)
        if path == "/v1/ingest":
            await self._ingest.socket(socket)
        elif path == "/v1/live":
            await self._live.socket(socket)
        elif (found := channel.PATH(path)) is not None:
            await self._channel.socket(socket, found[1])
        else:
            await receive()
            await send({"type": "websocket.close", "code": 4404, "reason": "there is no such socket"})


async def _refuse(kind: str, receive: Receive, send: Send, code: int, reason: str, detail: str) -> None:
    if kind == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 4403, "reason": detail})
        return
    body = msgspec.json.encode(Refused(reason=reason, detail=detail))
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": code, "headers": headers})
    await send({"type": "http.response.body", "body": body})

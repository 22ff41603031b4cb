"""WebSockets over raw ASGI: accept, authenticate, receive frames, send frames. For all socket endpoints."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import msgspec

from observatory.http.authentication import Auth, Headers
from observatory.http.client_certificate import CERTIFICATE
from observatory.pipeline.state import Principal
from observatory.protocol.certificates import Certificate

Event = MutableMapping[str, Any]
# The last event of a socket when the gateway stops.
GOODBYE: Event = {"type": "websocket.disconnect", "code": 1001, "is_ours": True}
# Scope key of the callback for when the client is authenticated.
KNOWN = "observatory.known"
STOPPING = "the gateway is stopping; connect again"


class AuthFrame(msgspec.Struct):
    """The first frame of a client that cannot set headers: `{op: "auth", key}`."""

    op: str
    key: str = ""


class Socket:
    def __init__(
        self,
        scope: Event,
        receive: Callable[[], Awaitable[Event]],
        send: Callable[[Event], Awaitable[None]],
    ) -> None:
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.transport: str = scope.get("observatory.transport", "websocket")
        self._receive = receive
        self._send = send
        self._proof: Headers = self.headers
        self._shown: Certificate | None = scope.get(CERTIFICATE)
        self._known: Callable[[], None] = scope.get(KNOWN, lambda: None)
        self.closed = False
        self.leaving = False  # nothing more is read, but what was read is still answered

    async def authenticate(self, auth: Auth) -> Principal | None:
        """Bearer header, login cookie (own origin only), or a first frame with the key. Never the URL."""
        who = await self._identified(auth)
        if who is not None:
            self._known()
        return who

    async def _identified(self, auth: Auth) -> Principal | None:
        await self._receive()  # websocket.connect
        await self._send({"type": "websocket.accept"})
        if b"authorization" in self.headers:
            return await auth.identify(self.headers, certificate=self._shown)
        if b"cookie" in self.headers and auth.is_origin_allowed(self.headers):
            principal = await auth.identify(self.headers, certificate=self._shown)
            if principal is not None:
                return principal
        try:
            async with asyncio.timeout(auth.patience_s):
                first = await self.receive()
        except TimeoutError:
            first = None
        if first is None:
            return None
        try:
            auth_frame = msgspec.json.decode(first, type=AuthFrame)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        self._proof = {b"authorization": b"Bearer " + auth_frame.key.encode()}
        if auth_frame.op != "auth":
            return None
        return await auth.identify(self._proof, certificate=self._shown)

    async def turn_away(self, code: int, reason: str) -> None:
        """Before anything of it was read; accepted first, or the client would not learn why."""
        await self._receive()  # websocket.connect
        await self._send({"type": "websocket.accept"})
        await self.close(code, reason)

    async def is_still_authorized(self, auth: Auth, is_doubtful: bool = False) -> bool:
        """Whether the key is still valid; checked before a long-lived reader gets more (S52).

        Once access is seen to have changed, the cache here does not count: perhaps another gateway changed
        it (S847).
        """
        return await auth.identify(self._proof, may_be_cached=not is_doubtful) is not None

    async def receive(self) -> bytes | None:
        """The next frame's bytes; None once the other side has closed, or the gateway stops."""
        while True:
            event = await self._receive()
            if event["type"] == "websocket.disconnect":
                self.leaving = bool(event.get("is_ours"))
                self.closed = not self.leaving
                return None
            if event["type"] == "websocket.receive":
                data = event.get("bytes")
                return bytes(data) if data is not None else str(event["text"]).encode()

    async def send(self, frame: bytes) -> None:
        if not self.closed:
            await self._send_event({"type": "websocket.send", "text": frame.decode()})

    async def close(self, code: int, reason: str) -> None:
        if not self.closed:
            if self.leaving:
                code, reason = 1001, STOPPING
            await self._send_event({"type": "websocket.close", "code": code, "reason": reason})
            self.closed = True

    async def _send_event(self, event: Event) -> None:
        """ASGI raises OSError once the client has disconnected: that is no failure."""
        try:
            await self._send(event)
        except OSError:
            self.closed = True

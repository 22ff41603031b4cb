"""What a browser of another origin may read: the answers to agents' pages, where `cors_origins` names them.

Law (S923): explicit origins only, and never a cookie: without `Access-Control-Allow-Credentials` a browser
hands such a page nothing that a login cookie opened. A page must hold a key of its own. Whoever is not named
gets the answers as ever, which its browser keeps from it. Sockets need none of this: their key comes in the
first frame.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import Any

Event = MutableMapping[str, Any]
Send = Callable[[Event], Awaitable[None]]
PREFIX = "/v1/"
VARY = (b"vary", b"origin")
ALLOWED = [
    (b"access-control-allow-methods", b"GET, POST"),
    (b"access-control-allow-headers", b"authorization, content-type, traceparent, tracestate"),
    (b"access-control-max-age", b"600"),
]


class Cors:
    def __init__(self, origins: Iterable[str]) -> None:
        self._origins = frozenset(origin.lower().rstrip("/").encode() for origin in origins)

    def concerns(self, path: str) -> bool:
        """Whether answers there depend on who asks: each of them tells caches so, whoever it is to."""
        return bool(self._origins) and path.startswith(PREFIX)

    def origin_of(self, headers: Mapping[bytes, bytes]) -> bytes | None:
        """The origin to be answered to, if it is one of those named."""
        origin = headers.get(b"origin", b"")
        return origin if origin.lower() in self._origins else None


def is_asking(scope: Event, headers: Mapping[bytes, bytes]) -> bool:
    """The browser's question before the request itself."""
    return scope["method"] == "OPTIONS" and b"access-control-request-method" in headers


async def permit(origin: bytes, send: Send) -> None:
    """The answer to that question."""
    headers = [*_told(origin), *ALLOWED, (b"content-length", b"0")]
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def telling(origin: bytes | None, send: Send) -> Send:
    """Every answer says to whom it may be shown; `Retry-After` too, which an agent obeys."""

    async def tell(event: Event) -> None:
        if event["type"] == "http.response.start":
            shown = [VARY]
            if origin is not None:
                shown = [*_told(origin), (b"access-control-expose-headers", b"retry-after")]
            event = {**event, "headers": [*event.get("headers", ()), *shown]}
        await send(event)

    return tell


def _told(origin: bytes) -> list[tuple[bytes, bytes]]:
    return [(b"access-control-allow-origin", origin), VARY]

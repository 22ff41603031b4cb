"""CORS: which pages of other origins may read responses, as listed in `cors_origins`.

Law (S923): explicit origins only, and never a cookie: without `Access-Control-Allow-Credentials` a browser
gives such a page nothing that a login cookie opened. A page must hold a key of its own. Other origins get the
usual responses, which the browser withholds from the page. Sockets need none of this: their key comes in the
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
        """Whether responses there depend on the origin: then every one of them says so to caches."""
        return bool(self._origins) and path.startswith(PREFIX)

    def origin_of(self, headers: Mapping[bytes, bytes]) -> bytes | None:
        """The origin to allow, if it is one of those listed."""
        origin = headers.get(b"origin", b"")
        return origin if origin.lower() in self._origins else None


def is_preflight(scope: Event, headers: Mapping[bytes, bytes]) -> bool:
    """Whether this is the browser's preflight request."""
    return scope["method"] == "OPTIONS" and b"access-control-request-method" in headers


async def answer_preflight(origin: bytes, send: Send) -> None:
    """Answer a preflight request."""
    headers = [*_allow_origin(origin), *ALLOWED, (b"content-length", b"0")]
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def with_cors_headers(origin: bytes | None, send: Send) -> Send:
    """Add the CORS headers to every response, and expose `Retry-After`, which agents obey."""

    async def send_with_cors(event: Event) -> None:
        if event["type"] == "http.response.start":
            extra = [VARY]
            if origin is not None:
                extra = [*_allow_origin(origin), (b"access-control-expose-headers", b"retry-after")]
            event = {**event, "headers": [*event.get("headers", ()), *extra]}
        await send(event)

    return send_with_cors


def _allow_origin(origin: bytes) -> list[tuple[bytes, bytes]]:
    return [(b"access-control-allow-origin", origin), VARY]

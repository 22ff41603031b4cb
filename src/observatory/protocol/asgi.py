"""Sends one HTTP request to an ASGI application in this process and returns the complete response: no socket.

Law: with a size limit no more than that is buffered; the application then receives `http.disconnect`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote, urlencode

Headers = list[tuple[bytes, bytes]]
Answer = tuple[int, Headers, bytes]
App = Callable[[dict[str, Any], Any, Any], Awaitable[None]]


class ResponseTooLong(Exception):
    """The response has more bytes than the limit; it was discarded."""


async def call_app(
    app: App,
    method: str,
    path: str,
    headers: Sequence[tuple[bytes, bytes]],
    body: bytes = b"",
    query: Mapping[str, Any] | str | None = None,
    known: Mapping[str, Any] | None = None,
    most_bytes: int | None = None,
) -> Answer:
    """`path`, and `query` if it is text, are percent-encoded as in a URL; `known` is added to the scope.
    Raises TooLong when the response has more than `most_bytes`."""
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": (query if isinstance(query, str) else urlencode(query or {})).encode(),
        "headers": list(headers),
        "client": ("127.0.0.1", 0),
        "server": ("localhost", 0),
        **(known or {}),
    }
    waiting = [{"type": "http.request", "body": body, "more_body": False}]
    code, answered, parts, size, left = 500, Headers(), list[bytes](), 0, asyncio.Event()

    async def receive() -> dict[str, Any]:
        if not waiting:
            await left.wait()  # the client stays connected until the response is complete
            return {"type": "http.disconnect"}
        return waiting.pop()

    async def send(event: Mapping[str, Any]) -> None:
        nonlocal code, size
        if event["type"] == "http.response.start":
            code = event["status"]
            answered.extend((bytes(name), bytes(text)) for name, text in event["headers"])
        elif event["type"] == "http.response.body":
            size += len(event.get("body", b""))
            if most_bytes is not None and size > most_bytes:
                parts.clear()
                left.set()
            else:
                parts.append(event.get("body", b""))

    await app(scope, receive, send)
    if left.is_set():
        raise ResponseTooLong(f"more than {most_bytes} bytes")
    return code, answered, b"".join(parts)

"""One HTTP request to an ASGI application of this process, and its whole answer: no socket, no stream."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote, urlencode

Headers = list[tuple[bytes, bytes]]
Answer = tuple[int, Headers, bytes]
App = Callable[[dict[str, Any], Any, Any], Awaitable[None]]


async def exchange(
    app: App,
    method: str,
    path: str,
    headers: Sequence[tuple[bytes, bytes]],
    body: bytes = b"",
    query: Mapping[str, Any] | None = None,
    known: Mapping[str, Any] | None = None,
) -> Answer:
    """`path` as it stands in a URL, its parts quoted; `known` goes into the scope."""
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": urlencode(query or {}).encode(),
        "headers": list(headers),
        "client": ("127.0.0.1", 0),
        "server": ("localhost", 0),
        **(known or {}),
    }
    waiting = [{"type": "http.request", "body": body, "more_body": False}]
    code, answered, parts = 500, Headers(), list[bytes]()

    async def receive() -> dict[str, Any]:
        if not waiting:
            await asyncio.Event().wait()  # whoever asks stays until it is answered
        return waiting.pop()

    async def send(event: Mapping[str, Any]) -> None:
        nonlocal code
        if event["type"] == "http.response.start":
            code = event["status"]
            answered.extend((bytes(name), bytes(text)) for name, text in event["headers"])
        elif event["type"] == "http.response.body":
            parts.append(event.get("body", b""))

    await app(scope, receive, send)
    return code, answered, b"".join(parts)

"""One HTTP request to an ASGI application of this process, and its whole answer: no socket, no stream.

Law: who sets a bound never holds more than that; the application is told that its asker has left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote, urlencode

Headers = list[tuple[bytes, bytes]]
Answer = tuple[int, Headers, bytes]
App = Callable[[dict[str, Any], Any, Any], Awaitable[None]]


class TooLong(Exception):
    """The answer has more bytes than were wanted; nothing of it was kept."""


async def exchange(
    app: App,
    method: str,
    path: str,
    headers: Sequence[tuple[bytes, bytes]],
    body: bytes = b"",
    query: Mapping[str, Any] | str | None = None,
    known: Mapping[str, Any] | None = None,
    most_bytes: int | None = None,
) -> Answer:
    """`path` as it stands in a URL, its parts quoted, and so a `query` that is text; `known` goes into the
    scope. TooLong when the answer has more than `most_bytes`."""
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
            await left.wait()  # whoever asks stays until it is answered
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
        raise TooLong(f"more than {most_bytes} bytes")
    return code, answered, b"".join(parts)

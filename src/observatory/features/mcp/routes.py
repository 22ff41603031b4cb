"""`POST /mcp`: who stands at the MCP door, and how its tools ask our own doors (rules S400–S404).

Only a key opens it, never a cookie. A page of another origin is refused whatever it holds: a browser may be
made to speak to a local server by a name that was bound anew. There are no sessions and no streams: GET and
DELETE are answered 405, as the protocol has it for servers without them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec

from observatory.http.app_state import House
from observatory.http.client_certificate import CERTIFICATE
from observatory.http.ingest import Receive, Scope, Send
from observatory.protocol.answers import Refused
from observatory.protocol.asgi import Answer, exchange
from observatory.protocol.certificates import Certificate

PATH = "/mcp"
MOST_BYTES = 1 << 20
MOST_AT_ONCE = 64
JSON_RPC_ERROR = -32600


class _Refusal(Exception):
    def __init__(self, code: int, reason: str, detail: str, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(reason)
        self.code, self.reason, self.detail, self.headers = code, reason, detail, headers


class McpDoor:
    def __init__(self, house: House, app: Any) -> None:
        self._house, self._app = house, app
        self._inside = Counter[str]()  # requests that are being answered, by tenant

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            code, headers, body = await self._answer(scope, receive)
        except _Refusal as no:
            told = Refused(reason=no.reason, detail=no.detail)
            error = {"code": JSON_RPC_ERROR, "message": no.detail, "data": told}
            code, body = no.code, msgspec.json.encode({"jsonrpc": "2.0", "id": None, "error": error})
            headers = [(b"content-type", b"application/json"), *no.headers]
        self._house.doors.count(code)
        headers = [*headers, (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": code, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _answer(self, scope: Scope, receive: Receive) -> Answer:
        headers = dict(scope["headers"])
        if scope["method"] != "POST":
            raise _Refusal(
                405, "method_not_allowed", "send POST: there is no stream here", (b"allow", b"POST")
            )
        if b"origin" in headers and not self._house.auth.origin_is_ours(headers):
            raise _Refusal(403, "foreign_origin", "this page may not use the MCP door; see allowed_origins")
        key = headers.get(b"authorization")
        shown = scope.get(CERTIFICATE)
        who = None
        if key is not None:
            who = await self._house.auth.identify(headers, may_be_cached=False, certificate=shown)
        if key is None or who is None:
            told = "send a valid key as 'Authorization: Bearer obs_…'"
            raise _Refusal(401, "unauthorized", told, (b"www-authenticate", b"Bearer"))
        scope["observatory.who"] = who
        room = self._house.mcp
        if room is None:
            raise _Refusal(404, "not_found", "this gateway has no MCP door")
        try:
            body = await _body(headers, receive)
            self._enter(who.tenant_id)
        except _Refusal as no:
            await room.turned_away(who, no.reason)
            raise
        try:
            return await room.answer(who, scope["headers"], body, partial(ask, self._app, key, shown))
        finally:
            self._inside[who.tenant_id] -= 1
            self._inside += Counter()  # forgets who has none

    def _enter(self, tenant_id: str) -> None:
        """A tenant has never more inside than there is room left for all others."""
        if self._inside[tenant_id] >= MOST_AT_ONCE - self._inside.total():
            told = "so many requests are not answered at once; try again"
            raise _Refusal(429, "queue_full", told, (b"retry-after", b"1"))
        self._inside[tenant_id] += 1


async def _body(headers: Mapping[bytes, bytes], receive: Receive) -> bytes:
    if headers.get(b"content-type", b"").partition(b";")[0].strip().lower() != b"application/json":
        raise _Refusal(415, "unsupported_media_type", "send Content-Type application/json")
    if headers.get(b"content-encoding", b"identity").strip().lower() != b"identity":
        raise _Refusal(415, "unsupported_encoding", "send the body as it is, without an encoding")
    declared = headers.get(b"content-length", b"0")
    size = int(declared) if declared.isdigit() else 0
    parts = bytearray()
    more = True
    while more and size <= MOST_BYTES:
        event = await receive()
        if event["type"] == "http.disconnect":
            raise _Refusal(400, "bad_request", "the request was cut short")
        parts += event.get("body", b"")
        size, more = len(parts), event.get("more_body", False)
    if size > MOST_BYTES:
        raise _Refusal(413, "too_large", f"a request may have {MOST_BYTES} bytes at most")
    return bytes(parts)


async def ask(
    app: Any,
    key: bytes,
    shown: Certificate | None,
    method: str,
    path: str,
    query: Mapping[str, Any],
    body: Any,
) -> tuple[int, Any]:
    """One of our own doors, asked in this process with the caller's key and certificate: same guards, same
    answer."""
    content = b"" if body is None else msgspec.json.encode(body)
    headers = [(b"host", b"localhost"), (b"authorization", key), (b"content-length", b"%d" % len(content))]
    if content:
        headers.append((b"content-type", b"application/json"))
    code, _, answer = await exchange(app, method, path, headers, content, query, {CERTIFICATE: shown})
    try:
        return code, msgspec.json.decode(answer)
    except msgspec.MsgspecError:
        return code, None

"""`POST /mcp`: authentication of MCP requests, and how tools call our own HTTP API (rules S400–S404).

Only a key is accepted, never a cookie. A page of another origin is refused whatever it holds: DNS rebinding
can make a browser talk to a local server. There are no sessions and no streams: GET and DELETE return 405, as
the protocol specifies for servers without them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec

from observatory.features.mcp.server import McpServer
from observatory.http.app_state import AppState
from observatory.http.client_certificate import CERTIFICATE
from observatory.http.ingest import Receive, Scope, Send
from observatory.protocol.asgi import Answer, call_app
from observatory.protocol.certificates import Certificate
from observatory.protocol.responses import Refused

PATH = "/mcp"
MAX_BYTES = 1 << 20
MAX_IN_PROGRESS = 64
JSON_RPC_ERROR = -32600


class _Refusal(Exception):
    def __init__(self, code: int, reason: str, detail: str, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(reason)
        self.code, self.reason, self.detail, self.headers = code, reason, detail, headers


class McpEndpoint:
    def __init__(self, app: AppState, asgi: Any) -> None:
        self._app, self._asgi = app, asgi
        self._inside = Counter[str]()  # requests in progress, by tenant

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            code, headers, body = await self._answer(scope, receive)
        except _Refusal as refusal:
            body_of_refusal = Refused(reason=refusal.reason, detail=refusal.detail)
            error = {"code": JSON_RPC_ERROR, "message": refusal.detail, "data": body_of_refusal}
            code, body = refusal.code, msgspec.json.encode({"jsonrpc": "2.0", "id": None, "error": error})
            headers = [(b"content-type", b"application/json"), *refusal.headers]
        self._app.request_metrics.count(code)
        headers = [*headers, (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": code, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _answer(self, scope: Scope, receive: Receive) -> Answer:
        headers = dict(scope["headers"])
        if scope["method"] != "POST":
            raise _Refusal(
                405, "method_not_allowed", "send POST: this server has no streams", (b"allow", b"POST")
            )
        if b"origin" in headers and not self._app.auth.is_origin_allowed(headers):
            raise _Refusal(
                403, "foreign_origin", "this page may not use the MCP endpoint; see allowed_origins"
            )
        key = headers.get(b"authorization")
        shown = scope.get(CERTIFICATE)
        who = None
        if key is not None:
            who = await self._app.auth.identify(headers, may_be_cached=False, certificate=shown)
        if key is None or who is None:
            detail = "send a valid key as 'Authorization: Bearer obs_…'"
            raise _Refusal(401, "unauthorized", detail, (b"www-authenticate", b"Bearer"))
        scope["observatory.who"] = who
        server: McpServer | None = self._app.services.get(McpServer)
        if server is None:
            raise _Refusal(404, "not_found", "this gateway has no MCP endpoint")
        try:
            body = await _body(headers, receive)
            self._enter(who.tenant_id)
        except _Refusal as refusal:
            await server.record_refused_call(who, refusal.reason)
            raise
        try:
            return await server.answer(who, scope["headers"], body, partial(ask, self._asgi, key, shown))
        finally:
            self._inside[who.tenant_id] -= 1
            self._inside += Counter()  # drops tenants with none

    def _enter(self, tenant_id: str) -> None:
        """A tenant never has more requests in progress than there is capacity left for all others."""
        if self._inside[tenant_id] >= MAX_IN_PROGRESS - self._inside.total():
            detail = "too many requests in progress; try again"
            raise _Refusal(429, "queue_full", detail, (b"retry-after", b"1"))
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
    while more and size <= MAX_BYTES:
        event = await receive()
        if event["type"] == "http.disconnect":
            raise _Refusal(400, "bad_request", "the request was cut short")
        parts += event.get("body", b"")
        size, more = len(parts), event.get("more_body", False)
    if size > MAX_BYTES:
        raise _Refusal(413, "too_large", f"a request may have {MAX_BYTES} bytes at most")
    return bytes(parts)


async def ask(
    asgi: Any,
    key: bytes,
    shown: Certificate | None,
    method: str,
    path: str,
    query: Mapping[str, Any],
    body: Any,
) -> tuple[int, Any]:
    """Call our own HTTP API in this process with the caller's key and certificate: same checks, same
    response."""
    content = b"" if body is None else msgspec.json.encode(body)
    headers = [(b"host", b"localhost"), (b"authorization", key), (b"content-length", b"%d" % len(content))]
    if content:
        headers.append((b"content-type", b"application/json"))
    code, _, answer = await call_app(asgi, method, path, headers, content, query, {CERTIFICATE: shown})
    try:
        return code, msgspec.json.decode(answer)
    except msgspec.MsgspecError:
        return code, None

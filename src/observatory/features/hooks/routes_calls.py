"""The public endpoint of inbound webhooks: `POST /v1/webhooks/{hook_id}`, called without an API key.

The signature over the exact bytes is the credential. So everything is bounded before it is read: how often
one address may call, how many bytes, how long they take. A hook that is disabled, removed or never existed
gets the same answer, before anything of the body is read.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from litestar import Response, Router, post
from litestar.params import FromPath

from observatory.features.hooks.worker import HookReceiver, HookReply, unknown_hook_reply
from observatory.http.answers import Refusal, json
from observatory.http.app_state import Call, Here
from observatory.http.permissions import OPEN
from observatory.protocol.responses import Refused

BODY_S: Final = 30.0  # slower senders would occupy a connection and memory
TOO_OFTEN = HookReply(
    429, Refused(reason="too_often", detail="too many calls from this address; retry later"), 1
)


async def _any_body(_: Call) -> None:
    """The body is the sender's own, of any content type; the route bounds it."""


@post(
    "/webhooks/{hook_id:str}",
    summary="Call a webhook; the sender's signature is the credential",
    operation_id="receive_webhook",
    opt=OPEN,
    status_code=202,
    before_request=_any_body,
    request_max_body_size=None,
)
async def receive_webhook(request: Call, app: Here, hook_id: FromPath[str]) -> Response[Any]:
    client = request.client
    caller = client.host if client else ""
    if not app.callers.allows(caller):
        return _answer(TOO_OFTEN)
    if not await app.service(HookReceiver).is_open(hook_id):
        return _answer(unknown_hook_reply())
    try:
        async with asyncio.timeout(BODY_S):
            body = await _body(request, app.settings.webhook_bytes)
    except TimeoutError:
        raise Refusal(408, "too_slow", "the body did not arrive in time; retry") from None
    headers = list(request.scope["headers"])
    return _answer(await app.service(HookReceiver).call(hook_id, headers, body, caller, app.called.allows))


def _answer(reply: HookReply) -> Response[Any]:
    answer = json(reply.answer, reply.code)
    if reply.retry_after_s is not None and reply.code in (429, 503):
        answer.headers["retry-after"] = str(reply.retry_after_s)
    return answer


async def _body(request: Call, most: int) -> bytes:
    """The exact bytes. Nothing is decompressed: the signature covers what was sent."""
    if request.headers.get("content-encoding", "identity").lower() not in ("", "identity"):
        raise Refusal(415, "unsupported_encoding", "send the body without Content-Encoding, as it was signed")
    declared = request.headers.get("content-length", "")
    parts: list[bytes] = []
    size = int(declared) if declared.isdigit() else 0
    if size <= most:
        size = 0
        async for part in request.stream():
            size += len(part)
            if size > most:
                break
            parts.append(part)
    if size > most:
        raise Refusal(413, "too_large", f"a webhook body may have at most {most} bytes")
    return b"".join(parts)


hook_call_router = Router(path="/v1", route_handlers=[receive_webhook], tags=["Webhooks in"])

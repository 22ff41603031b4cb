"""The public door of webhooks: `POST /v1/webhooks/{hook_id}`, without a key of ours.

The signature over the exact bytes is the credential. So everything is bounded before it is looked at: how
often one address may call, how many bytes, how long they take. A hook that is disabled, removed or never was
answers alike, before anything of the body is read.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from litestar import Response, Router, post
from litestar.params import FromPath

from observatory.features.hooks.worker import Reply, unknown
from observatory.http.answers import Refusal, json
from observatory.http.app_state import Call, Here
from observatory.http.permissions import OPEN
from observatory.protocol.answers import Refused

BODY_S: Final = 30.0  # who has not sent the whole by then holds a place and bytes of ours
TOO_OFTEN = Reply(
    429, Refused(reason="too_often", detail="this address calls too often; call again later"), 1
)


async def _any_body(_: Call) -> None:
    """The body is the sender's own, whatever it is called; the route bounds it."""


@post(
    "/webhooks/{hook_id:str}",
    summary="Call a hook; the sender's signature is the credential",
    operation_id="receive_webhook",
    opt=OPEN,
    status_code=202,
    before_request=_any_body,
    request_max_body_size=None,
)
async def receive_webhook(request: Call, house: Here, hook_id: FromPath[str]) -> Response[Any]:
    client = request.client
    caller = client.host if client else ""
    if not house.callers.allows(caller):
        return _answer(TOO_OFTEN)
    if not await house.hooks.is_open(hook_id):
        return _answer(unknown())
    try:
        async with asyncio.timeout(BODY_S):
            body = await _body(request, house.settings.webhook_bytes)
    except TimeoutError:
        raise Refusal(408, "too_slow", "the body did not come in time; call again") from None
    headers = list(request.scope["headers"])
    return _answer(await house.hooks.call(hook_id, headers, body, caller, house.called.allows))


def _answer(reply: Reply) -> Response[Any]:
    answer = json(reply.answer, reply.code)
    if reply.retry_after_s is not None and reply.code in (429, 503):
        answer.headers["retry-after"] = str(reply.retry_after_s)
    return answer


async def _body(request: Call, most: int) -> bytes:
    """The exact bytes. Nothing is unpacked: what was signed is what was sent."""
    if request.headers.get("content-encoding", "identity").lower() not in ("", "identity"):
        raise Refusal(415, "unsupported_encoding", "send the body as it was signed, without Content-Encoding")
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
        raise Refusal(413, "too_large", f"a webhook may have {most} bytes at most")
    return b"".join(parts)


hook_door = Router(path="/v1", route_handlers=[receive_webhook], tags=["Webhooks in"])

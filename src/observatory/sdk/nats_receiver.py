"""The receiver's channel and requests over NATS; failures raise `NoResponse` with the reason."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import msgspec

from observatory.protocol.nats import NatsReply
from observatory.protocol.nats_connection import NatsUnavailable
from observatory.sdk.client import NoResponse, Unsent, unsent_for_status
from observatory.sdk.nats_connection import AgentNatsConnection

Acknowledging = Callable[[Callable[[list[str]], Awaitable[None]]], AbstractAsyncContextManager[None]]
REFUSED_CODES = (4401, 4403)  # WebSocket close codes: invalid key, or key of another agent


async def listen(
    connection: AgentNatsConnection,
    agent_id: str,
    display_url: str,
    timeout_s: float,
    on_frame: Callable[[bytes], Any],
    acknowledging: Acknowledging,
) -> None:
    """Run one channel from opening to end."""
    try:
        async with connection.channel(agent_id, timeout_s) as pipe:
            if isinstance(pipe, NatsReply):
                raise NoResponse(_refused(pipe))

            async def send(ids: list[str]) -> None:
                try:
                    await pipe.send(msgspec.json.encode({"op": "ack", "ids": ids}))
                except NatsUnavailable as exc:
                    raise NoResponse(Unsent(str(exc))) from exc

            async with acknowledging(send):
                async for frame in pipe.frames():
                    on_frame(frame)
            if pipe.ended is not None and pipe.ended.code in REFUSED_CODES:
                raise NoResponse(unsent_for_status(pipe.ended.code - 4000, None))
    except NatsUnavailable as exc:
        raise NoResponse(Unsent(f"{exc} at {display_url}")) from exc


def _refused(reply: NatsReply) -> Unsent:
    """Distinguishes a wrong clock from a wrong key."""
    if reply.status == 401 and b'"not_fresh"' in reply.body:
        reason = "this machine's clock and the gateway's differ by more than two minutes: set the clock"
        return Unsent(reason, needs_a_person=True)
    return unsent_for_status(reply.status, reply.retry_after or None)


async def request(
    connection: AgentNatsConnection,
    display_url: str,
    method: str,
    path: str,
    body: dict[str, Any] | None,
    timeout_s: float,
) -> tuple[int, bytes]:
    try:
        content = b"" if body is None else msgspec.json.encode(body)
        reply = await connection.request(method, path, content, timeout_s)
    except NatsUnavailable as exc:
        raise NoResponse(Unsent(f"{exc} at {display_url}")) from exc
    return reply.status, reply.body

"""Listening and asking by NATS, in the words of the ear: what fails is `NoChannel`, with the reason."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import msgspec

from observatory.protocol.nats import Reply
from observatory.protocol.nats_wire import NoNats
from observatory.sdk.client import NoChannel, Unsent, unsent
from observatory.sdk.nats_way import NatsWay

Acknowledging = Callable[[Callable[[list[str]], Awaitable[None]]], AbstractAsyncContextManager[None]]
NOT_WELCOME = (4401, 4403)  # as a WebSocket is closed: the key is not good, or not for this agent


async def listen(
    way: NatsWay,
    agent_id: str,
    place: str,
    timeout_s: float,
    hear: Callable[[bytes], Any],
    acknowledging: Acknowledging,
) -> None:
    """One channel from its opening to its end."""
    try:
        async with way.channel(agent_id, timeout_s) as pipe:
            if isinstance(pipe, Reply):
                raise NoChannel(_refused(pipe))

            async def send(ids: list[str]) -> None:
                try:
                    await pipe.send(msgspec.json.encode({"op": "ack", "ids": ids}))
                except NoNats as exc:
                    raise NoChannel(Unsent(str(exc))) from exc

            async with acknowledging(send):
                async for frame in pipe.frames():
                    hear(frame)
            if pipe.ended is not None and pipe.ended.code in NOT_WELCOME:
                raise NoChannel(unsent(pipe.ended.code - 4000, None))
    except NoNats as exc:
        raise NoChannel(Unsent(f"{exc} at {place}")) from exc


def _refused(reply: Reply) -> Unsent:
    """A clock that is wrong must not be taken for a key that is."""
    if reply.status == 401 and b'"not_fresh"' in reply.body:
        told = "this machine's clock and the gateway's are more than two minutes apart: set it"
        return Unsent(told, needs_a_person=True)
    return unsent(reply.status, reply.retry_after or None)


async def asked(
    way: NatsWay, place: str, method: str, path: str, body: dict[str, Any] | None, timeout_s: float
) -> tuple[int, bytes]:
    try:
        sent = b"" if body is None else msgspec.json.encode(body)
        reply = await way.request(method, path, sent, timeout_s)
    except NoNats as exc:
        raise NoChannel(Unsent(f"{exc} at {place}")) from exc
    return reply.status, reply.body

"""A bare agent on NATS: letters signed by hand, or not at all, and whatever comes back.

For tests of what the gateway does with letters no SDK would send.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import nats as nats_py

from observatory.protocol import nats
from observatory.protocol.credentials import digest, public_id
from observatory.protocol.nats import NatsReply, NatsRequest

if TYPE_CHECKING:
    from nats.aio.client import Client

T = TypeVar("T")
PATIENCE_S = 20.0


def by_hand(url: str, act: Callable[[Client], Awaitable[T]]) -> T:
    """`act` on a connection of its own."""

    async def run() -> T:
        to = nats.login(nats.address(url).servers[0])
        client = await nats_py.connect(to.url, user=to.user, password=to.password, token=to.token)
        try:
            return await act(client)
        finally:
            await client.close()

    return asyncio.run(run())


class Pen:
    """Signs with one key; every part of a letter can be falsified."""

    def __init__(self, key: str, prefix: str = nats.DEFAULT_PREFIX) -> None:
        self.public = public_id(key) or ""
        self.secret = nats.secret_of(digest(key))
        self.address = nats.address(f"nats://nowhere/{prefix}")

    def message(self, body: bytes | dict[str, Any], reply: str = "", **more: Any) -> NatsRequest:
        """For the ingest subject; one JSON message."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        letter = NatsRequest(
            self.address.ingest(self.public), self.public, time.time_ns(), "POST /v1/messages", reply, raw
        )
        return letter._replace(**more)

    def request(self, call: str, reply: str, body: bytes = b"", **more: Any) -> NatsRequest:
        letter = NatsRequest(self.address.request, self.public, time.time_ns(), call, reply, body)
        return letter._replace(**more)

    def headers(self, letter: NatsRequest) -> dict[str, str]:
        return nats.nats_headers(letter, self.secret)

    def read(self, headers: dict[str, str] | None, body: bytes, letter: NatsRequest) -> NatsReply | None:
        return nats.read_reply(headers, body, self.headers(letter)[nats.SIGNATURE], self.secret)


async def answer_to(
    client: Client, pen: Pen, letter: NatsRequest, headers: dict[str, str] | None = None, native: bool = False
) -> tuple[int, dict[str, Any], bool]:
    """Status, body, and whether it was signed. `native`: where NATS itself looks for a reply."""
    inbox = client.new_inbox()
    heard = await client.subscribe(inbox)
    letter = letter._replace(reply=inbox)
    sent = pen.headers(letter) | (headers or {})
    await client.publish(letter.subject, letter.body, inbox if native else "", sent)
    message = await heard.next_msg(PATIENCE_S)
    received = message.headers or {}
    signed = nats.SIGNATURE in received and pen.read(received, message.data, letter) is not None
    return int(received[nats.STATUS]), json.loads(message.data), signed

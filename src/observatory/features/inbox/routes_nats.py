"""An agent's channel with NATS as its pipe: the same door as the WebSocket, which learns nothing of it.

Law: it is held exactly as a socket is. Each end says every few seconds that it lives; who is not heard any
more is gone. A lost, repeated or forged frame ends or is as if it had not come (`protocol/nats_pipe.py`),
and the agent opens a new one, with what it has not acknowledged.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import MutableMapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from observatory.protocol.asgi import App
from observatory.protocol.nats import Address, Reply
from observatory.protocol.nats_pipe import DEAD_S, PING_S, Broken, Intake, Op, Outlet, channel_secret
from observatory.protocol.nats_wire import failures

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription

log = logging.getLogger("observatory.nats")
WAITING = 256  # packets of an agent that were not looked at yet
Event = MutableMapping[str, Any]


class Opening(msgspec.Struct):
    """What an agent asks with: who it is, and where it hears."""

    agent_id: str
    pipe: str


class NatsChannel:
    def __init__(
        self, client: Client, address: Address, secret: bytes, signature: str, opening: Opening, limit: int
    ) -> None:
        self._client, self._opening = client, opening
        self._pipe = f"{address.pipes}.{secrets.token_hex(12)}"
        shared = channel_secret(secret, signature, self._pipe)
        self._out = Outlet(shared, b"to agent", client.max_payload)
        self._in = Intake(shared, b"to gateway", limit)
        self._arrived: asyncio.Queue[Msg | None] = asyncio.Queue(WAITING)
        self._subscription: Subscription | None = None
        self._begun = self._ended = False
        self._saying = asyncio.Lock()

    async def open(self) -> Reply:
        self._subscription = await self._client.subscribe(self._pipe, cb=self._hear)
        return Reply(200, msgspec.json.encode({"pipe": self._pipe}))

    async def serve(self, face: App, headers: Sequence[tuple[bytes, bytes]]) -> None:
        """Until either side ends."""
        path = f"/v1/agents/{self._opening.agent_id}/channel"
        scope = {
            "type": "websocket",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "scheme": "ws",
            "path": path,
            "raw_path": quote(path).encode(),
            "root_path": "",
            "query_string": b"",
            "headers": list(headers),
            "client": ("127.0.0.1", 0),
            "server": ("localhost", 0),
            "subprotocols": [],
            "observatory.transport": "nats",
        }
        living = asyncio.create_task(self._live())
        try:
            await face(scope, self._receive, self._send)
        finally:
            living.cancel()
            await asyncio.gather(living, return_exceptions=True)

    def cut(self) -> None:
        """The connection to NATS is gone, and the channel with it."""
        self._ended = True
        with suppress(asyncio.QueueFull):
            self._arrived.put_nowait(None)

    async def close(self) -> None:
        if self._subscription is not None and not self._client.is_closed:
            with suppress(*failures()):
                await self._subscription.unsubscribe()

    async def _hear(self, message: Msg) -> None:
        try:
            self._arrived.put_nowait(message)
        except asyncio.QueueFull:  # it speaks faster than anybody need; its numbers will not follow
            log.debug("a channel by NATS is flooded")

    async def _live(self) -> None:
        while True:
            await asyncio.sleep(PING_S)
            await self._say("ping")

    async def _receive(self) -> Event:
        if not self._begun:
            self._begun = True
            return {"type": "websocket.connect"}
        try:
            while not self._ended:
                async with asyncio.timeout(DEAD_S):
                    message = await self._arrived.get()
                if message is None:
                    break
                if (message.headers or {}).get("Status") == "503":
                    break  # nobody hears there any more
                found = self._in.take(message.headers, message.data)
                if found is None or found[0] == "ping":
                    continue
                if found[0] == "close":
                    break
                return {"type": "websocket.receive", "bytes": found[1]}
        except (Broken, TimeoutError) as error:
            log.debug("a channel by NATS ends: %s", error or "its agent is silent")
            with suppress(OSError):
                await self._say("close", b'{"code":1013,"reason":"the channel was broken; open it again"}')
        self._ended = True
        return {"type": "websocket.disconnect", "code": 1006}

    async def _send(self, event: Event) -> None:
        if event["type"] == "websocket.send":
            await self._say("frame", str(event["text"]).encode())
        elif event["type"] == "websocket.close":
            told = {"code": event.get("code", 1000), "reason": event.get("reason", "")}
            await self._say("close", msgspec.json.encode(told))

    async def _say(self, op: Op, body: bytes = b"") -> None:
        """OSError once the connection is gone, as ASGI wants it. One frame after another: nothing may come
        between the parts of one."""
        try:
            async with self._saying:
                for packet in self._out.packets(op, body):
                    reply = self._pipe if op == "ping" else ""  # told there when nobody hears us
                    await self._client.publish(self._opening.pipe, packet.body, reply, packet.headers)
        except failures() as error:
            self._ended = True
            raise OSError("NATS is away") from error

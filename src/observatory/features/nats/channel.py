"""An agent's channel over NATS: the same code as the WebSocket, which is not aware of it.

Law: it behaves exactly like a socket. Each end sends a ping every few seconds; an end that is silent is gone.
A lost, repeated or forged frame ends the channel or is ignored (`protocol/nats_frames.py`), and the agent
opens a new one and gets what it has not acknowledged.
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
from observatory.protocol.nats import NatsAddress, NatsReply
from observatory.protocol.nats_connection import failures
from observatory.protocol.nats_frames import (
    DEAD_S,
    PING_S,
    ChannelBroken,
    FrameReceiver,
    FrameSender,
    Op,
    channel_secret,
)

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription

log = logging.getLogger("observatory.nats")
WAITING = 256  # received packets of an agent that are not processed yet
Event = MutableMapping[str, Any]


class ChannelOpening(msgspec.Struct):
    """An agent's request: its name, and the subject it listens on."""

    agent_id: str
    pipe: str


class NatsChannel:
    def __init__(
        self,
        client: Client,
        address: NatsAddress,
        secret: bytes,
        signature: str,
        opening: ChannelOpening,
        limit: int,
    ) -> None:
        self._client, self._opening = client, opening
        self._pipe = f"{address.pipes}.{secrets.token_hex(12)}"
        shared = channel_secret(secret, signature, self._pipe)
        self._out = FrameSender(shared, b"to agent", client.max_payload)
        self._in = FrameReceiver(shared, b"to gateway", limit)
        self._arrived: asyncio.Queue[Msg | None] = asyncio.Queue(WAITING)
        self._subscription: Subscription | None = None
        self._connected = self._ended = False
        self._sending = asyncio.Lock()

    async def open(self) -> NatsReply:
        self._subscription = await self._client.subscribe(self._pipe, cb=self._on_message)
        return NatsReply(200, msgspec.json.encode({"pipe": self._pipe}))

    async def serve(self, app: App, headers: Sequence[tuple[bytes, bytes]]) -> None:
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
        pings = asyncio.create_task(self._ping())
        try:
            await app(scope, self._receive, self._send)
        finally:
            pings.cancel()
            await asyncio.gather(pings, return_exceptions=True)

    def cut(self) -> None:
        """The connection to NATS is lost, and the channel with it."""
        self._ended = True
        with suppress(asyncio.QueueFull):
            self._arrived.put_nowait(None)

    async def close(self) -> None:
        if self._subscription is not None and not self._client.is_closed:
            with suppress(*failures()):
                await self._subscription.unsubscribe()

    async def _on_message(self, message: Msg) -> None:
        try:
            self._arrived.put_nowait(message)
        except asyncio.QueueFull:  # the frame's number will be missing, which ends the channel
            log.debug("a NATS channel receives too fast")

    async def _ping(self) -> None:
        while True:
            await asyncio.sleep(PING_S)
            await self._send_op("ping")

    async def _receive(self) -> Event:
        if not self._connected:
            self._connected = True
            return {"type": "websocket.connect"}
        try:
            while not self._ended:
                async with asyncio.timeout(DEAD_S):
                    message = await self._arrived.get()
                if message is None:
                    break
                if (message.headers or {}).get("Status") == "503":
                    break  # the agent no longer subscribes
                found = self._in.take(message.headers, message.data)
                if found is None or found[0] == "ping":
                    continue
                if found[0] == "close":
                    break
                return {"type": "websocket.receive", "bytes": found[1]}
        except (ChannelBroken, TimeoutError) as error:
            log.debug("a NATS channel ended: %s", error or "its agent is silent")
            with suppress(OSError):
                await self._send_op("close", b'{"code":1013,"reason":"the channel is broken; reconnect"}')
        self._ended = True
        return {"type": "websocket.disconnect", "code": 1006}

    async def _send(self, event: Event) -> None:
        if event["type"] == "websocket.send":
            await self._send_op("frame", str(event["text"]).encode())
        elif event["type"] == "websocket.close":
            frame = {"code": event.get("code", 1000), "reason": event.get("reason", "")}
            await self._send_op("close", msgspec.json.encode(frame))

    async def _send_op(self, op: Op, body: bytes = b"") -> None:
        """OSError once the connection is lost, as ASGI requires. One frame at a time: nothing may come
        between the parts of one."""
        try:
            async with self._sending:
                for packet in self._out.packets(op, body):
                    reply = self._pipe if op == "ping" else ""  # where a missing subscriber is reported
                    await self._client.publish(self._opening.pipe, packet.body, reply, packet.headers)
        except failures() as error:
            self._ended = True
            raise OSError("NATS is not connected") from error

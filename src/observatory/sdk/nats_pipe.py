"""The agent's end of a channel over NATS: ordered frames until it ends.

Rule: as with a WebSocket, the reader gets whole frames until the channel ends; then it is reopened. A dead
gateway is detected by its silence, or at once when NATS reports that there is no subscriber.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import msgspec

from observatory.protocol.nats_connection import NatsConnection, NatsUnavailable, failures, reason_of
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
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription

WAITING = 4_096  # unread packets; one more is lost, which the next sequence number reveals
FRAME_BYTES = 16 << 20


class Closed(msgspec.Struct):
    """The gateway's close message; codes as for a WebSocket."""

    code: int = 1000
    reason: str = ""


class Pipe:
    def __init__(self, wire: NatsConnection, inbox: str) -> None:
        self._wire = wire
        self.inbox = inbox
        self._send_lock = asyncio.Lock()
        self._arrived: asyncio.Queue[Msg] = asyncio.Queue(WAITING)
        self._subscription: Subscription | None = None
        self._remote_inbox = ""
        self._out: FrameSender | None = None
        self._in: FrameReceiver | None = None
        self.ended: Closed | None = None

    async def listen(self) -> None:
        self._subscription = await self._wire.client.subscribe(self.inbox, cb=self._on_message)

    @contextlib.asynccontextmanager
    async def opened(self, remote_inbox: str, secret: bytes, signature: str) -> AsyncIterator[None]:
        shared = channel_secret(secret, signature, remote_inbox)
        self._remote_inbox = remote_inbox
        self._out = FrameSender(shared, b"to gateway", self._wire.client.max_payload)
        self._in = FrameReceiver(shared, b"to agent", FRAME_BYTES)
        living = asyncio.create_task(self._live())
        try:
            yield
        finally:
            living.cancel()
            await asyncio.wait([living])
            if self.ended is None:
                with contextlib.suppress(NatsUnavailable):
                    await self._publish("close")

    async def close(self) -> None:
        if self._subscription is not None and not self._wire.client.is_closed:
            with contextlib.suppress(*failures()):
                await self._subscription.unsubscribe()

    async def send(self, frame: bytes) -> None:
        """Raises NoNats when it cannot be sent."""
        await self._publish("frame", frame)

    async def frames(self) -> AsyncIterator[bytes]:
        """Until the gateway closes the channel (`ended` holds the reason). Raises NoNats when it broke."""
        assert self._in is not None
        while True:
            message = await self._next()
            if (message.headers or {}).get("Status") == "503":
                raise NatsUnavailable("the gateway has no subscriber on this channel")
            try:
                packet = self._in.take(message.headers, message.data)
            except ChannelBroken as error:
                raise NatsUnavailable(str(error)) from error
            if packet is None or packet[0] == "ping":
                continue
            if packet[0] == "close":
                self.ended = _closed(packet[1])
                return
            yield packet[1]

    async def _next(self) -> "Msg":
        if not self._arrived.empty():
            return self._arrived.get_nowait()
        getting = asyncio.ensure_future(self._arrived.get())
        closed = asyncio.ensure_future(self._wire.closed.wait())
        try:
            await asyncio.wait([getting, closed], timeout=DEAD_S, return_when=asyncio.FIRST_COMPLETED)
            if getting.done():
                return getting.result()
        finally:
            getting.cancel()
            closed.cancel()
        raise NatsUnavailable(
            "the connection to NATS broke" if self._wire.closed.is_set() else "the gateway does not respond"
        )

    async def _on_message(self, message: "Msg") -> None:
        with contextlib.suppress(asyncio.QueueFull):
            self._arrived.put_nowait(message)

    async def _live(self) -> None:
        with contextlib.suppress(NatsUnavailable):  # the reader gets the error too
            while True:
                await asyncio.sleep(PING_S)
                await self._publish("ping")

    async def _publish(self, op: Op, body: bytes = b"") -> None:
        """Send one frame at a time: the parts of a frame must not be interleaved."""
        assert self._out is not None
        try:
            async with self._send_lock:
                for packet in self._out.packets(op, body):
                    reply = self.inbox if op == "ping" else ""  # NATS reports there that it has no subscriber
                    await self._wire.client.publish(self._remote_inbox, packet.body, reply, packet.headers)
        except failures() as error:
            raise NatsUnavailable(reason_of(error)) from error


def _closed(body: bytes) -> Closed:
    with contextlib.suppress(msgspec.MsgspecError):
        return msgspec.json.decode(body, type=Closed)
    return Closed()

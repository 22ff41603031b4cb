"""An agent's end of a channel by NATS: frames in order, or the end of it.

Law: as with a WebSocket, whoever reads gets whole frames until the channel ends; then it is opened again.
A gateway that is gone is noticed by its silence, or at once when NATS says that nobody hears us there.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import msgspec

from observatory.protocol.nats_pipe import DEAD_S, PING_S, Broken, Intake, Op, Outlet, channel_secret
from observatory.protocol.nats_wire import NoNats, Wire, failures, why

if TYPE_CHECKING:
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription

WAITING = 4_096  # packets that were not looked at yet; one more is lost, which its successor shows
FRAME_BYTES = 16 << 20


class Closed(msgspec.Struct):
    """What the gateway says when it ends a channel; codes as of a WebSocket."""

    code: int = 1000
    reason: str = ""


class Pipe:
    def __init__(self, wire: Wire, inbox: str) -> None:
        self._wire = wire
        self.inbox = inbox
        self._saying = asyncio.Lock()
        self._arrived: asyncio.Queue[Msg] = asyncio.Queue(WAITING)
        self._subscription: Subscription | None = None
        self._there = ""
        self._out: Outlet | None = None
        self._in: Intake | None = None
        self.ended: Closed | None = None

    async def listen(self) -> None:
        self._subscription = await self._wire.client.subscribe(self.inbox, cb=self._hear)

    @contextlib.asynccontextmanager
    async def opened(self, there: str, secret: bytes, signature: str) -> AsyncIterator[None]:
        shared = channel_secret(secret, signature, there)
        self._there = there
        self._out = Outlet(shared, b"to gateway", self._wire.client.max_payload)
        self._in = Intake(shared, b"to agent", FRAME_BYTES)
        living = asyncio.create_task(self._live())
        try:
            yield
        finally:
            living.cancel()
            await asyncio.wait([living])
            if self.ended is None:
                with contextlib.suppress(NoNats):
                    await self._say("close")

    async def close(self) -> None:
        if self._subscription is not None and not self._wire.client.is_closed:
            with contextlib.suppress(*failures()):
                await self._subscription.unsubscribe()

    async def send(self, frame: bytes) -> None:
        """NoNats when it cannot leave."""
        await self._say("frame", frame)

    async def frames(self) -> AsyncIterator[bytes]:
        """Until the gateway ends the channel (`ended` says why). NoNats when it broke."""
        assert self._in is not None
        while True:
            message = await self._next()
            if (message.headers or {}).get("Status") == "503":
                raise NoNats("the gateway is gone")
            try:
                found = self._in.take(message.headers, message.data)
            except Broken as error:
                raise NoNats(str(error)) from error
            if found is None or found[0] == "ping":
                continue
            if found[0] == "close":
                self.ended = _closed(found[1])
                return
            yield found[1]

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
        raise NoNats(
            "the connection to NATS broke" if self._wire.closed.is_set() else "the gateway is silent"
        )

    async def _hear(self, message: "Msg") -> None:
        with contextlib.suppress(asyncio.QueueFull):
            self._arrived.put_nowait(message)

    async def _live(self) -> None:
        with contextlib.suppress(NoNats):  # whoever reads learns it too
            while True:
                await asyncio.sleep(PING_S)
                await self._say("ping")

    async def _say(self, op: Op, body: bytes = b"") -> None:
        """One frame after another: nothing may come between the parts of one."""
        assert self._out is not None
        try:
            async with self._saying:
                for packet in self._out.packets(op, body):
                    reply = self.inbox if op == "ping" else ""  # told there when nobody hears us
                    await self._wire.client.publish(self._there, packet.body, reply, packet.headers)
        except failures() as error:
            raise NoNats(why(error)) from error


def _closed(body: bytes) -> Closed:
    with contextlib.suppress(msgspec.MsgspecError):
        return msgspec.json.decode(body, type=Closed)
    return Closed()

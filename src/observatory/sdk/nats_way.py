"""The way by NATS: one connection of this process for each address and key, and signed letters over it.

Law: the key never leaves; only what it signed does. A letter is answered by whichever gateway takes it, and
only an answer signed with the same key is believed. All answers come below `_INBOX.<key's public part>`, or
`_INBOX.<class>.<key's public part>` where the address names a class, so that NATS can be told who may hear
what. Everything here runs on the background loop. When the connection breaks, callers that wait for an
answer fail at once; the next call connects again.
"""

import asyncio
import contextlib
import secrets
import time
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

import msgspec

from observatory.protocol import nats
from observatory.protocol.credentials import digest, public_id
from observatory.protocol.nats import Letter, Reply
from observatory.protocol.nats_pipe import ROOM
from observatory.protocol.nats_wire import NoNats, Rotation, Wire, close, ended, failures, is_forbidden, why
from observatory.sdk.credentials import Door
from observatory.sdk.nats_pipe import Pipe

if TYPE_CHECKING:
    from nats.aio.msg import Msg

NOBODY = "no gateway listens there"
WAITING = 64
_ways: dict[tuple[object, Door], tuple["NatsWay", int]] = {}


class _Opened(msgspec.Struct):
    pipe: str


class Waiting:
    """For what comes to one inbox; None when the connection broke."""

    def __init__(self, subject: str) -> None:
        self.subject = subject
        self.arrived: asyncio.Queue[Msg | None] = asyncio.Queue(WAITING)

    async def next(self) -> "Msg":
        message = await self.arrived.get()
        if message is None:
            raise NoNats("the connection to NATS broke")
        return message


class NatsWay:
    def __init__(self, door: Door) -> None:
        self.address = nats.address(door.url)
        self._servers = Rotation(self.address.servers, door.trust.ca or "")
        self.public = public_id(door.key) or ""
        self.secret = nats.secret_of(digest(door.key))
        self._making = asyncio.Lock()
        self._wire: Wire | None = None
        self._watch: asyncio.Task[None] | None = None
        self._inbox = ""
        self.forbidden = ""
        self._waiting: dict[str, Waiting] = {}

    async def wire(self) -> Wire:
        """The open connection; made if there is none. NoNats when it cannot be."""
        async with self._making:
            if self._wire is None or self._wire.closed.is_set() or self._wire.client.is_closed:
                made = await self._servers.connect("observatory agent", self._note)
                self._inbox = self.inbox()
                try:
                    await made.client.subscribe(f"{self._inbox}.*", cb=self._arrived)
                except failures() as error:
                    await close(made)
                    raise NoNats(why(error)) from error
                self._wire = made
                self._watch = asyncio.create_task(self._cut(made))
            return self._wire

    def inbox(self) -> str:
        """A new one, of this key."""
        return nats.inbox(self.public, self.address.agent_class)

    def _note(self, error: BaseException) -> None:
        """What NATS forbids it says beside the matter: whoever then waits in vain is told of it."""
        if is_forbidden(error):
            self.forbidden = why(error)

    def why(self, error: BaseException) -> str:
        return self.forbidden if self.forbidden and isinstance(error, TimeoutError) else why(error)

    async def close(self) -> None:
        if self._wire is not None:
            await close(self._wire)
        if self._watch is not None:
            await asyncio.wait([self._watch])

    async def _cut(self, wire: Wire) -> None:
        await ended(wire)
        for one in list(self._waiting.values()):
            with contextlib.suppress(asyncio.QueueFull):
                one.arrived.put_nowait(None)
        await close(wire)  # what it may have left behind

    async def _arrived(self, message: "Msg") -> None:
        if (one := self._waiting.get(message.subject)) is not None:
            with contextlib.suppress(asyncio.QueueFull):
                one.arrived.put_nowait(message)

    @contextlib.contextmanager
    def waiting(self) -> Iterator[Waiting]:
        one = Waiting(f"{self._inbox}.{secrets.token_hex(8)}")
        self._waiting[one.subject] = one
        try:
            yield one
        finally:
            del self._waiting[one.subject]

    def letter(self, subject: str, call: str, reply: str, body: bytes, **more: str) -> Letter:
        return Letter(subject, self.public, time.time_ns(), call, reply, body, **more)

    async def request(self, method: str, path: str, body: bytes, timeout_s: float) -> Reply:
        """As HTTP would have answered. NoNats when nobody did."""
        return (await self.ask(self.address.request, f"{method} {path}", body, timeout_s))[0]

    async def ask(self, subject: str, call: str, body: bytes, timeout_s: float) -> tuple[Reply, str]:
        """The answer, and the signature of the letter it answers."""
        try:
            async with asyncio.timeout(timeout_s):
                wire = await self.wire()
                if len(body) > wire.client.max_payload - ROOM:
                    raise NoNats(f"NATS there carries {wire.client.max_payload} bytes at most")
                with self.waiting() as answer:
                    letter = self.letter(subject, call, answer.subject, body)
                    headers = nats.sealed(letter, self.secret)
                    signature = headers[nats.SIGNATURE]
                    await wire.client.publish(subject, body, answer.subject, headers)
                    while True:
                        message = await answer.next()
                        if (message.headers or {}).get("Status") == "503":
                            raise NoNats(NOBODY)
                        reply = nats.read_answer(message.headers, message.data, signature, self.secret)
                        if reply is not None:
                            return reply, signature
        except failures() as error:
            raise NoNats(self.why(error)) from error

    @contextlib.asynccontextmanager
    async def channel(self, agent_id: str, timeout_s: float) -> AsyncIterator[Pipe | Reply]:
        """An agent's channel; or what was answered instead."""
        wire = await self.wire()
        pipe = Pipe(wire, self.inbox())
        try:
            await pipe.listen()
            asked = msgspec.json.encode({"agent_id": agent_id, "pipe": pipe.inbox})
            reply, signature = await self.ask(self.address.channel, "CHANNEL", asked, timeout_s)
            if reply.status != 200:
                yield reply
                return
            try:
                opened = msgspec.json.decode(reply.body, type=_Opened)
            except msgspec.MsgspecError as error:
                raise NoNats("what answers there is not a gateway") from error
            async with pipe.opened(opened.pipe, self.secret, signature):
                yield pipe
        except failures() as error:
            raise NoNats(why(error)) from error
        finally:
            await pipe.close()


def way(door: Door) -> NatsWay:
    """One for all who speak or listen there; of this loop, for a forked child has another."""
    key = asyncio.get_running_loop(), door
    shared, users = _ways.get(key) or (NatsWay(door), 0)
    _ways[key] = shared, users + 1
    return shared


async def leave(door: Door) -> None:
    """The last one closes it."""
    key = asyncio.get_running_loop(), door
    shared, users = _ways[key]
    _ways[key] = shared, users - 1
    if users == 1:
        del _ways[key]
        await shared.close()

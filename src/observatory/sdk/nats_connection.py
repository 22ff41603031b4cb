"""`AgentNatsConnection`: one connection per process, address and key, with signed requests over it.

Rule: the key is never sent, only signatures. Any gateway may answer a request, and only an answer signed with
the same key is accepted. All answers arrive below `_INBOX.<public part of the key>`, or
`_INBOX.<class>.<public part of the key>` if the address names a class, so that NATS permissions can restrict
who may subscribe. Everything here runs on the background loop. When the connection breaks, callers that wait
for an answer fail at once; the next call reconnects.
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
from observatory.protocol.nats import NatsReply, NatsRequest
from observatory.protocol.nats_connection import (
    NatsConnection,
    NatsUnavailable,
    ServerRotation,
    close,
    failures,
    is_forbidden,
    reason_of,
    wait_disconnected,
)
from observatory.protocol.nats_frames import HEADER_BYTES
from observatory.sdk.credentials import GatewayCredentials
from observatory.sdk.nats_pipe import Pipe

if TYPE_CHECKING:
    from nats.aio.msg import Msg

NO_GATEWAY = "no gateway is subscribed at this address"
WAITING = 64
_connections: dict[tuple[object, GatewayCredentials], tuple["AgentNatsConnection", int]] = {}


class _Opened(msgspec.Struct):
    pipe: str


class PendingReply:
    """Waits for messages to one inbox; a queued None means the connection broke."""

    def __init__(self, subject: str) -> None:
        self.subject = subject
        self.arrived: asyncio.Queue[Msg | None] = asyncio.Queue(WAITING)

    async def next(self) -> "Msg":
        message = await self.arrived.get()
        if message is None:
            raise NatsUnavailable("the connection to NATS broke")
        return message


class AgentNatsConnection:
    def __init__(self, credentials: GatewayCredentials) -> None:
        self.address = nats.address(credentials.url)
        self._servers = ServerRotation(self.address.servers, credentials.trust.ca or "")
        self.public = public_id(credentials.key) or ""
        self.secret = nats.secret_of(digest(credentials.key))
        self._making = asyncio.Lock()
        self._wire: NatsConnection | None = None
        self._watch: asyncio.Task[None] | None = None
        self._inbox = ""
        self.forbidden = ""
        self._pending: dict[str, PendingReply] = {}

    async def wire(self) -> NatsConnection:
        """The open connection, created if there is none. Raises NoNats when it cannot be."""
        async with self._making:
            if self._wire is None or self._wire.closed.is_set() or self._wire.client.is_closed:
                created = await self._servers.connect("observatory agent", self._on_error)
                self._inbox = self.inbox()
                try:
                    await created.client.subscribe(f"{self._inbox}.*", cb=self._arrived)
                except failures() as error:
                    await close(created)
                    raise NatsUnavailable(reason_of(error)) from error
                self._wire = created
                self._watch = asyncio.create_task(self._on_broken(created))
            return self._wire

    def inbox(self) -> str:
        """A new inbox subject for this key."""
        return nats.inbox(self.public, self.address.agent_class)

    def _on_error(self, error: BaseException) -> None:
        """NATS reports a permission error separately; keep it to explain the timeout that follows."""
        if is_forbidden(error):
            self.forbidden = reason_of(error)

    def why(self, error: BaseException) -> str:
        return self.forbidden if self.forbidden and isinstance(error, TimeoutError) else reason_of(error)

    async def close(self) -> None:
        if self._wire is not None:
            await close(self._wire)
        if self._watch is not None:
            await asyncio.wait([self._watch])

    async def _on_broken(self, wire: NatsConnection) -> None:
        await wait_disconnected(wire)
        for one in list(self._pending.values()):
            with contextlib.suppress(asyncio.QueueFull):
                one.arrived.put_nowait(None)
        await close(wire)  # clean up what is left of it

    async def _arrived(self, message: "Msg") -> None:
        if (one := self._pending.get(message.subject)) is not None:
            with contextlib.suppress(asyncio.QueueFull):
                one.arrived.put_nowait(message)

    @contextlib.contextmanager
    def pending_reply(self) -> Iterator[PendingReply]:
        one = PendingReply(f"{self._inbox}.{secrets.token_hex(8)}")
        self._pending[one.subject] = one
        try:
            yield one
        finally:
            del self._pending[one.subject]

    def letter(self, subject: str, call: str, reply: str, body: bytes, **more: str) -> NatsRequest:
        return NatsRequest(subject, self.public, time.time_ns(), call, reply, body, **more)

    async def request(self, method: str, path: str, body: bytes, timeout_s: float) -> NatsReply:
        """Send a request and return the reply as over HTTP. Raises NoNats when there is none."""
        return (await self.ask(self.address.request, f"{method} {path}", body, timeout_s))[0]

    async def ask(self, subject: str, call: str, body: bytes, timeout_s: float) -> tuple[NatsReply, str]:
        """The reply, and the signature of the request it answers."""
        try:
            async with asyncio.timeout(timeout_s):
                wire = await self.wire()
                if len(body) > wire.client.max_payload - HEADER_BYTES:
                    raise NatsUnavailable(f"this NATS server accepts at most {wire.client.max_payload} bytes")
                with self.pending_reply() as answer:
                    letter = self.letter(subject, call, answer.subject, body)
                    headers = nats.nats_headers(letter, self.secret)
                    signature = headers[nats.SIGNATURE]
                    await wire.client.publish(subject, body, answer.subject, headers)
                    while True:
                        message = await answer.next()
                        if (message.headers or {}).get("Status") == "503":
                            raise NatsUnavailable(NO_GATEWAY)
                        reply = nats.read_reply(message.headers, message.data, signature, self.secret)
                        if reply is not None:
                            return reply, signature
        except failures() as error:
            raise NatsUnavailable(self.why(error)) from error

    @contextlib.asynccontextmanager
    async def channel(self, agent_id: str, timeout_s: float) -> AsyncIterator[Pipe | NatsReply]:
        """An agent's channel, or the reply that refused it."""
        wire = await self.wire()
        pipe = Pipe(wire, self.inbox())
        try:
            await pipe.listen()
            request = msgspec.json.encode({"agent_id": agent_id, "pipe": pipe.inbox})
            reply, signature = await self.ask(self.address.channel, "CHANNEL", request, timeout_s)
            if reply.status != 200:
                yield reply
                return
            try:
                opened = msgspec.json.decode(reply.body, type=_Opened)
            except msgspec.MsgspecError as error:
                raise NatsUnavailable("the server at this address is not a gateway") from error
            async with pipe.opened(opened.pipe, self.secret, signature):
                yield pipe
        except failures() as error:
            raise NatsUnavailable(reason_of(error)) from error
        finally:
            await pipe.close()


def shared_connection(credentials: GatewayCredentials) -> AgentNatsConnection:
    """One connection for all senders and receivers of this loop (a forked child has its own)."""
    key = asyncio.get_running_loop(), credentials
    shared, users = _connections.get(key) or (AgentNatsConnection(credentials), 0)
    _connections[key] = shared, users + 1
    return shared


async def release(credentials: GatewayCredentials) -> None:
    """Release the connection; the last user closes it."""
    key = asyncio.get_running_loop(), credentials
    shared, users = _connections[key]
    _connections[key] = shared, users - 1
    if users == 1:
        del _connections[key]
        await shared.close()

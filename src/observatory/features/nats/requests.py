"""Requests over NATS: signed letters, passed to the same ASGI application as every HTTP request.

Laws: a letter is answered or carried out only if its signature is of a valid key; the request
goes through the ASGI application with that key's own rights, so there is no second set of rules. A
repeated request is refused here (a repeated message is not: it gets the same verdict). A client that floods
is asked to retry later; unreadable letters are counted and discarded. Stream problems end no channel.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from observatory.bus.nats_link import NatsLink
from observatory.errors import StoreError
from observatory.features.nats.channel import ChannelOpening, NatsChannel
from observatory.features.nats.ingest import ForeignStream, NatsIngest
from observatory.http.app_state import AppState
from observatory.protocol import nats
from observatory.protocol.asgi import App, ResponseTooLong, call_app
from observatory.protocol.clock import from_ns
from observatory.protocol.nats import NatsReply, NatsRequest
from observatory.protocol.nats_connection import NatsUnavailable, failures
from observatory.protocol.nats_frames import HEADER_BYTES
from observatory.protocol.responses import Refused
from observatory.runtime.metrics import Measure

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription

log = logging.getLogger("observatory.nats")
GATEWAYS = "gateways"  # the queue group: one of the gateways answers
AT_ONCE = 512  # requests in progress, and as many channels being opened
CHANNELS = 10_000
SEEN = 500_000  # requests remembered per generation, against replays: some 50 MB, 2,000 a second
AGAIN_S = 0.25  # before a changed stream is checked again
REFUSED_S = 30.0  # before another deployment's stream is checked again
METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE"})
HOST = (b"host", b"localhost")  # one that is always accepted: no DNS is involved


class AuthenticatedLetter(NamedTuple):
    """A letter with a valid signature."""

    letter: NatsRequest
    signature: str
    key_hash: bytes
    secret: bytes


def refused(status: int, reason: str, detail: str, retry_after: str = "") -> NatsReply:
    return NatsReply(status, msgspec.json.encode(Refused(reason=reason, detail=detail)), retry_after)


NOT_OURS = refused(400, "not_a_letter", "send it with the headers docs/guides/nats.md names")
UNKNOWN = refused(401, "unauthorized", "this is not signed by a valid key")
BUSY = refused(429, "busy", "too many requests in progress; try again", "1")
AWAY = refused(503, "not_durable", "the store cannot be reached now; try again", "1")
FAILED = refused(500, "internal", "the gateway failed; its log says why")
REPEATED = refused(401, "repeated", "this request was answered before; sign a new one")


def too_long(client: Client) -> NatsReply:
    detail = f"the response exceeds the {client.max_payload} bytes that NATS carries; use HTTP"
    return refused(413, "too_large", detail)


class Repeats:
    """Replay protection: the requests answered here. Each is remembered for as long as it could be fresh (a
    clock may be ahead as far as behind), in two generations; when they are full, requests are refused."""

    def __init__(self) -> None:
        self._young: set[bytes] = set()
        self._old: set[bytes] = set()
        self._since_ns = 0

    def look(self, signature: str, now_ns: int) -> NatsReply | None:
        """None the first time; then it is remembered."""
        if now_ns - self._since_ns > 2 * nats.FRESH_NS:
            is_late = now_ns - self._since_ns > 4 * nats.FRESH_NS
            self._old, self._young = set() if is_late else self._young, set()
            self._since_ns = now_ns
        mark = bytes.fromhex(signature)[:16]
        if mark in self._young or mark in self._old:
            return REPEATED
        if len(self._young) >= SEEN:
            return BUSY
        self._young.add(mark)
        return None


class NatsRequests:
    """`database_id` identifies the database of this gateway."""

    def __init__(self, app: AppState, line: NatsLink, database_id: Callable[[], Awaitable[str]]) -> None:
        self._app, self._line, self._database_id = app, line, database_id
        self._asgi: App | None = None
        self._opened = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._channels: set[NatsChannel] = set()
        self._repeats = Repeats()
        self.answers: Counter[tuple[str, int]] = Counter()
        self._requests_open = self._channels_opening = 0
        self._subscriptions: list[Subscription] = []
        self._refusal = ""
        self.ingest = NatsIngest(self, app.settings.nats_replicas, app.settings.nats_stream_bytes)

    def open(self, asgi: App) -> None:
        self._asgi = asgi
        self._opened.set()

    @property
    def address(self) -> nats.NatsAddress:
        return self._line.address

    async def run(self) -> None:
        """The worker's loop."""
        await self._opened.wait()
        await self._line.serve(self._work)

    async def drain(self) -> None:
        """Accept nothing more; answer first what was accepted."""
        await self._unsubscribe()  # the other gateways get the requests from now on
        await self.ingest.stop()
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    async def _unsubscribe(self) -> None:
        while self._subscriptions:
            with suppress(*failures()):
                await self._subscriptions.pop().unsubscribe()

    async def _work(self, client: Client) -> None:
        if not await self._is_ours(client):
            return
        asked, opened = partial(self._on_request, client), partial(self._on_channel, client)
        try:
            self._subscriptions.append(await client.subscribe(self.address.request, GATEWAYS, cb=asked))
            self._subscriptions.append(await client.subscribe(self.address.channel, GATEWAYS, cb=opened))
            while True:
                try:
                    await self.ingest.pull(client)
                except (NatsUnavailable, TimeoutError) as error:
                    log.warning("NATS: %s; checking again", error or "the stream is silent")
                    await asyncio.sleep(AGAIN_S)
                if not await self._is_ours(client):
                    return
        finally:
            await self._unsubscribe()
            for open_one in list(self._channels):
                open_one.cut()

    async def _is_ours(self, client: Client) -> bool:
        """Whether the stream is ready for us; if it is another deployment's, pause before the next check."""
        try:
            await self.ingest.prepare(client, await self._database_id())
        except ForeignStream as error:
            if str(error) != self._refusal:
                log.error("%s", error)
            self._refusal = str(error)
            await asyncio.sleep(REFUSED_S)
            return False
        self._refusal = ""
        return True

    # Letters.

    async def known(self, message: Msg) -> AuthenticatedLetter | NatsReply:
        """The authenticated letter, or the refusal. StoreError while no key can be looked up."""
        found = nats.parse_request(message.subject, message.headers, message.data)
        if found is None:
            return NOT_OURS
        letter, signature = found
        key_hash = await self._app.auth.hash_of(letter.public)
        if key_hash is None:
            return UNKNOWN
        secret = nats.secret_of(key_hash)
        if not nats.is_signed(secret, signature, *letter.parts()):
            return UNKNOWN
        return AuthenticatedLetter(letter, signature, key_hash, secret)

    async def carry(
        self,
        known: AuthenticatedLetter,
        method: str,
        path: str,
        query: str = "",
        most_bytes: int | None = None,
    ) -> NatsReply:
        """Pass it to the ASGI application, as if it had come by HTTP with that key; failures are answered as
        there. TooLong when the response exceeds the limit."""
        try:
            return await self._carry(known, method, path, query, most_bytes)
        except StoreError:
            return AWAY
        except ResponseTooLong:
            raise
        except Exception:  # in the place of uvicorn: without a response it would be redelivered for ever
            log.exception("a request over NATS failed")
            return FAILED

    async def _carry(
        self, known: AuthenticatedLetter, method: str, path: str, query: str, most_bytes: int | None
    ) -> NatsReply:
        assert self._asgi is not None
        letter = known.letter
        with self._app.auth.vouched(letter.public, known.key_hash) as proof:
            headers = [HOST, (b"authorization", proof), (b"content-length", b"%d" % len(letter.body))]
            if letter.kind:
                headers.append((b"content-type", letter.kind.encode()))
            if letter.encoding:
                headers.append((b"content-encoding", letter.encoding.encode()))
            status, response_headers, body = await call_app(
                self._asgi, method, path, headers, letter.body, query, most_bytes=most_bytes
            )
        retry_after = next((text for name, text in response_headers if name.lower() == b"retry-after"), b"")
        return NatsReply(status, body, retry_after.decode("latin-1"))

    async def answer(
        self, client: Client, subject: str, reply: NatsReply, signature: str = "", secret: bytes | None = None
    ) -> None:
        if len(reply.body) > client.max_payload - HEADER_BYTES:
            reply = too_long(client)
        await client.publish(subject, reply.body, headers=nats.reply_headers(reply, signature, secret))

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, failures()):
            log.error("a request over NATS failed: %s", type(error).__name__, exc_info=error)

    # Requests and channels.

    async def _on_request(self, client: Client, message: Msg) -> None:
        if self._requests_open >= AT_ONCE:
            await self._refuse(client, message, "request", BUSY)
            return
        self._requests_open += 1
        self.spawn(self._request(client, message))

    async def _on_channel(self, client: Client, message: Msg) -> None:
        if self._channels_opening >= AT_ONCE or len(self._channels) >= CHANNELS:
            await self._refuse(client, message, "channel", BUSY)
            return
        self._channels_opening += 1
        self.spawn(self._open_channel(client, message))

    async def _fresh(self, message: Msg) -> AuthenticatedLetter | NatsReply:
        try:
            known = await self.known(message)
        except StoreError:
            return AWAY
        if isinstance(known, NatsReply):
            return known
        now_ns = self._app.clock()
        if abs(now_ns - known.letter.time_ns) > nats.FRESH_NS:
            detail = (
                f"signed more than two minutes away from the current time, {from_ns(now_ns)}: set the clock"
            )
            return refused(401, "not_fresh", detail)
        return self._repeats.look(known.signature, now_ns) or known

    async def _request(self, client: Client, message: Msg) -> None:
        try:
            await self._answer_request(client, message)
        finally:
            self._requests_open -= 1

    async def _answer_request(self, client: Client, message: Msg) -> None:
        known = await self._fresh(message)
        if isinstance(known, NatsReply):
            return await self._refuse(client, message, "request", known)
        method, _, target = known.letter.call.partition(" ")
        path, _, query = target.partition("?")
        if method not in METHODS or not path.startswith("/v1/"):
            reply = refused(400, "bad_request", "a call is a method and a path under /v1/")
        else:
            try:
                reply = await self.carry(known, method, path, query, client.max_payload - HEADER_BYTES)
            except ResponseTooLong:
                reply = too_long(client)
        self.answers["request", reply.status] += 1
        if known.letter.reply:
            await self.answer(client, known.letter.reply, reply, known.signature, known.secret)
        return None

    async def _refuse(self, client: Client, message: Msg, what: str, reply: NatsReply) -> None:
        """Send an unsigned refusal: it can make an agent wait, but never drop a message."""
        self.answers[what, reply.status] += 1
        if nats.is_inbox(message.reply):
            await self.answer(client, message.reply, reply)

    async def _open_channel(self, client: Client, message: Msg) -> None:
        try:
            known = await self._fresh(message)
        finally:
            self._channels_opening -= 1
        if not isinstance(known, NatsReply):
            try:
                opening = msgspec.json.decode(known.letter.body, type=ChannelOpening)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                known = NOT_OURS
        if isinstance(known, NatsReply):
            return await self._refuse(client, message, "channel", known)
        if not nats.is_inbox(opening.pipe) or not known.letter.reply:
            return await self._refuse(client, message, "channel", NOT_OURS)
        self.answers["channel", 200] += 1
        assert self._asgi is not None
        limit = self._app.settings.message_bytes + 65_536
        channel = NatsChannel(client, self.address, known.secret, known.signature, opening, limit)
        self._channels.add(channel)
        try:
            with self._app.auth.vouched(known.letter.public, known.key_hash) as proof:
                reply = await channel.open()
                await self.answer(client, known.letter.reply, reply, known.signature, known.secret)
                await channel.serve(self._asgi, [HOST, (b"authorization", proof)])
        finally:
            self._channels.discard(channel)
            await channel.close()
        return None

    # Health and metrics.

    def health(self) -> dict[str, Any]:
        line, connected = self._line, self._line.client is not None
        since = None if line.away_since_ns is None else from_ns(line.away_since_ns)
        text = "NATS carries notices, messages and channels; agents keep each message until it is answered."
        status = "ok"
        if not connected:
            status = "degraded"
            text = f"NATS is not connected ({line.last_error or 'not reached yet'}): slower, nothing is lost."
        elif problem := self._refusal or self.ingest.trouble or line.trouble:
            status, text = "degraded", problem
        return {
            "status": status,
            "text": text,
            "kind": "nats",
            "connected": connected,
            "address": line.address.shown,
            "away_since": since,
            "last_error": line.last_error or None,
        }

    def measures(self) -> list[Measure]:
        connected = int(self._line.client is not None)
        return [
            Measure(
                "observatory_nats_connected", "gauge", "Whether the gateway is connected to NATS", connected
            ),
            Measure(
                "observatory_nats_connections_total", "counter", "Connections made", self._line.connections
            ),
            Measure("observatory_nats_channels", "gauge", "Agent channels over NATS", len(self._channels)),
            *(
                Measure(
                    "observatory_nats_responses_total",
                    "counter",
                    "Responses over NATS",
                    count,
                    {"way": way, "code": str(code)},
                )
                for (way, code), count in sorted(self.answers.items())
            ),
            *self.ingest.measures(),
        ]

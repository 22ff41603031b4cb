"""The door by NATS: letters that are signed, brought to the same face as every HTTP request.

Laws: nothing of ours is told to, or done for, a letter whose signature is not that of a key still good; what
is asked goes through the ASGI application with that key's own rights, so there is no second set of rules. A
request's repeat is refused here (a message's is not: it is answered as the first was). Whoever floods is told
to come later, and whatever cannot be read is counted and let go. Trouble with the stream ends no channel.
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

from observatory.bus.nats_line import NatsLine
from observatory.errors import StoreError
from observatory.features.inbox.routes_nats import NatsChannel, Opening
from observatory.features.nats.ingest import NatsIngest, OtherHouse
from observatory.http.app_state import House
from observatory.protocol import nats
from observatory.protocol.answers import Refused
from observatory.protocol.asgi import App, TooLong, exchange
from observatory.protocol.clock import from_ns
from observatory.protocol.nats import Letter, Reply
from observatory.protocol.nats_pipe import ROOM
from observatory.protocol.nats_wire import NoNats, failures
from observatory.runtime.metrics import Measure

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription

log = logging.getLogger("observatory.nats")
GATEWAYS = "gateways"  # the queue group: one of them answers
AT_ONCE = 512  # requests being answered, and as many channels being opened
CHANNELS = 10_000
SEEN = 500_000  # requests remembered in one generation, against repeats: some 50 MB, 2,000 a second
AGAIN_S = 0.25  # before a stream that was changed under us is looked at again
REFUSED_S = 30.0  # after so long another house's stream is looked at again
METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE"})
HOST = (b"host", b"localhost")  # one that is always ours: nothing of DNS is involved


class Known(NamedTuple):
    """A letter whose signature is good."""

    letter: Letter
    signature: str
    key_hash: bytes
    secret: bytes


def refused(status: int, reason: str, detail: str, retry_after: str = "") -> Reply:
    return Reply(status, msgspec.json.encode(Refused(reason=reason, detail=detail)), retry_after)


NOT_OURS = refused(400, "not_a_letter", "send it with the headers docs/guides/nats.md names")
UNKNOWN = refused(401, "unauthorized", "no key that is still good has signed this")
BUSY = refused(429, "busy", "too many requests wait here; ask again", "1")
AWAY = refused(503, "not_durable", "the store cannot be reached now; try again", "1")
FAILED = refused(500, "internal", "the gateway failed; its log says why")
REPEATED = refused(401, "repeated", "this request was answered already; sign a new one")


def too_long(client: Client) -> Reply:
    told = f"the answer has more than the {client.max_payload} bytes NATS carries; ask by HTTP"
    return refused(413, "too_large", told)


class Repeats:
    """Which requests were answered here. Each is remembered for as long as it could be fresh (a clock may be
    ahead as far as behind), in two generations; when they are full, nobody is let in unremembered."""

    def __init__(self) -> None:
        self._young: set[bytes] = set()
        self._old: set[bytes] = set()
        self._since_ns = 0

    def look(self, signature: str, now_ns: int) -> Reply | None:
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


class NatsDoor:
    """`house_id` names the database this gateway stands on."""

    def __init__(self, house: House, line: NatsLine, house_id: Callable[[], Awaitable[str]]) -> None:
        self._house, self._line, self._house_id = house, line, house_id
        self._face: App | None = None
        self._opened = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._channels: set[NatsChannel] = set()
        self._repeats = Repeats()
        self.answers: Counter[tuple[str, int]] = Counter()
        self._asking = self._opening = 0
        self._hearing: list[Subscription] = []
        self._refusal = ""
        self.ingest = NatsIngest(self, house.settings.nats_replicas, house.settings.nats_stream_bytes)

    def open(self, face: App) -> None:
        self._face = face
        self._opened.set()

    @property
    def address(self) -> nats.Address:
        return self._line.address

    async def run(self) -> None:
        """The daemon."""
        await self._opened.wait()
        await self._line.serve(self._work)

    async def drain(self) -> None:
        """Take nothing more; what was taken is answered first."""
        await self._hear_no_more()  # the other gateways are asked from now on
        await self.ingest.stop()
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    async def _hear_no_more(self) -> None:
        while self._hearing:
            with suppress(*failures()):
                await self._hearing.pop().unsubscribe()

    async def _work(self, client: Client) -> None:
        if not await self._is_ours(client):
            return
        asked, opened = partial(self._asked, client), partial(self._channel_asked, client)
        try:
            self._hearing.append(await client.subscribe(self.address.request, GATEWAYS, cb=asked))
            self._hearing.append(await client.subscribe(self.address.channel, GATEWAYS, cb=opened))
            while True:
                try:
                    await self.ingest.pull(client)
                except (NoNats, TimeoutError) as error:
                    log.warning("NATS: %s; looked at again", error or "the stream is silent")
                    await asyncio.sleep(AGAIN_S)
                if not await self._is_ours(client):
                    return
        finally:
            await self._hear_no_more()
            for open_one in list(self._channels):
                open_one.cut()

    async def _is_ours(self, client: Client) -> bool:
        """Whether the stream is ready for us; when it is another house's, it is left alone for a while."""
        try:
            await self.ingest.prepare(client, await self._house_id())
        except OtherHouse as error:
            if str(error) != self._refusal:
                log.error("%s", error)
            self._refusal = str(error)
            await asyncio.sleep(REFUSED_S)
            return False
        self._refusal = ""
        return True

    # Letters.

    async def known(self, message: Msg) -> Known | Reply:
        """The letter, or what is answered to what is none. StoreError while no key can be looked up."""
        found = nats.opened(message.subject, message.headers, message.data)
        if found is None:
            return NOT_OURS
        letter, signature = found
        key_hash = await self._house.auth.hash_of(letter.public)
        if key_hash is None:
            return UNKNOWN
        secret = nats.secret_of(key_hash)
        if not nats.is_signed(secret, signature, *letter.parts()):
            return UNKNOWN
        return Known(letter, signature, key_hash, secret)

    async def carry(
        self, known: Known, method: str, path: str, query: str = "", most_bytes: int | None = None
    ) -> Reply:
        """Through the face, as if it had come by HTTP with that key; and as there, whatever fails in it is
        answered. TooLong when there is more of the answer than may be."""
        try:
            return await self._carry(known, method, path, query, most_bytes)
        except StoreError:
            return AWAY
        except TooLong:
            raise
        except Exception:  # the face's runner, as uvicorn is: without an answer it would come again for ever
            log.exception("what came by NATS failed")
            return FAILED

    async def _carry(self, known: Known, method: str, path: str, query: str, most_bytes: int | None) -> Reply:
        assert self._face is not None
        letter = known.letter
        with self._house.auth.vouched(letter.public, known.key_hash) as proof:
            headers = [HOST, (b"authorization", proof), (b"content-length", b"%d" % len(letter.body))]
            if letter.kind:
                headers.append((b"content-type", letter.kind.encode()))
            if letter.encoding:
                headers.append((b"content-encoding", letter.encoding.encode()))
            status, told, body = await exchange(
                self._face, method, path, headers, letter.body, query, most_bytes=most_bytes
            )
        retry_after = next((text for name, text in told if name.lower() == b"retry-after"), b"")
        return Reply(status, body, retry_after.decode("latin-1"))

    async def answer(
        self, client: Client, subject: str, reply: Reply, signature: str = "", secret: bytes | None = None
    ) -> None:
        if len(reply.body) > client.max_payload - ROOM:
            reply = too_long(client)
        await client.publish(subject, reply.body, headers=nats.answered(reply, signature, secret))

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, failures()):
            log.error("what came by NATS failed: %s", type(error).__name__, exc_info=error)

    # Requests and channels.

    async def _asked(self, client: Client, message: Msg) -> None:
        if self._asking >= AT_ONCE:
            await self._refuse(client, message, "request", BUSY)
            return
        self._asking += 1
        self.spawn(self._request(client, message))

    async def _channel_asked(self, client: Client, message: Msg) -> None:
        if self._opening >= AT_ONCE or len(self._channels) >= CHANNELS:
            await self._refuse(client, message, "channel", BUSY)
            return
        self._opening += 1
        self.spawn(self._open_channel(client, message))

    async def _fresh(self, message: Msg) -> Known | Reply:
        try:
            known = await self.known(message)
        except StoreError:
            return AWAY
        if isinstance(known, Reply):
            return known
        now_ns = self._house.clock()
        if abs(now_ns - known.letter.time_ns) > nats.FRESH_NS:
            told = f"this was signed more than two minutes from now, {from_ns(now_ns)}: set the clock"
            return refused(401, "not_fresh", told)
        return self._repeats.look(known.signature, now_ns) or known

    async def _request(self, client: Client, message: Msg) -> None:
        try:
            await self._answered(client, message)
        finally:
            self._asking -= 1

    async def _answered(self, client: Client, message: Msg) -> None:
        known = await self._fresh(message)
        if isinstance(known, Reply):
            return await self._refuse(client, message, "request", known)
        method, _, target = known.letter.call.partition(" ")
        path, _, query = target.partition("?")
        if method not in METHODS or not path.startswith("/v1/"):
            reply = refused(400, "bad_request", "a call is a method and a path under /v1/")
        else:
            try:
                reply = await self.carry(known, method, path, query, client.max_payload - ROOM)
            except TooLong:
                reply = too_long(client)
        self.answers["request", reply.status] += 1
        if known.letter.reply:
            await self.answer(client, known.letter.reply, reply, known.signature, known.secret)
        return None

    async def _refuse(self, client: Client, message: Msg, what: str, reply: Reply) -> None:
        """Unsigned, to whoever waits: it can make an agent wait, never forget."""
        self.answers[what, reply.status] += 1
        if nats.is_inbox(message.reply):
            await self.answer(client, message.reply, reply)

    async def _open_channel(self, client: Client, message: Msg) -> None:
        try:
            known = await self._fresh(message)
        finally:
            self._opening -= 1
        if not isinstance(known, Reply):
            try:
                opening = msgspec.json.decode(known.letter.body, type=Opening)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                known = NOT_OURS
        if isinstance(known, Reply):
            return await self._refuse(client, message, "channel", known)
        if not nats.is_inbox(opening.pipe) or not known.letter.reply:
            return await self._refuse(client, message, "channel", NOT_OURS)
        self.answers["channel", 200] += 1
        assert self._face is not None
        limit = self._house.settings.message_bytes + 65_536
        channel = NatsChannel(client, self.address, known.secret, known.signature, opening, limit)
        self._channels.add(channel)
        try:
            with self._house.auth.vouched(known.letter.public, known.key_hash) as proof:
                told = await channel.open()
                await self.answer(client, known.letter.reply, told, known.signature, known.secret)
                await channel.serve(self._face, [HOST, (b"authorization", proof)])
        finally:
            self._channels.discard(channel)
            await channel.close()
        return None

    # What is told of it.

    def health(self) -> dict[str, Any]:
        line, connected = self._line, self._line.client is not None
        since = None if line.away_since_ns is None else from_ns(line.away_since_ns)
        text = "NATS carries notices, messages and channels; agents keep each message until it is answered."
        status = "ok"
        if not connected:
            status = "degraded"
            text = f"NATS is away ({line.last_error or 'not reached yet'}): slower, nothing is lost."
        elif told := self._refusal or self.ingest.trouble or line.trouble:
            status, text = "degraded", told
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
            Measure("observatory_nats_connected", "gauge", "Whether NATS is here", connected),
            Measure(
                "observatory_nats_connections_total", "counter", "Connections made", self._line.connections
            ),
            Measure("observatory_nats_channels", "gauge", "Channels of agents by NATS", len(self._channels)),
            *(
                Measure(
                    "observatory_nats_answers_total",
                    "counter",
                    "Answers by NATS",
                    count,
                    {"way": way, "code": str(code)},
                )
                for (way, code), count in sorted(self.answers.items())
            ),
            *self.ingest.measures(),
        ]

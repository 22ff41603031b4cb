"""Messages by NATS: a JetStream work queue, pulled by all gateways of one house.

Laws: what is fetched walks the corridor as if it had come to `POST /v1/messages`; the stream is told that it
is done only after the commit, and after the verdict was sent. Fetched twice, it is answered as the first
time. What cannot be stored now stays in the stream for later. One house, one stream: another house's is left
alone. Nothing rests on the stream's own durability: an agent keeps each message until the verdict is here.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from observatory.errors import ObservatoryError, OnlyViolations, StoreError
from observatory.protocol import nats
from observatory.protocol.nats import Reply
from observatory.protocol.nats_wire import NoNats, failures
from observatory.runtime.metrics import Measure

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription
    from nats.js import JetStreamContext
    from nats.js.api import StreamConfig

log = logging.getLogger("observatory.nats")
CONSUMER = "gateways"
HOUSE = "observatory.house"
IN_FLIGHT = 64  # batches of one gateway on their way
ACK_WAIT_S = 30.0
MAX_PENDING = 1_024  # of all gateways
EXPIRES_S, HEARTBEAT_S = 10.0, 2.0
GIVE_BACK_S = 1.0
NANO = 1_000_000_000
LATER_S = 1.0  # before what cannot be stored now comes again
ENOUGH = 10  # times a message may fail by a fault of ours before it makes room for others
ONLY_VIOLATIONS = f'"reason":"{OnlyViolations.reason}"'.encode()
NOT_NOW = (b'{"code":503', b'{"code":429')


class OtherHouse(ObservatoryError):
    """The stream under this prefix belongs to another house; the sentence says what to do."""


class Letters(Protocol):
    """The door as the queue sees it."""

    @property
    def address(self) -> nats.Address: ...
    async def known(self, message: Msg) -> Any: ...
    async def carry(self, known: Any, method: str, path: str) -> Reply: ...
    async def answer(
        self, client: Client, subject: str, reply: Reply, signature: str = "", secret: bytes | None = None
    ) -> None: ...
    def spawn(self, work: Any) -> None: ...


class NatsIngest:
    def __init__(self, door: Letters, replicas: int, stream_bytes: int) -> None:
        self._door, self._replicas, self._stream_bytes = door, replicas, stream_bytes
        self._in_flight = 0
        self._room = asyncio.Event()
        self._arrived: asyncio.Queue[Msg | None] = asyncio.Queue()  # never more than were asked for
        self._hearing: Subscription | None = None
        self.stopping = False
        self.trouble = ""
        self._failed: Counter[int] = Counter()
        self._done = {"acknowledged": 0, "put off": 0, "let go": 0}

    def measures(self) -> list[Measure]:
        return [
            Measure("observatory_nats_ingest_in_flight", "gauge", "Batches by NATS", self._in_flight),
            *(
                Measure(
                    "observatory_nats_ingest_total",
                    "counter",
                    "Batches by NATS, by what the stream was told",
                    count,
                    {"told": told.replace(" ", "_")},
                )
                for told, count in self._done.items()
            ),
        ]

    # The stream.

    async def prepare(self, client: Client, house_id: str) -> None:
        """Stream and consumer as they must be, made when they are not there. OtherHouse when not ours."""
        from nats.js.api import AckPolicy, ConsumerConfig
        from nats.js.errors import APIError

        js, address = client.jetstream(timeout=5), self._door.address
        try:
            owner = await self._owner(client, house_id)
            if owner != house_id:
                other = f"{address.shown.rpartition('/')[0]}/other-prefix"
                raise OtherHouse(
                    f"the NATS stream {address.stream} belongs to another Observatory; nothing is taken from "
                    f"it. Give this one a prefix of its own: OBSERVATORY_BUS={other}"
                )
            await js.add_consumer(
                address.stream,
                ConsumerConfig(
                    durable_name=CONSUMER,
                    ack_policy=AckPolicy.EXPLICIT,
                    ack_wait=ACK_WAIT_S,
                    max_deliver=-1,
                    max_ack_pending=MAX_PENDING,
                ),
            )
        except APIError as error:
            told = f"NATS takes no messages for us: {error.description or 'JetStream is not enabled'}."
            if told != self.trouble:
                log.error("%s", told)
            self.trouble = told
            raise
        if self.trouble or not self._room.is_set():
            log.info(
                "messages are taken from the NATS stream %s; its own writes reach the disk lazily unless "
                "sync_interval is always, which loses nothing: agents keep each message until it is answered",
                address.stream,
            )
        self.trouble = ""
        self._room.set()

    async def _owner(self, client: Client, house_id: str) -> str:
        from nats.js.api import DiscardPolicy, RetentionPolicy, StorageType, StreamConfig
        from nats.js.errors import BadRequestError, NotFoundError

        js, address = client.jetstream(timeout=5), self._door.address
        config = StreamConfig(
            name=address.stream,
            subjects=[f"{address.prefix}.ingest.*"],
            retention=RetentionPolicy.WORK_QUEUE,
            storage=StorageType.FILE,
            discard=DiscardPolicy.NEW,  # a full stream refuses, and the agent keeps what it has
            max_bytes=self._stream_bytes,
            num_replicas=self._replicas,
            duplicate_window=120,
            metadata={HOUSE: house_id},
        )
        try:
            found = await js.stream_info(address.stream)
        except NotFoundError:
            try:
                found = await js.add_stream(config)
                log.info("the NATS stream %s was made", address.stream)
            except BadRequestError:  # another gateway was faster; or it cannot be made, which this tells
                found = await js.stream_info(address.stream)
        owner = (found.config.metadata or {}).get(HOUSE, "")
        if owner == house_id:
            await self._adjust(js, found.config, config)
        return owner

    async def _adjust(self, js: JetStreamContext, found: StreamConfig, wanted: StreamConfig) -> None:
        """A stream of ours that was made with other settings is given these; if it cannot be, it does as it
        is, for nothing is kept only there."""
        from nats.js.errors import APIError

        names = ("subjects", "max_bytes", "num_replicas", "discard")
        changed = {name: getattr(wanted, name) for name in names}
        if all(getattr(found, name) == value for name, value in changed.items()):
            return
        try:
            await js.update_stream(found.evolve(**changed))
            log.info("the NATS stream %s has the size and copies of these settings now", wanted.name)
        except APIError as error:
            log.warning("the NATS stream %s stays as it was made: %s", wanted.name, error.description)

    # The queue.

    async def pull(self, client: Client) -> None:
        """For ever, or until the stream is gone (NoNats) or NATS is. What has come and was not looked at when
        it ends goes back."""
        inbox = client.new_inbox()
        self._hearing = await client.subscribe(inbox, cb=self._arrived.put)
        try:
            await self._pull(client, inbox)
            await asyncio.Event().wait()  # stopping: nothing more is asked for
        finally:
            await self._give_back()

    async def stop(self) -> None:
        """Ask for nothing more, and give back what was not begun."""
        self.stopping = True
        await self._give_back()
        self._room.set()
        self._arrived.put_nowait(None)

    async def _give_back(self) -> None:
        hearing, self._hearing = self._hearing, None
        with suppress(*failures()):
            async with asyncio.timeout(GIVE_BACK_S):
                if hearing is not None:
                    await hearing.drain()  # type: ignore[no-untyped-call]
        while not self._arrived.empty():
            message = self._arrived.get_nowait()
            if message is not None and message.reply.startswith("$JS.ACK."):
                with suppress(*failures()):
                    await message.nak()

    async def _pull(self, client: Client, inbox: str) -> None:
        api = f"$JS.API.CONSUMER.MSG.NEXT.{self._door.address.stream}.{CONSUMER}"
        while not self.stopping:
            while self._in_flight >= IN_FLIGHT and not self.stopping:
                self._room.clear()
                await self._room.wait()
            left = IN_FLIGHT - self._in_flight
            asked = {
                "batch": left,
                "expires": int(EXPIRES_S * NANO),
                "idle_heartbeat": int(HEARTBEAT_S * NANO),
            }
            await client.publish(api, msgspec.json.encode(asked), reply=inbox)
            while left and not self.stopping:
                async with asyncio.timeout(HEARTBEAT_S * 3):
                    message = await self._arrived.get()
                if message is None:
                    return
                if message.reply.startswith("$JS.ACK."):
                    left -= 1
                    self._in_flight += 1
                    self._door.spawn(self._take(client, message))
                elif self._is_over(message):
                    break

    def _is_over(self, message: Msg) -> bool:
        """What NATS says of the request for more; NoNats when stream or consumer are gone."""
        status = (message.headers or {}).get("Status", "")
        if status == "100":
            return False
        if status in ("404", "408"):
            return True
        self.trouble = "The NATS stream was changed under us; it is looked at again."
        raise NoNats(f"the stream {self._door.address.stream} is gone or moved ({status})")

    async def _take(self, client: Client, message: Msg) -> None:
        try:
            await self._judged(client, message)
        finally:
            self._in_flight -= 1
            self._room.set()

    async def _judged(self, client: Client, message: Msg) -> None:
        if self.stopping:
            return await message.nak()
        try:
            known = await self._door.known(message)
        except StoreError:
            return await self._put_off(message)
        if isinstance(known, Reply):
            return await self._let_go(client, message, known)
        letter = known.letter
        if message.subject != self._door.address.ingest(letter.public):
            return await self._let_go(client, message, Reply(401, b"{}"))
        reply = await self._door.carry(known, "POST", "/v1/messages")
        if letter.reply:
            await self._door.answer(client, letter.reply, reply, known.signature, known.secret)
        if reply.status == 429 and ONLY_VIOLATIONS in reply.body:
            # For a minute these would hold the places of all other keys; the agent has its answer.
            return await self._end(message)
        if reply.status in (429, 503):
            return await self._put_off(message, reply.retry_after)
        if reply.status >= 500:
            if not self._has_failed_enough(message.metadata.sequence.stream):
                return await self._put_off(message)
            log.error("a message by NATS failed here %d times and is let go; its agent keeps it", ENOUGH)
            return await self._end(message)
        if reply.status == 200 and any(line.startswith(NOT_NOW) for line in reply.body.split(b"\n")):
            return await self._put_off(message)
        if reply.status in (400, 401, 403, 413, 415):
            return await self._end(message)
        self._done["acknowledged"] += 1
        return await message.ack()

    def _has_failed_enough(self, number: int) -> bool:
        """Counted here: NATS counts deliveries, also those that only waited for the database."""
        if len(self._failed) > MAX_PENDING:  # most were let go by other gateways meanwhile
            self._failed.clear()
        self._failed[number] += 1
        if self._failed[number] < ENOUGH:
            return False
        del self._failed[number]
        return True

    async def _put_off(self, message: Msg, retry_after: str = "") -> None:
        self._done["put off"] += 1
        await message.nak(delay=float(retry_after) if retry_after.isdecimal() else LATER_S)

    async def _end(self, message: Msg) -> None:
        self._done["let go"] += 1
        await message.term()

    async def _let_go(self, client: Client, message: Msg, reply: Reply) -> None:
        """Nobody we know has signed it: it is answered where it asks to be, and leaves the stream."""
        subject = (message.headers or {}).get(nats.REPLY, "")
        if nats.is_inbox(subject):
            await self._door.answer(client, subject, reply)
        await self._end(message)

"""Messages over NATS: a JetStream work queue, pulled by all gateways of one deployment.

Laws: a fetched message goes through the pipeline as if it had come to `POST /v1/messages`; it is acknowledged
to the stream only after the commit, and after the verdict was sent. Fetched twice, it gets the same verdict.
What cannot be stored now stays in the stream for later. One deployment, one stream: a stream of another
deployment is not touched. Nothing depends on the stream's durability: an agent keeps each message until it
has the verdict.
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
from observatory.protocol.nats import NatsReply
from observatory.protocol.nats_connection import NatsUnavailable, failures
from observatory.runtime.metrics import Measure

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription
    from nats.js import JetStreamContext
    from nats.js.api import StreamConfig

log = logging.getLogger("observatory.nats")
CONSUMER = "gateways"
DATABASE_ID = "observatory.house"
IN_FLIGHT = 64  # batches of one gateway in progress
ACK_WAIT_S = 30.0
MAX_PENDING = 1_024  # of all gateways
EXPIRES_S, HEARTBEAT_S = 10.0, 2.0
GIVE_BACK_S = 1.0
NANO = 1_000_000_000
LATER_S = 1.0  # before a message that cannot be stored now is redelivered
MAX_FAILURES = 10  # times a message may fail by an internal error before it is discarded
ONLY_VIOLATIONS = f'"reason":"{OnlyViolations.reason}"'.encode()
NOT_NOW = (b'{"code":503', b'{"code":429')


class ForeignStream(ObservatoryError):
    """The stream under this prefix belongs to another deployment; the message says what to do."""


class NatsRequestHandler(Protocol):
    """The request interface, as the queue uses it."""

    @property
    def address(self) -> nats.NatsAddress: ...
    async def known(self, message: Msg) -> Any: ...
    async def carry(self, known: Any, method: str, path: str) -> NatsReply: ...
    async def answer(
        self, client: Client, subject: str, reply: NatsReply, signature: str = "", secret: bytes | None = None
    ) -> None: ...
    def spawn(self, work: Any) -> None: ...


class NatsIngest:
    def __init__(self, requests: NatsRequestHandler, replicas: int, stream_bytes: int) -> None:
        self._requests, self._replicas, self._stream_bytes = requests, replicas, stream_bytes
        self._in_flight = 0
        self._room = asyncio.Event()
        self._arrived: asyncio.Queue[Msg | None] = asyncio.Queue()  # never more than were requested
        self._subscription: Subscription | None = None
        self.stopping = False
        self.trouble = ""
        self._failed: Counter[int] = Counter()
        self._results = {"acknowledged": 0, "retried": 0, "discarded": 0}

    def measures(self) -> list[Measure]:
        return [
            Measure(
                "observatory_nats_ingest_in_flight",
                "gauge",
                "Message batches over NATS in progress",
                self._in_flight,
            ),
            *(
                Measure(
                    "observatory_nats_ingest_total",
                    "counter",
                    "Message batches over NATS by result",
                    count,
                    {"result": result},
                )
                for result, count in self._results.items()
            ),
        ]

    # The stream.

    async def prepare(self, client: Client, database_id: str) -> None:
        """Create or adjust stream and consumer. OtherHouse when the stream is not ours."""
        from nats.js.api import AckPolicy, ConsumerConfig
        from nats.js.errors import APIError

        js, address = client.jetstream(timeout=5), self._requests.address
        try:
            owner = await self._owner(client, database_id)
            if owner != database_id:
                other = f"{address.shown.rpartition('/')[0]}/other-prefix"
                raise ForeignStream(
                    f"the NATS stream {address.stream} belongs to another Observatory; no messages are taken "
                    f"from it. Give this one its own prefix: OBSERVATORY_BUS={other}"
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
            problem = f"NATS accepts no messages for us: {error.description or 'JetStream is not enabled'}."
            if problem != self.trouble:
                log.error("%s", problem)
            self.trouble = problem
            raise
        if self.trouble or not self._room.is_set():
            log.info(
                "reading messages from the NATS stream %s; its own writes reach the disk lazily unless "
                "sync_interval is always, which loses nothing: agents keep each message until it is answered",
                address.stream,
            )
        self.trouble = ""
        self._room.set()

    async def _owner(self, client: Client, database_id: str) -> str:
        from nats.js.api import DiscardPolicy, RetentionPolicy, StorageType, StreamConfig
        from nats.js.errors import BadRequestError, NotFoundError

        js, address = client.jetstream(timeout=5), self._requests.address
        config = StreamConfig(
            name=address.stream,
            subjects=[f"{address.prefix}.ingest.*"],
            retention=RetentionPolicy.WORK_QUEUE,
            storage=StorageType.FILE,
            discard=DiscardPolicy.NEW,  # a full stream refuses, and the agent keeps its messages
            max_bytes=self._stream_bytes,
            num_replicas=self._replicas,
            duplicate_window=120,
            metadata={DATABASE_ID: database_id},
        )
        try:
            found = await js.stream_info(address.stream)
        except NotFoundError:
            try:
                found = await js.add_stream(config)
                log.info("the NATS stream %s was created", address.stream)
            except BadRequestError:  # another gateway was faster; or it cannot be created, which this reveals
                found = await js.stream_info(address.stream)
        owner = (found.config.metadata or {}).get(DATABASE_ID, "")
        if owner == database_id:
            await self._adjust(js, found.config, config)
        return owner

    async def _adjust(self, js: JetStreamContext, found: StreamConfig, wanted: StreamConfig) -> None:
        """Update a stream that was created with other settings; if that fails, it is used as it is, for
        nothing is stored only there."""
        from nats.js.errors import APIError

        names = ("subjects", "max_bytes", "num_replicas", "discard")
        changed = {name: getattr(wanted, name) for name in names}
        if all(getattr(found, name) == value for name, value in changed.items()):
            return
        try:
            await js.update_stream(found.evolve(**changed))
            log.info("the NATS stream %s now has the size and replicas of these settings", wanted.name)
        except APIError as error:
            log.warning(
                "the NATS stream %s cannot be updated and stays as it is: %s", wanted.name, error.description
            )

    # The queue.

    async def pull(self, client: Client) -> None:
        """Pull until the stream is gone (NoNats) or NATS is. Messages that arrived but were not handled go
        back to the stream."""
        inbox = client.new_inbox()
        self._subscription = await client.subscribe(inbox, cb=self._arrived.put)
        try:
            await self._pull(client, inbox)
            await asyncio.Event().wait()  # stopping: nothing more is requested
        finally:
            await self._give_back()

    async def stop(self) -> None:
        """Request nothing more, and return to the stream what was not begun."""
        self.stopping = True
        await self._give_back()
        self._room.set()
        self._arrived.put_nowait(None)

    async def _give_back(self) -> None:
        subscription, self._subscription = self._subscription, None
        with suppress(*failures()):
            async with asyncio.timeout(GIVE_BACK_S):
                if subscription is not None:
                    await subscription.drain()  # type: ignore[no-untyped-call]
        while not self._arrived.empty():
            message = self._arrived.get_nowait()
            if message is not None and message.reply.startswith("$JS.ACK."):
                with suppress(*failures()):
                    await message.nak()

    async def _pull(self, client: Client, inbox: str) -> None:
        api = f"$JS.API.CONSUMER.MSG.NEXT.{self._requests.address.stream}.{CONSUMER}"
        while not self.stopping:
            while self._in_flight >= IN_FLIGHT and not self.stopping:
                self._room.clear()
                await self._room.wait()
            left = IN_FLIGHT - self._in_flight
            pull = {
                "batch": left,
                "expires": int(EXPIRES_S * NANO),
                "idle_heartbeat": int(HEARTBEAT_S * NANO),
            }
            await client.publish(api, msgspec.json.encode(pull), reply=inbox)
            while left and not self.stopping:
                async with asyncio.timeout(HEARTBEAT_S * 3):
                    message = await self._arrived.get()
                if message is None:
                    return
                if message.reply.startswith("$JS.ACK."):
                    left -= 1
                    self._in_flight += 1
                    self._requests.spawn(self._take(client, message))
                elif self._is_over(message):
                    break

    def _is_over(self, message: Msg) -> bool:
        """Whether NATS ended the pull request; NoNats when stream or consumer are gone."""
        status = (message.headers or {}).get("Status", "")
        if status == "100":
            return False
        if status in ("404", "408"):
            return True
        self.trouble = "The NATS stream was changed; it is checked again."
        raise NatsUnavailable(f"the stream {self._requests.address.stream} is gone or moved ({status})")

    async def _take(self, client: Client, message: Msg) -> None:
        try:
            await self._process(client, message)
        finally:
            self._in_flight -= 1
            self._room.set()

    async def _process(self, client: Client, message: Msg) -> None:
        if self.stopping:
            return await message.nak()
        try:
            known = await self._requests.known(message)
        except StoreError:
            return await self._retry_later(message)
        if isinstance(known, NatsReply):
            return await self._reject(client, message, known)
        letter = known.letter
        if message.subject != self._requests.address.ingest(letter.public):
            return await self._reject(client, message, NatsReply(401, b"{}"))
        reply = await self._requests.carry(known, "POST", "/v1/messages")
        if letter.reply:
            await self._requests.answer(client, letter.reply, reply, known.signature, known.secret)
        if reply.status == 429 and ONLY_VIOLATIONS in reply.body:
            # For a minute these would take the places of all other keys; the agent has its verdict.
            return await self._discard(message)
        if reply.status in (429, 503):
            return await self._retry_later(message, reply.retry_after)
        if reply.status >= 500:
            if not self._has_failed_enough(message.metadata.sequence.stream):
                return await self._retry_later(message)
            log.error(
                "a message over NATS failed here %d times and is discarded; its agent keeps it", MAX_FAILURES
            )
            return await self._discard(message)
        if reply.status == 200 and any(line.startswith(NOT_NOW) for line in reply.body.split(b"\n")):
            return await self._retry_later(message)
        if reply.status in (400, 401, 403, 413, 415):
            return await self._discard(message)
        self._results["acknowledged"] += 1
        return await message.ack()

    def _has_failed_enough(self, number: int) -> bool:
        """Counted here: NATS also counts deliveries that only waited for the database."""
        if len(self._failed) > MAX_PENDING:  # most were handled by other gateways meanwhile
            self._failed.clear()
        self._failed[number] += 1
        if self._failed[number] < MAX_FAILURES:
            return False
        del self._failed[number]
        return True

    async def _retry_later(self, message: Msg, retry_after: str = "") -> None:
        self._results["retried"] += 1
        await message.nak(delay=float(retry_after) if retry_after.isdecimal() else LATER_S)

    async def _discard(self, message: Msg) -> None:
        self._results["discarded"] += 1
        await message.term()

    async def _reject(self, client: Client, message: Msg, reply: NatsReply) -> None:
        """It is not signed by a known key: send the refusal to its reply subject and remove it."""
        subject = (message.headers or {}).get(nats.REPLY, "")
        if nats.is_inbox(subject):
            await self._requests.answer(client, subject, reply)
        await self._discard(message)

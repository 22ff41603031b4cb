"""The outbox's way to the gateway by NATS: a batch into the stream, and the verdict on each line of it.

Law: as over HTTP, a line is answered or it is still ours. That the stream took it (PubAck) means nothing,
for the stream may forget; only the gateway's signed verdict lets a line go. Without one the same lines are
sent again, and whoever took them twice answers twice as it did the first time.
"""

import asyncio
import concurrent.futures
import contextlib
import gzip
import secrets
from collections.abc import Coroutine, Sequence
from typing import Any

import msgspec

from observatory.protocol import nats
from observatory.protocol.nats import Reply
from observatory.protocol.nats_pipe import ROOM
from observatory.protocol.nats_wire import NoNats, failures
from observatory.sdk import background, nats_way
from observatory.sdk.client import Answered, Unsent, read_lines, unsent
from observatory.sdk.credentials import Door
from observatory.sdk.nats_way import NOBODY, NatsWay, Waiting

PATIENCE = 3  # how often a busy gateway may put a batch off before it counts as unsent
NDJSON = "application/x-ndjson"


class _Problem(msgspec.Struct):
    description: str = ""


class _Taken(msgspec.Struct):
    """JetStream's own word: the stream has it, or not."""

    stream: str = ""
    error: _Problem | None = None


class NatsGateway:
    """Used by one thread at a time, as `client.Gateway` is; the work is done on the background loop."""

    def __init__(self, door: Door, timeout_s: float) -> None:
        self._door, self._timeout_s = door, timeout_s
        self._loop = background.loop()
        self._way: NatsWay | None = None

    def send(self, lines: Sequence[bytes]) -> Answered | Unsent:
        longest = self._timeout_s * (PATIENCE + 2) + 5
        try:
            outcome: Answered | Unsent = self._run(self._send(b"\n".join(lines) + b"\n"), longest)
            return outcome
        except (NoNats, concurrent.futures.TimeoutError) as error:
            reason = str(error) or "NATS does not answer in time"
            return Unsent(f"{reason} at {self._door.place}")

    def close(self) -> None:
        if self._way is not None and background.is_running(self._loop):
            with contextlib.suppress(NoNats, concurrent.futures.TimeoutError):
                self._run(nats_way.leave(self._door), 2.0)

    def _run(self, work: Coroutine[Any, Any, Any], timeout_s: float) -> Any:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(timeout_s)
        except concurrent.futures.TimeoutError:
            future.cancel()
            raise

    async def _send(self, body: bytes) -> Answered | Unsent:
        if self._way is None:
            self._way = nats_way.way(self._door)
        way = self._way
        try:
            async with asyncio.timeout(self._timeout_s):
                wire = await way.wire()
            room, encoding = wire.client.max_payload - ROOM, ""
            if len(body) > room:
                body, encoding = await asyncio.to_thread(gzip.compress, body, 1), "gzip"
            if len(body) > room:
                return Unsent(f"NATS there carries {wire.client.max_payload} bytes at most", refused=413)
            subject = way.address.ingest(way.public)
            with way.waiting() as verdict, way.waiting() as taken:
                letter = way.letter(
                    subject, "POST /v1/messages", verdict.subject, body, kind=NDJSON, encoding=encoding
                )
                headers = nats.sealed(letter, way.secret)
                signature = headers[nats.SIGNATURE]
                # Of this try alone: a repeat must not be taken for one the stream has had and let go.
                headers["Nats-Msg-Id"] = secrets.token_hex(16)
                await wire.client.publish(subject, body, taken.subject, headers)
                async with asyncio.timeout(self._timeout_s):
                    trouble = await _taken(taken)
                if trouble is not None:
                    return trouble
                return await self._verdict(way, verdict, signature)
        except failures() as error:
            raise NoNats(way.why(error)) from error

    async def _verdict(self, way: NatsWay, verdict: Waiting, signature: str) -> Answered | Unsent:
        told = Unsent("no gateway has answered; what the stream holds is not counted as sent")
        for _ in range(PATIENCE):
            try:
                async with asyncio.timeout(self._timeout_s):
                    reply = await _believed(way, verdict, signature)
            except TimeoutError:
                return told
            if reply.status == 200:
                return read_lines(reply.body)
            told = unsent(reply.status, reply.retry_after or None)
            if not told.busy:
                break
        return told  # busy: the stream keeps it and it comes again; we have waited long enough


async def _believed(way: NatsWay, verdict: Waiting, signature: str) -> Reply:
    while True:
        message = await verdict.next()
        reply = nats.read_answer(message.headers, message.data, signature, way.secret)
        if reply is not None:
            return reply


async def _taken(answer: Waiting) -> Unsent | None:
    """Whether the stream has it; None when it has."""
    message = await answer.next()
    if (message.headers or {}).get("Status") == "503":
        return Unsent(f"{NOBODY}: its stream is not there")
    try:
        taken = msgspec.json.decode(message.data, type=_Taken)
    except msgspec.MsgspecError:
        return Unsent("what answers there is not JetStream")
    if taken.error is not None:
        return Unsent(f"the stream takes no more ({taken.error.description})")
    return None

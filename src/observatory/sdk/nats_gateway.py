"""The outbox's transport over NATS: publishes a batch to the stream and reads the gateway's answers.

Rule: as over HTTP, a line stays in the backlog until the gateway answers it. The stream's PubAck is not an
answer, because the stream can lose messages; only the gateway's signed verdict settles a line. Without one
the same lines are sent again, and a gateway that receives them twice gives the same answers.
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
from observatory.protocol.nats import NatsReply
from observatory.protocol.nats_connection import NatsUnavailable, failures
from observatory.protocol.nats_frames import HEADER_BYTES
from observatory.sdk import background, nats_connection
from observatory.sdk.client import Answered, Unsent, parse_answers, unsent_for_status
from observatory.sdk.credentials import GatewayCredentials
from observatory.sdk.nats_connection import NO_GATEWAY, AgentNatsConnection, PendingReply

PATIENCE = 3  # how often a busy gateway may defer a batch before it counts as unsent_for_status
NDJSON = "application/x-ndjson"


class _Problem(msgspec.Struct):
    description: str = ""


class _Taken(msgspec.Struct):
    """JetStream's acknowledgement: the stream stored the batch, or an error."""

    stream: str = ""
    error: _Problem | None = None


class NatsGateway:
    """Used by one thread at a time, like `client.HttpGateway`; the work runs on the background loop."""

    def __init__(self, credentials: GatewayCredentials, timeout_s: float) -> None:
        self._credentials, self._timeout_s = credentials, timeout_s
        self._loop = background.loop()
        self._connection: AgentNatsConnection | None = None

    def send(self, lines: Sequence[bytes]) -> Answered | Unsent:
        limit_s = self._timeout_s * (PATIENCE + 2) + 5
        try:
            outcome: Answered | Unsent = self._run(self._send(b"\n".join(lines) + b"\n"), limit_s)
            return outcome
        except (NatsUnavailable, concurrent.futures.TimeoutError) as error:
            reason = str(error) or "NATS does not answer in time"
            return Unsent(f"{reason} at {self._credentials.display_url}")

    def close(self) -> None:
        if self._connection is not None and background.is_running(self._loop):
            with contextlib.suppress(NatsUnavailable, concurrent.futures.TimeoutError):
                self._run(nats_connection.release(self._credentials), 2.0)

    def _run(self, work: Coroutine[Any, Any, Any], timeout_s: float) -> Any:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(timeout_s)
        except concurrent.futures.TimeoutError:
            future.cancel()
            raise

    async def _send(self, body: bytes) -> Answered | Unsent:
        if self._connection is None:
            self._connection = nats_connection.shared_connection(self._credentials)
        connection = self._connection
        try:
            async with asyncio.timeout(self._timeout_s):
                wire = await connection.wire()
            max_bytes, encoding = wire.client.max_payload - HEADER_BYTES, ""
            if len(body) > max_bytes:
                body, encoding = await asyncio.to_thread(gzip.compress, body, 1), "gzip"
            if len(body) > max_bytes:
                return Unsent(
                    f"this NATS server accepts at most {wire.client.max_payload} bytes", refused=413
                )
            subject = connection.address.ingest(connection.public)
            with connection.pending_reply() as verdict, connection.pending_reply() as stored:
                letter = connection.letter(
                    subject, "POST /v1/messages", verdict.subject, body, kind=NDJSON, encoding=encoding
                )
                headers = nats.nats_headers(letter, connection.secret)
                signature = headers[nats.SIGNATURE]
                # Unique for this attempt: the stream must not treat a retry as a duplicate.
                headers["Nats-Msg-Id"] = secrets.token_hex(16)
                await wire.client.publish(subject, body, stored.subject, headers)
                async with asyncio.timeout(self._timeout_s):
                    failure = await _stream_error(stored)
                if failure is not None:
                    return failure
                return await self._verdict(connection, verdict, signature)
        except failures() as error:
            raise NatsUnavailable(connection.why(error)) from error

    async def _verdict(
        self, connection: AgentNatsConnection, verdict: PendingReply, signature: str
    ) -> Answered | Unsent:
        outcome = Unsent("no gateway has answered; messages in the stream do not count as sent")
        for _ in range(PATIENCE):
            try:
                async with asyncio.timeout(self._timeout_s):
                    reply = await _signed_reply(connection, verdict, signature)
            except TimeoutError:
                return outcome
            if reply.status == 200:
                return parse_answers(reply.body)
            outcome = unsent_for_status(reply.status, reply.retry_after or None)
            if not outcome.busy:
                break
        return outcome  # busy for too long: the stream keeps the batch, and it is sent again


async def _signed_reply(connection: AgentNatsConnection, verdict: PendingReply, signature: str) -> NatsReply:
    while True:
        message = await verdict.next()
        reply = nats.read_reply(message.headers, message.data, signature, connection.secret)
        if reply is not None:
            return reply


async def _stream_error(answer: PendingReply) -> Unsent | None:
    """None when the stream stored the batch, else the failure."""
    message = await answer.next()
    if (message.headers or {}).get("Status") == "503":
        return Unsent(f"{NO_GATEWAY}: its stream does not exist")
    try:
        taken = msgspec.json.decode(message.data, type=_Taken)
    except msgspec.MsgspecError:
        return Unsent("the server at this address is not JetStream")
    if taken.error is not None:
        return Unsent(f"the stream refuses messages ({taken.error.description})")
    return None

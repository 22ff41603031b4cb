"""Where agents send messages: `POST /v1/messages` (one JSON or NDJSON, gzip or plain) and `WS /v1/ingest`.

Raw ASGI, because the framework costs more than the work. Laws: nothing is acknowledged before it is
durable; every line is validated by itself and answered in order; a body beyond the limits is dropped
unread; of a refused body only its hash is stored.
"""

from __future__ import annotations

import asyncio
import zlib
from collections import Counter
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from functools import cache, partial
from typing import Any

import msgspec

from observatory.errors import GatewayStopped, NotDurable, QueueFull
from observatory.http.app_state import AppState
from observatory.http.authentication import allows
from observatory.http.client_certificate import CERTIFICATE
from observatory.http.limits import SMALL, UNPACKED
from observatory.http.sockets import Socket
from observatory.pipeline.interceptor import MessageLimits, NotJson, SchemaViolation, intercept
from observatory.pipeline.state import IncomingMessage, Principal, RejectedBody, Submission, SubmissionResult
from observatory.protocol.certificates import Certificate
from observatory.protocol.message import Message
from observatory.protocol.otel import TraceContext, read_context
from observatory.protocol.responses import Fault, Refused, Rejected

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
JSON, NDJSON = b"application/json", b"application/x-ndjson"
IN_FLIGHT = 1_000
STEP = 1 << 20  # unpacked per step, in a thread
encode = msgspec.json.Encoder().encode


class BodyError(Exception):
    """The request as a whole cannot be read; carries the response."""

    def __init__(self, code: int, reason: str, detail: str) -> None:
        super().__init__(reason)
        self.code, self.answer = code, Refused(reason=reason, detail=detail)


class Ingest:
    def __init__(self, app: AppState) -> None:
        self._app = app
        self._limits = MessageLimits(message_bytes=app.settings.message_bytes, needs_intent=True)

    async def post(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        try:
            scope["observatory.who"] = principal = await self.admit(headers, scope.get(CERTIFICATE))
            kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
            if kind not in (JSON, NDJSON):
                raise BodyError(
                    415,
                    "unsupported_media_type",
                    "send Content-Type application/json, or application/x-ndjson for batches",
                )
            body = await self.body(headers, receive, scope)
            if body is None:
                return  # the client disconnected before the body was complete; nothing was accepted
            if kind == JSON:
                await self._one(principal, body, send, context_of(headers))
            else:
                await self._many(principal, body, send, context_of(headers))
        except BodyError as error:
            await self._answer(send, error.code, encode(error.answer))
        except QueueFull as full:
            answer = encode(Refused(reason=full.reason, detail=str(full)))
            await self._answer(send, 429, answer, [(b"retry-after", str(full.retry_after_s).encode())])
        except GatewayStopped as stopped:
            answer = encode(Refused(reason="stopping", detail=str(stopped)))
            await self._answer(send, 503, answer, [(b"retry-after", b"1")])
        except NotDurable:  # not even the key could be looked up
            detail = "the store cannot be reached now; nothing was accepted, send it again"
            answer = encode(Refused(reason="not_durable", detail=detail))
            await self._answer(send, 503, answer, [(b"retry-after", b"1")])

    async def admit(self, headers: dict[bytes, bytes], shown: Certificate | None) -> Principal:
        principal = await self._app.auth.identify(headers, certificate=shown)
        if principal is None:
            raise BodyError(401, "unauthorized", "send a valid key as 'Authorization: Bearer obs_…'")
        if b"authorization" not in headers and not self._app.auth.is_origin_allowed(headers):
            raise BodyError(403, "foreign_origin", "this page may not act for the signed-in user")
        if not allows(principal, "send"):
            raise BodyError(403, "not_allowed", f"the role {principal.role} may not send messages")
        self._app.violators.admit(principal.key_id)
        return principal

    async def body(self, headers: dict[bytes, bytes], receive: Receive, scope: Scope) -> bytes | None:
        limit = self._app.settings.request_bytes
        declared = headers.get(b"content-length", b"0")
        if declared.isdigit() and int(declared) > limit:
            raise BodyError(413, "too_large", f"a request may have {limit} bytes at most")
        encoding = headers.get(b"content-encoding", b"identity").strip().lower()
        if encoding not in (b"identity", b"gzip"):
            raise BodyError(415, "unsupported_encoding", "send Content-Encoding gzip or none")
        parts: list[bytes] = []
        size = 0
        while True:
            event = await receive()
            if event["type"] == "http.disconnect":
                return None
            part = event.get("body", b"")
            size += len(part)
            if size > limit:
                raise BodyError(413, "too_large", f"a request may have {limit} bytes at most (after gunzip)")
            parts.append(part)
            if not event.get("more_body", False):
                break
        body = parts[0] if len(parts) == 1 else b"".join(parts)
        return body if encoding == b"identity" else await self._unpacked(body, limit, scope)

    async def _unpacked(self, packed: bytes, limit: int, scope: Scope) -> bytes:
        """The unpacked body, within `limit` and the memory budget; large ones in a thread."""
        unpack, parts, size = zlib.decompressobj(31), list[bytes](), 0
        scope[UNPACKED] = 0
        try:
            while packed and not unpack.eof:
                max_length = min(STEP if size else SMALL, limit + 1 - size)
                if size or len(packed) > SMALL:
                    part = await asyncio.to_thread(unpack.decompress, packed, max_length)
                else:
                    part = unpack.decompress(packed, max_length)
                size += len(part)
                if size > limit:
                    detail = f"a request may have {limit} bytes at most (after gunzip)"
                    raise BodyError(413, "too_large", detail)
                self._app.bounds.take(len(part), size)
                scope[UNPACKED] = size
                parts.append(part)
                packed = unpack.unconsumed_tail
                if not part and not packed:
                    break
        except zlib.error as error:
            raise BodyError(400, "not_gzip", "the body is not valid gzip") from error
        if not unpack.eof or unpack.unused_data:
            # Data past the first member would be dropped unread, and yet seem accepted.
            raise BodyError(400, "not_gzip", "the gzip body is cut short, or holds more than one member")
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def judge(
        self, principal: Principal, now_ns: int, context: TraceContext | None, raw: bytes
    ) -> Submission | SubmissionResult:
        """Validate one body: the submission for the pipeline, or the verdict when it goes no further.

        Runs in the lane's thread and is pure; `now_ns` is when the request was received.
        """
        found = intercept(raw, self._limits)
        if isinstance(found, Message):
            return IncomingMessage(found, principal, now_ns, len(raw), context=context)
        if isinstance(found, SchemaViolation):
            answer = Rejected(
                reason="schema_violation", faults=found.faults, raw_payload_hash=found.raw_payload_hash
            )
            return RejectedBody(
                principal=principal,
                received_ns=now_ns,
                # A bound key answers for its own agent, whatever a broken body claims.
                agent_id=principal.agent_id or found.agent_id,
                capability_version=found.capability_version,
                reason=found.violation_reason,
                raw_payload_hash=found.raw_payload_hash,
                answer=answer,
            )
        if isinstance(found, NotJson):
            fault = Fault(path="", problem="the body is not JSON in UTF-8")
            return RejectedBody(
                principal=principal,
                received_ns=now_ns,
                agent_id=principal.agent_id,
                capability_version=None,
                reason=fault.problem,
                raw_payload_hash=found.raw_payload_hash,
                answer=Rejected(reason="not_json", faults=(fault,), raw_payload_hash=found.raw_payload_hash),
                code=400,
            )
        fault = Fault(path="", problem=f"a message may have {found.limit} bytes at most")
        return SubmissionResult(413, Rejected(reason="too_large", faults=(fault,)))

    def _hand_in(
        self, principal: Principal, bodies: Sequence[bytes], context: TraceContext | None = None
    ) -> asyncio.Future[list[SubmissionResult]]:
        judge = partial(self.judge, principal, self._app.clock(), context)
        return self._app.committer.enqueue_bodies(principal.tenant_id, bodies, judge)

    async def _one(self, principal: Principal, body: bytes, send: Send, context: TraceContext | None) -> None:
        verdicts = await self._hand_in(principal, [body], context)
        self._app.violators.note(principal.key_id, verdicts)
        verdict = verdicts[0]
        extra = [(b"retry-after", b"1")] if verdict.code == 503 else None
        await self._answer(send, verdict.code, encode(verdict.answer), extra)

    async def _many(
        self, principal: Principal, body: bytes, send: Send, context: TraceContext | None
    ) -> None:
        limit = self._app.settings.batch_lines
        if body.count(b"\n") > limit:  # counted first: a list of lines can be ten times the body
            raise BodyError(413, "too_many_lines", f"a request may have {limit} lines at most")
        lines = body.split(b"\n")
        if not lines[-1].strip():
            lines.pop()
        if len(lines) > limit:
            raise BodyError(413, "too_many_lines", f"a request may have {limit} lines at most")
        if not lines:
            raise BodyError(400, "empty", "the body holds no line")
        verdicts = await self._hand_in(principal, lines, context)
        self._app.violators.note(principal.key_id, verdicts)
        await self._answer_lines(send, verdicts)

    async def _answer_lines(self, send: Send, verdicts: list[SubmissionResult]) -> None:
        if all(verdict.code == 503 for verdict in verdicts):
            return await self._answer(send, 503, encode(verdicts[0].answer), [(b"retry-after", b"1")])
        for code, times in Counter([verdict.code for verdict in verdicts]).items():
            self._app.request_metrics.count(code, times)
        body = b"\n".join([line_of(verdict) for verdict in verdicts]) + b"\n"
        return await self._send(send, 200, body, NDJSON, [])

    async def _answer(
        self, send: Send, code: int, body: bytes, extra: list[tuple[bytes, bytes]] | None = None
    ) -> None:
        self._app.request_metrics.count(code)
        headers = list(extra or [])
        if code == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        await self._send(send, code, body, JSON, headers)

    async def _send(
        self, send: Send, code: int, body: bytes, kind: bytes, extra: list[tuple[bytes, bytes]]
    ) -> None:
        headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode()), *extra]
        await send({"type": "http.response.start", "status": code, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def socket(self, socket: Socket) -> None:
        """Read one message per frame, `{id, message}`; acks carry the client's id, in frame order."""
        principal = await socket.authenticate(self._app.auth)
        if principal is None or not allows(principal, "send"):
            await socket.close(4401 if principal is None else 4403, "a key that may send messages is needed")
            return
        pending: asyncio.Queue[tuple[Any, SubmissionResult | Awaitable[list[SubmissionResult]]] | None] = (
            asyncio.Queue(IN_FLIGHT)
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(self._acknowledge(socket, principal, pending))
            while (frame := await socket.receive()) is not None:
                await pending.put(self._frame(principal, frame))
            await pending.put(None)

    def _frame(
        self, principal: Principal, frame: bytes
    ) -> tuple[Any, SubmissionResult | Awaitable[list[SubmissionResult]]]:
        try:
            envelope = msgspec.json.decode(frame, type=IngestFrame)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            fault = Fault(path="", problem="a frame is a JSON object {id, message}")
            return None, SubmissionResult(400, Rejected(reason="not_a_frame", faults=(fault,)))
        try:
            self._app.violators.admit(principal.key_id)
            return envelope.id, self._hand_in(principal, [bytes(envelope.message)])
        except QueueFull as full:
            return envelope.id, SubmissionResult(429, Refused(reason=full.reason, detail=str(full)))
        except GatewayStopped as stopped:
            return envelope.id, SubmissionResult(503, Refused(reason="stopping", detail=str(stopped)))

    async def _acknowledge(
        self,
        socket: Socket,
        principal: Principal,
        pending: asyncio.Queue[tuple[Any, SubmissionResult | Awaitable[list[SubmissionResult]]] | None],
    ) -> None:
        while (entry := await pending.get()) is not None:
            ident, outcome = entry
            verdict = outcome if isinstance(outcome, SubmissionResult) else (await outcome)[0]
            self._app.request_metrics.count(verdict.code)
            self._app.violators.note(principal.key_id, [verdict])
            await socket.send(b'{"id":' + encode(ident) + b"," + line_of(verdict)[1:])


def context_of(headers: dict[bytes, bytes]) -> TraceContext | None:
    """The caller's W3C trace context, if it is valid; it applies to all messages of the request."""
    parent = headers.get(b"traceparent")
    if parent is None:
        return None
    return read_context(parent.decode("latin-1"), headers.get(b"tracestate", b"").decode("latin-1"))


class IngestFrame(msgspec.Struct):
    id: str | int
    message: msgspec.Raw


def line_of(verdict: SubmissionResult) -> bytes:
    """The answer to one message plus `code`."""
    return _opening(verdict.code) + encode(verdict.answer)[1:]


@cache
def _opening(code: int) -> bytes:
    return b'{"code":%d,' % code

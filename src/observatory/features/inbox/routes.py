"""The agent channel over HTTP: `WS /v1/agents/{id}/channel`, the inbox as long poll or SSE, acknowledgements.

Laws: an agent's key reaches its own agent only (an unbound key any agent of its tenant that has no key of
its own, S1142), an admin's every agent; other roles may not listen. All three transports send the same items
and everything pending first. Reading removes nothing: only an acknowledgement does. A key that ends closes
its channel.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager, nullcontext, suppress
from typing import Annotated, Any

import msgspec
from litestar import Response, Router, get, post
from litestar.background_tasks import BackgroundTask
from litestar.params import FromPath, JSONBody, QueryParameter
from litestar.response import Stream

from observatory.errors import GatewayStopped, ObservatoryError, QueueFull
from observatory.features.inbox import commands as inbox
from observatory.features.inbox.channel import BUFFER_BYTES, DeliveryChannel, item_of
from observatory.features.inbox.worker import Dispatcher
from observatory.http.answers import AGENT_NAME, Limit, Refusal, json
from observatory.http.app_state import AppState, Call, Here
from observatory.http.authentication import allows
from observatory.http.permissions import principal_of
from observatory.http.sockets import STOPPING, Socket
from observatory.pipeline.authority import denied
from observatory.pipeline.ports import InboxDelivery
from observatory.pipeline.state import Principal, SubmissionResult
from observatory.protocol.certificates import Binding
from observatory.protocol.identity import agent_entity_id

PATH = re.compile(r"/v1/agents/(.+)/channel").fullmatch
MAX_IDS = 1_000
WAITING_ACKS = 100  # acknowledgement frames received before the first of them is durable
LONGEST_POLL_S = 60
QUIET_S = 15.0  # after this long a silent stream sends a keep-alive
NOT_PRESENTED = "this agent is bound to a certificate, which this connection did not present"
encode = msgspec.json.encode
Wait = Annotated[
    float,
    QueryParameter(ge=0, le=LONGEST_POLL_S, description="Seconds to wait when nothing is pending (0–60)."),
]


class AckIds(msgspec.Struct, kw_only=True):
    """Delivery ids, as received."""

    ids: Annotated[list[str], msgspec.Meta(min_length=1, max_length=MAX_IDS)]


class ChannelFrame(msgspec.Struct):
    """A frame sent by an agent on its channel."""

    op: str
    ids: list[str] = []


def may_listen(principal: Principal, agent_id: str) -> bool:
    if principal.role not in ("agent", "admin") or not allows(principal, "send"):
        return False
    if principal.agent_id is None:
        return True
    tenant_id = principal.tenant_id
    return agent_entity_id(tenant_id, principal.agent_id) == agent_entity_id(tenant_id, agent_id)


async def channel_refusal(app: AppState, who: Principal, agent_id: str, doubtful: bool) -> Refusal | None:
    """Why an open channel must close: its agent may have been bound to a certificate or a key since, and the
    certificate that was presented may have expired."""
    if not doubtful and (who.certificate is None or who.certificate.is_current(app.clock())):
        return None
    entity_id = agent_entity_id(who.tenant_id, agent_id)
    rows = await app.store.rows(who.tenant_id, "agent_certificates", entity_id=entity_id, removed_ns=None)
    if not all(Binding(row["kind"], row["value"]).fits(who.certificate, app.clock()) for row in rows):
        return Refusal(403, "certificate_required", NOT_PRESENTED)
    if doubtful and who.role == "agent" and who.agent_id is None:
        try:
            await register_connection(app, who, agent_id, None)  # judged like a new connection
        except Refusal as refusal:
            return refusal
    return None


async def register_connection(
    app: AppState, who: Principal, agent_id: str, transport: str | None
) -> inbox.ConnectedAgent:
    """Registers the agent and puts its instructions into the inbox."""
    entity_id = agent_entity_id(who.tenant_id, agent_id)
    rows = await app.store.rows(who.tenant_id, "agents", entity_id=entity_id)
    waiting = await app.store.instructed(who.tenant_id, rows[0]["agent_no"]) if rows else 0
    act = inbox.connect(
        who,
        agent_id,
        app.clock(),
        transport=transport,
        agent_type=rows[0]["agent_type"] if rows else None,
        instructed=waiting,
    )
    welcome: inbox.ConnectedAgent = _answer_of(await app.committer.submit(who.tenant_id, [act]))
    return welcome


async def acknowledge(app: AppState, who: Principal, agent_id: str, ids: Sequence[str]) -> inbox.AckResult:
    keys = {key for key in map(inbox.key_of, ids) if key is not None}
    found = await app.store.deliveries(who.tenant_id, sorted(keys), False)
    facts = {(fact.sequence_number, fact.agent_no): fact for fact in found}
    entity_id = agent_entity_id(who.tenant_id, agent_id)
    act = inbox.ack(who, entity_id, ids, facts, app.clock())
    acked: inbox.AckResult = _answer_of(await app.committer.submit(who.tenant_id, [act]))
    return acked


def _answer_of(verdicts: list[SubmissionResult]) -> Any:
    [verdict] = verdicts
    if verdict.code >= 400:
        raise Refusal(verdict.code, verdict.answer.reason, verdict.answer.detail or "not accepted")
    return verdict.answer


@asynccontextmanager
async def connected(
    app: AppState, who: Principal, agent_id: str, transport: str
) -> AsyncIterator[tuple[DeliveryChannel, dict[str, Any]]]:
    """An open channel and its greeting. However it ends, its closing is recorded."""
    welcome = await register_connection(app, who, agent_id, transport)
    try:
        async with app.service(Dispatcher).open(who.tenant_id, welcome) as channel:
            yield channel, await _greeting(app, who.tenant_id, welcome)
    finally:
        keeper = app.gateway_principal(who.tenant_id)
        app.service(Dispatcher).part(inbox.disconnect(keeper, welcome, transport, app.clock()))


async def _greeting(app: AppState, tenant_id: str, welcome: inbox.ConnectedAgent) -> dict[str, Any]:
    version, instructions = welcome.instructions, None
    if version is not None:  # in full: an agent that restarted has lost what it once acknowledged
        where = {"agent_type": welcome.agent_type, "version": version}
        rows = await app.store.rows(tenant_id, "instructions", **where)
        instructions = {"version": version, "text": rows[0]["text"] if rows else None}
    return {
        "type": "hello",
        "agent_id": welcome.agent_id,
        "entity_id": welcome.entity_id,
        "paused": await app.store.paused_sessions(tenant_id, welcome.agent_no),
        "paused_everywhere": welcome.paused,
        "stopped": welcome.stopped,
        "instructions": instructions,
    }


class AgentChannel:
    """The WebSocket."""

    def __init__(self, app: AppState) -> None:
        self._app = app

    async def socket(self, socket: Socket, agent_id: str) -> None:
        app = self._app
        principal = await socket.authenticate(app.auth)
        if principal is None:
            await socket.close(4401, "a valid key is required")
            return
        if not may_listen(principal, agent_id):
            with suppress(ObservatoryError):  # refused all the same
                await app.act(denied(principal, "listen", app.clock()))
            await socket.close(4403, "only the agent's own key or an admin's may listen for it")
            return
        if not AGENT_NAME(agent_id):
            await socket.close(4404, "invalid agent name")
            return
        try:
            async with connected(app, principal, agent_id, socket.transport) as (channel, hello):
                await socket.send(encode(hello))
                await self._converse(socket, principal, agent_id, channel)
        except Refusal as refusal:
            code = {401: 4401, 403: 4403}.get(refusal.code, 1013)
            await socket.close(code, refusal.detail)
        except ObservatoryError:
            await socket.close(1013, "the inbox cannot be read now; reconnect, nothing is lost")

    async def _converse(
        self, socket: Socket, who: Principal, agent_id: str, channel: DeliveryChannel
    ) -> None:
        """Until either side ends: sending, receiving and acknowledging run concurrently."""
        acks: asyncio.Queue[list[str]] = asyncio.Queue(WAITING_ACKS)
        tasks = [
            asyncio.create_task(self._serve(socket, who, agent_id, channel)),
            asyncio.create_task(self._receive(socket, acks)),
            asyncio.create_task(self._acknowledge(socket, who, agent_id, acks)),
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, socket: Socket, who: Principal, agent_id: str, channel: DeliveryChannel) -> None:
        while not socket.closed:
            found = await channel.next(_left_s(self._app, who))
            if channel.closing:
                await socket.close(1001, STOPPING)
                return
            doubtful, channel.is_doubtful = channel.is_doubtful, False
            ended = _left_s(self._app, who) <= 0
            if ended or (doubtful and not await socket.is_still_authorized(self._app.auth, True)):
                await socket.close(4401, "this key is no longer valid")
                return
            refused = await channel_refusal(self._app, who, agent_id, doubtful)
            if refused is not None:
                await socket.close(4403, refused.detail)
                return
            for delivery in found:
                await socket.send(encode({"type": "delivery", **item_of(delivery)}))

    async def _receive(self, socket: Socket, acks: asyncio.Queue[list[str]]) -> None:
        while (text := await socket.receive()) is not None:
            try:
                frame = msgspec.json.decode(text, type=ChannelFrame)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                frame = ChannelFrame(op="")
            if frame.op == "ping":
                await socket.send(b'{"type":"pong"}')
            elif frame.op == "ack" and len(frame.ids) <= MAX_IDS:
                await acks.put(frame.ids)
            else:
                problem = (
                    f'a frame is {{"op": "ack", "ids": […]}} with at most {MAX_IDS} ids, or {{"op": "ping"}}'
                )
                await socket.send(encode({"type": "error", "problem": problem}))

    async def _acknowledge(
        self, socket: Socket, who: Principal, agent_id: str, acks: asyncio.Queue[list[str]]
    ) -> None:
        """Ids that arrive while a command is being committed are combined into the next one."""
        while True:
            ids = await acks.get()
            while len(ids) < MAX_IDS and not acks.empty():
                ids = ids + acks.get_nowait()
            try:
                answer = await acknowledge(self._app, who, agent_id, ids)
            except Refusal as refusal:
                if refusal.code == 401:
                    raise
                await socket.send(_not_acked(ids))
            except (QueueFull, GatewayStopped):
                await socket.send(_not_acked(ids))
            else:
                unknown = {"unknown": answer.unknown} if answer.unknown else {}
                await socket.send(encode({"type": "acked", "ids": answer.acked, **unknown}))


def _left_s(app: AppState, who: Principal) -> float:
    """Seconds to wait at most before the key is checked."""
    if who.expires_ns is None:
        return LONGEST_POLL_S
    return min(LONGEST_POLL_S, (who.expires_ns - app.clock()) / 1e9)


def _not_acked(ids: list[str]) -> bytes:
    return encode({"type": "error", "problem": "not acknowledged; retry later", "ids": ids})


async def _listener(request: Call, app: AppState, agent_id: str) -> Principal:
    principal = await principal_of(request, app)
    if not may_listen(principal, agent_id):
        await app.act(denied(principal, "listen", app.clock()))
        raise Refusal(403, "not_allowed", "only the agent's own key or an admin's may listen for it")
    if not AGENT_NAME(agent_id):
        raise Refusal(404, "not_found", "invalid agent name")
    return principal


@get("/{agent_id:str}/inbox", summary="Read an agent's inbox (long poll or SSE)", operation_id="read_inbox")
async def read_inbox(
    request: Call, app: Here, agent_id: FromPath[str], wait: Wait = 0.0, limit: Limit = 100
) -> Response[Any]:
    """Everything pending, oldest first; with `wait`, as soon as there is something. Nothing is removed.

    With `Accept: text/event-stream` the answer is a stream: `event: hello`, then `event: delivery`.
    """
    principal = await _listener(request, app, agent_id)
    if "text/event-stream" in request.headers.get("accept", ""):
        frames = _stream(app, principal, agent_id, dict(request.scope["headers"]))
        first = await anext(frames)  # a refusal must come before the response starts
        body = _joined(first, frames)
        headers = {"x-accel-buffering": "no"}
        closing = BackgroundTask(frames.aclose)
        return Stream(body, media_type="text/event-stream", headers=headers, background=closing)
    with app.bounds.last() if wait else nullcontext():
        return await _pending(request, app, principal, agent_id, wait, limit)


async def _pending(
    request: Call, app: AppState, principal: Principal, agent_id: str, wait: float, limit: int
) -> Response[Any]:
    welcome = await register_connection(app, principal, agent_id, None)
    async with app.service(Dispatcher).open(principal.tenant_id, welcome) as channel:
        found = await _poll(channel, wait, limit)
        if wait and found and channel.is_doubtful:  # access may have changed while it waited
            await _listener(request, app, agent_id)
            refused = await channel_refusal(app, principal, agent_id, True)
            if refused is not None:
                raise refused
    return json({"items": [item_of(delivery) for delivery in found[:limit]]})


async def _poll(channel: DeliveryChannel, wait_s: float, limit: int) -> list[InboxDelivery]:
    """Waits for the first delivery, then takes what else is there, up to the bounds of an answer."""
    until, size = time.monotonic() + wait_s, 0
    found: list[InboxDelivery] = []
    while len(found) < limit and size < BUFFER_BYTES and not channel.closing:
        left = 0.0 if found else until - time.monotonic()
        more = await channel.next(max(0.0, left))
        found += more
        size += sum(len(one.raw or b"") + len(one.body or "") for one in more)
        if not more and (found or time.monotonic() >= until):
            break
    return found


async def _stream(
    app: AppState, principal: Principal, agent_id: str, proof: dict[bytes, bytes]
) -> AsyncGenerator[bytes, None]:
    with app.bounds.last():
        async with aclosing(_frames(app, principal, agent_id, proof)) as frames:
            async for frame in frames:
                yield frame


async def _frames(
    app: AppState, principal: Principal, agent_id: str, proof: dict[bytes, bytes]
) -> AsyncGenerator[bytes, None]:
    async with connected(app, principal, agent_id, "sse") as (channel, hello):
        yield _event(b"hello", hello)
        while not channel.closing:
            found = await channel.next(min(QUIET_S, _left_s(app, principal)))
            doubtful, channel.is_doubtful = channel.is_doubtful, False
            ended = _left_s(app, principal) <= 0
            if ended or (doubtful and await app.auth.identify(proof, may_be_cached=False) is None):
                return
            if await channel_refusal(app, principal, agent_id, doubtful) is not None:
                return
            for delivery in found:
                item = item_of(delivery)
                yield _event(b"delivery", item, item["delivery_id"])
            if not found:
                yield b": still here\n\n"


async def _joined(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for frame in rest:
        yield frame


def _event(name: bytes, value: Any, ident: str | None = None) -> bytes:
    # Line ends within JSON are only between tokens; here they would end the field.
    data = encode(value).replace(b"\n", b" ").replace(b"\r", b" ")
    tag = b"" if ident is None else b"id: " + ident.encode() + b"\n"
    return b"event: " + name + b"\n" + tag + b"data: " + data + b"\n\n"


@post(
    "/{agent_id:str}/inbox/ack",
    status_code=200,
    summary="Acknowledge deliveries, many at once",
    operation_id="ack_inbox",
)
async def ack_inbox(
    request: Call, app: Here, agent_id: FromPath[str], data: JSONBody[AckIds]
) -> Response[bytes]:
    principal = await _listener(request, app, agent_id)
    return json(await acknowledge(app, principal, agent_id, data.ids))


channel = Router(path="/v1/agents", route_handlers=[read_inbox, ack_inbox], tags=["Agent channel"])

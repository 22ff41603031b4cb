"""Keeps an agent's channel to the gateway open and passes what arrives to its `Orders`.

Rule: listening never disturbs the agent. One background thread with its own event loop serves all agents of
the process; a broken channel is reopened with growing delays; without a WebSocket the inbox is read by long
poll. Accepted items are acknowledged; the others are delivered again.
"""

import asyncio
import contextlib
import logging
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from concurrent.futures import Future, wait
from typing import Any
from urllib.parse import quote

import httpx2
import msgspec
from websockets.exceptions import WebSocketException

from observatory.protocol.clock import from_ns
from observatory.sdk import background, nats_connection, nats_receiver
from observatory.sdk.client import NoResponse, Unsent, is_local, tls, unsent_for_status
from observatory.sdk.credentials import GatewayCredentials
from observatory.sdk.delivery import SYSTEM_JITTER, Delivery, backoff_s
from observatory.sdk.nats_connection import AgentNatsConnection
from observatory.sdk.orders import Orders
from observatory.sdk.received import Received

log = logging.getLogger("observatory.sdk")
POLL_S = 25
SOCKET_RETRY_S = 60.0  # how long to poll before the WebSocket is tried again
PULSE_TIMEOUT_S = 5.0
FRAME_BYTES = 16 << 20
ACKS_AT_ONCE = 500
CLOSE_S = 2.0
STEADY_S = 5.0  # a channel open this long counts as healthy
IDLE_S = 1.0
POLL_ITEMS = 1000
Json = dict[str, Any]


class _Instructions(msgspec.Struct):
    text: str | None = None


class _Hello(msgspec.Struct):
    entity_id: str | None = None
    paused: list[str] = []
    paused_everywhere: bool = False
    stopped: bool = False
    instructions: _Instructions | None = None


class _Page(msgspec.Struct):
    items: list[msgspec.Raw] = []


class _Frame(msgspec.Struct):
    type: str = ""


class Receiver:
    """Listens for one agent at one gateway; `pulse` returns its heartbeat."""

    def __init__(
        self,
        agent_id: str,
        credentials: GatewayCredentials,
        delivery: Delivery,
        orders: Orders,
        pulse: Callable[[], Json],
        heartbeat_s: float | None,
        jitter: Callable[[], float] = SYSTEM_JITTER,
    ) -> None:
        self._agent_id = agent_id
        self._path = f"/v1/agents/{quote(agent_id, safe='')}"
        self._credentials = credentials
        self._delivery = delivery
        self._orders = orders
        self._pulse = pulse
        self._on_frametbeat_s = heartbeat_s
        self._jitter = jitter
        self._reset()

    def _reset(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._http: httpx2.AsyncClient | None = None
        self._nats: AgentNatsConnection | None = None
        self._acks: asyncio.Event | None = None
        self._pulses: asyncio.Event | None = None
        self._complaint = ""
        self._orders.on_acks = self._wake_acks

    # Called from the agent's threads.

    @property
    def is_open(self) -> bool:
        return self._loop is not None

    def open(self) -> None:
        """Start listening; returns at once."""
        if self._loop is None and not self._orders.closed:
            self._loop = background.loop()
            self._loop.call_soon_threadsafe(self._begin)

    def pulse_now(self) -> None:
        self._soon(lambda: _set(self._pulses))

    def request(self, path: str, body: Json, timeout: float) -> "Future[tuple[int, bytes]]":
        """POST to the gateway; returns status and body of the response, raises `NoResponse` if there is
        none."""
        self.open()
        if self._loop is None:
            raise NoResponse(Unsent("the agent was closed"))
        return self._submit(self._request("POST", path, body, timeout))

    def close(self) -> "Future[None] | None":
        """Wake all waiters and start closing: acknowledge accepted items, close the channel."""
        self._orders.close()
        loop = self._loop
        if loop is None or not background.is_running(loop):
            return None
        ending = self._submit(self._end())
        self._loop = None
        return ending

    def reset_after_fork(self) -> None:
        """In a forked child: the channel belongs to the parent; the next step opens a new one."""
        self._orders.reset_after_fork()
        self._reset()

    def _wake_acks(self) -> None:
        self._soon(lambda: _set(self._acks))

    def _soon(self, action: Callable[[], Any]) -> None:
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended with the process
                self._loop.call_soon_threadsafe(action)

    def _submit(self, work: Coroutine[Any, Any, Any]) -> "Future[Any]":
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    # On the background loop.

    def _begin(self) -> None:
        if self._task is not None:
            return
        self._acks, self._pulses = asyncio.Event(), asyncio.Event()
        self._task = asyncio.create_task(self._run())

    async def _end(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if self._http is not None:
            self._http = None
            await background.release(self._credentials)
        if self._nats is not None:
            self._nats = None
            await nats_connection.release(self._credentials)

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._keep_pulse(self._on_frametbeat_s))
            group.create_task(self._keep_listening())

    async def _keep_listening(self) -> None:
        failures = 0
        while True:
            began, why = time.monotonic(), Unsent("the channel was closed")
            try:
                await self._listen()
            except NoResponse as failed:
                why = failed.why
            except Exception as exc:  # the loop: log, wait, continue
                log.exception("%s: listening failed; retrying", self._agent_id)
                why = Unsent(type(exc).__name__)
            self._orders.set_connected(False)
            failures = 1 if time.monotonic() - began > STEADY_S else failures + 1
            self._complain(why)
            await asyncio.sleep(backoff_s(self._delivery, failures, why, self._jitter))

    def _complain(self, why: Unsent) -> None:
        """Log each reason once; the outbox already reports an unreachable gateway."""
        if why.reason != self._complaint:
            self._complaint = why.reason
            level = logging.WARNING if why.needs_a_person else logging.INFO
            log.log(level, "%s is not receiving: %s", self._agent_id, why.reason)

    async def _listen(self) -> None:
        """By WebSocket; if that fails, by long poll; by NATS if the gateway's URL is a NATS URL.
        Returns when the connection ends."""
        if self._credentials.is_nats:
            display_url, timeout_s = self._credentials.display_url, self._delivery.timeout_s
            await nats_receiver.listen(
                self._connection(),
                self._agent_id,
                display_url,
                timeout_s,
                self._on_frame,
                self._acknowledging,
            )
            return
        from websockets.asyncio.client import connect

        has_hello = False
        try:
            async with connect(
                "ws" + self._credentials.url.removeprefix("http") + f"{self._path}/channel",
                additional_headers={"Authorization": f"Bearer {self._credentials.key}"},
                compression=None,
                proxy=None if is_local(self._credentials.url) else True,
                ssl=tls(self._credentials.url, self._credentials.trust)
                if self._credentials.url.startswith("https:")
                else None,
                open_timeout=self._delivery.timeout_s,
                close_timeout=1.0,
                max_size=FRAME_BYTES,
            ) as socket:

                async def send(ids: list[str]) -> None:
                    await socket.send(msgspec.json.encode({"op": "ack", "ids": ids}).decode())

                async with self._acknowledging(send):
                    async for frame in socket:
                        has_hello = self._on_frame(frame) or has_hello
        except (WebSocketException, TimeoutError, ssl.SSLError, ImportError) as exc:
            log.debug("%s: no WebSocket (%s)", self._agent_id, type(exc).__name__)
        except OSError as exc:
            raise NoResponse(Unsent(f"{type(exc).__name__} at {self._credentials.url}")) from exc
        if not has_hello:
            await self._poll()

    def _connection(self) -> AgentNatsConnection:
        if self._nats is None:
            self._nats = nats_connection.shared_connection(self._credentials)
        return self._nats

    def _on_frame(self, frame: str | bytes) -> bool:
        """Handle one frame of the channel; True for the gateway's `hello`."""
        try:
            match _decode_frame(frame).type:
                case "hello":
                    hello = _decode_hello(frame)
                    text = hello.instructions.text if hello.instructions is not None else None
                    self._orders.hello(
                        hello.entity_id, hello.paused, hello.stopped, text, hello.paused_everywhere
                    )
                    self._complaint = ""
                    return True
                case "delivery":
                    self._orders.take(_decode_item(frame))
        except (msgspec.MsgspecError, UnicodeDecodeError):
            log.warning("%s: a frame of the channel could not be read", self._agent_id)
        return False

    async def _poll(self) -> None:
        """Read the inbox by long poll for a while, with the same items and acknowledgements."""
        until = time.monotonic() + SOCKET_RETRY_S

        async def send(ids: list[str]) -> None:
            path = f"{self._path}/inbox/ack"
            status, _ = await self._request("POST", path, {"ids": ids}, self._delivery.timeout_s)
            if status >= 300:
                raise NoResponse(_no_inbox(status))

        async with self._acknowledging(send):
            while time.monotonic() < until:
                wait_s = POLL_S if self._orders.connected else 0  # first check that there is an inbox
                path = f"{self._path}/inbox?wait={wait_s}&limit={POLL_ITEMS}"
                status, answer = await self._request("GET", path, None, wait_s + self._delivery.timeout_s)
                if status != 200:
                    raise NoResponse(_no_inbox(status))
                if not self._orders.connected:
                    await self._learn_entity_id()
                    self._orders.set_connected(True)
                    self._complaint = ""
                news = [self._orders.take(item) for item in _read_items(answer)]
                if news and not any(news):  # they wait until the agent fetches them
                    await asyncio.sleep(IDLE_S)

    async def _learn_entity_id(self) -> None:
        """Without a `hello` frame, the registry returns it."""
        if self._orders.entity_id is None:
            body = {"agent_id": self._agent_id}
            status, answer = await self._request("POST", "/v1/agents", body, self._delivery.timeout_s)
            if status < 300:
                with contextlib.suppress(msgspec.MsgspecError):
                    self._orders.set_entity_id(_decode_hello(answer).entity_id)

    @contextlib.asynccontextmanager
    async def _acknowledging(self, send: Callable[[list[str]], Awaitable[None]]) -> AsyncIterator[None]:
        """Send acknowledgements as they arise; the last ones when the block ends."""
        task = asyncio.create_task(self._keep_acknowledging(send))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])  # awaiting it would swallow a cancellation of this task
            with contextlib.suppress(Exception):
                async with asyncio.timeout(CLOSE_S / 2):
                    await self._acknowledge(send)

    async def _keep_acknowledging(self, send: Callable[[list[str]], Awaitable[None]]) -> None:
        assert self._acks is not None
        while True:
            self._acks.clear()
            try:
                await self._acknowledge(send)
            except (
                NoResponse,
                WebSocketException,
                OSError,
            ) as exc:  # sent a little later, possibly by the next connection
                log.debug("%s: not acknowledged yet (%s)", self._agent_id, type(exc).__name__)
                await asyncio.sleep(IDLE_S)
            else:
                await self._acks.wait()

    async def _acknowledge(self, send: Callable[[list[str]], Awaitable[None]]) -> None:
        while acks := self._orders.take_acks():
            try:
                await send(acks[:ACKS_AT_ONCE])
            except BaseException:
                self._orders.give_back_acks(acks)
                raise
            self._orders.give_back_acks(acks[ACKS_AT_ONCE:])

    async def _keep_pulse(self, every_s: float | None) -> None:
        assert self._pulses is not None
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(every_s):
                    await self._pulses.wait()
            if self._pulses.is_set() or self._orders.connected:
                self._pulses.clear()
                pulse = self._pulse() | {"timestamp": from_ns(time.time_ns())}
                with contextlib.suppress(NoResponse):
                    status, _ = await self._request("POST", "/v1/heartbeat", pulse, PULSE_TIMEOUT_S)
                    if status >= 400:
                        log.debug("%s: the heartbeat was answered %d", self._agent_id, status)

    async def _request(
        self, method: str, path: str, body: Json | None, timeout_s: float
    ) -> tuple[int, bytes]:
        if self._credentials.is_nats:
            return await nats_receiver.request(
                self._connection(), self._credentials.display_url, method, path, body, timeout_s
            )
        if self._http is None:
            self._http = background.client(self._credentials, self._delivery.timeout_s)
        try:
            response = await self._http.request(method, path, json=body, timeout=timeout_s)
        except httpx2.HTTPError as exc:
            raise NoResponse(Unsent(f"{type(exc).__name__} at {self._credentials.url}")) from exc
        return response.status_code, response.content


def close_all(receivers: Iterable[Receiver]) -> None:
    """Close them all together within `CLOSE_S`."""
    endings = [ending for receiver in receivers if (ending := receiver.close()) is not None]
    if endings:
        wait(endings, CLOSE_S)


def _set(event: asyncio.Event | None) -> None:
    if event is not None:
        event.set()


def _no_inbox(status: int) -> Unsent:
    refused = unsent_for_status(status, None)
    return refused if status in (401, 403) else Unsent(f"the inbox answered {status}")


def _read_items(body: bytes) -> list[Received]:
    try:
        return [_decode_item(raw) for raw in _decode_page(body).items]
    except msgspec.MsgspecError as exc:
        raise NoResponse(Unsent("the server at this address is not a gateway")) from exc


_decode_frame = msgspec.json.Decoder(_Frame).decode
_decode_hello = msgspec.json.Decoder(_Hello).decode
_decode_item = msgspec.json.Decoder(Received).decode
_decode_page = msgspec.json.Decoder(_Page).decode

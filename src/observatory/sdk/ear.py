"""The way in: what keeps an agent's channel open and brings what comes to its `Orders`.

Law: listening never disturbs the agent. One background thread serves all agents of the process (an event
loop of its own); the channel is opened again whenever it breaks, later each time; when a WebSocket cannot be
had, the inbox is asked by long poll. What was taken is acknowledged; what was not is left to come again.
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
from observatory.sdk import background, nats_ear, nats_way
from observatory.sdk.client import NoChannel, Unsent, is_local, tls, unsent
from observatory.sdk.credentials import Door
from observatory.sdk.delivery import SYSTEM_JITTER, Delivery, backoff_s
from observatory.sdk.nats_way import NatsWay
from observatory.sdk.orders import Orders
from observatory.sdk.received import Received

log = logging.getLogger("observatory.sdk")
POLL_S = 25
SOCKET_AGAIN_S = 60.0  # how long to poll before the WebSocket is tried again
PULSE_TIMEOUT_S = 5.0
FRAME_BYTES = 16 << 20
ACKS_AT_ONCE = 500
CLOSE_S = 2.0
STEADY_S = 5.0  # a channel that held so long was a good one
NO_NEWS_S = 1.0
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


class Ear:
    """Listens for one agent at one gateway; `pulse` says what its heartbeat says."""

    def __init__(
        self,
        agent_id: str,
        door: Door,
        delivery: Delivery,
        orders: Orders,
        pulse: Callable[[], Json],
        heartbeat_s: float | None,
        jitter: Callable[[], float] = SYSTEM_JITTER,
    ) -> None:
        self._agent_id = agent_id
        self._path = f"/v1/agents/{quote(agent_id, safe='')}"
        self._door = door
        self._delivery = delivery
        self._orders = orders
        self._pulse = pulse
        self._heartbeat_s = heartbeat_s
        self._jitter = jitter
        self._reset()

    def _reset(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._http: httpx2.AsyncClient | None = None
        self._nats: NatsWay | None = None
        self._acks: asyncio.Event | None = None
        self._pulses: asyncio.Event | None = None
        self._complaint = ""
        self._orders.on_acks = self._wake_acks

    # From the agent's threads.

    @property
    def is_open(self) -> bool:
        return self._loop is not None

    def open(self) -> None:
        """Begin to listen; returns at once."""
        if self._loop is None and not self._orders.closed:
            self._loop = background.loop()
            self._loop.call_soon_threadsafe(self._begin)

    def pulse_now(self) -> None:
        self._soon(lambda: _set(self._pulses))

    def request(self, path: str, body: Json, timeout: float) -> "Future[tuple[int, bytes]]":
        """POST to the gateway: status and body of its answer; `NoChannel` if there is none."""
        self.open()
        if self._loop is None:
            raise NoChannel(Unsent("the agent was closed"))
        return self._submit(self._asked("POST", path, body, timeout))

    def close(self) -> "Future[None] | None":
        """Wake whoever waits and begin to end: acknowledge what was taken, say goodbye."""
        self._orders.close()
        loop = self._loop
        if loop is None or not background.is_running(loop):
            return None
        ending = self._submit(self._end())
        self._loop = None
        return ending

    def start_afresh(self) -> None:
        """In a forked child: the channel is the parent's; ours is opened by the next step."""
        self._orders.start_afresh()
        self._reset()

    def _wake_acks(self) -> None:
        self._soon(lambda: _set(self._acks))

    def _soon(self, act: Callable[[], Any]) -> None:
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended with the process
                self._loop.call_soon_threadsafe(act)

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
            await background.leave(self._door)
        if self._nats is not None:
            self._nats = None
            await nats_way.leave(self._door)

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._keep_pulse(self._heartbeat_s))
            group.create_task(self._keep_listening())

    async def _keep_listening(self) -> None:
        failures = 0
        while True:
            began, why = time.monotonic(), Unsent("the channel was closed")
            try:
                await self._listen()
            except NoChannel as failed:
                why = failed.why
            except Exception as exc:  # the runner: say so, wait, go on
                log.exception("%s: listening failed and goes on", self._agent_id)
                why = Unsent(type(exc).__name__)
            self._orders.set_connected(False)
            failures = 1 if time.monotonic() - began > STEADY_S else failures + 1
            self._complain(why)
            await asyncio.sleep(backoff_s(self._delivery, failures, why, self._jitter))

    def _complain(self, why: Unsent) -> None:
        """Once for each reason; a gateway that is away is the sender's to complain about."""
        if why.reason != self._complaint:
            self._complaint = why.reason
            level = logging.WARNING if why.needs_a_person else logging.INFO
            log.log(level, "%s hears nothing for now: %s", self._agent_id, why.reason)

    async def _listen(self) -> None:
        """By WebSocket; where none can be had, by long poll; by NATS, if that is where the gateway is.
        Returns when the connection ends."""
        if self._door.is_nats:
            place, timeout_s = self._door.place, self._delivery.timeout_s
            await nats_ear.listen(
                self._way(), self._agent_id, place, timeout_s, self._hear, self._acknowledging
            )
            return
        from websockets.asyncio.client import connect

        greeted = False
        try:
            async with connect(
                "ws" + self._door.url.removeprefix("http") + f"{self._path}/channel",
                additional_headers={"Authorization": f"Bearer {self._door.key}"},
                compression=None,
                proxy=None if is_local(self._door.url) else True,
                ssl=tls(self._door.url, self._door.trust) if self._door.url.startswith("https:") else None,
                open_timeout=self._delivery.timeout_s,
                close_timeout=1.0,
                max_size=FRAME_BYTES,
            ) as socket:

                async def send(ids: list[str]) -> None:
                    await socket.send(msgspec.json.encode({"op": "ack", "ids": ids}).decode())

                async with self._acknowledging(send):
                    async for frame in socket:
                        greeted = self._hear(frame) or greeted
        except (WebSocketException, TimeoutError, ssl.SSLError, ImportError) as exc:
            log.debug("%s: no WebSocket (%s)", self._agent_id, type(exc).__name__)
        except OSError as exc:
            raise NoChannel(Unsent(f"{type(exc).__name__} at {self._door.url}")) from exc
        if not greeted:
            await self._poll()

    def _way(self) -> NatsWay:
        if self._nats is None:
            self._nats = nats_way.way(self._door)
        return self._nats

    def _hear(self, frame: str | bytes) -> bool:
        """One frame of the channel; True for the gateway's greeting."""
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
            log.warning("%s: what came by the channel could not be read", self._agent_id)
        return False

    async def _poll(self) -> None:
        """The inbox by long poll, for a while. The same items, the same acknowledgements."""
        until = time.monotonic() + SOCKET_AGAIN_S

        async def send(ids: list[str]) -> None:
            path = f"{self._path}/inbox/ack"
            status, _ = await self._asked("POST", path, {"ids": ids}, self._delivery.timeout_s)
            if status >= 300:
                raise NoChannel(_no_inbox(status))

        async with self._acknowledging(send):
            while time.monotonic() < until:
                wait_s = POLL_S if self._orders.connected else 0  # first look whether there is an inbox
                path = f"{self._path}/inbox?wait={wait_s}&limit={POLL_ITEMS}"
                status, answer = await self._asked("GET", path, None, wait_s + self._delivery.timeout_s)
                if status != 200:
                    raise NoChannel(_no_inbox(status))
                if not self._orders.connected:
                    await self._learn_entity_id()
                    self._orders.set_connected(True)
                    self._complaint = ""
                news = [self._orders.take(item) for item in _read_items(answer)]
                if news and not any(news):  # they wait for the agent to fetch them
                    await asyncio.sleep(NO_NEWS_S)

    async def _learn_entity_id(self) -> None:
        """Where no greeting says it, the registry does."""
        if self._orders.entity_id is None:
            told = {"agent_id": self._agent_id}
            status, answer = await self._asked("POST", "/v1/agents", told, self._delivery.timeout_s)
            if status < 300:
                with contextlib.suppress(msgspec.MsgspecError):
                    self._orders.set_entity_id(_decode_hello(answer).entity_id)

    @contextlib.asynccontextmanager
    async def _acknowledging(self, send: Callable[[list[str]], Awaitable[None]]) -> AsyncIterator[None]:
        """Send acknowledgements as they come; the last ones when the block ends."""
        task = asyncio.create_task(self._keep_acknowledging(send))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])  # to await it would swallow a cancellation of our own
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
                NoChannel,
                WebSocketException,
                OSError,
            ) as exc:  # kept, and sent a little later, perhaps by the next connection
                log.debug("%s: not acknowledged yet (%s)", self._agent_id, type(exc).__name__)
                await asyncio.sleep(NO_NEWS_S)
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
                with contextlib.suppress(NoChannel):
                    status, _ = await self._asked("POST", "/v1/heartbeat", pulse, PULSE_TIMEOUT_S)
                    if status >= 400:
                        log.debug("%s: its heartbeat was answered %d", self._agent_id, status)

    async def _asked(self, method: str, path: str, body: Json | None, timeout_s: float) -> tuple[int, bytes]:
        if self._door.is_nats:
            return await nats_ear.asked(self._way(), self._door.place, method, path, body, timeout_s)
        if self._http is None:
            self._http = background.client(self._door, self._delivery.timeout_s)
        try:
            response = await self._http.request(method, path, json=body, timeout=timeout_s)
        except httpx2.HTTPError as exc:
            raise NoChannel(Unsent(f"{type(exc).__name__} at {self._door.url}")) from exc
        return response.status_code, response.content


def close_all(ears: Iterable[Ear]) -> None:
    """End them all, together, within `CLOSE_S`."""
    endings = [ending for ear in ears if (ending := ear.close()) is not None]
    if endings:
        wait(endings, CLOSE_S)


def _set(event: asyncio.Event | None) -> None:
    if event is not None:
        event.set()


def _no_inbox(status: int) -> Unsent:
    refused = unsent(status, None)
    return refused if status in (401, 403) else Unsent(f"the inbox was answered {status}")


def _read_items(body: bytes) -> list[Received]:
    try:
        return [_decode_item(raw) for raw in _decode_page(body).items]
    except msgspec.MsgspecError as exc:
        raise NoChannel(Unsent("what answers there is not a gateway")) from exc


_decode_frame = msgspec.json.Decoder(_Frame).decode
_decode_hello = msgspec.json.Decoder(_Hello).decode
_decode_item = msgspec.json.Decoder(Received).decode
_decode_page = msgspec.json.Decoder(_Page).decode

"""Uvicorn around the face: one process, one loop, clean stop on SIGINT, SIGTERM and SIGHUP.

Told to stop, the gateway is not ready any more, takes no new connection, hears no further frame, and answers
what it has heard: whatever was acknowledged is durable, whatever was not the sender has to send again. All
of that has `shutdown_s`; then it is cut off. A second signal cuts it off at once.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from observatory.errors import StartupError
from observatory.features.otlp import grpc_server as otlp_grpc
from observatory.http.app_state import House
from observatory.http.asgi_app import Face
from observatory.http.http_protocol import Http, shown_app
from observatory.http.limits import RESERVED, Bounds, raise_descriptors
from observatory.http.sockets import GOODBYE, KNOWN
from observatory.http.tls_listener import TlsDoor
from observatory.http.websocket_compression import SharedDeflateFactory
from observatory.runtime.tls import Tls

# Longer than clients and balancers keep a connection they do not use (5 and 60 s): the one who closes first
# must be the one who asks, or a request goes into a connection that is just being closed.
KEPT_S = 75
TICKS = 10  # of uvicorn's, to a second
CLOSE_S = 2.0  # who does not say goodbye as well is not waited for longer


def bind(host: str, port: int) -> socket.socket:
    """Taken before anything is built, so that a port in use is told at once and plainly."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Accepted sockets inherit it. Without, head and body of an answer wait 40 ms for the client's ACK.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise StartupError(
            f"port {port} on {host} is taken or not allowed ({error.strerror}); "
            "choose another with --port or --host"
        ) from error
    return listener


class _Farewell(WebSocketsSansIOProtocol):
    def __init__(self, *given: Any, bounds: Bounds, tls: Tls | None = None, **named: Any) -> None:
        super().__init__(*given, **named)
        self.conn.available_extensions = [SharedDeflateFactory()]
        self._tls, self._bounds = tls, bounds
        self._is_known = False
        self._held = 0  # bytes that came before anybody was known: they count as a body being read

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.app = shown_app(self.app, transport, self._tls)

    def handle_connect(self, event: Any) -> None:
        super().handle_connect(event)
        self.scope[KNOWN] = self._known  # type: ignore[literal-required]

    def data_received(self, data: bytes) -> None:
        if not self._is_known:
            self._held += len(data)
            self._bounds.held += len(data)
            if not self._bounds.has_room(self._held):
                self.transport.abort()
                return
        super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._known()
        super().connection_lost(exc)

    def _known(self) -> None:
        self._bounds.held -= self._held
        self._held, self._is_known = 0, True

    def shutdown(self) -> None:
        """The door hears that nothing more is heard, answers what it has, and says goodbye itself (1001)."""
        if not self.handshake_complete or self.close_sent:
            super().shutdown()
            return
        self.stop_keepalive()
        self.close_timeout = CLOSE_S
        self.queue.put_nowait(GOODBYE)  # type: ignore[arg-type]


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, ready: Callable[[], Any], house: House) -> None:
        super().__init__(config)
        self._ready, self._house = ready, house

    async def on_tick(self, counter: int) -> bool:
        if counter % TICKS == 0:
            self._house.bounds.now = now = time.monotonic()
            for connection in list(self.server_state.connections):
                if isinstance(connection, Http):
                    connection.look(now)
        return await super().on_tick(counter)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Of either kind: the first asks, the second insists."""
        self._house.stopping = True
        if self.should_exit:
            self.force_exit = True
        self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop and return: uvicorn would raise the signal again and so skip our own stopping."""
        numbers = [signal.SIGINT, signal.SIGTERM]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # else it was started with nohup
            numbers.append(signal.SIGHUP)
        before = {number: signal.signal(number, self.handle_exit) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        tls = self._house.certificates.tls
        if tls is None:
            await super().startup(sockets)
        else:
            assert sockets is not None
            self._open_tls(sockets[0], tls)
        self._ready()

    def _open_tls(self, listener: socket.socket, tls: Tls) -> None:
        """In uvicorn's place: it would keep one context for ever, and give a handshake a minute."""
        make: Callable[[], asyncio.Protocol] = partial(
            self.config.http_protocol_class,  # type: ignore[call-arg]
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )
        door = TlsDoor(listener, make, tls)
        door.open(self.config.backlog)
        self.servers = [door]  # type: ignore[list-item]
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._house.stopping = True
        self._house.dispatcher.close()  # polls and streams of agents would be waited for
        drained = asyncio.gather(*(one.drain() for one in self._house.draining), return_exceptions=True)
        until = asyncio.get_running_loop().time() + self._house.settings.shutdown_s
        await super().shutdown(sockets)
        while not drained.done() and not self.force_exit and asyncio.get_running_loop().time() < until:
            await asyncio.wait([drained], timeout=0.1)
        drained.cancel()
        with suppress(asyncio.CancelledError):
            await drained


async def serve(house: House, listener: socket.socket, ready: Callable[[], Any]) -> None:
    settings = house.settings
    # Messages make no cycles: what start-up built is never looked at again, the rest seldom.
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    house.bounds.most_connections = min(settings.connections, max(RESERVED, raise_descriptors() - RESERVED))
    face = Face(house)
    if house.nats is not None:
        house.nats.open(face)
    tls = house.certificates.tls
    config = uvicorn.Config(
        face,
        loop="uvloop",
        http=partial(Http, bounds=house.bounds, tls=tls),  # type: ignore[arg-type]
        ws=partial(_Farewell, bounds=house.bounds, tls=tls),  # type: ignore[arg-type]
        lifespan="off",
        log_config=None,  # `runtime/logging.py` has the say
        access_log=False,
        server_header=False,
        ws_max_size=settings.message_bytes + 65_536,
        timeout_keep_alive=KEPT_S,
        timeout_graceful_shutdown=settings.shutdown_s,  # type: ignore[arg-type]  # waited for as seconds
        # Who is not named may put anything there, also on this machine: uvicorn would believe 127.0.0.1.
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=list(settings.trusted_proxies),
    )
    async with otlp_grpc.served(
        face.otlp, settings.otlp_grpc, settings.request_bytes, tls, settings.reading_bytes
    ):
        await _Server(config, ready, house).serve(sockets=[listener])

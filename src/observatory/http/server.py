"""Uvicorn around the ASGI application: one process, one loop, clean stop on SIGINT, SIGTERM and SIGHUP.

On shutdown the gateway is not ready any more, accepts no new connection, reads no further frame, and answers
what it has received: what was acknowledged is durable, everything else the sender has to send again. All
of that has `shutdown_s`; then it is cut off. A second signal cuts it off at once.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from functools import partial
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from observatory.errors import StartupError
from observatory.http.app_state import AppState
from observatory.http.asgi_app import AsgiApp
from observatory.http.http_protocol import Http, app_with_certificate
from observatory.http.limits import RESERVED, ConnectionLimits, raise_descriptors
from observatory.http.sockets import GOODBYE, KNOWN
from observatory.http.tls_listener import TlsListener
from observatory.http.websocket_compression import SharedDeflateFactory
from observatory.runtime.tls import Tls

# Longer than clients and load balancers keep an idle connection (5 and 60 s): the client must close first,
# or a request goes into a connection that is just being closed.
KEEP_ALIVE_S = 75
TICKS = 10  # of uvicorn per second
CLOSE_S = 2.0  # how long to wait for the client's close frame


def bind(host: str, port: int) -> socket.socket:
    """Bind the port before anything is built, so that a port in use is reported at once."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Accepted sockets inherit it. Without it head and body of a response wait 40 ms for the client's ACK.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise StartupError(
            f"port {port} on {host} is in use or not allowed ({error.strerror}); "
            "choose another with --port or --host"
        ) from error
    return listener


class _WebSocketProtocol(WebSocketsSansIOProtocol):
    def __init__(self, *args: Any, bounds: ConnectionLimits, tls: Tls | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conn.available_extensions = [SharedDeflateFactory()]
        self._tls, self._bounds = tls, bounds
        self._is_known = False
        self._held = 0  # bytes received before authentication: they count as a body being read

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.app = app_with_certificate(self.app, transport, self._tls)

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
        """End the endpoint's input; it answers what it has and closes the socket itself (1001)."""
        if not self.handshake_complete or self.close_sent:
            super().shutdown()
            return
        self.stop_keepalive()
        self.close_timeout = CLOSE_S
        self.queue.put_nowait(GOODBYE)  # type: ignore[arg-type]


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, ready: Callable[[], Any], app: AppState) -> None:
        super().__init__(config)
        self._ready, self._app = ready, app

    async def on_tick(self, counter: int) -> bool:
        if counter % TICKS == 0:
            self._app.bounds.now = now = time.monotonic()
            for connection in list(self.server_state.connections):
                if isinstance(connection, Http):
                    connection.look(now)
        return await super().on_tick(counter)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal of any kind stops cleanly, the second at once."""
        self._app.stopping = True
        if self.should_exit:
            self.force_exit = True
        self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop and return: uvicorn would raise the signal again and so skip our own shutdown."""
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
        tls = self._app.tls
        if tls is None:
            await super().startup(sockets)
        else:
            assert sockets is not None
            self._open_tls(sockets[0], tls)
        self._ready()

    def _open_tls(self, listener: socket.socket, tls: Tls) -> None:
        """Replaces uvicorn's listener, which keeps one context for ever and gives a handshake a minute."""
        make: Callable[[], asyncio.Protocol] = partial(
            self.config.http_protocol_class,  # type: ignore[call-arg]
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )
        tls_listener = TlsListener(listener, make, tls)
        tls_listener.open(self.config.backlog)
        self.servers = [tls_listener]  # type: ignore[list-item]
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._app.stopping = True
        for stop in self._app.on_stop:
            stop()
        draining = asyncio.gather(*(one.drain() for one in self._app.draining), return_exceptions=True)
        until = asyncio.get_running_loop().time() + self._app.settings.shutdown_s
        await super().shutdown(sockets)
        while not draining.done() and not self.force_exit and asyncio.get_running_loop().time() < until:
            await asyncio.wait([draining], timeout=0.1)
        draining.cancel()
        with suppress(asyncio.CancelledError):
            await draining


async def serve(app: AppState, listener: socket.socket, ready: Callable[[], Any]) -> None:
    settings = app.settings
    # Messages create no reference cycles: objects of start-up are never scanned again, the rest seldom.
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    app.bounds.max_connections = min(settings.connections, max(RESERVED, raise_descriptors() - RESERVED))
    asgi = AsgiApp(app)
    for opened in app.on_serve:
        opened(asgi)
    tls = app.tls
    config = uvicorn.Config(
        asgi,
        loop="uvloop",
        http=partial(Http, bounds=app.bounds, tls=tls),  # type: ignore[arg-type]
        ws=partial(_WebSocketProtocol, bounds=app.bounds, tls=tls),  # type: ignore[arg-type]
        lifespan="off",
        log_config=None,  # set up by `runtime/logging.py`
        access_log=False,
        server_header=False,
        ws_max_size=settings.message_bytes + 65_536,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=settings.shutdown_s,  # type: ignore[arg-type]  # used as seconds
        # Others may put anything into the header, also on this machine: uvicorn would trust 127.0.0.1.
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=list(settings.trusted_proxies),
    )
    async with AsyncExitStack() as stack:
        for listener_of in asgi.listeners:
            await stack.enter_async_context(listener_of)
        await _Server(config, ready, app).serve(sockets=[listener])

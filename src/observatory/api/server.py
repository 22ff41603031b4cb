"""Uvicorn around the face: one process, one loop, clean stop on SIGINT and SIGTERM."""

from __future__ import annotations

import gc
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from observatory.api.face import Face
from observatory.api.house import House
from observatory.errors import StartupError


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


class _Server(uvicorn.Server):
    def __init__(
        self, config: uvicorn.Config, ready: Callable[[], Any], letting_go: Callable[[], Any]
    ) -> None:
        super().__init__(config)
        self._ready, self._letting_go = ready, letting_go

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop and return: uvicorn would raise the signal again and so skip our own stopping."""
        before = {
            number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._letting_go()  # polls and streams of agents would be waited for
        await super().shutdown(sockets)


async def serve(house: House, listener: socket.socket, ready: Callable[[], Any]) -> None:
    settings = house.settings
    # Messages make no cycles: what start-up built is never looked at again, the rest seldom.
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    config = uvicorn.Config(
        Face(house),
        loop="uvloop",
        http="httptools",
        ws="websockets-sansio",
        lifespan="off",
        # What uvicorn says of every start and socket is noise; its warnings are not.
        log_level="warning" if settings.log_level == "info" else settings.log_level,
        access_log=False,
        server_header=False,
        ws_max_size=settings.message_bytes + 65_536,
        timeout_graceful_shutdown=10,
        h11_max_incomplete_event_size=65_536,
    )
    await _Server(config, ready, house.dispatcher.close).serve(sockets=[listener])

"""The listening socket of a gateway with TLS: every connection is greeted by itself, in bounded time.

Laws: a handshake has `HELLO_S`, and no more than `MOST` are under way at once; beyond, a connection is closed
unheard. Who speaks plain HTTP is told so in a sentence and nothing of it is read further. Each handshake uses
the context that is current then, so replaced files count at once and no old session is resumed under them.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from observatory.daemons.tls import Tls

HELLO_S: Final = 10.0
MOST: Final = 1_024
PAUSE_S: Final = 0.1  # when the process has no room for another socket
HANDSHAKE: Final = b"\x16"  # a TLS record that opens one
PLAIN: Final = b"this port speaks TLS: use https:// (or wss://) instead of http://\n"
ANSWER: Final = (
    b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\nconnection: close\r\n"
    b"content-length: %d\r\n\r\n%s" % (len(PLAIN), PLAIN)
)
log = logging.getLogger("observatory.tls")


class TlsDoor:
    """Stands where uvicorn keeps a server: it can be closed and waited for."""

    def __init__(self, listener: socket.socket, make: Callable[[], asyncio.Protocol], tls: Tls) -> None:
        self._listener, self._make, self._tls = listener, make, tls
        self._greeting: set[asyncio.Task[None]] = set()
        self._accepting: asyncio.Task[None] | None = None
        self.hello_s = HELLO_S

    def open(self, backlog: int) -> None:
        self._listener.setblocking(False)
        self._listener.listen(backlog)
        self._accepting = asyncio.create_task(self._accept(), name="tls door")

    def close(self) -> None:
        for task in (self._accepting, *self._greeting):
            if task is not None:
                task.cancel()

    async def wait_closed(self) -> None:
        tasks = [task for task in (self._accepting, *self._greeting) if task is not None]
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(self._listener)
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    log.error("no connection can be taken now: %s", error.strerror)
                    await asyncio.sleep(PAUSE_S)
                elif self._listener.fileno() < 0:
                    return
                continue
            if len(self._greeting) >= MOST:
                self._tls.refused += 1
                connection.close()
                continue
            task = asyncio.create_task(self._greet(connection))
            self._greeting.add(task)
            task.add_done_callback(self._greeting.discard)

    async def _greet(self, connection: socket.socket) -> None:
        """One connection, until it is the protocol's; whatever a client does, nothing is raised from here."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self.hello_s):
                first = await _first(loop, connection)
                if first == HANDSHAKE:
                    await loop.connect_accepted_socket(
                        self._make,
                        connection,
                        ssl=self._tls.loaded.context,
                        ssl_handshake_timeout=self.hello_s,
                    )
                    return
                if first:
                    await _answer_plain(loop, connection)
        except (OSError, ssl.SSLError, TimeoutError) as error:
            log.debug("a handshake came to nothing: %s", type(error).__name__)
        self._tls.refused += 1
        connection.close()


async def _first(loop: asyncio.AbstractEventLoop, connection: socket.socket) -> bytes:
    """The first byte, left where it is; empty when the other side went away."""
    connection.setblocking(False)
    heard: asyncio.Future[None] = loop.create_future()

    def hear() -> None:
        if not heard.done():
            heard.set_result(None)

    loop.add_reader(connection, hear)
    try:
        await heard
    finally:
        loop.remove_reader(connection)
    return connection.recv(1, socket.MSG_PEEK)


async def _answer_plain(loop: asyncio.AbstractEventLoop, connection: socket.socket) -> None:
    with suppress(BlockingIOError):
        connection.recv(65_536)  # unread bytes would turn the goodbye into a reset
    await loop.sock_sendall(connection, ANSWER)
    with suppress(OSError):
        connection.shutdown(socket.SHUT_WR)

"""The listening socket of a gateway with TLS: every connection is greeted by itself, in bounded time.

Laws: a handshake has `HELLO_S`, and no more than `MOST` are under way at once; beyond, the one that has taken
longest is given up, so that who holds many open and says nothing shuts nobody out. Who speaks plain HTTP is
told so in a sentence and nothing of it is read further. Each handshake uses the context that is current then,
so replaced files count at once and no old session is resumed under them. A goodbye has `GOODBYE_S`: a client
that keeps a connection and does not look at it answers none, and would be waited for at every stop.
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

from observatory.runtime.tls import Tls

HELLO_S: Final = 10.0
GOODBYE_S: Final = 1.0
MOST: Final = 1_024
AT_ONCE: Final = 64  # taken before everything else has its turn again
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
        self._greeting: dict[asyncio.Task[None], None] = {}  # the oldest first
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
        loop, taken = asyncio.get_running_loop(), 0
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
                oldest = next(iter(self._greeting))
                del self._greeting[oldest]
                oldest.cancel()
            task = asyncio.create_task(self._greet(connection))
            self._greeting[task] = None
            task.add_done_callback(lambda done: self._greeting.pop(done, None))
            taken += 1
            if taken % AT_ONCE == 0:  # an accept that finds somebody waiting gives nobody else a turn
                await asyncio.sleep(0)

    async def _greet(self, connection: socket.socket) -> None:
        """One connection, until it is the protocol's; whatever a client does, nothing is raised from here."""
        is_ours = True
        try:
            async with asyncio.timeout(self.hello_s):
                is_ours = not await self._welcome(connection)
        except (OSError, ssl.SSLError, TimeoutError) as error:
            log.debug("a handshake came to nothing: %s", type(error).__name__)
        finally:
            if is_ours:
                self._tls.refused += 1
                connection.close()

    async def _welcome(self, connection: socket.socket) -> bool:
        """Whether it was greeted and is the protocol's now."""
        loop = asyncio.get_running_loop()
        first = await _first(loop, connection)
        if first == HANDSHAKE:
            await loop.connect_accepted_socket(
                self._make,
                connection,
                ssl=self._tls.loaded.context,
                ssl_handshake_timeout=self.hello_s,
                ssl_shutdown_timeout=GOODBYE_S,
            )
            return True
        if first:
            await _answer_plain(loop, connection)
        return False


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

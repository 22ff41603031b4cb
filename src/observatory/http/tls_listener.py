"""The listening socket of a gateway with TLS: each handshake runs by itself, in bounded time.

Laws: a handshake has `HANDSHAKE_S`, and no more than `MAX_HANDSHAKES` run at once; beyond, the oldest is
cancelled, so that a client that opens many and sends nothing locks no other out. A client that speaks plain
HTTP gets one sentence and is read no further. Each handshake uses the context that is current then, so
replaced files count at once and no old session is resumed under them. A TLS shutdown has `GOODBYE_S`: one
that ignores an idle connection does not answer one, and would be waited for at every stop.
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

HANDSHAKE_S: Final = 10.0
GOODBYE_S: Final = 1.0
MAX_HANDSHAKES: Final = 1_024
AT_ONCE: Final = 64  # accepted before other tasks run again
PAUSE_S: Final = 0.1  # when the process has no descriptor for another socket
HANDSHAKE_RECORD: Final = b"\x16"  # the type byte of a TLS handshake record
PLAIN: Final = b"this port speaks TLS: use https:// (or wss://) instead of http://\n"
ANSWER: Final = (
    b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\nconnection: close\r\n"
    b"content-length: %d\r\n\r\n%s" % (len(PLAIN), PLAIN)
)
log = logging.getLogger("observatory.tls")


class TlsListener:
    """In the place of uvicorn's server object: it can be closed and waited for."""

    def __init__(self, listener: socket.socket, make: Callable[[], asyncio.Protocol], tls: Tls) -> None:
        self._listener, self._make, self._tls = listener, make, tls
        self._handshakes: dict[asyncio.Task[None], None] = {}  # the oldest first
        self._accepting: asyncio.Task[None] | None = None
        self.handshake_s = HANDSHAKE_S

    def open(self, backlog: int) -> None:
        self._listener.setblocking(False)
        self._listener.listen(backlog)
        self._accepting = asyncio.create_task(self._accept(), name="tls listener")

    def close(self) -> None:
        for task in (self._accepting, *self._handshakes):
            if task is not None:
                task.cancel()

    async def wait_closed(self) -> None:
        tasks = [task for task in (self._accepting, *self._handshakes) if task is not None]
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self) -> None:
        loop, taken = asyncio.get_running_loop(), 0
        while True:
            try:
                connection, _ = await loop.sock_accept(self._listener)
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    log.error("no connection can be accepted now: %s", error.strerror)
                    await asyncio.sleep(PAUSE_S)
                elif self._listener.fileno() < 0:
                    return
                continue
            if len(self._handshakes) >= MAX_HANDSHAKES:
                oldest = next(iter(self._handshakes))
                del self._handshakes[oldest]
                oldest.cancel()
            task = asyncio.create_task(self._handshake(connection))
            self._handshakes[task] = None
            task.add_done_callback(lambda done: self._handshakes.pop(done, None))
            taken += 1
            if (
                taken % AT_ONCE == 0
            ):  # an accept that finds a connection waiting does not yield to other tasks
                await asyncio.sleep(0)

    async def _handshake(self, connection: socket.socket) -> None:
        """Handle one connection until the protocol takes it over; no client can make this raise."""
        is_ours = True
        try:
            async with asyncio.timeout(self.handshake_s):
                is_ours = not await self._start_protocol(connection)
        except (OSError, ssl.SSLError, TimeoutError) as error:
            log.debug("a handshake failed: %s", type(error).__name__)
        finally:
            if is_ours:
                self._tls.refused += 1
                connection.close()

    async def _start_protocol(self, connection: socket.socket) -> bool:
        """Whether the handshake succeeded and the protocol has taken the connection over."""
        loop = asyncio.get_running_loop()
        first = await _first(loop, connection)
        if first == HANDSHAKE_RECORD:
            await loop.connect_accepted_socket(
                self._make,
                connection,
                ssl=self._tls.loaded.context,
                ssl_handshake_timeout=self.handshake_s,
                ssl_shutdown_timeout=GOODBYE_S,
            )
            return True
        if first:
            await _answer_plain(loop, connection)
        return False


async def _first(loop: asyncio.AbstractEventLoop, connection: socket.socket) -> bytes:
    """The first byte, left in the buffer; empty when the client disconnected."""
    connection.setblocking(False)
    readable: asyncio.Future[None] = loop.create_future()

    def on_readable() -> None:
        if not readable.done():
            readable.set_result(None)

    loop.add_reader(connection, on_readable)
    try:
        await readable
    finally:
        loop.remove_reader(connection)
    return connection.recv(1, socket.MSG_PEEK)


async def _answer_plain(loop: asyncio.AbstractEventLoop, connection: socket.socket) -> None:
    with suppress(BlockingIOError):
        connection.recv(65_536)  # unread bytes would turn the close into a reset
    await loop.sock_sendall(connection, ANSWER)
    with suppress(OSError):
        connection.shutdown(socket.SHUT_WR)

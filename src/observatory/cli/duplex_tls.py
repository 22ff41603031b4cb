"""A TLS socket that one thread reads while another writes.

Law: OpenSSL allows one call per connection at a time, and Python before 3.13 does not enforce it: of a read
and a write at the same moment one may be lost, without an error. Calls take turns here, and none blocks
within its turn.
"""

from __future__ import annotations

import select
import ssl
import time
from collections.abc import Callable
from threading import Lock
from typing import Any, TypeVar

T = TypeVar("T")


class DuplexTlsSocket(ssl.SSLSocket):
    """The `sslsocket_class` of a context for clients with a thread that reads, as `websockets.sync` has."""

    _turn: Lock | None = None  # made when the handshake is complete, which one thread does alone
    _limit_s: float | None = None

    def do_handshake(self, block: bool = False) -> None:
        super().do_handshake(block)
        self._limit_s = self.gettimeout()
        super().settimeout(0)
        self._turn = Lock()

    def settimeout(self, value: float | None, /) -> None:
        if self._turn is None:
            super().settimeout(value)
        else:
            self._limit_s = value

    def recv(self, buflen: int = 1024, flags: int = 0) -> bytes:
        receive = super().recv
        return self._in_turn(lambda: receive(buflen, flags), select.POLLIN)

    def send(self, data: Any, flags: int = 0) -> int:
        send = super().send
        return self._in_turn(lambda: send(data, flags), select.POLLOUT)

    def _in_turn(self, call: Callable[[], T], event: int) -> T:
        assert self._turn is not None
        until = None if self._limit_s is None else time.monotonic() + self._limit_s
        while True:
            try:
                with self._turn:
                    return call()
            except ssl.SSLWantReadError:
                self._wait(select.POLLIN, until)
            except ssl.SSLWantWriteError:
                self._wait(select.POLLOUT, until)
            except BlockingIOError:  # TLS is over: what is left is the plain socket
                self._wait(event, until)

    def _wait(self, event: int, until: float | None) -> None:
        if (number := self.fileno()) < 0:
            raise ConnectionError("the connection was closed")
        poll = select.poll()
        poll.register(number, event)
        if not poll.poll(None if until is None else max(0.0, until - time.monotonic()) * 1_000):
            raise TimeoutError("timed out")

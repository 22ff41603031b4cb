"""Uvicorn's HTTP/1.1 protocol with limits that apply before a caller is authenticated (rules S1000–S1004).

Laws: a head has 64 KiB, 256 fields and `header_s`; a body has `body_s` and shares `reading_bytes` with all
others; beyond the connection limit idle ones are closed, and with none of those the new one is refused. An
answer that its client does not read is written piece by piece: a client that leaves a piece unread for
`header_s` makes room like an idle one, and after `body_s` it is disconnected (S1400).
Every refusal is JSON with a reason, then the connection is closed. Uvicorn's own limits apply to h11 only.
"""

from __future__ import annotations

import asyncio
import time
from heapq import nsmallest
from typing import Any, Final, NamedTuple

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from observatory.http.client_certificate import presented_certificate, with_certificate
from observatory.http.limits import ConnectionLimits
from observatory.http.security_headers import ALWAYS
from observatory.protocol.responses import Refused
from observatory.runtime.tls import Tls

HEAD_BYTES: Final = 65_536
HEAD_FIELDS: Final = 256
LINGER_S: Final = 1.0  # read and drop what still arrives for this long, or a reset would lose the response
EVICTED: Final = 64  # idle connections closed at once at the limit: one scan of all serves many
# Written with the status line, so that no response can miss them, not even uvicorn's own, at no cost: as
# headers they would be matched and copied one by one, 3 µs for each message.
STATUS_LINE.update(
    {code: line + ALWAYS for code, line in STATUS_LINE.items() if code >= 200 and ALWAYS not in line}
)


class _HttpRefusal(NamedTuple):
    code: int
    reason: str
    detail: str


BAD: Final = _HttpRefusal(400, "bad_request", "this is not HTTP/1.1 that the gateway can parse")
TOO_LONG: Final = _HttpRefusal(
    431, "headers_too_large", f"URL and headers may have {HEAD_BYTES} bytes and {HEAD_FIELDS} fields at most"
)
NO_HEAD: Final = _HttpRefusal(408, "too_slow", "the headers did not arrive in time")
NO_BODY: Final = _HttpRefusal(408, "too_slow", "the body did not arrive in time; send it again")
NO_ROOM: Final = _HttpRefusal(
    503, "busy", "too many bodies are being read now; nothing was accepted, send it again"
)
FULL: Final = _HttpRefusal(503, "too_many_connections", "no connection is free now; connect again later")


class _Stop(Exception):
    """Stops the parser; the refusal to send was set before."""


class Http(HttpToolsProtocol):
    def __init__(self, *given: Any, bounds: ConnectionLimits, tls: Tls | None = None, **named: Any) -> None:
        super().__init__(*given, **named)
        self._tls, self._bounds = tls, bounds
        self._until: float | None = None  # deadline of what is being read: a head, or a body
        self._is_body = False
        self._loose = self._chunk = 0  # bytes since the last complete part; bytes of this read
        self._moved = False
        self._held = 0  # bytes of the body that is being read
        self._refusal: _HttpRefusal | None = None
        self.idle_since = bounds.now  # since when it is idle, if it is
        self._unread: float | None = None  # since when a piece of an answer is not read

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.app = app_with_certificate(self.app, transport, self._tls)
        self._until = self._bounds.now + self._bounds.header_s
        if len(self.connections) > self._bounds.max_connections and not self._make_room():
            self.refuse(FULL)

    def _make_room(self) -> bool:
        closable = [
            connection
            for connection in self.connections
            if isinstance(connection, Http) and connection.is_closable and connection is not self
        ]
        for connection in nsmallest(EVICTED, closable, key=_idle_since):
            (connection.transport.close if connection._unread is None else connection.transport.abort)()
            self.connections.discard(connection)
        return bool(closable)

    @property
    def is_idle(self) -> bool:
        """Whether closing it loses no request."""
        return not self._is_body and (self.cycle is None or self.cycle.response_complete)

    @property
    def is_closable(self) -> bool:
        """Whether closing it loses nothing its client still reads: idle, or unread for too long."""
        if self._unread is not None:
            return self._bounds.now - self._unread > self._bounds.header_s
        return self.is_idle and not self.transport.get_write_buffer_size()

    def pause_writing(self) -> None:
        self._unread = time.monotonic()  # exact: `now` may be old when the loop was busy with this answer
        super().pause_writing()

    def resume_writing(self) -> None:
        self._unread = None
        super().resume_writing()

    def _is_left_unread(self, now: float) -> bool:
        """For too long: a piece of an answer, or its last bytes, which may be too few to pause writing."""
        if not self.transport.get_write_buffer_size():
            self._unread = None
        elif self._unread is None:
            self._unread = now
        return self._unread is not None and now - self._unread > self._bounds.body_s

    def connection_lost(self, exc: Exception | None) -> None:
        self._release()
        self._until = self._unread = None
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refusal is not None:
            return
        if self._until is None and self.is_idle:
            self._until = self._bounds.now + self._bounds.header_s
        self._chunk, self._moved = len(data), False
        super().data_received(data)
        if self._moved:
            self._loose = 0
        else:
            self._loose += self._chunk
            if self._loose > HEAD_BYTES or len(self.headers or ()) > HEAD_FIELDS:
                self.refuse(TOO_LONG)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._until = self._bounds.now + self._bounds.header_s
        self._is_body = False

    def on_headers_complete(self) -> None:
        self._moved = True
        headers = self.headers
        if len(headers) > HEAD_FIELDS or (
            self._loose + self._chunk > HEAD_BYTES
            and len(self.url) + sum(len(name) + len(text) + 4 for name, text in headers) > HEAD_BYTES
        ):
            self._stop(TOO_LONG)
        self._until = self._bounds.now + self._bounds.body_s
        self._is_body = True
        super().on_headers_complete()
        # Uvicorn appends the trailers of a chunked body to the same list: a client's trailer behind a proxy
        # would count as one of the proxy's headers (RFC 9110, 6.5.1).
        self.scope["headers"] = [*headers]

    def on_body(self, body: bytes) -> None:
        self._moved = True
        if self.cycle is not None and not self.cycle.response_complete:
            bounds, size = self._bounds, len(body)
            self._held += size
            bounds.held += size
            if not bounds.has_room(self._held):
                self._stop(NO_ROOM)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._moved = True
        self._until, self._is_body = None, False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self._release()
        self.idle_since = self._bounds.now
        super().on_response_complete()

    def look(self, now: float) -> None:
        """Called once a second: close or refuse a connection that is past its deadline."""
        if self._is_left_unread(now):
            self.transport.abort()
            return
        if self._until is None or now <= self._until:
            return
        if self.pipeline:  # it waits for us: an earlier request is not answered yet
            self._until = now + self._bounds.body_s
        elif (
            not self._chunk
        ):  # opened in advance by a browser or proxy: it would take a refusal as a response
            self.transport.close()
        else:
            self.refuse(NO_BODY if self._is_body else NO_HEAD)

    def send_400_response(self, msg: str) -> None:
        self.refuse(self._refusal or BAD)

    def _stop(self, refusal: _HttpRefusal) -> None:
        self._refusal = refusal
        raise _Stop

    def refuse(self, refusal: _HttpRefusal) -> None:
        """Send the refusal unless a response is in progress, and close."""
        self._refusal, self._until = refusal, None
        self._release()
        transport, cycle = self.transport, self.cycle
        if transport.is_closing():
            return
        is_answering = cycle is not None and not cycle.response_complete
        if is_answering and not self._is_body:
            cycle.keep_alive = False  # a complete request is answered first; then the connection is closed
            return
        if is_answering and cycle.response_started:
            transport.close()  # a refusal would come in the middle of the response
            return
        if is_answering:
            cycle.disconnected = True
            cycle.message_event.set()
        transport.write(_answer(refusal))
        if transport.can_write_eof():
            transport.write_eof()
        self.flow.resume_reading()
        self.loop.call_later(LINGER_S, transport.abort)

    def _release(self) -> None:
        if self._held:
            self._bounds.held -= self._held
            self._held = 0


def _idle_since(connection: Http) -> float:
    return connection.idle_since


def _answer(refusal: _HttpRefusal) -> bytes:
    body = msgspec.json.encode(Refused(reason=refusal.reason, detail=refusal.detail))
    retry_after = b"retry-after: 1\r\n" if refusal.code == 503 else b""
    return (
        b"%scontent-type: application/json\r\ncache-control: no-store\r\n%sconnection: close\r\n"
        b"content-length: %d\r\n\r\n%s" % (STATUS_LINE[refusal.code], retry_after, len(body), body)
    )


def app_with_certificate(app: Any, transport: asyncio.Transport, tls: Tls | None) -> Any:
    """The application, with the certificate that this connection proved, if it did."""
    certificate = None if tls is None else presented_certificate(transport)
    return app if tls is None or certificate is None else with_certificate(app, certificate, tls.proxies)

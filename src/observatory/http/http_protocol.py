"""HTTP/1.1 as uvicorn speaks it, with limits that hold before anybody is known (rules S1000–S1004).

Laws: a head has 64 KiB, 256 fields and `header_s`; a body has `body_s` and shares `reading_bytes` with all
others; beyond the connection limit idle ones are closed, and with none of those the newcomer is refused.
An answer that its client does not read is written piece by piece: who leaves a piece unread for `header_s`
makes room like an idle one, and for `body_s` is cut off (S1400).
Every refusal is JSON with a reason, then the connection is closed. Uvicorn's own limits apply to h11 only.
"""

from __future__ import annotations

import asyncio
import time
from heapq import nsmallest
from typing import Any, Final, NamedTuple

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from observatory.http.client_certificate import carrying, shown_by
from observatory.http.limits import Bounds
from observatory.http.security_headers import ALWAYS
from observatory.protocol.answers import Refused
from observatory.runtime.tls import Tls

HEAD_BYTES: Final = 65_536
HEAD_FIELDS: Final = 256
LINGER_S: Final = 1.0  # what is still sent is read and dropped for so long, or a reset would lose the answer
EVICTED: Final = 64  # idle connections closed at once when there is no room: one look at all serves many
# Written with the status line, so that no answer can miss them, uvicorn's own neither, and none pays: as
# headers they would be matched and copied one by one, 3 µs for each message.
STATUS_LINE.update(
    {code: line + ALWAYS for code, line in STATUS_LINE.items() if code >= 200 and ALWAYS not in line}
)


class No(NamedTuple):
    code: int
    reason: str
    detail: str


BAD: Final = No(400, "bad_request", "this is not HTTP/1.1 as the gateway reads it")
TOO_LONG: Final = No(
    431, "headers_too_large", f"URL and headers may have {HEAD_BYTES} bytes and {HEAD_FIELDS} fields at most"
)
NO_HEAD: Final = No(408, "too_slow", "the headers did not come in time")
NO_BODY: Final = No(408, "too_slow", "the body did not come in time; send it again")
NO_ROOM: Final = No(503, "busy", "too many bodies are being read now; nothing was taken, send it again")
FULL: Final = No(503, "too_many_connections", "no connection is free now; connect again later")


class _Stop(Exception):
    """Ends the parser; what is answered was noted before."""


class Http(HttpToolsProtocol):
    def __init__(self, *given: Any, bounds: Bounds, tls: Tls | None = None, **named: Any) -> None:
        super().__init__(*given, **named)
        self._tls, self._bounds = tls, bounds
        self._until: float | None = None  # when what is waited for is late: a head, or a body
        self._is_body = False
        self._loose = self._chunk = 0  # bytes since anything was complete; bytes of this read
        self._moved = False
        self._held = 0  # bytes of the body that is being read
        self._no: No | None = None
        self.rested = bounds.now  # since when it is idle, if it is
        self._unread: float | None = None  # since when a piece of an answer is not read

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.app = shown_app(self.app, transport, self._tls)
        self._until = self._bounds.now + self._bounds.header_s
        if len(self.connections) > self._bounds.most_connections and not self._make_room():
            self.refuse(FULL)

    def _make_room(self) -> bool:
        useless = [
            one for one in self.connections if isinstance(one, Http) and one.is_useless and one is not self
        ]
        for one in nsmallest(EVICTED, useless, key=_rested):
            (one.transport.close if one._unread is None else one.transport.abort)()
            self.connections.discard(one)
        return bool(useless)

    @property
    def is_idle(self) -> bool:
        """Whether no request is known of it that would be lost."""
        return not self._is_body and (self.cycle is None or self.cycle.response_complete)

    @property
    def is_useless(self) -> bool:
        """Whether nothing is lost with it that its client still wants: idle and read, or unread for long."""
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
        if self._no is not None:
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
        # Uvicorn puts what follows a body in chunks into the same list: a stranger's word behind a proxy's
        # own would count as a header said before it (RFC 9110, 6.5.1).
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
        self.rested = self._bounds.now
        super().on_response_complete()

    def look(self, now: float) -> None:
        """Asked once a second: who lets itself be waited for too long is let go."""
        if self._is_left_unread(now):
            self.transport.abort()
            return
        if self._until is None or now <= self._until:
            return
        if self.pipeline:  # it is we who let it wait: an earlier request of it is not answered yet
            self._until = now + self._bounds.body_s
        elif (
            not self._chunk
        ):  # opened in advance, as browsers and proxies do: an answer would be the next one's
            self.transport.close()
        else:
            self.refuse(NO_BODY if self._is_body else NO_HEAD)

    def send_400_response(self, msg: str) -> None:
        self.refuse(self._no or BAD)

    def _stop(self, no: No) -> None:
        self._no = no
        raise _Stop

    def refuse(self, no: No) -> None:
        """Say so, if nothing else is being said, and close."""
        self._no, self._until = no, None
        self._release()
        transport, cycle = self.transport, self.cycle
        if transport.is_closing():
            return
        is_answering = cycle is not None and not cycle.response_complete
        if is_answering and not self._is_body:
            cycle.keep_alive = False  # what came whole is answered first; then the connection is closed
            return
        if is_answering and cycle.response_started:
            transport.close()  # a refusal would come in the middle of the answer
            return
        if is_answering:
            cycle.disconnected = True
            cycle.message_event.set()
        transport.write(_answer(no))
        if transport.can_write_eof():
            transport.write_eof()
        self.flow.resume_reading()
        self.loop.call_later(LINGER_S, transport.abort)

    def _release(self) -> None:
        if self._held:
            self._bounds.held -= self._held
            self._held = 0


def _rested(one: Http) -> float:
    return one.rested


def _answer(no: No) -> bytes:
    body = msgspec.json.encode(Refused(reason=no.reason, detail=no.detail))
    again = b"retry-after: 1\r\n" if no.code == 503 else b""
    return (
        b"%scontent-type: application/json\r\ncache-control: no-store\r\n%sconnection: close\r\n"
        b"content-length: %d\r\n\r\n%s" % (STATUS_LINE[no.code], again, len(body), body)
    )


def shown_app(app: Any, transport: asyncio.Transport, tls: Tls | None) -> Any:
    """The application, told of the certificate that this connection proved, if it did."""
    certificate = None if tls is None else shown_by(transport)
    return app if tls is None or certificate is None else carrying(app, certificate, tls.proxies)

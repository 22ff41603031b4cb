"""The client's certificate, from the handshake into the request: what uvicorn leaves in the transport.

Law: only the handshake says who a connection is. No header of a client counts, whatever its name. The one
exception is a proxy whose own certificate is pinned (`tls_proxy_certs`): of it, and of nobody else, the
`Client-Cert` header of RFC 9440 is read; the proxy's own certificate then never counts as an agent's.
"""

from __future__ import annotations

import base64
import binascii
import logging
from asyncio import BaseTransport
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

import msgspec

from observatory.protocol.answers import Refused
from observatory.protocol.certificates import Certificate, NotACertificate, read

# Where a request's scope holds it; no name a client can set.
CERTIFICATE: Final = "observatory.certificate"
HEADER: Final = b"client-cert"
LONGEST: Final = 16_384  # of the header
Scope = MutableMapping[str, Any]
App = Callable[[Scope, Any, Any], Awaitable[None]]
log = logging.getLogger("observatory.tls")


class BadHeader(ValueError):
    """A pinned proxy said what cannot be a certificate."""


def shown_by(transport: BaseTransport) -> Certificate | None:
    """What this connection proved in its handshake; None without TLS, or when it showed nothing."""
    handshake = transport.get_extra_info("ssl_object")
    der = None if handshake is None else handshake.getpeercert(True)
    if not der:
        return None
    try:
        return read(der)
    except NotACertificate:
        log.warning("a client's certificate was verified but cannot be read; it counts as none")
        return None


def carrying(app: App, certificate: Certificate, proxies: frozenset[str]) -> App:
    """The application as a connection with this certificate reaches it."""
    is_proxy = certificate.fingerprint in proxies

    async def call(scope: Scope, receive: Any, send: Any) -> None:
        try:
            scope[CERTIFICATE] = forwarded(scope["headers"]) if is_proxy else certificate
        except BadHeader as fault:
            await _refuse(scope["type"], receive, send, str(fault))
            return
        await app(scope, receive, send)

    return call


def forwarded(headers: list[tuple[bytes, bytes]]) -> Certificate | None:
    """The client a pinned proxy speaks for; None when it says that there is no certificate."""
    found = [text for name, text in headers if name == HEADER]
    if not found:
        return None
    [text, *more] = found
    if more or len(text) > LONGEST or len(text) < 3 or not text.startswith(b":") or not text.endswith(b":"):
        raise BadHeader(
            "the proxy must send one Client-Cert header, as RFC 9440 has it: base64 between colons"
        )
    try:
        return read(base64.b64decode(text[1:-1], validate=True))
    except (binascii.Error, NotACertificate):
        raise BadHeader("the proxy's Client-Cert header holds no certificate that can be read") from None


async def _refuse(kind: str, receive: Any, send: Any, detail: str) -> None:
    if kind == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 4400, "reason": detail})
        return
    body = msgspec.json.encode(Refused(reason="bad_client_cert", detail=detail))
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 400, "headers": headers})
    await send({"type": "http.response.body", "body": body})

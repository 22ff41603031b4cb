"""The client's TLS certificate, passed from the handshake (uvicorn's transport) into the request.

Law: only the handshake identifies a connection. No header of a client counts, whatever its name. The one
exception is a proxy whose own certificate is pinned (`tls_proxy_certs`): only from such a proxy is the
`Client-Cert` header of RFC 9440 read, and the proxy's own certificate then never counts as an agent's.
"""

from __future__ import annotations

import base64
import binascii
import logging
from asyncio import BaseTransport
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

import msgspec

from observatory.protocol.certificates import Certificate, InvalidCertificate, read
from observatory.protocol.responses import Refused

# Its key in a request's scope; not a name that a client can set.
CERTIFICATE: Final = "observatory.certificate"
HEADER: Final = b"client-cert"
MAX_HEADER_BYTES: Final = 16_384
Scope = MutableMapping[str, Any]
App = Callable[[Scope, Any, Any], Awaitable[None]]
log = logging.getLogger("observatory.tls")


class BadHeader(ValueError):
    """A pinned proxy sent a header that holds no certificate."""


def presented_certificate(transport: BaseTransport) -> Certificate | None:
    """The certificate this connection proved in its handshake; None without TLS or without a certificate."""
    handshake = transport.get_extra_info("ssl_object")
    der = None if handshake is None else handshake.getpeercert(True)
    if not der:
        return None
    try:
        return read(der)
    except InvalidCertificate:
        log.warning("a client's certificate was verified but cannot be read; it is ignored")
        return None


def with_certificate(app: App, certificate: Certificate, proxies: frozenset[str]) -> App:
    """The application, with this certificate in the scope of every request."""
    is_proxy = certificate.fingerprint in proxies

    async def call(scope: Scope, receive: Any, send: Any) -> None:
        try:
            scope[CERTIFICATE] = forwarded_certificate(scope["headers"]) if is_proxy else certificate
        except BadHeader as fault:
            await _refuse(scope["type"], receive, send, str(fault))
            return
        await app(scope, receive, send)

    return call


def forwarded_certificate(headers: list[tuple[bytes, bytes]]) -> Certificate | None:
    """The certificate of the client behind a pinned proxy; None when the proxy says that there is none."""
    values = [text for name, text in headers if name == HEADER]
    if not values:
        return None
    [text, *more] = values
    if (
        more
        or len(text) > MAX_HEADER_BYTES
        or len(text) < 3
        or not text.startswith(b":")
        or not text.endswith(b":")
    ):
        raise BadHeader(
            "the proxy must send one Client-Cert header, as RFC 9440 has it: base64 between colons"
        )
    try:
        return read(base64.b64decode(text[1:-1], validate=True))
    except (binascii.Error, InvalidCertificate):
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

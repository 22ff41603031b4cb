"""Security headers for browsers, on every response of every endpoint (S1006, S1007).

Constant headers are written with the status line (`http_protocol.py`); those that depend on the response, its
policy and how long it may be cached, are added as it is sent (`metrics_of_requests.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

ALWAYS: Final = (
    b"x-content-type-options: nosniff\r\n"
    b"referrer-policy: no-referrer\r\n"
    b"cross-origin-opener-policy: same-origin\r\n"
    b"cross-origin-resource-policy: same-origin\r\n"
    b"permissions-policy: camera=(), geolocation=(), microphone=(), payment=(), usb=()\r\n"
)
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self'",
        "connect-src 'self'",
        "worker-src 'self'",
        "manifest-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
NO_STORE: Final = [(b"cache-control", b"no-store")]
CSP: Final = (b"content-security-policy", POLICY.encode())


def missing(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Headers to add: `no-store` unless the endpoint caches; a CSP unless it is JSON (S1007)."""
    has_cache_control = has_policy = False
    for name, text in headers:
        if name == b"content-type":
            has_policy = has_policy or text.startswith(b"application/json")
        elif name == b"cache-control":
            has_cache_control = True
        elif name == b"content-security-policy":
            has_policy = True
    if has_policy:
        return [] if has_cache_control else NO_STORE
    return [CSP] if has_cache_control else [*NO_STORE, CSP]

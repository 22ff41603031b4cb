"""The headers that guard a browser, on every answer of every door (S1006, S1007).

What is the same on all of them is written with the status line (`http_protocol.py`); what depends on the
answer, its policy and how long it may be kept, is added as it passes (`doors.py`).
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
    """Kept by nobody unless its door says so; and what is not JSON loads nothing but from here (S1007)."""
    is_kept = is_safe = False
    for name, text in headers:
        if name == b"content-type":
            is_safe = is_safe or text.startswith(b"application/json")
        elif name == b"cache-control":
            is_kept = True
        elif name == b"content-security-policy":
            is_safe = True
    if is_safe:
        return [] if is_kept else NO_STORE
    return [CSP] if is_kept else [*NO_STORE, CSP]

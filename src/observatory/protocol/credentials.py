"""The form of API keys and one-time tokens.

`obs_` + 12 characters public part + 32 characters secret (190 random bits) + 6 characters checksum, all
base 62: secret scanners can recognise it, a mistyped key is detected without a database query, and the
public part is the index. Only the SHA-256 of the whole key is ever stored.
"""

from __future__ import annotations

import hashlib
import secrets
import zlib

PREFIX = "obs_"
ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
PUBLIC, SECRET, CHECK = 12, 32, 6
LENGTH = len(PREFIX) + PUBLIC + SECRET + CHECK


def _random(length: int) -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(length))


def _checksum(text: str) -> str:
    number, digits = zlib.crc32(text.encode()), ""
    for _ in range(CHECK):
        number, digit = divmod(number, len(ALPHABET))
        digits = ALPHABET[digit] + digits
    return digits


def new_key() -> str:
    body = PREFIX + _random(PUBLIC + SECRET)
    return body + _checksum(body)


def public_id(key: str) -> str | None:
    """The public part of a well-formed key; None for anything else."""
    if len(key) != LENGTH or not key.startswith(PREFIX) or not key.isascii():
        return None
    if _checksum(key[:-CHECK]) != key[-CHECK:]:
        return None
    return key[len(PREFIX) : len(PREFIX) + PUBLIC]


def new_token() -> str:
    """A one-time login or browser token: 256 random bits."""
    return secrets.token_urlsafe(32)


def digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()

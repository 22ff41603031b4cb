"""Webhook signatures: signing a body and checking a received one, for four schemes.

Law: pure, over the exact bytes. Comparisons take constant time, and every secret in force is tried whichever
matches. A call is `valid`, `invalid` (the signature does not match), or its signature is `missing`; a
duplicate signature header is ambiguous and therefore invalid. Where the scheme signs a time, one outside the
window is invalid too. No message quotes a header or a secret.
"""

from __future__ import annotations

import binascii
import hmac
import re
import secrets as random
from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Final, Literal, NamedTuple

Scheme = Literal["standard", "github", "stripe", "slack"]
Status = Literal["valid", "invalid", "missing"]

STANDARD_PREFIX: Final = "whsec_"
MIN_SECRET_BYTES, MAX_SECRET_BYTES = 24, 64  # bytes of a secret of Standard Webhooks
MAX_SIGNATURES: Final = 16  # in one header: during a rotation there are two
# The headers of a scheme; the first is the signature.
HEADERS: Final[dict[Scheme, tuple[str, ...]]] = {
    "standard": ("webhook-signature", "webhook-id", "webhook-timestamp"),
    "github": ("x-hub-signature-256", "x-github-delivery", "x-github-event"),
    "stripe": ("stripe-signature",),
    "slack": ("x-slack-signature", "x-slack-request-timestamp"),
}
_seconds: Final = re.compile(r"[0-9]{1,12}").fullmatch
_hex: Final = re.compile(r"[0-9a-f]{64}").fullmatch
_ident: Final = re.compile(r"[\x21-\x7e]{1,256}").fullmatch


class InvalidSecret(ValueError):
    """A secret the scheme cannot use; the message describes the expected format."""


class SignatureCheck(NamedTuple):
    """The result of a check. `delivery_id` and `signed_s` come from the call and are reliable only if
    valid."""

    status: Status
    detail: str
    delivery_id: str | None = None
    signed_s: int | None = None


def new_secret(scheme: Scheme) -> str:
    """256 random bits in the scheme's format."""
    if scheme == "standard":
        return STANDARD_PREFIX + b64encode(random.token_bytes(32)).decode()
    return random.token_hex(32)


def key_of(scheme: Scheme, secret: str) -> bytes:
    """The key bytes of a secret. For schemes other than Standard Webhooks the text itself, with prefix."""
    if scheme != "standard":
        if not 16 <= len(secret) <= 256 or not secret.isascii() or not secret.isprintable():
            raise InvalidSecret("a secret has 16 to 256 printable ASCII characters")
        return secret.encode()
    try:
        text = secret.removeprefix(STANDARD_PREFIX)
        key = b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (ValueError, binascii.Error):
        key = b""
    if not MIN_SECRET_BYTES <= len(key) <= MAX_SECRET_BYTES:
        raise InvalidSecret(
            f"a secret of this scheme is {STANDARD_PREFIX} and {MIN_SECRET_BYTES} to {MAX_SECRET_BYTES} "
            "bytes in base64"
        )
    return key


def sign_standard(secret: str, delivery_id: str, signed_s: int, body: bytes) -> str:
    """One Standard Webhooks signature, as used in `webhook-signature`."""
    content = b"%s.%d.%s" % (delivery_id.encode(), signed_s, body)
    return "v1," + b64encode(hmac.digest(key_of("standard", secret), content, "sha256")).decode()


def check_signature(
    scheme: Scheme,
    headers: Iterable[tuple[bytes, bytes]],
    body: bytes,
    secrets: Sequence[str],
    now_s: float,
    window_s: int,
) -> SignatureCheck:
    """Check the signature of a call. Without a secret nothing is valid."""
    values, has_duplicates = _named(scheme, headers)
    names = HEADERS[scheme]
    if has_duplicates:
        return SignatureCheck("invalid", "a signature header is present has_duplicates")
    if names[0] not in values:
        return SignatureCheck("missing", f"the {names[0]} header is missing")
    judged = _SCHEMES[scheme](values, body, [key_of(scheme, one) for one in secrets])
    if judged.status == "valid" and judged.signed_s is not None and abs(now_s - judged.signed_s) > window_s:
        return judged._replace(status="invalid", detail="the signed timestamp is outside the window")
    return judged


def signature_headers(scheme: Scheme, headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """The scheme's headers as received, truncated: all that is stored of a call that was not valid."""
    values, _ = _named(scheme, headers)
    return {name: text[:512] for name, text in values.items()}


def _named(scheme: Scheme, headers: Iterable[tuple[bytes, bytes]]) -> tuple[dict[str, str], bool]:
    names, values, has_duplicates = HEADERS[scheme], dict[str, str](), False
    for raw, value in headers:
        name = raw.decode("latin-1").lower()
        if name in names:
            has_duplicates = has_duplicates or name in values
            values[name] = value.decode("latin-1").strip()
    return values, has_duplicates


def _is_any(signatures: Sequence[bytes], content: bytes, keys: Sequence[bytes]) -> bool:
    """Compare every pair: the duration must not reveal which one matches."""
    fits = False
    for key in keys:
        right = hmac.digest(key, content, "sha256")
        for one in signatures:
            fits = hmac.compare_digest(right, one) or fits
    return fits


def _check(
    signatures: Sequence[bytes],
    content: bytes,
    keys: Sequence[bytes],
    delivery_id: str | None,
    signed_s: int | None,
) -> SignatureCheck:
    if not keys:
        return SignatureCheck("invalid", "no secret is configured to check it with")
    if not signatures:
        return SignatureCheck("invalid", "the signature header contains no signature of this scheme")
    if len(signatures) > MAX_SIGNATURES:
        return SignatureCheck("invalid", "the signature header contains too many signatures")
    if not _is_any(signatures, content, keys):
        return SignatureCheck("invalid", "the signature does not match any secret in force")
    return SignatureCheck("valid", "", delivery_id, signed_s)


def _standard(values: dict[str, str], body: bytes, keys: Sequence[bytes]) -> SignatureCheck:
    ident, time = values.get("webhook-id", ""), values.get("webhook-timestamp", "")
    if not _ident(ident) or not _seconds(time):
        return SignatureCheck("invalid", "webhook-id or webhook-timestamp is missing or malformed")
    signatures = []
    for word in values["webhook-signature"].split():
        version, _, text = word.partition(",")
        if version == "v1":
            signatures += _base64(text)
    return _check(signatures, f"{ident}.{time}.".encode() + body, keys, ident, int(time))


def _base64(text: str) -> list[bytes]:
    try:
        signature = b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        return []
    return [signature] if len(signature) == 32 else []


def _github(values: dict[str, str], body: bytes, keys: Sequence[bytes]) -> SignatureCheck:
    ident = values.get("x-github-delivery", "")
    if not _ident(ident):
        return SignatureCheck("invalid", "x-github-delivery is missing or malformed")
    kind, _, text = values["x-hub-signature-256"].partition("=")
    signatures = [bytes.fromhex(text)] if kind == "sha256" and _hex(text) else []
    return _check(signatures, body, keys, ident, None)


def _stripe(values: dict[str, str], body: bytes, keys: Sequence[bytes]) -> SignatureCheck:
    parts = [part.strip().partition("=") for part in values["stripe-signature"].split(",")]
    times = [text for name, _, text in parts if name == "t"]
    if len(times) != 1 or not _seconds(times[0]):
        return SignatureCheck("invalid", "stripe-signature contains no timestamp, or more than one")
    signatures = [bytes.fromhex(text) for name, _, text in parts if name == "v1" and _hex(text)]
    return _check(signatures, times[0].encode() + b"." + body, keys, None, int(times[0]))


def _slack(values: dict[str, str], body: bytes, keys: Sequence[bytes]) -> SignatureCheck:
    time = values.get("x-slack-request-timestamp", "")
    if not _seconds(time):
        return SignatureCheck("invalid", "x-slack-request-timestamp is missing or malformed")
    version, _, text = values["x-slack-signature"].partition("=")
    signatures = [bytes.fromhex(text)] if version == "v0" and _hex(text) else []
    return _check(signatures, b"v0:" + time.encode() + b":" + body, keys, None, int(time))


_SCHEMES: Final = {"standard": _standard, "github": _github, "stripe": _stripe, "slack": _slack}


def body_hash(body: bytes) -> str:
    return "sha256:" + sha256(body).hexdigest()

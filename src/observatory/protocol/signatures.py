"""Signatures under webhooks: how the four schemes sign a body, and what is to be said of one that came.

Law: pure, over the exact bytes. A comparison takes the same time whatever differs, and every secret in force
is tried whichever fits. A call is `valid`, or it is `invalid` (signed, but not so), or its signature is
`missing`; of a header that stands twice nobody can say which counts, so it is invalid. Where the scheme signs
a time, one outside the window is invalid too. No sentence quotes a header or a secret.
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
FEWEST, MOST = 24, 64  # bytes of a secret of Standard Webhooks
MOST_SIGNATURES: Final = 16  # in one header: during a rotation there are two
# What a scheme says in headers; the first is the signature.
HEADERS: Final[dict[Scheme, tuple[str, ...]]] = {
    "standard": ("webhook-signature", "webhook-id", "webhook-timestamp"),
    "github": ("x-hub-signature-256", "x-github-delivery", "x-github-event"),
    "stripe": ("stripe-signature",),
    "slack": ("x-slack-signature", "x-slack-request-timestamp"),
}
_seconds: Final = re.compile(r"[0-9]{1,12}").fullmatch
_hex: Final = re.compile(r"[0-9a-f]{64}").fullmatch
_ident: Final = re.compile(r"[\x21-\x7e]{1,256}").fullmatch


class BadSecret(ValueError):
    """A secret that the scheme cannot be used with; the sentence says what it looks like."""


class Judged(NamedTuple):
    """`delivery_id` and `signed_s` are the scheme's own, and only of what is valid to be relied on."""

    status: Status
    detail: str
    delivery_id: str | None = None
    signed_s: int | None = None


def new_secret(scheme: Scheme) -> str:
    """256 random bits in the scheme's spelling."""
    if scheme == "standard":
        return STANDARD_PREFIX + b64encode(random.token_bytes(32)).decode()
    return random.token_hex(32)


def key_of(scheme: Scheme, secret: str) -> bytes:
    """The bytes a secret signs with. Of the others its text is the key, prefix and all."""
    if scheme != "standard":
        if not 16 <= len(secret) <= 256 or not secret.isascii() or not secret.isprintable():
            raise BadSecret("a secret has 16 to 256 printable ASCII characters")
        return secret.encode()
    try:
        text = secret.removeprefix(STANDARD_PREFIX)
        key = b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (ValueError, binascii.Error):
        key = b""
    if not FEWEST <= len(key) <= MOST:
        raise BadSecret(
            f"a secret of this scheme is {STANDARD_PREFIX} and {FEWEST} to {MOST} bytes in base64"
        )
    return key


def sign_standard(secret: str, delivery_id: str, signed_s: int, body: bytes) -> str:
    """One signature of Standard Webhooks, as it stands in `webhook-signature`."""
    content = b"%s.%d.%s" % (delivery_id.encode(), signed_s, body)
    return "v1," + b64encode(hmac.digest(key_of("standard", secret), content, "sha256")).decode()


def judge(
    scheme: Scheme,
    headers: Iterable[tuple[bytes, bytes]],
    body: bytes,
    secrets: Sequence[str],
    now_s: float,
    window_s: int,
) -> Judged:
    """What is to be said of a call. Without a secret nothing is valid."""
    found, twice = _named(scheme, headers)
    names = HEADERS[scheme]
    if twice:
        return Judged("invalid", "a header of the signature stands twice")
    if names[0] not in found:
        return Judged("missing", f"there is no {names[0]} header")
    judged = _SCHEMES[scheme](found, body, [key_of(scheme, one) for one in secrets])
    if judged.status == "valid" and judged.signed_s is not None and abs(now_s - judged.signed_s) > window_s:
        return judged._replace(status="invalid", detail="the time it was signed at lies outside the window")
    return judged


def told(scheme: Scheme, headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """The scheme's own headers as they came, cut short: all that is kept of a call that was not valid."""
    found, _ = _named(scheme, headers)
    return {name: text[:512] for name, text in found.items()}


def _named(scheme: Scheme, headers: Iterable[tuple[bytes, bytes]]) -> tuple[dict[str, str], bool]:
    names, found, twice = HEADERS[scheme], dict[str, str](), False
    for raw, value in headers:
        name = raw.decode("latin-1").lower()
        if name in names:
            twice = twice or name in found
            found[name] = value.decode("latin-1").strip()
    return found, twice


def _is_any(signatures: Sequence[bytes], content: bytes, keys: Sequence[bytes]) -> bool:
    """Every pair is compared: how long it takes tells nothing of which fits."""
    fits = False
    for key in keys:
        right = hmac.digest(key, content, "sha256")
        for one in signatures:
            fits = hmac.compare_digest(right, one) or fits
    return fits


def _verdict(
    signatures: Sequence[bytes],
    content: bytes,
    keys: Sequence[bytes],
    delivery_id: str | None,
    signed_s: int | None,
) -> Judged:
    if not keys:
        return Judged("invalid", "there is no secret to check it with")
    if not signatures:
        return Judged("invalid", "the signature header holds no signature of this scheme")
    if len(signatures) > MOST_SIGNATURES:
        return Judged("invalid", "the signature header holds too many signatures")
    if not _is_any(signatures, content, keys):
        return Judged("invalid", "no secret in force made this signature")
    return Judged("valid", "", delivery_id, signed_s)


def _standard(found: dict[str, str], body: bytes, keys: Sequence[bytes]) -> Judged:
    ident, time = found.get("webhook-id", ""), found.get("webhook-timestamp", "")
    if not _ident(ident) or not _seconds(time):
        return Judged("invalid", "webhook-id or webhook-timestamp is missing or not of its form")
    signatures = []
    for word in found["webhook-signature"].split():
        version, _, text = word.partition(",")
        if version == "v1":
            signatures += _base64(text)
    return _verdict(signatures, f"{ident}.{time}.".encode() + body, keys, ident, int(time))


def _base64(text: str) -> list[bytes]:
    try:
        found = b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        return []
    return [found] if len(found) == 32 else []


def _github(found: dict[str, str], body: bytes, keys: Sequence[bytes]) -> Judged:
    ident = found.get("x-github-delivery", "")
    if not _ident(ident):
        return Judged("invalid", "x-github-delivery is missing or not of its form")
    kind, _, text = found["x-hub-signature-256"].partition("=")
    signatures = [bytes.fromhex(text)] if kind == "sha256" and _hex(text) else []
    return _verdict(signatures, body, keys, ident, None)


def _stripe(found: dict[str, str], body: bytes, keys: Sequence[bytes]) -> Judged:
    parts = [part.strip().partition("=") for part in found["stripe-signature"].split(",")]
    times = [text for name, _, text in parts if name == "t"]
    if len(times) != 1 or not _seconds(times[0]):
        return Judged("invalid", "stripe-signature holds no time, or more than one")
    signatures = [bytes.fromhex(text) for name, _, text in parts if name == "v1" and _hex(text)]
    return _verdict(signatures, times[0].encode() + b"." + body, keys, None, int(times[0]))


def _slack(found: dict[str, str], body: bytes, keys: Sequence[bytes]) -> Judged:
    time = found.get("x-slack-request-timestamp", "")
    if not _seconds(time):
        return Judged("invalid", "x-slack-request-timestamp is missing or not of its form")
    version, _, text = found["x-slack-signature"].partition("=")
    signatures = [bytes.fromhex(text)] if version == "v0" and _hex(text) else []
    return _verdict(signatures, b"v0:" + time.encode() + b":" + body, keys, None, int(time))


_SCHEMES: Final = {"standard": _standard, "github": _github, "stripe": _stripe, "slack": _slack}


def body_hash(body: bytes) -> str:
    return "sha256:" + sha256(body).hexdigest()

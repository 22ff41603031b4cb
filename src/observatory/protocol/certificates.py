"""X.509 certificates as facts, and how an agent is bound to one.

Law: facts come out of DER whose signature somebody else has checked (OpenSSL in the handshake, or a pinned
proxy); nothing here trusts a certificate. A binding by `fingerprint` means one certificate and ends with it;
one by `uri`, `dns` or `subject` means whatever a trusted authority issues in that name, so that rotation does
not break it. Names are compared whole: no wildcard, no part of a name, no common name for a host.
"""

from __future__ import annotations

import hashlib
import re
from datetime import datetime
from functools import lru_cache
from typing import Final, Literal, get_args

import msgspec

BindingKind = Literal["fingerprint", "uri", "dns", "subject"]
BINDING_KINDS: Final[tuple[BindingKind, ...]] = get_args(BindingKind)
MOST_NAMES: Final = 32  # of a certificate that are read; who has more is known by the first ones
LONGEST: Final = 512  # of a name; a longer one is no name of ours
CUT: Final = "…"
_HEX = re.compile(r"[0-9a-f]{64}").fullmatch
_DNS = re.compile(
    r"(?!.{254})([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
)
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[!-~]{1,500}").fullmatch


class NotACertificate(ValueError):
    """What was given is no X.509 certificate; the sentence says of what."""


class Certificate(msgspec.Struct, frozen=True, kw_only=True):
    """What is told of one. Names have their kind in front: `uri:spiffe://…`, `dns:agent.example`."""

    fingerprint: str  # SHA-256 of the DER, 64 hexadecimal digits
    subject: str  # RFC 4514
    issuer: str
    serial: str  # hexadecimal
    names: tuple[str, ...]
    not_before_ns: int
    not_after_ns: int

    def is_current(self, now_ns: int) -> bool:
        return self.not_before_ns <= now_ns <= self.not_after_ns


class Binding(msgspec.Struct, frozen=True):
    kind: BindingKind
    value: str

    def fits(self, certificate: Certificate | None, now_ns: int) -> bool:
        """Whether this certificate may speak for who is bound so; an ended one never may."""
        if certificate is None or not certificate.is_current(now_ns):
            return False
        if self.kind == "fingerprint":
            return certificate.fingerprint == self.value
        if self.kind == "subject":
            return certificate.subject == self.value
        return f"{self.kind}:{self.value}" in certificate.names


def bound_to(kind: BindingKind, value: str) -> Binding:
    """The binding in its one spelling; ValueError with a sentence when it is none."""
    text = value.strip()
    if kind == "fingerprint":
        text = text.lower().removeprefix("sha256:").replace(":", "")
        if not _HEX(text):
            raise ValueError("a fingerprint is SHA-256: 64 hexadecimal digits, with or without colons")
    elif kind == "dns":
        text = text.lower().removesuffix(".")
        if not _DNS.fullmatch(text):
            raise ValueError("a dns name is a host's name without a wildcard, e.g. planner.agents.example")
    elif kind == "uri":
        if not _URI(text):
            raise ValueError("a uri is absolute and plain, e.g. spiffe://example.org/agent/planner")
    else:
        text = _subject(text)
    return Binding(kind, text)


def _subject(text: str) -> str:
    from cryptography import x509

    try:
        name = x509.Name.from_rfc4514_string(text).rfc4514_string()
    except (ValueError, KeyError):
        name = ""
    if not name or len(name) > LONGEST or name.endswith(CUT):
        raise ValueError("a subject is written as in RFC 4514, e.g. CN=planner,O=Example")
    return name


@lru_cache(maxsize=4_096)
def read(der: bytes) -> Certificate:
    """The facts of one; NotACertificate when it is none, or one that says what cannot be read."""
    from cryptography import x509

    try:
        found = x509.load_der_x509_certificate(der)
        # A trailing byte, or another encoding of the same, would be another fingerprint of one certificate.
        return Certificate(
            fingerprint=hashlib.sha256(der).hexdigest(),
            subject=_cut(found.subject.rfc4514_string()),
            issuer=_cut(found.issuer.rfc4514_string()),
            serial=f"{found.serial_number:x}",
            names=_names(found),
            not_before_ns=_ns(found.not_valid_before_utc),
            not_after_ns=_ns(found.not_valid_after_utc),
        )
    except (ValueError, TypeError, x509.InvalidVersion, x509.DuplicateExtension) as error:
        raise NotACertificate("it is not an X.509 certificate that can be read") from error


def read_pem(text: bytes) -> list[bytes]:
    """The DER of every certificate of a PEM file, in order; NotACertificate for none or a bad one."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    try:
        found = x509.load_pem_x509_certificates(text)
        return [one.public_bytes(Encoding.DER) for one in found]
    except (ValueError, TypeError) as error:
        raise NotACertificate("it holds no certificate in PEM form, or a damaged one") from error


def _names(found: object) -> tuple[str, ...]:
    from cryptography import x509

    assert isinstance(found, x509.Certificate)
    try:
        alternative = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    told: list[str] = []
    for one in alternative:
        if isinstance(one, x509.DNSName):
            told.append(f"dns:{one.value.lower()}")
        elif isinstance(one, x509.UniformResourceIdentifier):
            told.append(f"uri:{one.value}")
        elif isinstance(one, x509.IPAddress):
            told.append(f"ip:{one.value}")
        elif isinstance(one, x509.RFC822Name):
            told.append(f"email:{one.value}")
    return tuple(dict.fromkeys(name for name in told if len(name) <= LONGEST and name.isprintable()))[
        :MOST_NAMES
    ]


def _cut(text: str) -> str:
    """Whole, or marked as cut: a mark that stands in no binding."""
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + CUT


def _ns(moment: datetime) -> int:
    return int(moment.timestamp()) * 1_000_000_000

"""X.509 client certificates: reading their fields, and binding an agent to one.

Law: the DER was verified elsewhere (by OpenSSL in the handshake, or by a pinned proxy); nothing here decides
trust. A binding by `fingerprint` means one certificate and ends with it; one by `uri`, `dns` or `subject`
accepts whatever a trusted authority issues for that name, so rotation does not break it. Names are compared
in full: no wildcard, no part of a name, no common name for a host.
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
MAX_NAMES: Final = 32  # names read from a certificate; further ones are ignored
MAX_NAME_LENGTH: Final = 512  # longer names are ignored
CUT: Final = "…"
_HEX = re.compile(r"[0-9a-f]{64}").fullmatch
_DNS = re.compile(
    r"(?!.{254})([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
)
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[!-~]{1,500}").fullmatch


class InvalidCertificate(ValueError):
    """The input is not an X.509 certificate; the message says why."""


class Certificate(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a certificate. Names have their kind as prefix: `uri:spiffe://…`, `dns:agent.example`."""

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
        """Whether this certificate satisfies the binding; an expired one never does."""
        if certificate is None or not certificate.is_current(now_ns):
            return False
        if self.kind == "fingerprint":
            return certificate.fingerprint == self.value
        if self.kind == "subject":
            return certificate.subject == self.value
        return f"{self.kind}:{self.value}" in certificate.names


def make_binding(kind: BindingKind, value: str) -> Binding:
    """The binding in canonical spelling; ValueError with a message when it is invalid."""
    text = value.strip()
    if kind == "fingerprint":
        text = text.lower().removeprefix("sha256:").replace(":", "")
        if not _HEX(text):
            raise ValueError("a fingerprint is SHA-256: 64 hexadecimal digits, with or without colons")
    elif kind == "dns":
        text = text.lower().removesuffix(".")
        if not _DNS.fullmatch(text):
            raise ValueError("a dns name is a host name without a wildcard, e.g. planner.agents.example")
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
    if not name or len(name) > MAX_NAME_LENGTH or name.endswith(CUT):
        raise ValueError("a subject is written as in RFC 4514, e.g. CN=planner,O=Example")
    return name


@lru_cache(maxsize=4_096)
def read(der: bytes) -> Certificate:
    """The fields of a DER certificate; NotACertificate when it cannot be parsed."""
    from cryptography import x509

    try:
        certificate = x509.load_der_x509_certificate(der)
        # A trailing byte, or another encoding of the same, would be another fingerprint of one certificate.
        return Certificate(
            fingerprint=hashlib.sha256(der).hexdigest(),
            subject=_cut(certificate.subject.rfc4514_string()),
            issuer=_cut(certificate.issuer.rfc4514_string()),
            serial=f"{certificate.serial_number:x}",
            names=_names(certificate),
            not_before_ns=_ns(certificate.not_valid_before_utc),
            not_after_ns=_ns(certificate.not_valid_after_utc),
        )
    except (ValueError, TypeError, x509.InvalidVersion, x509.DuplicateExtension) as error:
        raise InvalidCertificate("this is not a readable X.509 certificate") from error


def read_pem(text: bytes) -> list[bytes]:
    """The DER of every certificate of a PEM file, in order; NotACertificate for none or a bad one."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    try:
        certificates = x509.load_pem_x509_certificates(text)
        return [certificate.public_bytes(Encoding.DER) for certificate in certificates]
    except (ValueError, TypeError) as error:
        raise InvalidCertificate("the file contains no certificate in PEM form, or a damaged one") from error


def _names(certificate: object) -> tuple[str, ...]:
    from cryptography import x509

    assert isinstance(certificate, x509.Certificate)
    try:
        alternative = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    names: list[str] = []
    for one in alternative:
        if isinstance(one, x509.DNSName):
            names.append(f"dns:{one.value.lower()}")
        elif isinstance(one, x509.UniformResourceIdentifier):
            names.append(f"uri:{one.value}")
        elif isinstance(one, x509.IPAddress):
            names.append(f"ip:{one.value}")
        elif isinstance(one, x509.RFC822Name):
            names.append(f"email:{one.value}")
    return tuple(
        dict.fromkeys(name for name in names if len(name) <= MAX_NAME_LENGTH and name.isprintable())
    )[:MAX_NAMES]


def _cut(text: str) -> str:
    """The text, or truncated with a mark that no binding can contain."""
    return text if len(text) <= MAX_NAME_LENGTH else text[: MAX_NAME_LENGTH - 1] + CUT


def _ns(moment: datetime) -> int:
    return int(moment.timestamp()) * 1_000_000_000

"""TLS files as they lie on disk: read once, checked, made into what a handshake needs.

Law: whatever is wrong with them is one sentence that names the setting and what to do; never a driver's
words, and nothing of a key. All of it is read before any of it is used.
"""

from __future__ import annotations

import os
import ssl
import time
from pathlib import Path
from typing import Final, NamedTuple

from observatory.protocol.certificates import Certificate, NotACertificate, read, read_pem
from observatory.protocol.clock import from_ns
from observatory.settings import Settings

# TLS 1.2 with forward secrecy and authenticated encryption only; TLS 1.3 has no others.
CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"
MOST_BYTES: Final = 1 << 20
MODES: Final = {"none": ssl.CERT_NONE, "optional": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
Mark = tuple[tuple[str, int, int, int] | None, ...]


class Unusable(Exception):
    """These files cannot serve; the sentence says why and what to do."""


class Loaded(NamedTuple):
    """One state of the files."""

    context: ssl.SSLContext
    server: Certificate
    authorities: tuple[Certificate, ...]
    chain_pem: bytes
    key_pem: bytes  # without passphrase: gRPC takes no other
    authorities_pem: bytes


def paths_of(settings: Settings) -> dict[str, Path]:
    names = ("tls_cert", "tls_key", "tls_key_passphrase_file", "tls_client_ca")
    given = {name: getattr(settings, name) for name in names}
    return {name: Path(text).expanduser() for name, text in given.items() if text}


def mark_of(settings: Settings) -> Mark:
    """What changes when a file is written, renamed over, or its link is turned to another."""
    found: list[tuple[str, int, int, int] | None] = []
    for path in paths_of(settings).values():
        try:
            there = os.path.realpath(path)
            seen = os.stat(there)
            found.append((there, seen.st_ino, seen.st_mtime_ns, seen.st_size))
        except OSError:
            found.append(None)
    return tuple(found)


def load(settings: Settings, now_ns: int | None = None) -> Loaded:
    """The files as they are now; Unusable with a sentence when they cannot serve."""
    now_ns = time.time_ns() if now_ns is None else now_ns
    texts = {name: _bytes(name, path) for name, path in paths_of(settings).items()}
    _refuse_open(paths_of(settings)["tls_key"])
    chain = _certificates("tls_cert", texts["tls_cert"])
    server = read(chain[0])
    if server.not_after_ns < now_ns:
        raise Unusable(
            f"tls_cert: the certificate of {server.subject} ended on {from_ns(server.not_after_ns)}; renew it"
        )
    if server.not_before_ns > now_ns:
        raise Unusable(
            f"tls_cert: the certificate of {server.subject} begins only on {from_ns(server.not_before_ns)}; "
            "use another, or set this machine's clock right"
        )
    passphrase = texts.get("tls_key_passphrase_file")
    key_pem = _key(texts["tls_key"], passphrase, chain[0])
    authorities = _certificates("tls_client_ca", texts["tls_client_ca"]) if "tls_client_ca" in texts else []
    context = _context(settings, passphrase, authorities)
    return Loaded(
        context,
        server,
        tuple(read(one) for one in authorities),
        texts["tls_cert"],
        key_pem,
        texts.get("tls_client_ca", b""),
    )


def _bytes(name: str, path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            text = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        raise Unusable(f"{name}: the file {path} does not exist") from None
    except OSError as error:
        raise Unusable(f"{name}: the file {path} cannot be read ({error.strerror})") from None
    if len(text) > MOST_BYTES:
        raise Unusable(f"{name}: the file {path} is far too long for what it should be")
    return text


def _refuse_open(key: Path) -> None:
    """A group may share a key, as mounted secrets are; one that everybody can open is no secret (S1189)."""
    if key.stat().st_mode & 0o007:
        raise Unusable(f"tls_key: everybody on this machine can open {key}; run chmod o= on it")


def _certificates(name: str, text: bytes) -> list[bytes]:
    try:
        found = read_pem(text)
        for one in found:
            read(one)
        return found
    except NotACertificate as error:
        raise Unusable(f"{name}: {error}") from None


def _key(text: bytes, passphrase: bytes | None, certificate: bytes) -> bytes:
    """The key in plain PEM, once it is known to be the certificate's."""
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization as form

    secret = None if passphrase is None else passphrase.rstrip(b"\r\n")
    try:
        key = form.load_pem_private_key(text, secret)
    except TypeError:
        if secret is None:
            told = "the key is encrypted; give the file of its passphrase as tls_key_passphrase_file"
        else:
            told = "the key is not encrypted; leave tls_key_passphrase_file out"
        raise Unusable(f"tls_key: {told}") from None
    except (ValueError, UnsupportedAlgorithm):
        told = "it holds no private key in PEM form, or its passphrase is another"
        raise Unusable(f"tls_key: {told}") from None
    spki = form.Encoding.DER, form.PublicFormat.SubjectPublicKeyInfo
    if key.public_key().public_bytes(*spki) != x509.load_der_x509_certificate(
        certificate
    ).public_key().public_bytes(*spki):
        raise Unusable("tls_key does not belong to tls_cert: they hold different keys")
    return key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())


def _context(settings: Settings, passphrase: bytes | None, authorities: list[bytes]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(CIPHERS)
    context.set_alpn_protocols(["http/1.1"])
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    paths = paths_of(settings)
    secret = None if passphrase is None else passphrase.rstrip(b"\r\n")
    try:
        context.load_cert_chain(paths["tls_cert"], paths["tls_key"], secret or (lambda: b""))
        if authorities:
            context.load_verify_locations(cadata=b"".join(authorities))
    except (ssl.SSLError, OSError):
        # Each was read by itself a moment ago: they were replaced meanwhile, or OpenSSL forbids them.
        raise Unusable(
            "tls_cert and tls_key cannot be used together: the key is too weak for OpenSSL, or one of them "
            "was replaced just now"
        ) from None
    context.verify_mode = MODES[settings.tls_client_certs]
    return context

"""Reads the TLS files from disk, checks them and builds the SSL context.

Law: every problem is one sentence that names the setting and what to do; never a library's message,
and nothing of a key. All files are read before any of them is used.
"""

from __future__ import annotations

import os
import ssl
import time
from pathlib import Path
from typing import Final, NamedTuple

from observatory.protocol.certificates import Certificate, InvalidCertificate, read, read_pem
from observatory.protocol.clock import from_ns
from observatory.settings import Settings

# TLS 1.2 with forward secrecy and authenticated encryption only; TLS 1.3 has no others.
CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"
MAX_BYTES: Final = 1 << 20
MODES: Final = {"none": ssl.CERT_NONE, "optional": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
FilesFingerprint = tuple[tuple[str, int, int, int] | None, ...]


class UnusableTlsFiles(Exception):
    """These files cannot be used; the message says why and what to do."""


class TlsFiles(NamedTuple):
    """The content of the files at one time."""

    context: ssl.SSLContext
    server: Certificate
    authorities: tuple[Certificate, ...]
    chain_pem: bytes
    key_pem: bytes  # without passphrase: gRPC supports no other
    authorities_pem: bytes


def paths_of(settings: Settings) -> dict[str, Path]:
    names = ("tls_cert", "tls_key", "tls_key_passphrase_file", "tls_client_ca")
    given = {name: getattr(settings, name) for name in names}
    return {name: Path(text).expanduser() for name, text in given.items() if text}


def files_fingerprint(settings: Settings) -> FilesFingerprint:
    """A fingerprint that changes when a file is written, replaced, or its link points to another."""
    found: list[tuple[str, int, int, int] | None] = []
    for path in paths_of(settings).values():
        try:
            real_path = os.path.realpath(path)
            info = os.stat(real_path)
            found.append((real_path, info.st_ino, info.st_mtime_ns, info.st_size))
        except OSError:
            found.append(None)
    return tuple(found)


def load(settings: Settings, now_ns: int | None = None) -> TlsFiles:
    """Load the files as they are now; Unusable when they cannot be used."""
    now_ns = time.time_ns() if now_ns is None else now_ns
    texts = {name: _bytes(name, path) for name, path in paths_of(settings).items()}
    _refuse_open(paths_of(settings)["tls_key"])
    chain = _certificates("tls_cert", texts["tls_cert"])
    server = read(chain[0])
    if server.not_after_ns < now_ns:
        raise UnusableTlsFiles(
            f"tls_cert: the certificate of {server.subject} expired on {from_ns(server.not_after_ns)}; "
            "renew it"
        )
    if server.not_before_ns > now_ns:
        raise UnusableTlsFiles(
            f"tls_cert: the certificate of {server.subject} is not valid before "
            f"{from_ns(server.not_before_ns)}; use another, or set this machine's clock right"
        )
    passphrase = texts.get("tls_key_passphrase_file")
    key_pem = _key(texts["tls_key"], passphrase, chain[0])
    authorities = _certificates("tls_client_ca", texts["tls_client_ca"]) if "tls_client_ca" in texts else []
    context = _context(settings, passphrase, authorities)
    return TlsFiles(
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
            text = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise UnusableTlsFiles(f"{name}: the file {path} does not exist") from None
    except OSError as error:
        raise UnusableTlsFiles(f"{name}: the file {path} cannot be read ({error.strerror})") from None
    if len(text) > MAX_BYTES:
        raise UnusableTlsFiles(f"{name}: the file {path} is far too long")
    return text


def _refuse_open(key: Path) -> None:
    """A group may share a key, as mounted secrets are; a world-readable one is no secret (S1189)."""
    if key.stat().st_mode & 0o007:
        raise UnusableTlsFiles(f"tls_key: every user of this machine can read {key}; run chmod o= on it")


def _certificates(name: str, text: bytes) -> list[bytes]:
    try:
        found = read_pem(text)
        for one in found:
            read(one)
        return found
    except InvalidCertificate as error:
        raise UnusableTlsFiles(f"{name}: {error}") from None


def _key(text: bytes, passphrase: bytes | None, certificate: bytes) -> bytes:
    """The key in plain PEM, after checking that it belongs to the certificate."""
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization as form

    secret = None if passphrase is None else passphrase.rstrip(b"\r\n")
    try:
        key = form.load_pem_private_key(text, secret)
    except TypeError:
        if secret is None:
            problem = "the key is encrypted; give the file of its passphrase as tls_key_passphrase_file"
        else:
            problem = "the key is not encrypted; leave tls_key_passphrase_file out"
        raise UnusableTlsFiles(f"tls_key: {problem}") from None
    except (ValueError, UnsupportedAlgorithm):
        problem = "it holds no private key in PEM form, or its passphrase is another"
        raise UnusableTlsFiles(f"tls_key: {problem}") from None
    spki = form.Encoding.DER, form.PublicFormat.SubjectPublicKeyInfo
    if key.public_key().public_bytes(*spki) != x509.load_der_x509_certificate(
        certificate
    ).public_key().public_bytes(*spki):
        raise UnusableTlsFiles("tls_key does not belong to tls_cert: they hold different keys")
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
        # Each was read alone a moment ago: they were replaced meanwhile, or OpenSSL rejects them.
        raise UnusableTlsFiles(
            "tls_cert and tls_key cannot be used together: the key is too weak for OpenSSL, or one of them "
            "was replaced just now"
        ) from None
    context.verify_mode = MODES[settings.tls_client_certs]
    return context

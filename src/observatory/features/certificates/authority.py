"""A small built-in certificate authority, and the certificates it issues for gateways and agents.

For a first try, a laptop and tests; production has its own authority. Keys are P-256 and readable only by
their owner. Existing files are overwritten only on request (`replace`), and then by a rename: a running
gateway sees the old files or the new ones.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import quote

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

Purpose = Literal["server", "agent"]
URN = "urn:observatory:agent:"
EARLY = timedelta(hours=1)  # a clock that is slightly behind must not refuse a new certificate


class CertificatePair(NamedTuple):
    """A certificate and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.DER)

    def key_pem(self, passphrase: bytes | None = None) -> bytes:
        encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
        if passphrase is not None:
            encryption = serialization.BestAvailableEncryption(passphrase)
        return self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption
        )


def agent_uri(agent_id: str) -> str:
    """The URI to which an agent can be bound so that its certificate may be renewed."""
    return URN + quote(agent_id, safe="")


def make_authority(common_name: str, days: int = 3_650, now: datetime | None = None) -> CertificatePair:
    now = now or datetime.now(UTC)
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(common_name)
    builder = (
        _begun(name, name, key, now - EARLY, now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
    )
    return CertificatePair(builder.sign(key, hashes.SHA256()), key)


def issue(
    authority: CertificatePair,
    common_name: str,
    purpose: Purpose,
    names: Sequence[str],
    since: datetime | None = None,
    until: datetime | None = None,
) -> CertificatePair:
    """`names`: host names and addresses of a gateway, URIs of an agent."""
    now = datetime.now(UTC)
    since, until = since or now - EARLY, until or now + timedelta(days=90)
    key = ec.generate_private_key(ec.SECP256R1())
    use = ExtendedKeyUsageOID.SERVER_AUTH if purpose == "server" else ExtendedKeyUsageOID.CLIENT_AUTH
    builder = (
        _begun(_name(common_name), authority.certificate.subject, key, since, until)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([use]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()), critical=False
        )
        .add_extension(x509.SubjectAlternativeName([_alternative(one) for one in names]), critical=False)
    )
    return CertificatePair(builder.sign(authority.key, hashes.SHA256()), key)


def _begun(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    since: datetime,
    until: datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(since)
        .not_valid_after(until)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name[:64])])


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        pass
    return x509.UniformResourceIdentifier(name) if ":" in name else x509.DNSName(name)


def read_authority(folder: Path) -> CertificatePair:
    """Read the authority; OSError or ValueError when there is none."""
    certificate = x509.load_pem_x509_certificate((folder / "ca.crt").read_bytes())
    key = serialization.load_pem_private_key((folder / "ca.key").read_bytes(), None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("not an EC key")
    return CertificatePair(certificate, key)


def hosts_of(folder: Path) -> list[str]:
    """Names and addresses in the gateway's certificate there; OSError or ValueError when there is none."""
    found = x509.load_pem_x509_certificate((folder / "server.crt").read_bytes())
    try:
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    addresses = [str(one) for one in names.get_values_for_type(x509.IPAddress)]
    return [*names.get_values_for_type(x509.DNSName), *addresses]


def write_pair(
    folder: Path, name: str, pair: CertificatePair, chain: bytes = b"", replace: bool = False
) -> None:
    """`name.crt` and `name.key`; FileExistsError when one exists and `replace` is not set.

    The key is written first: a reader in between finds a key that does not match, and waits.
    """
    for suffix, text, mode in ((".key", pair.key_pem(), 0o600), (".crt", pair.pem + chain, 0o644)):
        path = folder / f"{name}{suffix}"
        if path.exists() and not replace:
            raise FileExistsError(path)
        temporary = folder / f".{name}{suffix}.new"
        temporary.unlink(missing_ok=True)
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(handle, "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)

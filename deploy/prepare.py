"""Runs once before the other services of compose.yaml: certificates for PostgreSQL and NATS.

An authority is made for this deployment, both servers get a certificate from it, and its key is never
written: no further certificate can be issued. What is good for a month more stays; else all of it is made
again, and the services must be started again. A key belongs to its server's user and is read by no other.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509

from observatory.features.certificates import authority

TLS = Path(os.environ.get("TLS_FOLDER", "/tls"))
NATS_STORE = Path(os.environ.get("NATS_STORE", "/nats"))
# As compose.yaml runs them: host name and user.
SERVERS = {"postgres": 70, "nats": 10002}
GOOD_FOR = timedelta(days=825)
RENEWED_BEFORE = timedelta(days=30)


def is_good() -> bool:
    try:
        found = [x509.load_pem_x509_certificate((TLS / f"{name}.crt").read_bytes()) for name in SERVERS]
        is_whole = (TLS / "ca.crt").is_file() and all((TLS / f"{name}.key").is_file() for name in SERVERS)
    except (OSError, ValueError):
        return False
    return is_whole and all(one.not_valid_after_utc > datetime.now(UTC) + RENEWED_BEFORE for one in found)


def write(name: str, content: bytes, mode: int, user: int | None = None) -> None:
    path = TLS / name
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
    path.chmod(mode)
    if user is not None and os.geteuid() == 0:
        os.chown(path, user, user)


def main() -> None:
    if os.geteuid() == 0:
        os.chown(NATS_STORE, SERVERS["nats"], SERVERS["nats"])
    if is_good():
        print("the certificates are good")
        return
    root = authority.make_authority("Observatory deployment", days=GOOD_FOR.days)
    for name, user in SERVERS.items():
        pair = authority.issue(root, name, "server", [name], until=datetime.now(UTC) + GOOD_FOR)
        write(f"{name}.key", pair.key_pem(), 0o600, user)
        write(f"{name}.crt", pair.pem, 0o644)
    write("ca.crt", root.pem, 0o644)
    print(f"certificates for {' and '.join(SERVERS)} are made, good for {GOOD_FOR.days} days")


if __name__ == "__main__":
    main()

"""Certificates for tests, made by the code newcomers use; a gateway with TLS, and clients that show one."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2

from observatory.cli.duplex_tls import DuplexTlsSocket
from observatory.features.certificates.authority import (
    CertificatePair,
    agent_uri,
    issue,
    make_authority,
    write_pair,
)
from tests.flows.databases import ALONE
from tests.flows.server import Server

HOSTS = ("localhost", "127.0.0.1")


class Folder:
    """An authority and what it issued, as files."""

    def __init__(self, path: Path, name: str = "Test authority") -> None:
        path.mkdir(parents=True)
        self.path, self.authority = path, make_authority(name)
        write_pair(path, "ca", self.authority)
        self.serve()

    @property
    def ca(self) -> str:
        return str(self.path / "ca.crt")

    def serve(self, days: float = 90, *hosts: str) -> CertificatePair:
        """The gateway's own, new or again."""
        until = datetime.now(UTC) + timedelta(days=days)
        made = issue(self.authority, "gateway", "server", [*HOSTS, *hosts], until=until)
        write_pair(self.path, "server", made, self.authority.pem, replace=True)
        return made

    def agent(
        self, name: str, *, since: float = -1, until: float = 90, names: tuple[str, ...] = (), file: str = ""
    ) -> tuple[str, str]:
        """Files of a certificate that is good from and to so many days from now."""
        now = datetime.now(UTC)
        made = issue(
            self.authority,
            name,
            "agent",
            names or [agent_uri(name)],
            now + timedelta(days=since),
            now + timedelta(days=until),
        )
        write_pair(self.path, file or name, made, replace=True)
        return str(self.path / f"{file or name}.crt"), str(self.path / f"{file or name}.key")

    def context(self, shown: tuple[str, str] | None = None) -> ssl.SSLContext:
        made = ssl.create_default_context(cafile=self.ca)
        made.sslsocket_class = DuplexTlsSocket
        if shown is not None:
            made.load_cert_chain(*shown)
        return made

    def options(self, asked: str = "optional") -> tuple[str, ...]:
        place = self.path
        return (
            "--tls-cert", f"{place}/server.crt", "--tls-key", f"{place}/server.key",
            "--tls-client-ca", self.ca, "--tls-client-certs", asked,
        )  # fmt: skip


class Secured(Server):
    """A gateway with TLS; its own clients trust the folder's authority."""

    def __init__(self, folder: Folder, data: Path, asked: str = "optional", **settings: str) -> None:
        environment = ALONE | {f"OBSERVATORY_{name}": value for name, value in settings.items()}
        super().__init__(data, *folder.options(asked), environment=environment)
        self.files = folder
        self.verify = folder.context(folder.agent("staff") if asked == "required" else None)

    def showing(self, shown: tuple[str, str] | None, role: str = "agent", **headers: str) -> httpx2.Client:
        """A client with that role's key, that certificate and these headers; whoever takes it closes it."""
        said = {"Authorization": f"Bearer {self.key(role)}"} | headers
        verify = self.files.context(shown)
        return httpx2.Client(base_url=self.url, headers=said, timeout=30, trust_env=False, verify=verify)

"""The files of TLS, replaced while the gateway serves."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from observatory.protocol.certificates import read
from tests.certifying import Folder, Secured
from tests.waiting import until


@pytest.fixture
def files(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "files")


@pytest.fixture
def gateway(files: Folder, tmp_path: Path) -> Iterator[Secured]:
    with Secured(files, tmp_path / "data") as running:
        assert isinstance(running, Secured)
        yield running


def test_replaced_files_count_without_a_restart_and_broken_ones_do_not_s864_s865(
    gateway: Secured, files: Folder
) -> None:
    """S864: certificate and authorities; open connections stay. S865: a broken file changes nothing."""
    admin = gateway.http("admin")
    before = admin.get("/v1/certificates").json()["items"][0]["fingerprint"]
    open_one = gateway.showing(None)
    open_one.get("/healthz")
    assert seen(gateway) == before
    made = files.serve(60, "renewed.example")
    fresh = until(lambda: seen(gateway) != before and seen(gateway))
    assert fresh == read(made.der).fingerprint
    assert open_one.get("/healthz").status_code == 200, "a connection that was open goes on"
    named = admin.get("/healthz", headers={"host": "renewed.example"})
    assert named.status_code == 200, "a host our own certificate names is served"
    (files.path / "server.key").write_text("nothing of a key")
    problem = until(lambda: admin.get("/v1/certificates").json()["tls"]["problem"])
    assert problem.startswith("tls_key:") and seen(gateway) == fresh
    assert "the old ones stay in force" in gateway.log
    # A client of an authority that is not trusted, until the file names it as well.
    foreign = Folder(files.path / "other", "Other authority")
    stranger = foreign.agent("stranger")
    assert refused(gateway, files.context(), stranger)
    Path(files.ca).write_bytes(files.authority.pem + foreign.authority.pem)
    files.serve()
    until(lambda: not refused(gateway, ssl.create_default_context(cafile=files.ca), stranger))
    assert admin.get("/v1/certificates").json()["tls"]["problem"] is None
    # And out again: also for who could resume a session of before.
    Path(files.ca).write_bytes(files.authority.pem)
    until(lambda: refused(gateway, files.context(), stranger))
    open_one.close()


def seen(gateway: Secured, shown: tuple[str, str] | None = None) -> str:
    """The certificate a new connection is greeted with."""
    with (
        socket.create_connection(("127.0.0.1", gateway.port)) as raw,
        gateway.files.context(shown).wrap_socket(raw, server_hostname="localhost") as wrapped,
    ):
        return read(wrapped.getpeercert(True) or b"").fingerprint


def refused(gateway: Secured, context: ssl.SSLContext, shown: tuple[str, str] | None) -> bool:
    """Whether a client with this certificate gets no answer; in TLS 1.3 it learns so when it reads."""
    if shown is not None:
        context.load_cert_chain(*shown)
    try:
        with (
            socket.create_connection(("127.0.0.1", gateway.port)) as raw,
            context.wrap_socket(raw, server_hostname="localhost") as wrapped,
        ):
            wrapped.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            return b" 200 " not in wrapped.recv(4_096)
    except (ssl.SSLError, ConnectionError):
        return True

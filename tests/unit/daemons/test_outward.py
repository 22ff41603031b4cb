"""Whom a peer's URL may lead to: public https, and what the operator of this gateway has listed."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from observatory.runtime.outbound_http import MAX_RESPONSE_BYTES, OutboundError, OutboundHttp, is_public

DAY = timedelta(days=1)
PRIVATE = (
    "0.0.0.0", "10.1.2.3", "100.64.0.1", "127.0.0.1", "127.255.255.254", "169.254.169.254", "172.16.0.1",
    "172.31.255.255", "192.0.0.255", "192.0.2.1", "192.88.99.3", "192.168.1.1", "198.18.0.1",
    "198.51.100.7", "203.0.113.9", "224.1.2.3", "233.252.0.16", "255.255.255.255", "::", "::1",
    "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::1", "100::1", "2001:db8::1",
    "2002:7f00:1::", "3fff::1", "5f00::1", "fc00::1", "fd12::1", "fe80::1", "fe80::1%eth0", "ff02::1",
)  # fmt: skip


@pytest.mark.parametrize("address", PRIVATE)
def test_an_address_that_is_not_public_is_none_of_ours_to_ask_s429(address: str) -> None:
    """S429: whatever name led there."""
    assert not is_public(address)


@pytest.mark.parametrize("address", ["1.1.1.1", "93.184.216.34", "172.32.0.1", "2606:4700::1111"])
def test_public_addresses_are_s429(address: str) -> None:
    """S429."""
    assert is_public(address)


@pytest.mark.parametrize(
    "url",
    [
        "http://peer.example/v1",
        "ftp://peer.example",
        "https://peer.example:22/v1",
        "https://user:word@peer.example/v1",
        "https://peer.example/v1?key=1",
        "https://peer.example/v1#part",
        "https:///v1",
        "https://peer.example:99999/",
        "https://peer.example/a b",
        "https://[::1/",
        "https://p\u00e9er.example/",
        "peer.example/v1",
        "https://peer.example/" + "x" * 2_000,
    ],
)
def test_a_url_that_is_none_is_refused_with_a_sentence_s429(url: str) -> None:
    """S429: before anything is asked."""
    assert OutboundHttp().check(url)


def test_what_is_listed_may_be_plain_and_anywhere_s429() -> None:
    """S429: by host, or by host and port."""
    assert OutboundHttp().check("https://peer.example/v1/witness/tnt_1") is None
    assert OutboundHttp(["127.0.0.1:4801"]).check("http://127.0.0.1:4801/v1") is None
    assert OutboundHttp(["127.0.0.1:4801"]).check("http://127.0.0.1:4802/v1")
    assert OutboundHttp(["intranet"]).check("http://INTRANET:9000/v1") is None


class Canary(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.server.asked.append(self.headers["host"])  # type: ignore[attr-defined]
        self.send_response(302 if self.path == "/away" else 200)
        if self.path == "/away":
            self.send_header("location", "/")
        body = b"x" * (MAX_RESPONSE_BYTES * 2 if self.path == "/much" else 5)
        self.send_header("content-length", str(len(body)))
        self.send_header("content-type", "Text/Plain; charset=utf-8")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def canary() -> Iterator[HTTPServer]:
    server = HTTPServer(("127.0.0.1", 0), Canary)
    server.asked = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_loopback_is_not_connected_to_in_any_spelling_s429(canary: HTTPServer) -> None:
    """S429: the canary hears nothing, whatever 127.0.0.1 is called; the port alone is listed nowhere."""
    port = canary.server_port
    outward = OutboundHttp([f"elsewhere:{port}"])
    for host in ("127.0.0.1", "localhost", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "[::1]", "0"):
        with pytest.raises(OutboundError):
            asyncio.run(outward.get(f"https://{host}:8443/"))
        with pytest.raises(OutboundError):
            asyncio.run(outward.get(f"http://{host}:{port}/"))
    assert canary.asked == []  # type: ignore[attr-defined]


def test_no_redirect_is_followed_and_answers_are_bounded_s429(canary: HTTPServer) -> None:
    """S429: 302 is an answer like any other; what is too much is not read."""
    base = f"127.0.0.1:{canary.server_port}"
    outward = OutboundHttp([base])
    heard = asyncio.run(outward.get(f"http://{base}/"))
    assert (heard.code, heard.kind, heard.body) == (200, "text/plain", b"xxxxx")
    assert asyncio.run(outward.get(f"http://{base}/away")).code == 302
    assert canary.asked == [base] * 2  # type: ignore[attr-defined]
    with pytest.raises(OutboundError, match="too long"):
        asyncio.run(outward.get(f"http://{base}/much"))


def test_a_certificate_nobody_vouches_for_is_not_believed_s429(canary: HTTPServer, tmp_path: Path) -> None:
    """S429: a listed host may be plain; if it is https it must prove itself. The canary hears no request."""
    key = ed25519.Ed25519PrivateKey.generate()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), 7, now - DAY, now + DAY)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), False)
        .sign(key, None)
    )
    pem = tmp_path / "both.pem"
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    pem.write_bytes(private + made.public_bytes(Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    canary.socket = context.wrap_socket(canary.socket, server_side=True)
    base = f"localhost:{canary.server_port}"
    with pytest.raises(OutboundError):
        asyncio.run(OutboundHttp([base]).get(f"https://{base}/"))
    assert canary.asked == []  # type: ignore[attr-defined]

"""The listening socket with TLS: a handshake has a bound, and no client harms another."""

from __future__ import annotations

import asyncio
import socket
import ssl
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from observatory.features.certificates.authority import issue, make_authority, write_pair
from observatory.http import tls_listener as tls_door
from observatory.http.client_certificate import BadHeader, forwarded_certificate
from observatory.http.tls_listener import TlsListener
from observatory.runtime.tls import Tls
from observatory.settings import load

AUTHORITY = make_authority("Door authority")


class Echo(asyncio.Protocol):
    def connection_made(self, transport: Any) -> None:
        transport.write(b"hello")
        transport.close()


@pytest.fixture
def tls(tmp_path: Path) -> Tls:
    write_pair(tmp_path, "ca", AUTHORITY)
    write_pair(tmp_path, "server", issue(AUTHORITY, "gateway", "server", ["localhost"]))
    return Tls(load({"tls_cert": f"{tmp_path}/server.crt", "tls_key": f"{tmp_path}/server.key"}, {}))


def test_slow_and_too_many_handshakes_are_ended_and_others_served_s869(
    tls: Tls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S869: who says nothing, or half a greeting, shuts nobody out, and is waited for no longer than the
    bound; what is under way when the door closes is closed too."""
    monkeypatch.setattr(tls_door, "MAX_HANDSHAKES", 2)
    context = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))

    async def run() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            door = TlsListener(listener, Echo, tls)
            door.handshake_s = 600
            door.open(16)
            silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
            silent[0][1].write(b"\x16\x03\x01\x02\x00")
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", port, ssl=context, server_hostname="localhost"
            )
            assert await reader.read() == b"hello"
            writer.close()
            with suppress(ConnectionResetError):  # of what it had said, perhaps nothing was read
                assert await silent[0][0].read() == b"", "the oldest made room"
            door.handshake_s = 0.2
            late = await asyncio.open_connection("127.0.0.1", port)
            assert await late[0].read() == b"", "its time was over"
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET / HTTP/1.1\r\n\r\n")
            assert b"this port speaks TLS" in await reader.read()
            door.close()
            await door.wait_closed()
            assert await silent[1][0].read() == b"", "it was under way as the door closed"
            for _, one in (*silent, late, (reader, writer)):
                one.close()
                with suppress(ConnectionResetError):
                    await one.wait_closed()

    asyncio.run(run())
    assert tls.refused == 4


def test_who_answers_no_goodbye_is_not_waited_for_s869(tls: Tls, tmp_path: Path) -> None:
    """A client that keeps its connection and does not read would cost each stop all the time there is."""
    context = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
    ended = asyncio.Event()

    class Brief(Echo):
        def connection_lost(self, exc: Exception | None) -> None:
            ended.set()

    def keep(port: int) -> ssl.SSLSocket:
        kept = context.wrap_socket(socket.create_connection(("127.0.0.1", port)), server_hostname="localhost")
        assert kept.recv(5) == b"hello"
        return kept

    async def run() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            door = TlsListener(listener, Brief, tls)
            door.open(16)
            with await asyncio.to_thread(keep, listener.getsockname()[1]):
                async with asyncio.timeout(20):  # the loop's own patience is 30 s
                    await ended.wait()
            door.close()
            await door.wait_closed()

    asyncio.run(run())


@pytest.mark.parametrize("header", [b"", b"::", b"x", b":%%%:", b":aGVsbG8=:", b"AAAA"])
def test_a_proxy_s_header_that_is_no_certificate_is_refused_s859(header: bytes) -> None:
    with pytest.raises(BadHeader):
        forwarded_certificate([(b"client-cert", header)])
    assert forwarded_certificate([(b"x-client-cert", header)]) is None

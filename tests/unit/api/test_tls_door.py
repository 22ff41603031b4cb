"""The listening socket with TLS: a handshake has a bound, and no client harms another."""

from __future__ import annotations

import asyncio
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest

from observatory.api import tls_door
from observatory.api.shown import BadHeader, forwarded
from observatory.api.tls_door import TlsDoor
from observatory.cli.authority import issue, make_authority, write_pair
from observatory.daemons.tls import Tls
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
    """S869: who says nothing, or half a greeting, is waited for no longer than the bound."""
    monkeypatch.setattr(tls_door, "MOST", 2)

    async def run() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            door = TlsDoor(listener, Echo, tls)
            door.hello_s = 0.3
            door.open(16)
            silent = await asyncio.open_connection("127.0.0.1", port)
            half = await asyncio.open_connection("127.0.0.1", port)
            half[1].write(b"\x16\x03\x01\x02\x00")
            while tls.refused == 0:  # both are being greeted; a third finds no room
                third = await asyncio.open_connection("127.0.0.1", port)
                await third[0].read()
                third[1].close()
            for reader, writer in (silent, half):
                assert await reader.read() == b""
                writer.close()
            context = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", port, ssl=context, server_hostname="localhost"
            )
            assert await reader.read() == b"hello"
            writer.close()
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET / HTTP/1.1\r\n\r\n")
            assert b"this port speaks TLS" in await reader.read()
            writer.close()
            door.close()
            await door.wait_closed()

    asyncio.run(run())
    assert tls.refused >= 4


@pytest.mark.parametrize("header", [b"", b"::", b"x", b":%%%:", b":aGVsbG8=:", b"AAAA"])
def test_a_proxy_s_header_that_is_no_certificate_is_refused_s859(header: bytes) -> None:
    with pytest.raises(BadHeader):
        forwarded([(b"client-cert", header)])
    assert forwarded([(b"x-client-cert", header)]) is None

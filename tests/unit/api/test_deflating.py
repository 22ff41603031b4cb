"""Frames compressed once for all who are told them: any client reads them, whatever it agreed to."""

from __future__ import annotations

import random

import pytest
from websockets.extensions.permessage_deflate import ClientPerMessageDeflateFactory, PerMessageDeflate
from websockets.frames import Frame, Opcode

from observatory.http import websocket_compression as deflating
from observatory.http.websocket_compression import SMALL, SharedDeflateFactory


def agreed(**offered: bool | int) -> tuple[PerMessageDeflate, PerMessageDeflate]:
    """Server's side and client's side after a handshake."""
    client = ClientPerMessageDeflateFactory(**offered)  # type: ignore[arg-type]
    answer, server = SharedDeflateFactory().process_request_params(client.get_request_params(), [])
    return server, client.process_response_params(answer, [])


def text(length: int, seed: int = 0) -> bytes:
    dice = random.Random(seed)
    return "".join(dice.choice('{"kind":"session",é') for _ in range(length)).encode()


@pytest.mark.parametrize(
    "offered",
    [{}, {"server_max_window_bits": 10}, {"client_max_window_bits": True}, {"server_max_window_bits": 8}],
)
def test_every_client_reads_what_it_is_told_and_is_read(offered: dict[str, bool | int]) -> None:
    server, client = agreed(**offered)
    for number, length in enumerate((1, SMALL - 1, SMALL, 100_000, 3, 100_000)):
        data = text(length, number)
        for speaker, hearer in ((server, client), (client, server)):
            received = speaker.encode(Frame(Opcode.TEXT, data))
            assert bytes(hearer.decode(received).data) == data


def test_what_many_are_told_is_compressed_once() -> None:
    deflating._deflated_once.cache_clear()
    readers = [agreed() for _ in range(5)]
    received = [server.encode(Frame(Opcode.TEXT, bytes(text(5_000)))) for server, _ in readers]
    assert deflating._deflated_once.cache_info().misses == 1
    assert all(
        bytes(client.decode(one).data) == text(5_000)
        for one, (_, client) in zip(received, readers, strict=True)
    )


def test_a_small_frame_and_a_window_zlib_has_not_go_as_they_are() -> None:
    small, narrow = agreed()[0], agreed(server_max_window_bits=8)[0]
    assert not small.encode(Frame(Opcode.TEXT, b"{}")).rsv1
    assert not narrow.encode(Frame(Opcode.TEXT, text(5_000))).rsv1

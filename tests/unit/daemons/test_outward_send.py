"""Receivers that mean no good: where they lie, what they are called, and how they answer."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from observatory.runtime.outbound_http import (
    NotPublic,
    OutboundError,
    OutboundHttp,
    OutboundResponse,
    is_whole,
)
from tests.unit.daemons.test_outward import PRIVATE

PUBLIC = ("1.1.1.1", "1.0.0.1", "8.8.8.8", "8.8.4.4", "9.9.9.9")
GOOD = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class Receiver:
    """A bare socket that answers by a script: bytes, or a wait in seconds between them."""

    def __init__(self) -> None:
        self.script: list[bytes | float] = [GOOD]
        self.asked: list[bytes] = []
        self.sent = 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                talk, _ = self._listening.accept()
                with talk, suppress(OSError):
                    self.asked.append(talk.recv(65_536))
                    for part in self.script:
                        if isinstance(part, bytes):
                            talk.sendall(part)
                            self.sent += len(part)
                        elif self._end.wait(part):
                            break

    def close(self) -> None:
        self._end.set()
        self._listening.close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.close()


def send(
    receiver: Receiver, host: str = "127.0.0.1", timeout_s: float = 5.0, most_bytes: int = 1_024
) -> OutboundResponse:
    outward = OutboundHttp([f"{host}:{receiver.port}"])
    url = f"http://{host}:{receiver.port}/in?key=1"
    return asyncio.run(
        outward.send(url, b"{}", {"webhook-id": "1"}, timeout_s=timeout_s, most_bytes=most_bytes)
    )


def test_a_delivery_carries_its_headers_and_its_query_s507(receiver: Receiver) -> None:
    """S507: and nothing of the environment's."""
    heard = send(receiver)
    assert (heard.code, heard.body) == (200, b"ok")
    (asked,) = receiver.asked
    assert asked.startswith(b"POST /in?key=1 HTTP/1.1\r\n") and b"webhook-id: 1\r\n" in asked


@pytest.mark.parametrize("script", [[], [60.0], [b"HTTP/1.1 200 OK\r\nx-a: ", *[b"y", 0.05] * 40]])
def test_who_hangs_or_drips_its_head_is_given_up_in_time_s508(
    receiver: Receiver, script: list[bytes | float]
) -> None:
    """S508: closed without a word, silent, a byte at a time: one bounded failure each."""
    receiver.script = script
    began = time.monotonic()
    with pytest.raises(OutboundError):
        send(receiver, timeout_s=0.4)
    assert time.monotonic() - began < 2


def test_an_answer_without_end_is_cut_and_its_code_counts_s508(receiver: Receiver) -> None:
    """S508: a gigabyte is not read; who drips a body or breaks off has answered all the same."""
    head = b"HTTP/1.1 201 Made\r\ncontent-length: 1073741824\r\nretry-after: 7\r\n\r\n"
    receiver.script = [head, *[b"x" * 65_536] * 1_000]
    heard = send(receiver)
    assert (heard.code, len(heard.body), heard.headers["retry-after"]) == (201, 1_024, "7")
    time.sleep(0.05)
    assert receiver.sent < 32 << 20, "nobody went on reading"
    for rest in ([b"half"], [b"half", *[b"z", 0.05] * 40]):
        receiver.script = [head, *rest]
        heard = send(receiver, timeout_s=1.0)
        assert heard.code == 201 and heard.body.startswith(b"half")


def test_no_redirect_leads_anywhere_s507(receiver: Receiver) -> None:
    """S507: to a metadata address, to loopback, to another scheme: it is the answer, and nobody is asked."""
    canary = Receiver()
    for place in ("http://169.254.169.254/latest/", f"http://127.0.0.1:{canary.port}/", "file:///etc/passwd"):
        receiver.script = [f"HTTP/1.1 302 Go\r\nlocation: {place}\r\ncontent-length: 0\r\n\r\n".encode()]
        assert send(receiver).code == 302
    assert canary.asked == [] and len(receiver.asked) == 3
    canary.close()


SPELLINGS = (
    "127.0.0.1", "localhost", "localhost.", "LOCALHOST", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1",
    "127.1", "127.0.1", "0", "0.0.0.0", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]",
    "[0:0:0:0:0:0:0:1]", "[::7f00:1]", "[64:ff9b::7f00:1]", "[fe80::1%25lo]", "127.0.0.1.", "user@127.0.0.1",
    "user:pw@127.0.0.1", "example.com@127.0.0.1", "@127.0.0.1", "127.0.0.1#@example.com",
    "127.0.0.1%2f@example.com", "127。0。0。1", "①②⑦.0.0.1", "127%2e0%2e0%2e1", "127.0.0.1\\@example.com",
    " 127.0.0.1", "127.0.0.1\t", "", "[::1",
)  # fmt: skip


def test_loopback_is_not_connected_to_in_any_spelling_s507(receiver: Receiver) -> None:
    """S507: plain or not, on its port or on one of https'; the canary hears nothing."""
    outward = OutboundHttp([f"elsewhere:{receiver.port}"])

    async def refused() -> None:
        for host in SPELLINGS:
            for url in (f"http://{host}:{receiver.port}/", f"https://{host}:8443/", f"https://{host}/"):
                with pytest.raises(OutboundError):
                    await outward.send(url, b"{}", {}, timeout_s=2.0)
                with pytest.raises(OutboundError):
                    await outward.address(url)

    asyncio.run(refused())
    assert receiver.asked == []


def test_a_host_means_the_same_to_everybody_s507() -> None:
    """S507: an address as it is usually written, or a name with a dot; what the operator lists may be any."""
    for host in (
        "them.example",
        "a.b.c.",
        "xn--nxasmq6b.example",
        "1.2.3.4",
        "2606:4700::1111",
        "9.them.example",
    ):
        assert is_whole(host), host
    for host in (
        "localhost",
        "localhost.",
        "2130706433",
        "0x7f.1",
        "127.1",
        "a.b.0x7f",
        "a..b",
        ".a.b",
        "1.2.3.4.",
    ):
        assert not is_whole(host), host
    assert OutboundHttp(["localhost:9000"]).check("http://localhost:9000/") is None


def test_every_address_a_name_has_must_be_public_s507(receiver: Receiver) -> None:
    """S507: each of the denied, alone and behind a public one; a name with none; many more than are tried."""

    found: list[str] = []
    outward = OutboundHttp(resolve=lambda host, port: found)

    async def asked() -> None:
        for address in PRIVATE:
            for found[:] in ([address], [*PUBLIC, address]):
                with pytest.raises(NotPublic):
                    await outward.send("https://name.example/", b"{}", {})
        found.clear()
        with pytest.raises(OutboundError, match="cannot be reached"):
            await outward.send("https://name.example/", b"{}", {})

    asyncio.run(asked())


def test_a_name_that_changes_between_look_and_use_is_not_followed_s507(receiver: Receiver) -> None:
    """S507: it is resolved once a try, and what was looked at is what is connected to."""
    answers = iter([["192.0.2.1"], ["127.0.0.1"], ["127.0.0.1"]])
    asked = []

    def flips(host: str, port: int) -> list[str]:
        asked.append(host)
        return next(answers)

    url = f"https://rebind.example:{receiver.port}/"
    vouched = OutboundHttp([f"rebind.example:{receiver.port}"], resolve=flips)
    with pytest.raises(OutboundError):  # 192.0.2.1 leads nowhere; the second answer is never asked for
        asyncio.run(vouched.send(url, b"{}", {}, timeout_s=0.2))
    assert asked == ["rebind.example"] and receiver.asked == []
    stranger = OutboundHttp(resolve=flips)
    with pytest.raises(NotPublic):
        asyncio.run(stranger.send("https://rebind.example/", b"{}", {}, timeout_s=0.2))


def test_a_name_server_that_hangs_holds_up_nobody_s508() -> None:
    """S508: in time, and on threads of its own."""
    gone = threading.Event()

    def hangs(host: str, port: int) -> list[str]:
        gone.wait(5)
        return []

    async def asked() -> float:
        began = time.monotonic()
        with pytest.raises(OutboundError, match="in time"):
            await OutboundHttp(resolve=hangs).send("https://name.example/", b"{}", {}, timeout_s=0.1)
        await asyncio.to_thread(lambda: None)  # the house's own threads are free
        return time.monotonic() - began

    assert asyncio.run(asked()) < 1
    gone.set()

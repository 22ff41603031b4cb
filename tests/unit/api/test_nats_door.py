"""Requests and channels by NATS: what is asked twice, too much, or fails on the way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest

from observatory.errors import NotDurable
from observatory.features.nats import requests as nats_door
from observatory.features.nats.channel import ChannelOpening, NatsChannel
from observatory.features.nats.requests import BUSY, REPEATED, AuthenticatedLetter, NatsRequests, Repeats
from observatory.protocol import nats
from observatory.protocol.nats import FRESH_NS, NatsReply, NatsRequest
from observatory.protocol.nats_frames import FrameReceiver, channel_secret
from observatory.sdk.nats_pipe import Pipe

KNOWN = AuthenticatedLetter(
    NatsRequest("o.request", "pub", 1, "GET /v1/x", "_INBOX.a", b"{}"), "00" * 32, b"h", b"s"
)
SETTINGS = SimpleNamespace(nats_replicas=1, nats_stream_bytes=1 << 20, message_bytes=1 << 20)


def signature(number: int) -> str:
    return f"{number:032x}" + "0" * 32


def test_a_request_is_remembered_as_long_as_it_could_be_fresh_however_many_come_s831(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """S831: others cannot push it out of memory; when there is no room, nobody is let in."""
    repeats, now = Repeats(), 10**18
    assert repeats.look(signature(0), now) is None
    for number in range(1, 5_000):
        assert repeats.look(signature(number), now + number * FRESH_NS // 2_500) is None
    assert repeats.look(signature(0), now + 2 * FRESH_NS) is REPEATED
    monkeypatch.setattr(nats_door, "SEEN", 1)
    assert repeats.look(signature(9_999), now + 2 * FRESH_NS) is BUSY
    assert repeats.look(signature(9_999), now + 9 * FRESH_NS) is None
    assert repeats.look(signature(0), now + 9 * FRESH_NS + 1) is BUSY


def door(face: Callable[..., Any] | None = None) -> NatsRequests:
    auth = SimpleNamespace(vouched=lambda *who: nullcontext(b"Vouched x"))
    harness = SimpleNamespace(settings=SETTINGS, auth=auth, clock=lambda: 1)
    line = SimpleNamespace(address=nats.address("nats://h/o"))
    made = NatsRequests(cast(Any, harness), cast(Any, line), cast(Any, None))
    made._asgi = face
    return made


async def answering(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": scope["query_string"]})


def test_what_is_asked_with_a_word_twice_or_empty_is_asked_so_s831() -> None:
    """S831: as over HTTP."""
    query = "state=held&state=forwarded&q=&a=%26"
    assert asyncio.run(door(answering).carry(KNOWN, "GET", "/v1/x", query)).body == query.encode()


async def away(scope: Any, receive: Any, send: Any) -> None:
    raise NotDurable("away")


async def broken(scope: Any, receive: Any, send: Any) -> None:
    raise ZeroDivisionError


@pytest.mark.parametrize(("face", "status"), [(away, 503), (broken, 500)])
def test_whatever_fails_on_the_way_is_answered_s828(face: Callable[..., Any], status: int) -> None:
    """S828: without an answer a message would lie half a minute and then fail again, for ever."""
    assert asyncio.run(door(face).carry(KNOWN, "POST", "/v1/messages")).status == status


def test_an_answer_without_end_is_neither_kept_nor_waited_for_s831() -> None:
    said = 0

    async def endless(scope: Any, receive: Any, send: Any) -> None:
        nonlocal said
        await receive()
        gone = asyncio.create_task(receive())
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while not gone.done():
            said += 1
            await send({"type": "http.response.body", "body": b"x" * 1_000, "more_body": True})
            await asyncio.sleep(0)

    replies: list[NatsReply] = []

    async def run() -> None:
        one = door(endless)

        async def fresh(message: Any) -> AuthenticatedLetter:
            return KNOWN

        async def answer(client: Any, subject: str, reply: NatsReply, *signed: Any) -> None:
            replies.append(reply)

        one._fresh, one.answer = fresh, answer  # type: ignore[method-assign,assignment]
        await one._answer_request(cast(Any, SimpleNamespace(max_payload=20_000)), cast(Any, None))

    asyncio.run(run())
    assert [reply.status for reply in replies] == [413] and said < 25


def test_a_flood_of_openings_is_told_to_come_later_s833(monkeypatch: pytest.MonkeyPatch) -> None:
    """S833: before anybody is looked up; and when it is over the next are let in."""
    monkeypatch.setattr(nats_door, "AT_ONCE", 3)

    async def run() -> list[int]:
        one, received, looked = door(), list[int](), asyncio.Event()

        async def fresh(message: Any) -> NatsReply:
            await looked.wait()
            return nats_door.UNKNOWN

        async def refuse(client: Any, message: Any, what: str, reply: NatsReply) -> None:
            received.append(reply.status)

        one._fresh, one._refuse = fresh, refuse  # type: ignore[method-assign]
        for _ in range(5):
            await one._on_channel(cast(Any, None), cast(Any, None))
        looked.set()
        await asyncio.gather(*one._tasks)
        await one._on_channel(cast(Any, None), cast(Any, None))
        await asyncio.gather(*one._tasks)
        return received

    assert asyncio.run(run()) == [429, 429, 401, 401, 401, 401]


class Slow:
    """A connection that lets others run between two messages, as a full one does."""

    max_payload, is_closed = 2_048, False

    def __init__(self) -> None:
        self.sent: list[tuple[dict[str, str], bytes]] = []

    async def publish(self, subject: str, body: bytes, reply: str, headers: dict[str, str]) -> None:
        self.sent.append((headers, body))
        await asyncio.sleep(0)


@pytest.mark.parametrize("end", ["gateway", "agent"])
def test_nothing_comes_between_the_parts_of_a_frame_s833_s837(end: str) -> None:
    """S833, S837: a sign of life or another frame, said while a large one is on its way."""
    frames = [letter * 5_000 for letter in (b"a", b"b", b"c")]

    async def run() -> list[Any]:
        client = cast(Any, Slow())
        if end == "gateway":
            opening = ChannelOpening("x", "_INBOX.x")
            channel = NatsChannel(client, nats.address("nats://h"), b"s", "asked", opening, 1 << 20)
            say, out, into = channel._send_op, channel._pipe, b"to agent"
            intake = FrameReceiver(channel_secret(b"s", "asked", out), into, 1 << 20)
            await asyncio.gather(*(say("frame", frame) for frame in frames), say("ping"))
        else:
            pipe = Pipe(cast(Any, SimpleNamespace(client=client)), "_INBOX.x")
            async with pipe.opened("there", b"s", "asked"):
                intake = FrameReceiver(channel_secret(b"s", "asked", "there"), b"to gateway", 1 << 20)
                await asyncio.gather(*(pipe.send(frame) for frame in frames), pipe._publish("ping"))
        return [found for packet in client.sent if (found := intake.take(*packet)) is not None]

    heard = asyncio.run(run())
    assert heard[:4] == [*(("frame", frame) for frame in frames), ("ping", b"")]

"""What the stream is told about a message, by what came of it: done, later, or never again."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any, cast

import pytest

from observatory.errors import NotDurable
from observatory.features.nats.ingest import NatsIngest
from observatory.features.nats.requests import AuthenticatedLetter
from observatory.protocol import nats
from observatory.protocol.nats import NatsReply, NatsRequest

ADDRESS = nats.address("nats://h/o")
INBOX = "_INBOX.a.b"


class Message:
    """As fetched; remembers what the stream was told."""

    def __init__(self, happened: list[str], subject: str = "o.ingest.pub") -> None:
        self.subject, self.happened = subject, happened
        self.headers, self.reply = {nats.REPLY: INBOX}, ""
        self.metadata = SimpleNamespace(num_delivered=99, sequence=SimpleNamespace(stream=7))

    async def ack(self) -> None:
        self.happened.append("ack")

    async def term(self) -> None:
        self.happened.append("term")

    async def nak(self, delay: float | None = None) -> None:
        self.happened.append(f"nak {delay}")


class Door:
    """Knows the letter, or not; answers what the case says; and remembers in which order."""

    address = ADDRESS

    def __init__(
        self, outcome: NatsReply | Exception, happened: list[str], stranger: NatsReply | None = None
    ) -> None:
        self.outcome, self.happened, self.stranger = outcome, happened, stranger

    async def known(self, message: Any) -> Any:
        if isinstance(self.outcome, Exception):
            raise self.outcome
        letter = NatsRequest("o.ingest.pub", "pub", 1, "POST /v1/messages", INBOX, b"{}")
        return self.stranger or AuthenticatedLetter(letter, "sig", b"h", b"s")

    async def carry(self, known: Any, method: str, path: str) -> NatsReply:
        assert (method, path) == ("POST", "/v1/messages") and isinstance(self.outcome, NatsReply)
        self.happened.append("committed")
        return self.outcome

    async def answer(
        self, client: Any, subject: str, reply: NatsReply, signature: str = "", secret: bytes | None = None
    ) -> None:
        assert subject == INBOX
        self.happened.append(f"answer {reply.status}{'' if secret else ' unsigned'}")

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        raise AssertionError("nothing is spawned here")


LINES = b'{"code":202,"status":"accepted"}\n{"code":422}\n'
CASES: dict[str, tuple[NatsReply | Exception, list[str]]] = {
    "accepted": (NatsReply(202, b"{}"), ["committed", "answer 202", "ack"]),
    "a batch": (NatsReply(200, LINES), ["committed", "answer 200", "ack"]),
    "half a batch": (NatsReply(200, LINES + b'{"code":503}\n'), ["committed", "answer 200", "nak 1.0"]),
    "judged": (NatsReply(422, b"{}"), ["committed", "answer 422", "ack"]),
    "conflict": (NatsReply(409, b"{}"), ["committed", "answer 409", "ack"]),
    "too large": (NatsReply(413, b"{}"), ["committed", "answer 413", "term"]),
    "revoked meanwhile": (NatsReply(401, b"{}"), ["committed", "answer 401", "term"]),
    "busy": (NatsReply(429, b"{}", "3"), ["committed", "answer 429", "nak 3.0"]),
    "disk full": (NatsReply(503, b"{}", "1"), ["committed", "answer 503", "nak 1.0"]),
    "a bug": (NatsReply(500, b"{}"), ["committed", "answer 500", "nak 1.0"]),
    "database away": (NotDurable("away"), ["nak 1.0"]),
}


def judged(door: Door, message: Message, stopping: bool = False) -> list[str]:
    async def run() -> None:
        ingest = NatsIngest(cast(Any, door), 1, 1 << 20)
        ingest.stopping = stopping
        await ingest._take(cast(Any, None), cast(Any, message))
        assert ingest._in_flight == -1, "room for the next, whatever came of it"

    asyncio.run(run())
    return door.happened


@pytest.mark.parametrize("name", CASES)
def test_the_stream_hears_of_it_after_the_commit_and_after_the_verdict_s827_s828(name: str) -> None:
    """S827, S828: what was judged is done; what cannot be stored now stays; what never can leaves."""
    outcome, expected = CASES[name]
    happened: list[str] = []
    assert judged(Door(outcome, happened), Message(happened)) == expected


def test_a_message_we_fail_on_again_and_again_makes_room_for_others_s828() -> None:
    """S828: its agent has no verdict and keeps it. That it had to wait before is no failure of its own."""
    happened: list[str] = []

    async def run() -> None:
        ingest = NatsIngest(cast(Any, Door(NatsReply(500, b"{}"), happened)), 1, 1 << 20)
        for _ in range(10):
            await ingest._take(cast(Any, None), cast(Any, Message(happened)))

    asyncio.run(run())
    assert happened[2::3] == ["nak 1.0"] * 9 + ["term"]


def test_a_stranger_s_letter_leaves_the_stream_unread_s825() -> None:
    happened: list[str] = []
    door = Door(NatsReply(202, b""), happened, stranger=NatsReply(401, b"{}"))
    assert judged(door, Message(happened)) == ["answer 401 unsigned", "term"]


def test_a_key_speaks_on_its_own_subject_only_s825() -> None:
    happened: list[str] = []
    message = Message(happened, "o.ingest.other")
    assert judged(Door(NatsReply(202, b""), happened), message) == ["answer 401 unsigned", "term"]


def test_a_gateway_that_stops_gives_back_what_it_had_not_begun_s828() -> None:
    happened: list[str] = []
    assert judged(Door(NatsReply(202, b""), happened), Message(happened), stopping=True) == ["nak None"]


class Queue:
    """The connection as the queue uses it: one subscription, and what is asked for."""

    max_payload = 1 << 20

    def __init__(self, happened: list[str]) -> None:
        self.happened = happened

    def new_inbox(self) -> str:
        return INBOX

    async def subscribe(self, subject: str, cb: Any) -> Queue:
        self.happened.append("subscribed")
        return self

    async def publish(self, subject: str, body: bytes, reply: str = "") -> None:
        self.happened.append("asked")

    async def drain(self) -> None:
        self.happened.append("left")


@pytest.mark.parametrize("way", ["stopped", "broken"])
def test_what_had_come_unlooked_at_goes_back_and_nothing_stays_subscribed_s828(way: str) -> None:
    """S828: else it would lie for as long as the stream waits for an acknowledgement."""
    happened: list[str] = []

    async def run() -> None:
        ingest = NatsIngest(cast(Any, Door(NatsReply(202, b""), happened)), 1, 1 << 20)
        ingest._in_flight = 64  # no room: what comes is not looked at
        pulling = asyncio.create_task(ingest.pull(cast(Any, Queue(happened))))
        await asyncio.sleep(0)  # it begins
        message = Message(happened)
        message.reply = "$JS.ACK.x"
        ingest._arrived.put_nowait(cast(Any, message))
        if way == "stopped":
            await ingest.stop()
        pulling.cancel()
        await asyncio.gather(pulling, return_exceptions=True)

    asyncio.run(run())
    assert happened == ["subscribed", "left", "nak None"]

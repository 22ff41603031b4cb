"""A channel's frames over NATS: numbered, signed and cut to what the server carries. Pure.

Law: both ends derive one secret for the channel from the key and from what each of them chose at its
opening. A frame has the next number of its direction or the channel is broken: NATS may lose what a slow
reader left lying, and nothing may be lost in silence. A broken channel is opened again, and what was not
acknowledged comes again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from observatory.protocol.nats import OP, SEQ, SIGNATURE, is_signed, sign

PING_S = 3.0  # after so long a silent end says that it lives
DEAD_S = 10.0  # after so long without a word the other end is gone
ROOM = 1_024  # of a message for headers
Op = Literal["frame", "more", "ping", "close"]
OPS: dict[str, Op] = {"frame": "frame", "more": "more", "ping": "ping", "close": "close"}


class Broken(Exception):
    """The channel cannot go on; it is opened again."""


class Packet(NamedTuple):
    headers: dict[str, str]
    body: bytes


def channel_secret(secret: bytes, asked: str, answered: str) -> bytes:
    """From the signature of the opening letter, and the pipe the gateway chose."""
    return bytes.fromhex(sign(secret, b"channel", asked.encode(), answered.encode()))


class Outlet:
    """One direction of a channel, at the end that speaks."""

    def __init__(self, secret: bytes, direction: bytes, max_payload: int) -> None:
        self._secret, self._direction = secret, direction
        self._size = max(1_024, max_payload - ROOM)
        self._seq = 0

    def packets(self, op: Op, body: bytes = b"") -> Iterator[Packet]:
        while len(body) > self._size:
            yield self._packet("more", body[: self._size])
            body = body[self._size :]
        yield self._packet(op, body)

    def _packet(self, op: Op, body: bytes) -> Packet:
        self._seq += 1
        signature = sign(self._secret, self._direction, b"%d" % self._seq, op.encode(), body)
        return Packet({SEQ: str(self._seq), OP: op, SIGNATURE: signature}, body)


class Intake:
    """The same at the end that hears."""

    def __init__(self, secret: bytes, direction: bytes, max_bytes: int) -> None:
        self._secret, self._direction, self._max_bytes = secret, direction, max_bytes
        self._seq = 0
        self._parts: list[bytes] = []
        self._size = 0

    def take(self, headers: Mapping[str, str] | None, body: bytes) -> tuple[Op, bytes] | None:
        """A whole frame, or None while it is not; forged ones are as if they had not come."""
        given = headers or {}
        op, seq = OPS.get(given.get(OP, "")), given.get(SEQ, "")
        parts = (self._direction, seq.encode("utf-8", "replace"), (op or "").encode(), body)
        if op is None or not seq.isascii() or not is_signed(self._secret, given.get(SIGNATURE, ""), *parts):
            return None
        if seq != str(self._seq + 1):
            raise Broken("a frame was lost on the way" if int(seq) > self._seq else "a frame came twice")
        self._seq += 1
        self._size += len(body)
        if self._size > self._max_bytes:
            raise Broken("a frame is too large")
        self._parts.append(body)
        if op == "more":
            return None
        whole, self._parts, self._size = b"".join(self._parts), [], 0
        return op, whole

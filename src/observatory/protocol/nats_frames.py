"""The frames of a channel over NATS: numbered, signed and split to the server's maximum size. Pure.

Law: both ends derive a secret for the channel from the key and from a value each of them chose when it was
opened. A frame must have the next number of its direction, otherwise the channel is broken: NATS may drop
messages for a slow reader, and no loss may go unnoticed. A broken channel is opened again, and what was not
acknowledged is sent again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from observatory.protocol.nats import OP, SEQ, SIGNATURE, is_signed, sign

PING_S = 3.0  # an idle end sends a ping after this time
DEAD_S = 10.0  # without any frame for this time the other end is considered gone
HEADER_BYTES = 1_024  # bytes of a message reserved for headers
Op = Literal["frame", "more", "ping", "close"]
OPS: dict[str, Op] = {"frame": "frame", "more": "more", "ping": "ping", "close": "close"}


class ChannelBroken(Exception):
    """The channel is broken; it must be opened again."""


class Packet(NamedTuple):
    headers: dict[str, str]
    body: bytes


def channel_secret(secret: bytes, asked: str, answered: str) -> bytes:
    """Derived from the signature of the opening request and the pipe the gateway chose."""
    return bytes.fromhex(sign(secret, b"channel", asked.encode(), answered.encode()))


class FrameSender:
    """One direction of a channel, at the sending end."""

    def __init__(self, secret: bytes, direction: bytes, max_payload: int) -> None:
        self._secret, self._direction = secret, direction
        self._size = max(1_024, max_payload - HEADER_BYTES)
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


class FrameReceiver:
    """One direction of a channel, at the receiving end."""

    def __init__(self, secret: bytes, direction: bytes, max_bytes: int) -> None:
        self._secret, self._direction, self._max_bytes = secret, direction, max_bytes
        self._seq = 0
        self._parts: list[bytes] = []
        self._size = 0

    def take(self, headers: Mapping[str, str] | None, body: bytes) -> tuple[Op, bytes] | None:
        """A complete frame, or None while parts are missing; forged packets are ignored."""
        given = headers or {}
        op, seq = OPS.get(given.get(OP, "")), given.get(SEQ, "")
        parts = (self._direction, seq.encode("utf-8", "replace"), (op or "").encode(), body)
        if op is None or not seq.isascii() or not is_signed(self._secret, given.get(SIGNATURE, ""), *parts):
            return None
        if seq != str(self._seq + 1):
            raise ChannelBroken("a frame was lost" if int(seq) > self._seq else "a frame was received twice")
        self._seq += 1
        self._size += len(body)
        if self._size > self._max_bytes:
            raise ChannelBroken("a frame is too large")
        self._parts.append(body)
        if op == "more":
            return None
        whole, self._parts, self._size = b"".join(self._parts), [], 0
        return op, whole

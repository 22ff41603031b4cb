"""Decodes an OTLP backend's response: how many records it rejected, why, and when to retry.

Only a few members of three small messages matter: ExportLogsServiceResponse with its partial success, and
google.rpc.Status with a RetryInfo in its details. Malformed data is ignored: a bad response can delay an
exporter but never break it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

RETRY_INFO: Final = b"type.googleapis.com/google.rpc.RetryInfo"
LONGEST: Final = 200


class PartialSuccess(NamedTuple):
    """How many records were rejected; a message with zero rejected is a warning."""

    rejected: int = 0
    message: str = ""


class RpcStatus(NamedTuple):
    message: str = ""
    retry_s: float | None = None  # None: no RetryInfo


def partial(raw: bytes) -> PartialSuccess:
    """From an ExportLogsServiceResponse: partial_success = 1."""
    rejected, message = 0, ""
    for block in _blocks(raw, 1):
        for number, value in _fields(block):
            if number == 1 and isinstance(value, int) and value < 1 << 63:  # rejected_log_records
                rejected = value
            elif number == 2 and isinstance(value, bytes):  # error_message
                message = plain(value)
    return PartialSuccess(rejected, message)


def status(raw: bytes) -> RpcStatus:
    """From a google.rpc.Status: message = 2, details = 3, each an Any (type_url = 1, value = 2)."""
    message, retry_s = "", None
    for block in _blocks(raw, 2):
        message = plain(block)
    for detail in _blocks(raw, 3):
        if RETRY_INFO in _blocks(detail, 1):
            for info in _blocks(detail, 2):
                retry_s = sum(map(_seconds, _blocks(info, 1)))  # retry_delay = 1
    return RpcStatus(message, retry_s)


def plain(text: bytes) -> str:
    """Text from a backend, as one short line for people."""
    found = text[: 4 * LONGEST].decode(errors="replace")
    return " ".join("".join(char if char.isprintable() else " " for char in found).split())[:LONGEST]


def _seconds(duration: bytes) -> float:
    """From a Duration: seconds = 1, nanos = 2; a negative one counts as zero."""
    found = {number: value for number, value in _fields(duration) if isinstance(value, int)}
    whole, nanos = found.get(1, 0), found.get(2, 0)
    return whole + nanos / 1e9 if whole < 1 << 40 and nanos < 1_000_000_000 else 0.0


def _blocks(raw: bytes, field_number: int) -> list[bytes]:
    return [value for number, value in _fields(raw) if number == field_number and isinstance(value, bytes)]


def _fields(raw: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Field by field, as far as it is well-formed; varints undecoded."""
    at = 0
    while at < len(raw):
        tag, at = _varint(raw, at)
        kind = tag & 7
        if kind == 0:
            value, at = _varint(raw, at)
            if at <= len(raw):
                yield tag >> 3, value
        elif kind == 2:
            size, at = _varint(raw, at)
            if at + size > len(raw):
                return
            yield tag >> 3, raw[at : at + size]
            at += size
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        else:
            return


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    """The number and the position after it; past the end when it is incomplete."""
    number = 0
    for shift in range(0, 70, 7):
        if at >= len(raw):
            break
        number |= (raw[at] & 0x7F) << shift
        at += 1
        if raw[at - 1] < 0x80:
            return number, at
    return 0, len(raw) + 1

"""Spans and log records in one plain form, independent of the encoding they arrived in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

import msgspec

from observatory.features.otlp.wire import Allowance

Form = Literal["protobuf", "json"]
Attributes = dict[str, Any]
ERROR: Final = 2  # of a span's status
CLIENT: Final = 3  # of a span's kind
DEEPEST: Final = 32  # levels of nested values


class NotOtlp(Exception):
    """The body is not valid OTLP; the exception's text is the whole answer."""


class OtlpSpan(msgspec.Struct, gc=False):
    trace_id: str
    span_id: str
    parent_id: str  # "" for a root
    name: str
    kind: int
    start_ns: int
    end_ns: int
    attributes: Attributes
    failed: bool
    trouble: str  # the message of its status or exception
    flags: int
    state: str
    resource: Attributes
    scope: str
    size: int


class OtlpLog(msgspec.Struct, gc=False):
    trace_id: str
    span_id: str
    name: str  # of the event
    at_ns: int
    attributes: Attributes
    body: Any
    severity: int
    resource: Attributes
    scope: str
    size: int


def id_of(raw: bytes) -> str:
    """Hex; "" for an absent id. All zero counts as absent."""
    return raw.hex() if raw.strip(b"\0") else ""


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else ""


def error_text(events: Any, left: Allowance, read: Callable[[Any, Allowance], Attributes]) -> str:
    """The last exception's message, else its type. Nothing else of an event is read."""
    left.spend(len(events))
    last = None
    for event in events:
        if event.name == "exception":
            last = event.attributes
    if last is None:
        return ""
    attributes = read(last, left)
    return text_of(attributes.get("exception.message") or attributes.get("exception.type"))

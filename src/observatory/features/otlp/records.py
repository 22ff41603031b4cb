"""Spans and log records of others in one plain form, whichever way they came."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

import msgspec

from observatory.features.otlp.wire import Allowance

Form = Literal["protobuf", "json"]
Attributes = dict[str, Any]
ERROR: Final = 2  # of a span's status
CLIENT: Final = 3  # of a span's kind
DEEPEST: Final = 32  # of values in values


class NotOtlp(Exception):
    """The body is not what OTLP says; its text is the whole answer."""


class Span(msgspec.Struct, gc=False):
    trace_id: str
    span_id: str
    parent_id: str  # "" of a root
    name: str
    kind: int
    start_ns: int
    end_ns: int
    attributes: Attributes
    failed: bool
    trouble: str  # what its status or its exception says
    flags: int
    state: str
    resource: Attributes
    scope: str
    size: int


class Log(msgspec.Struct, gc=False):
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
    """Hex; "" where there is none. All zero is none."""
    return raw.hex() if raw.strip(b"\0") else ""


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else ""


def trouble_of(events: Any, left: Allowance, read: Callable[[Any, Allowance], Attributes]) -> str:
    """The last exception's message; of one without, its type. Nothing else of an event is read."""
    left.spend(len(events))
    last = None
    for event in events:
        if event.name == "exception":
            last = event.attributes
    if last is None:
        return ""
    said = read(last, left)
    return text_of(said.get("exception.message") or said.get("exception.type"))

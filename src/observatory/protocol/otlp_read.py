"""Spans and log records of others, read from OTLP: protobuf or its JSON, into one plain form.

Law: whatever arrives is either well-formed OTLP or refused as a whole with a sentence; what a sender may
leave out is empty here. Ids are lower-case hex, times nanoseconds, attributes plain values. Nothing is judged
yet. The official package decodes protobuf; it is imported with the first request that needs it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from typing import Any, Final, Literal

import msgspec

Form = Literal["protobuf", "json"]
Attributes = dict[str, Any]
ERROR: Final = 2  # of a span's status
CLIENT: Final = 3  # of a span's kind
_DEEPEST: Final = 32


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


def spans(body: bytes, form: Form) -> list[Span]:
    return list(_spans_of_protobuf(body) if form == "protobuf" else _spans_of_json(body))


def logs(body: bytes, form: Form) -> list[Log]:
    return list(_logs_of_protobuf(body) if form == "protobuf" else _logs_of_json(body))


def _spans_of_protobuf(body: bytes) -> Iterable[Span]:
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    try:
        request = ExportTraceServiceRequest.FromString(body)
    except DecodeError as error:
        raise NotOtlp("the body is not an ExportTraceServiceRequest in protobuf") from error
    for block in request.resource_spans:
        resource = _pairs(block.resource.attributes)
        for scoped in block.scope_spans:
            scope = scoped.scope.name
            for one in scoped.spans:
                status = one.status
                yield Span(
                    one.trace_id.hex(),
                    one.span_id.hex(),
                    one.parent_span_id.hex(),
                    one.name,
                    one.kind,
                    one.start_time_unix_nano,
                    one.end_time_unix_nano,
                    _pairs(one.attributes),
                    status.code == ERROR,
                    status.message
                    or _trouble((event.name, _pairs(event.attributes)) for event in one.events),
                    one.flags & 0xFF,
                    one.trace_state,
                    resource,
                    scope,
                    one.ByteSize(),
                )


def _logs_of_protobuf(body: bytes) -> Iterable[Log]:
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

    try:
        request = ExportLogsServiceRequest.FromString(body)
    except DecodeError as error:
        raise NotOtlp("the body is not an ExportLogsServiceRequest in protobuf") from error
    for block in request.resource_logs:
        resource = _pairs(block.resource.attributes)
        for scoped in block.scope_logs:
            for one in scoped.log_records:
                attributes = _pairs(one.attributes)
                yield Log(
                    one.trace_id.hex(),
                    one.span_id.hex(),
                    one.event_name or _text(attributes.get("event.name")),
                    one.time_unix_nano or one.observed_time_unix_nano,
                    attributes,
                    _value(one.body),
                    one.severity_number,
                    resource,
                    scoped.scope.name,
                    one.ByteSize(),
                )


def _pairs(pairs: Any) -> Attributes:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: Any, depth: int = 0) -> Any:
    """Of an AnyValue. Text first: nearly all are."""
    kind = value.WhichOneof("value")
    if kind == "string_value":
        return value.string_value
    if kind is None or depth > _DEEPEST:
        return None
    if kind == "array_value":
        return [_value(one, depth + 1) for one in value.array_value.values]
    if kind == "kvlist_value":
        return {pair.key: _value(pair.value, depth + 1) for pair in value.kvlist_value.values}
    if kind == "bytes_value":
        return base64.b64encode(value.bytes_value).decode()
    return getattr(value, kind, None)


def _trouble(events: Iterable[tuple[str, Attributes]]) -> str:
    """The last exception's message; of one without, its type."""
    found = ""
    for name, attributes in events:
        if name == "exception":
            found = _text(attributes.get("exception.message") or attributes.get("exception.type"))
    return found


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


# OTLP's JSON: names in lowerCamelCase, ids in hex, 64-bit numbers as text or numbers, unknown names ignored.
class _Json(msgspec.Struct, rename="camel", gc=False):
    pass


class _Pair(_Json):
    key: str
    value: dict[str, Any] | None = None


class _Resource(_Json):
    attributes: list[_Pair] = []


class _Scope(_Json):
    name: str = ""


class _Status(_Json):
    code: int | str = 0
    message: str = ""


class _Event(_Json):
    name: str = ""
    attributes: list[_Pair] = []


class _Span(_Json):
    trace_id: str
    span_id: str
    parent_span_id: str = ""
    name: str = ""
    kind: int | str = 0
    start_time_unix_nano: int | str = 0
    end_time_unix_nano: int | str = 0
    attributes: list[_Pair] = []
    events: list[_Event] = []
    status: _Status | None = None
    flags: int = 0
    trace_state: str = ""


class _ScopeSpans(_Json):
    scope: _Scope | None = None
    spans: list[msgspec.Raw] = []


class _ResourceSpans(_Json):
    resource: _Resource | None = None
    scope_spans: list[_ScopeSpans] = []


class _Traces(_Json):
    resource_spans: list[_ResourceSpans] = []


class _Record(_Json):
    time_unix_nano: int | str = 0
    observed_time_unix_nano: int | str = 0
    severity_number: int | str = 0
    event_name: str = ""
    body: dict[str, Any] | None = None
    attributes: list[_Pair] = []
    trace_id: str = ""
    span_id: str = ""


class _ScopeLogs(_Json):
    scope: _Scope | None = None
    log_records: list[msgspec.Raw] = []


class _ResourceLogs(_Json):
    resource: _Resource | None = None
    scope_logs: list[_ScopeLogs] = []


class _Logs(_Json):
    resource_logs: list[_ResourceLogs] = []


_KINDS: Final = {f"SPAN_KIND_{name}": n for n, name in enumerate(
    ("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER"))}  # fmt: skip
_FAULTS: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError, binascii.Error)


def _spans_of_json(body: bytes) -> Iterable[Span]:
    try:
        for block in msgspec.json.decode(body, type=_Traces).resource_spans:
            resource = _pairs_of_json(block.resource.attributes) if block.resource else {}
            for scoped in block.scope_spans:
                for raw in scoped.spans:
                    one = msgspec.json.decode(raw, type=_Span)
                    status = one.status or _Status()
                    yield Span(
                        _hex(one.trace_id, 32),
                        _hex(one.span_id, 16),
                        _hex(one.parent_span_id, 16),
                        one.name,
                        one.kind if isinstance(one.kind, int) else _KINDS.get(one.kind, 0),
                        _number(one.start_time_unix_nano),
                        _number(one.end_time_unix_nano),
                        _pairs_of_json(one.attributes),
                        status.code in (ERROR, "STATUS_CODE_ERROR"),
                        status.message
                        or _trouble((event.name, _pairs_of_json(event.attributes)) for event in one.events),
                        one.flags & 0xFF,
                        one.trace_state,
                        resource,
                        scoped.scope.name if scoped.scope else "",
                        len(raw),
                    )
    except _FAULTS as error:
        raise NotOtlp("the body is not an ExportTraceServiceRequest in OTLP's JSON") from error


def _logs_of_json(body: bytes) -> Iterable[Log]:
    try:
        for block in msgspec.json.decode(body, type=_Logs).resource_logs:
            resource = _pairs_of_json(block.resource.attributes) if block.resource else {}
            for scoped in block.scope_logs:
                for raw in scoped.log_records:
                    one = msgspec.json.decode(raw, type=_Record)
                    attributes = _pairs_of_json(one.attributes)
                    yield Log(
                        _hex(one.trace_id, 32),
                        _hex(one.span_id, 16),
                        one.event_name or _text(attributes.get("event.name")),
                        _number(one.time_unix_nano) or _number(one.observed_time_unix_nano),
                        attributes,
                        _value_of_json(one.body),
                        _number(one.severity_number) if str(one.severity_number).isdigit() else 0,
                        resource,
                        scoped.scope.name if scoped.scope else "",
                        len(raw),
                    )
    except _FAULTS as error:
        raise NotOtlp("the body is not an ExportLogsServiceRequest in OTLP's JSON") from error


def _pairs_of_json(pairs: list[_Pair]) -> Attributes:
    return {pair.key: _value_of_json(pair.value) for pair in pairs}


def _value_of_json(value: Any, depth: int = 0) -> Any:
    if not isinstance(value, dict) or depth > _DEEPEST:
        return None
    for kind, held in value.items():
        if kind == "intValue":
            return _number(held)
        if kind == "doubleValue":  # NaN and the infinities are text
            return float(held)
        if kind in ("stringValue", "boolValue", "bytesValue"):
            return held
        if kind == "arrayValue" and isinstance(held, dict):
            return [_value_of_json(one, depth + 1) for one in held.get("values") or []]
        if kind == "kvlistValue" and isinstance(held, dict):
            return {
                str(pair.get("key")): _value_of_json(pair.get("value"), depth + 1)
                for pair in held.get("values") or []
                if isinstance(pair, dict)
            }
    return None


def _number(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError("not a number")
    return int(value)


def _hex(text: str, digits: int) -> str:
    """An id; "" where there is none. Some senders write base64, as protobuf's own JSON has it."""
    if not text:
        return ""
    if len(text) == digits:
        return bytes.fromhex(text).hex()
    found = base64.b64decode(text, validate=True).hex()
    if len(found) != digits:
        raise ValueError("not an id")
    return found

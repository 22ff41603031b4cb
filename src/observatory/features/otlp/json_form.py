"""Reads OTLP's JSON: names in lowerCamelCase, ids in hex, 64-bit numbers as text or numbers.

Law: as of `reader.py`. Unknown names are ignored.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from observatory.features.otlp.records import (
    DEEPEST,
    ERROR,
    Attributes,
    NotOtlp,
    OtlpLog,
    OtlpSpan,
    error_text,
    id_of,
    text_of,
)
from observatory.features.otlp.wire import Allowance, TooMuch, too_many

_OPENINGS: Final = 2_000_000  # objects and arrays in a JSON body
_WIDEST: Final = 1 << 64


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


def _bounded(body: bytes) -> bytes:
    """Counts without parsing: each object or array becomes an object in memory."""
    if body.count(b"{") + body.count(b"[") > _OPENINGS:
        raise TooMuch(f"a request may have at most {_OPENINGS} JSON objects and arrays")
    return body


def spans(body: bytes, most: int) -> Iterable[OtlpSpan]:
    left, taken = Allowance(), 0
    try:
        for block in msgspec.json.decode(_bounded(body), type=_Traces).resource_spans:
            resource = _pairs(block.resource.attributes, left) if block.resource else {}
            for scoped in block.scope_spans:
                taken += len(scoped.spans)
                if taken > most:
                    raise too_many(most)
                for raw in scoped.spans:
                    one = msgspec.json.decode(raw, type=_Span)
                    status = one.status or _Status()
                    yield OtlpSpan(
                        _hex(one.trace_id, 32),
                        _hex(one.span_id, 16),
                        _hex(one.parent_span_id, 16),
                        one.name,
                        one.kind if isinstance(one.kind, int) else _KINDS.get(one.kind, 0),
                        _number(one.start_time_unix_nano),
                        _number(one.end_time_unix_nano),
                        _pairs(one.attributes, left),
                        status.code in (ERROR, "STATUS_CODE_ERROR"),
                        status.message or error_text(one.events, left, _pairs),
                        one.flags & 0xFF,
                        one.trace_state,
                        resource,
                        scoped.scope.name if scoped.scope else "",
                        len(raw),
                    )
    except _FAULTS as error:
        raise NotOtlp("the body is not an ExportTraceServiceRequest in OTLP's JSON") from error


def logs(body: bytes, most: int) -> Iterable[OtlpLog]:
    left, taken = Allowance(), 0
    try:
        for block in msgspec.json.decode(_bounded(body), type=_Logs).resource_logs:
            resource = _pairs(block.resource.attributes, left) if block.resource else {}
            for scoped in block.scope_logs:
                taken += len(scoped.log_records)
                if taken > most:
                    raise too_many(most)
                for raw in scoped.log_records:
                    one = msgspec.json.decode(raw, type=_Record)
                    attributes = _pairs(one.attributes, left)
                    yield OtlpLog(
                        _hex(one.trace_id, 32),
                        _hex(one.span_id, 16),
                        one.event_name or text_of(attributes.get("event.name")),
                        _number(one.time_unix_nano) or _number(one.observed_time_unix_nano),
                        attributes,
                        _value(one.body, left),
                        _number(one.severity_number) if str(one.severity_number).isdigit() else 0,
                        resource,
                        scoped.scope.name if scoped.scope else "",
                        len(raw),
                    )
    except _FAULTS as error:
        raise NotOtlp("the body is not an ExportLogsServiceRequest in OTLP's JSON") from error


def _pairs(pairs: list[_Pair], left: Allowance) -> Attributes:
    left.spend(len(pairs))
    return {pair.key: _value(pair.value, left) for pair in pairs}


def _value(value: Any, left: Allowance, depth: int = 0) -> Any:
    if not isinstance(value, dict) or depth > DEEPEST:
        return None
    for kind, inner in value.items():
        if kind == "intValue":
            return _number(inner)
        if kind == "doubleValue":  # NaN and the infinities are text
            return _float(inner)
        if kind in ("stringValue", "bytesValue"):
            return _checked(inner, str)
        if kind == "boolValue":
            return _checked(inner, bool)
        if kind == "arrayValue" and isinstance(inner, dict):
            return [_value(one, left, depth + 1) for one in _values_of(inner, left)]
        if kind == "kvlistValue" and isinstance(inner, dict):
            return {
                str(pair.get("key")): _value(pair.get("value"), left, depth + 1)
                for pair in _values_of(inner, left)
                if isinstance(pair, dict)
            }
    return None


def _values_of(holder: dict[str, Any], left: Allowance) -> list[Any]:
    found: list[Any] = _checked(holder.get("values") or [], list)
    left.spend(len(found))
    return found


def _checked(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"not a {kind.__name__}")
    return value


def _float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("not a number")
    return float(_number(value) if isinstance(value, int) else value)


def _number(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError("not a number")
    if not -_WIDEST < (found := int(value)) < _WIDEST:
        raise ValueError("not a 64-bit number")
    return found


def _hex(text: str, digits: int) -> str:
    """An id; "" where there is none. Some senders use base64, like protobuf's own JSON."""
    if not text:
        return ""
    raw = bytes.fromhex(text) if len(text) == digits else base64.b64decode(text, validate=True)
    if len(raw) * 2 != digits:  # fromhex skips blanks
        raise ValueError("not an id")
    return id_of(raw)

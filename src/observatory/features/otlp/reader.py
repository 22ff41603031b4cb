"""Reads spans and log records from OTLP, protobuf or JSON, into one plain form.

Law: input is either well-formed OTLP or refused as a whole with a sentence; optional members are empty here.
Ids are lower-case hex, times nanoseconds, attributes plain values. Nothing is judged yet. A request beyond
the bounds is refused before it takes memory. The official package decodes protobuf, record by record; it is
imported with the first request that needs it.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any

from observatory.features.otlp import json_form as otlp_json
from observatory.features.otlp.records import (
    DEEPEST,
    ERROR,
    Attributes,
    Form,
    NotOtlp,
    OtlpLog,
    OtlpSpan,
    error_text,
    id_of,
    text_of,
)
from observatory.features.otlp.wire import Allowance, Malformed, blocks


def spans(body: bytes, form: Form, most: int) -> list[OtlpSpan]:
    """Raises NotOtlp; TooMuch beyond `most`."""
    return list(_spans_of_protobuf(body, most) if form == "protobuf" else otlp_json.spans(body, most))


def logs(body: bytes, form: Form, most: int) -> list[OtlpLog]:
    return list(_logs_of_protobuf(body, most) if form == "protobuf" else otlp_json.logs(body, most))


def _spans_of_protobuf(body: bytes, most: int) -> Iterable[OtlpSpan]:
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
    from opentelemetry.proto.resource.v1.resource_pb2 import Resource
    from opentelemetry.proto.trace.v1.trace_pb2 import Span as Wire

    left = Allowance()
    try:
        for block in blocks(body, most):
            resource = _pairs(Resource.FromString(block.resource).attributes, left)
            for scoped in block.scopes:
                scope = InstrumentationScope.FromString(scoped.scope).name
                for raw in scoped.records:
                    one = Wire.FromString(raw)
                    # Reading an absent member costs as much as a present one.
                    failed, trouble = False, ""
                    if one.HasField("status"):
                        status = one.status
                        failed, trouble = status.code == ERROR, status.message
                    if not trouble and one.events:
                        trouble = error_text(one.events, left, _pairs)
                    yield OtlpSpan(
                        id_of(one.trace_id),
                        id_of(one.span_id),
                        id_of(one.parent_span_id),
                        one.name,
                        one.kind,
                        one.start_time_unix_nano,
                        one.end_time_unix_nano,
                        _pairs(one.attributes, left),
                        failed,
                        trouble,
                        one.flags & 0xFF,
                        one.trace_state,
                        resource,
                        scope,
                        len(raw),
                    )
    except (DecodeError, Malformed) as error:
        raise NotOtlp("the body is not an ExportTraceServiceRequest in protobuf") from error


def _logs_of_protobuf(body: bytes, most: int) -> Iterable[OtlpLog]:
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
    from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
    from opentelemetry.proto.resource.v1.resource_pb2 import Resource

    left = Allowance()
    try:
        for block in blocks(body, most):
            resource = _pairs(Resource.FromString(block.resource).attributes, left)
            for scoped in block.scopes:
                scope = InstrumentationScope.FromString(scoped.scope).name
                for raw in scoped.records:
                    one = LogRecord.FromString(raw)
                    attributes = _pairs(one.attributes, left)
                    yield OtlpLog(
                        id_of(one.trace_id),
                        id_of(one.span_id),
                        one.event_name or text_of(attributes.get("event.name")),
                        one.time_unix_nano or one.observed_time_unix_nano,
                        attributes,
                        _value(one.body, left),
                        one.severity_number,
                        resource,
                        scope,
                        len(raw),
                    )
    except (DecodeError, Malformed) as error:
        raise NotOtlp("the body is not an ExportLogsServiceRequest in protobuf") from error


def _pairs(pairs: Any, left: Allowance) -> Attributes:
    left.spend(len(pairs))
    # Nearly all values are text or a count; either is the value unless empty.
    return {
        pair.key: (inner := pair.value).string_value or inner.int_value or _value(inner, left)
        for pair in pairs
    }


def _value(value: Any, left: Allowance, depth: int = 0) -> Any:
    """The value of an AnyValue."""
    kind = value.WhichOneof("value")
    if kind == "string_value":
        return value.string_value
    if kind is None or depth > DEEPEST:
        return None
    if kind == "array_value":
        left.spend(len(value.array_value.values))
        return [_value(one, left, depth + 1) for one in value.array_value.values]
    if kind == "kvlist_value":
        left.spend(len(value.kvlist_value.values))
        return {pair.key: _value(pair.value, left, depth + 1) for pair in value.kvlist_value.values}
    if kind == "bytes_value":
        return base64.b64encode(value.bytes_value).decode()
    return getattr(value, kind, None)

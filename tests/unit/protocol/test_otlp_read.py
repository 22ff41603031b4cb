"""OTLP as it comes and as it is answered: both forms alike, what is none refused, answers officially read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from observatory.features.otlp import reader as otlp_read
from observatory.features.otlp.records import CLIENT, NotOtlp
from observatory.features.otlp.replies import error_reply, reply
from observatory.features.otlp.wire import TooMuch
from observatory.protocol.protobuf import varint

TRACE, AT = "0af7651916cd43dd8448eb211c80319c", 1_700_000_000_000_000_000
JSON_SPAN = {
    "resourceSpans": [
        {
            "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "s"}}]},
            "scopeSpans": [
                {
                    "scope": {"name": "lib"},
                    "spans": [
                        {
                            "traceId": TRACE.upper(),
                            "spanId": "00f067aa0ba902b7",
                            "name": "chat",
                            "kind": "SPAN_KIND_CLIENT",
                            "startTimeUnixNano": str(AT),
                            "endTimeUnixNano": AT + 1,
                            "status": {"code": "STATUS_CODE_ERROR"},
                            "attributes": [
                                {"key": "n", "value": {"intValue": "7"}},
                                {"key": "d", "value": {"doubleValue": 0.5}},
                                {"key": "b", "value": {"boolValue": True}},
                                {"key": "a", "value": {"arrayValue": {"values": [{"stringValue": "x"}]}}},
                                {
                                    "key": "o",
                                    "value": {
                                        "kvlistValue": {
                                            "values": [{"key": "k", "value": {"stringValue": "v"}}]
                                        }
                                    },
                                },
                                {"key": "none"},
                            ],
                            "events": [
                                {
                                    "name": "exception",
                                    "attributes": [
                                        {"key": "exception.message", "value": {"stringValue": "boom"}}
                                    ],
                                }
                            ],
                            "someday": {"new": 1},
                        }
                    ],
                }
            ],
        }
    ]
}


BAD_VALUES: list[Any] = [
    {"doubleValue": None},
    {"doubleValue": [1]},
    {"doubleValue": 10**400},
    {"intValue": "9" * 100},
    {"intValue": True},
    {"arrayValue": {"values": 5}},
    {"stringValue": {"a": 1}},
    {"boolValue": "yes"},
]


def _json(records: list[Any]) -> dict[str, Any]:
    return {
        "resourceSpans": [{"scopeSpans": [{"spans": records}]}],
        "resourceLogs": [{"scopeLogs": [{"logRecords": records}]}],
    }


def _attribute(value: Any) -> bytes:
    attributes = [{"key": "k", "value": value}]
    return json.dumps(_json([{"traceId": "", "spanId": "", "attributes": attributes}])).encode()


def _part(number: int, raw: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(raw)) + raw


def test_otlps_json_and_protobuf_are_read_alike_s809() -> None:
    """S809: names, numbers as text, ids in hex, unknown members ignored."""
    (found,) = otlp_read.spans(json.dumps(JSON_SPAN).encode(), "json", 10)
    request = ExportTraceServiceRequest()
    block = request.resource_spans.add()
    block.resource.attributes.add(key="service.name").value.string_value = "s"
    scoped = block.scope_spans.add()
    scoped.scope.name = "lib"
    one = scoped.spans.add(
        trace_id=bytes.fromhex(TRACE),
        span_id=bytes.fromhex("00f067aa0ba902b7"),
        name="chat",
        kind=3,
        start_time_unix_nano=AT,
        end_time_unix_nano=AT + 1,
    )
    one.status.code = 2
    one.attributes.add(key="n").value.int_value = 7
    one.attributes.add(key="d").value.double_value = 0.5
    one.attributes.add(key="b").value.bool_value = True
    one.attributes.add(key="a").value.array_value.values.add().string_value = "x"
    one.attributes.add(key="o").value.kvlist_value.values.add(key="k").value.string_value = "v"
    one.attributes.add(key="none")
    raised = one.events.add(name="exception")
    raised.attributes.add(key="exception.message").value.string_value = "boom"
    (same,) = otlp_read.spans(request.SerializeToString(), "protobuf", 10)
    same.size = found.size
    assert same == found
    assert (found.kind, found.failed, found.trouble) == (CLIENT, True, "boom")
    assert found.attributes == {"n": 7, "d": 0.5, "b": True, "a": ["x"], "o": {"k": "v"}, "none": None}


@pytest.mark.parametrize("signal", ["spans", "logs"])
@pytest.mark.parametrize(
    ("raw", "form"),
    [
        (b"\xff\xff", "protobuf"),
        (b"{", "json"),
        (b"[]", "json"),
        (
            b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"zz","spanId":"1"}]}]}],"resourceLogs":3}',
            "json",
        ),
        (b'{"resourceSpans":' + b"[" * 5_000, "json"),
        (b"\x0b\x0c", "protobuf"),  # a group
        (b"\x0a\x05\x12", "protobuf"),  # longer than what is there
        (b"\x0a\x03\x12\x09\x00", "protobuf"),  # longer than what holds it
        (b"\x0a" + b"\xff" * 11, "protobuf"),
        *((_attribute(value), "json") for value in BAD_VALUES),
    ],
)
def test_what_is_not_otlp_is_refused_with_a_sentence_s810(signal: str, raw: bytes, form: Any) -> None:
    """S810: as a whole; nothing of it is quoted."""
    with pytest.raises(NotOtlp, match=r"Export(Trace|Logs)ServiceRequest"):
        getattr(otlp_read, signal)(raw, form, 10)


@pytest.mark.parametrize("signal", ["spans", "logs"])
@pytest.mark.parametrize(
    ("raw", "form"),
    [
        (_part(1, _part(2, b"\x12\x00" * 11)), "protobuf"),
        (_part(1, b"\x12\x00" * 200), "protobuf"),
        (b"\x0a\x00" * 200, "protobuf"),
        (b"\x20\x00" * 200, "protobuf"),  # fields nobody knows
        (_part(1, _part(2, _part(2, b"\x4a\x00" * 2_000_001 + b"\x32\x00" * 2_000_001))), "protobuf"),
        (_part(1, _part(1, b"\x0a\x00" * 2_000_001)), "protobuf"),
        (_part(1, _part(1, b"x" * (4 << 20)) * 3), "protobuf"),
        (_part(1, _part(2, _part(2, _part(100, b"x" * (8 << 20))))), "protobuf"),
        (b'{"resourceSpans":[' + b"{}," * 2_000_000 + b"{}]}", "json"),
        (json.dumps(_json([{}] * 11)).encode(), "json"),
    ],
)
def test_what_is_more_than_a_request_may_hold_is_refused_by_its_form_s816(
    signal: str, raw: bytes, form: Any
) -> None:
    """S816: records, what stands around them, and values; small on the wire, huge in memory."""
    with pytest.raises(TooMuch, match=r"a (request|record) may"):
        getattr(otlp_read, signal)(raw, form, 10)


def test_parts_of_one_message_are_joined_as_protobuf_does_s809() -> None:
    """S809: a resource in two parts, and after what it is the resource of."""
    request = ExportTraceServiceRequest()
    block = request.resource_spans.add()
    block.scope_spans.add().spans.add(name="one")
    late, more = ExportTraceServiceRequest().resource_spans.add(), ExportTraceServiceRequest()
    late.resource.attributes.add(key="a").value.string_value = "1"
    again = more.resource_spans.add()
    again.resource.attributes.add(key="b").value.string_value = "2"
    raw = b"".join(one.SerializeToString() for one in (block, late, again))
    (found,) = otlp_read.spans(_part(1, raw), "protobuf", 10)
    assert (found.name, found.resource) == ("one", {"a": "1", "b": "2"})


@pytest.mark.parametrize("form", ["json", "protobuf"])
def test_an_id_of_zeros_is_none_s809(form: Any) -> None:
    """S809: OTLP says that it is invalid; as a parent it means a root."""
    ids = {"traceId": "0" * 32, "spanId": "0" * 16, "parentSpanId": "0" * 16}
    raw = json.dumps(_json([ids])).encode()
    if form == "protobuf":
        request = ExportTraceServiceRequest()
        zeros = {"trace_id": bytes(16), "span_id": bytes(8), "parent_span_id": bytes(8)}
        request.resource_spans.add().scope_spans.add().spans.add(**zeros)
        raw = request.SerializeToString()
    (found,) = otlp_read.spans(raw, form, 10)
    assert (found.trace_id, found.span_id, found.parent_id) == ("", "", "")


def test_answers_are_read_by_the_official_messages_s811() -> None:
    """S811: partial success in both forms; nothing when all was taken."""
    received = ExportTraceServiceResponse.FromString(reply("traces", "protobuf", 300, "why é"))
    assert received.partial_success.rejected_spans == 300
    assert received.partial_success.error_message == "why é"
    logs = ExportLogsServiceResponse.FromString(reply("logs", "protobuf", 1, "x"))
    assert logs.partial_success.rejected_log_records == 1
    assert reply("traces", "protobuf", 0, "") == b""
    assert reply("logs", "json", 0, "") == b"{}"
    assert json.loads(reply("logs", "json", 2, "x")) == {
        "partialSuccess": {"rejectedLogRecords": "2", "errorMessage": "x"}
    }
    status = Status.FromString(error_reply("protobuf", 429, "queue_full", "full"))
    assert (status.code, status.message) == (8, "full")
    received = json.loads(error_reply(None, 415, "unsupported_media_type", "x"))
    assert (received["code"], received["message"], received["status"]) == (3, "x", "refused")


def test_an_empty_value_is_told_from_none_s809() -> None:
    """S809: a text, a count or a truth that is empty is what it is; only what holds nothing is nothing."""
    request = ExportTraceServiceRequest()
    one = request.resource_spans.add().scope_spans.add().spans.add(trace_id=b"\1" * 16, span_id=b"\1" * 8)
    one.attributes.add(key="text").value.string_value = ""
    one.attributes.add(key="count").value.int_value = 0
    one.attributes.add(key="less").value.int_value = -3
    one.attributes.add(key="share").value.double_value = 0.0
    one.attributes.add(key="no").value.bool_value = False
    one.attributes.add(key="bytes").value.bytes_value = b""
    one.attributes.add(key="list").value.array_value.SetInParent()
    one.attributes.add(key="none")
    (found,) = otlp_read.spans(request.SerializeToString(), "protobuf", 10)
    received = {"text": "", "count": 0, "less": -3, "share": 0.0, "no": False, "bytes": "", "list": []}
    assert found.attributes == received | {"none": None}
    assert found.attributes["no"] is False and isinstance(found.attributes["share"], float)
    assert (found.failed, found.trouble) == (False, "")

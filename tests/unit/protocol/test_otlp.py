"""Audit events in OTLP's wire form: read back by the official messages they are the same events."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)

from observatory.features.exporters import otlp, otlp_answers
from observatory.features.exporters.types_settings import (
    EventFilterMatcher,
    Filters,
    problem_of_filters,
    problem_of_headers,
)
from observatory.protocol.events import SEVERITY, severity_text
from observatory.protocol.identity import agent_entity_id
from observatory.protocol.protobuf import varint
from tests.flows.otlp_backend import clock, event_of, events_of, members

Json = dict[str, Any]
TEXT = st.text(st.characters(codec="utf-8"), max_size=300)
WHOLE = st.integers(-(2**53) + 1, 2**53 - 1)
LEAF = st.one_of(TEXT, WHOLE, st.booleans(), st.none())
VALUE = st.recursive(
    LEAF, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=6
)
NS = st.integers(0, 4_000_000_000 * 10**9).map(clock)
HEX = "0123456789abcdef"


@st.composite
def events(draw: st.DrawFn) -> Json:
    severity = draw(st.integers(1, 24))
    return {
        "audit_event_id": draw(TEXT),
        "timestamp": draw(NS),
        "observed_timestamp": draw(NS),
        "trace_id": draw(st.text(HEX, min_size=32, max_size=32)),
        "span_id": draw(st.text(HEX, min_size=16, max_size=16)),
        "parent_span_id": draw(st.none() | st.text(HEX, min_size=16, max_size=16)),
        "trace_flags": 1,
        "severity_number": severity,
        "severity_text": severity_text(severity),
        "body": {"event_type": draw(st.sampled_from(sorted(SEVERITY))), "detail": draw(VALUE)},
        "resource": draw(st.dictionaries(TEXT, TEXT, max_size=3)),
        "attributes": draw(st.dictionaries(TEXT, VALUE.filter(lambda one: one is not None), max_size=4)),
        "hash_chain": {
            "event_hash": draw(TEXT),
            "previous_hash": draw(TEXT),
            "sequence_number": draw(st.integers(1, 2**40)),
        },
    }


def sent(*found: Json) -> Any:
    records = [otlp.encode_event(otlp.read(json.dumps(one).encode())) for one in found]
    return ExportLogsServiceRequest.FromString(otlp.export_request(records))


@settings(max_examples=60, deadline=None)
@given(events())
def test_what_a_stranger_decodes_is_the_event_s560(event: Json) -> None:
    """S560, S561: every member of every event comes back; official messages read what we wrote."""
    (found,) = events_of(sent(event))
    assert found == event


def an_event(**more: Any) -> Json:
    event: Json = {
        "audit_event_id": "evt_1",
        "timestamp": "2026-02-16T14:32:00.123456789Z",
        "observed_timestamp": "2026-02-16T14:32:00.125000000Z",
        "trace_id": "a1b2c3d4e5f67890a1b2c3d4e5f67890",
        "span_id": "1234567890abcdef",
        "parent_span_id": "abcdef1234567890",
        "trace_flags": 1,
        "severity_number": 9,
        "severity_text": "INFO",
        "body": {"event_type": "message_delivered", "message_id": None, "latency": 1.5},
        "resource": {"service.name": "observatory", "av.tenant.id": "tnt_default"},
        "attributes": {"av.sender.entity_id": "agt_1", "av.none": None, "av.big": "x" * 20_000},
        "hash_chain": {"event_hash": "sha256:aa", "previous_hash": "sha256:bb", "sequence_number": 10_847},
    }
    return event | more


def test_the_seeds_table_field_by_field_s560() -> None:
    """S560: names of the log model on the left, of the audit event on the right."""
    request = sent(an_event())
    (block,) = request.resource_logs
    (record,) = block.scope_logs[0].log_records
    assert record.time_unix_nano == 1_771_252_320_123_456_789  # Timestamp
    assert record.observed_time_unix_nano == 1_771_252_320_125_000_000  # ObservedTimestamp
    assert record.trace_id.hex() == "a1b2c3d4e5f67890a1b2c3d4e5f67890"  # TraceId
    assert record.span_id.hex() == "1234567890abcdef"  # SpanId
    assert record.flags == 1  # TraceFlags
    assert (record.severity_number, record.severity_text) == (9, "INFO")  # SeverityNumber, SeverityText
    assert members(record.body.kvlist_value.values) == an_event()["body"]  # Body, with its null
    assert members(block.resource.attributes) == an_event()["resource"]  # Resource
    carried = members(record.attributes)  # Attributes, and what the model has no field for
    assert carried["av.sender.entity_id"] == "agt_1" and len(carried["av.big"]) == 20_000
    assert "av.none" not in carried
    assert carried["av.audit_event_id"] == "evt_1"
    assert carried["av.parent_span_id"] == "abcdef1234567890"
    assert carried["av.hash_chain.event_hash"] == "sha256:aa"
    assert carried["av.hash_chain.previous_hash"] == "sha256:bb"
    assert carried["av.hash_chain.sequence_number"] == 10_847
    assert record.event_name == "" and record.dropped_attributes_count == 0
    assert block.scope_logs[0].scope.name == "observatory.audit"


def test_events_are_grouped_by_resource_and_keep_their_order_s561() -> None:
    """S561: one block for each resource."""
    found = [
        an_event(
            resource={"service.name": name}, hash_chain=an_event()["hash_chain"] | {"sequence_number": n}
        )
        for n, name in enumerate(("a", "b", "a", "c", "b"), 1)
    ]
    request = sent(*found)
    received = {
        members(block.resource.attributes)["service.name"]: [
            event_of(block.resource, one)["hash_chain"]["sequence_number"]
            for one in block.scope_logs[0].log_records
        ]
        for block in request.resource_logs
    }
    assert received == {"a": [1, 3], "b": [2, 5], "c": [4]}
    assert ExportLogsServiceRequest.FromString(otlp.export_request([])) == ExportLogsServiceRequest()


def test_a_test_record_is_nobodys_event_s571() -> None:
    """S571: it names the tenant, and carries neither chain nor id."""
    (found,) = events_of(ExportLogsServiceRequest.FromString(otlp.test_request({"av.tenant.id": "tnt_x"}, 5)))
    assert found["resource"] == {"av.tenant.id": "tnt_x"}
    assert found["body"]["event_type"] == "export_test" and found["attributes"] == {"av.export.test": True}
    assert found["hash_chain"] == dict.fromkeys(found["hash_chain"]) and found["audit_event_id"] is None


def test_what_a_backend_answers_is_read_as_the_official_messages_write_it_s566() -> None:
    """S566: partial success, and google.rpc.Status with a RetryInfo, written by hand: no package has it."""
    made = ExportLogsServiceResponse()
    assert otlp_answers.partial(made.SerializeToString()) == (0, "")
    made.partial_success.rejected_log_records = 300
    made.partial_success.error_message = "too\told\x00"
    assert otlp_answers.partial(made.SerializeToString()) == (300, "too old")
    info = b"\x0a\x05\x08\x02\x10\xf4\x03"  # retry_delay {seconds: 2, nanos: 500}
    detail = b"\x0a" + bytes([len(otlp_answers.RETRY_INFO)]) + otlp_answers.RETRY_INFO
    detail += b"\x12" + bytes([len(info)]) + info
    status = b"\x08\x08\x12\x04busy\x1a" + bytes([len(detail)]) + detail
    assert otlp_answers.status(status) == ("busy", 2.0000005)
    assert otlp_answers.status(b"\x08\x08\x12\x04busy") == ("busy", None)
    back = b"\x0a\x0b\x08" + varint(2**64 - 5)  # five seconds ago
    before = b"\x0a" + bytes([len(otlp_answers.RETRY_INFO)]) + otlp_answers.RETRY_INFO
    before += b"\x12" + bytes([len(back)]) + back
    assert otlp_answers.status(b"\x1a" + bytes([len(before)]) + before).retry_s == 0.0


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=60))
def test_whatever_a_backend_answers_breaks_nothing_s566(raw: bytes) -> None:
    """S566: what is not well-formed says nothing."""
    rejected, message = otlp_answers.partial(raw)
    assert rejected >= 0 and message.isprintable()
    assert otlp_answers.status(raw).message.isprintable()
    assert otlp_answers.status(b"\x1a" + bytes([len(raw)]) + raw).retry_s in (None, 0.0)


CASES: list[tuple[Json, bool]] = [
    ({}, True),
    ({"event_types": ["message_delivered"]}, True),
    ({"event_types": ["message_held", "key_created"]}, False),
    ({"severity_min": 9}, True),
    ({"severity_min": 10}, False),
    ({"agents": ["agt_1"]}, True),
    ({"agents": ["nobody"]}, False),
    ({"agents": ["ada"]}, True),
    ({"agents": ["bob"]}, True),
    ({"event_types": ["message_delivered"], "severity_min": 17}, False),
]


@pytest.mark.parametrize(("filters", "taken"), CASES)
def test_all_that_is_given_must_hold_s563(filters: Json, taken: bool) -> None:
    """S563: types, severity, and agents by name or id, as sender or recipient."""
    bob = agent_entity_id("tnt_x", "bob")
    parties = {"av.sender.entity_id": "agt_1", "av.sender.agent_id": "ada", "av.recipient.entity_id": bob}
    event = otlp.read(json.dumps(an_event(attributes=parties)).encode())
    assert EventFilterMatcher(Filters(**filters), "tnt_x").takes(event) is taken


def test_a_type_of_event_that_is_none_is_refused_s563() -> None:
    """S563: a misspelt filter would be a silent gap."""
    assert problem_of_filters(Filters(event_types=["message_delivered", "export_refused"])) is None
    assert problem_of_filters(Filters(event_types=["mesage_delivered"])) is not None


SECRET = "planted-secret"
HEADERS: list[tuple[dict[str, str], bool]] = [
    ({"api-key": SECRET, "x-scope-orgid": "1", "authorization": f"Bearer {SECRET}"}, True),
    ({"Api-Key": SECRET}, False),
    ({"content-type": SECRET}, False),
    ({"host": SECRET}, False),
    ({"grpc-timeout": SECRET}, False),
    ({"": SECRET}, False),
    ({"a b": SECRET}, False),
    ({"x": f"{SECRET}\r\nhost: evil"}, False),
    ({"x": f" {SECRET}"}, False),
    ({"x": ""}, False),
    ({"x": f"{SECRET}ü"}, False),
    ({"x": SECRET * 400}, False),
    ({f"x{n}": SECRET for n in range(17)}, False),
]


@pytest.mark.parametrize(("headers", "good"), HEADERS)
def test_headers_that_the_way_itself_uses_or_that_break_lines_are_refused_s564(
    headers: dict[str, str], good: bool
) -> None:
    """S564: and no sentence repeats a value."""
    problem = problem_of_headers(headers, "http")
    assert (problem is None) is good
    assert SECRET not in (problem or "")
    assert problem_of_headers({"x-bin": "a"}, "http") is None
    assert problem_of_headers({"x-bin": "a"}, "grpc") is not None

"""Trace context and log records."""

import re
from typing import Any

import pytest

from observatory.protocol import otel

TRACE, SPAN = "a1b2c3d4e5f67890a1b2c3d4e5f67890", "1234567890abcdef"
EVENT: dict[str, Any] = {
    "audit_event_id": "evt_1",
    "timestamp": "2026-02-16T14:32:00.123456789Z",
    "observed_timestamp": "2026-02-16T14:32:00.125000000Z",
    "trace_id": TRACE,
    "span_id": SPAN,
    "parent_span_id": None,
    "trace_flags": 1,
    "severity_number": 9,
    "severity_text": "INFO",
    "body": {"event_type": "message_delivered", "message_id": "msg_1", "list": ["a", 1, True]},
    "resource": {"service.name": "observatory", "av.tenant.id": "tnt_default"},
    "attributes": {"av.sender.entity_id": "agt_1", "av.delivery.latency_ms": 42},
    "hash_chain": {"event_hash": "sha256:a", "previous_hash": "sha256:b", "sequence_number": 10847},
}


def test_span_ids_are_sixteen_random_hex_digits() -> None:
    spans = {otel.generate_span_id() for _ in range(1000)}
    assert len(spans) == 1000
    assert all(re.fullmatch("[0-9a-f]{16}", span) for span in spans)


def test_a_steps_span_is_the_start_of_its_hash() -> None:
    assert otel.span_id_of("abc") == "ba7816bf8f01cfea"  # FIPS 180-2, appendix B.1


@pytest.mark.parametrize(
    ("session", "trace"),
    [
        ("A1B2C3D4-E5F6-7890-A1B2-C3D4E5F67890", TRACE),
        (TRACE, TRACE),
        ("room-1", "f1c295745e15583585335e79f2cd557a"),
        ("0" * 32, otel.conversation_to_trace_id("0" * 32)),
    ],
)
def test_a_session_has_one_trace_never_all_zero(session: str, trace: str) -> None:
    assert otel.trace_id_of_session(session) == trace


def test_a_trace_is_a_uuid_again() -> None:
    assert otel.uuid_of_trace(TRACE.upper()) == "a1b2c3d4-e5f6-7890-a1b2-c3d4e5f67890"


def test_traceparent_round_trips() -> None:
    header = otel.format_traceparent(TRACE, SPAN)
    assert header == f"00-{TRACE}-{SPAN}-01"
    assert otel.parse_traceparent(header) == (TRACE, SPAN, 1)


@pytest.mark.parametrize(
    ("header", "parsed"),
    [
        ("", None),
        (f"ff-{TRACE}-{SPAN}-01", None),
        (f"00-{'0' * 32}-{SPAN}-01", None),
        (f"00-{TRACE}-{'0' * 16}-01", None),
        (f"00-{TRACE}-{SPAN}-01-more", None),
        (f"00-{TRACE.upper()}-{SPAN}-01", None),
        (f"cc-{TRACE}-{SPAN}-03-more", (TRACE, SPAN, 3)),
    ],
)
def test_a_bad_traceparent_is_ignored(header: str, parsed: tuple[str, str, int] | None) -> None:
    assert otel.parse_traceparent(header) == parsed


def test_an_audit_event_maps_to_a_log_record_with_nothing_lost() -> None:
    made = otel.to_log_record(EVENT)
    record = made["log_record"]
    assert record["timeUnixNano"] == "1771252320123456789"
    assert record["observedTimeUnixNano"] == "1771252320125000000"
    assert (record["traceId"], record["spanId"], record["flags"]) == (TRACE, SPAN, 1)
    assert (record["severityNumber"], record["severityText"]) == (9, "INFO")
    assert record["body"]["kvlistValue"]["values"][0] == {
        "key": "event_type",
        "value": {"stringValue": "message_delivered"},
    }
    attributes = {one["key"]: one["value"] for one in record["attributes"]}
    assert attributes["av.delivery.latency_ms"] == {"intValue": "42"}
    assert attributes["av.hash_chain.sequence_number"] == {"intValue": "10847"}
    assert attributes["av.hash_chain.event_hash"] == {"stringValue": "sha256:a"}
    assert "av.parent_span_id" not in attributes
    assert made["resource"]["attributes"][0] == {
        "key": "service.name",
        "value": {"stringValue": "observatory"},
    }


def test_a_parent_span_travels_as_an_attribute() -> None:
    record = otel.to_log_record({**EVENT, "parent_span_id": SPAN})["log_record"]
    assert {"key": "av.parent_span_id", "value": {"stringValue": SPAN}} in record["attributes"]

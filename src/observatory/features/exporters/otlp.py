"""Encodes audit events as OTLP LogRecords, by the seed's mapping: for Grafana, Datadog or Splunk.

Nothing of an event is lost. Timestamp, ObservedTimestamp, TraceId, SpanId, TraceFlags, SeverityNumber,
SeverityText, Body, Resource and Attributes are its members of those names; members without a LogRecord field
(`audit_event_id`, `parent_span_id`, `hash_chain`) become `av.*` attributes. A null within the body is an
AnyValue without a value; a null attribute is omitted. Events contain no payload, so none is sent.

The bytes are encoded here and not by the official package, which takes more than twice as long
(`bench/export.py` measures both); the tests decode them with its messages and must get the event back. Field
numbers are those of opentelemetry-proto v1; each tag is noted next to its field.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from observatory.protocol.clock import to_ns
from observatory.protocol.protobuf import varint

SCOPE: Final = "observatory.audit"
_times: Final = struct.Struct("<BQBQ").pack
_flags: Final = struct.Struct("<BI").pack
_double: Final = struct.Struct("<Bd").pack


class HashChainMembers(msgspec.Struct, frozen=True, gc=False):
    event_hash: str
    previous_hash: str
    sequence_number: int


class StoredAuditEvent(msgspec.Struct, frozen=True, gc=False):
    """A stored audit event; its resource stays encoded, because many events share it."""

    audit_event_id: str
    timestamp: str
    observed_timestamp: str
    trace_id: str
    span_id: str
    parent_span_id: str | None
    trace_flags: int
    severity_number: int
    severity_text: str
    body: dict[str, Any]
    resource: msgspec.Raw
    attributes: dict[str, Any]
    hash_chain: HashChainMembers

    @property
    def event_type(self) -> str:
        return str(self.body["event_type"])


read: Final = msgspec.json.Decoder(StoredAuditEvent).decode


class EncodedRecord(NamedTuple):
    """An encoded event: its resource as stored, and its LogRecord in a ScopeLogs."""

    seq: int
    event_type: str
    resource: bytes
    record: bytes


def encode_event(event: StoredAuditEvent) -> EncodedRecord:
    return EncodedRecord(
        event.hash_chain.sequence_number, event.event_type, bytes(event.resource), _field(0x12, record(event))
    )


def record(event: StoredAuditEvent) -> bytes:
    """A LogRecord."""
    chain = event.hash_chain
    more = {
        "av.audit_event_id": event.audit_event_id,
        "av.parent_span_id": event.parent_span_id,
        "av.hash_chain.event_hash": chain.event_hash,
        "av.hash_chain.previous_hash": chain.previous_hash,
        "av.hash_chain.sequence_number": chain.sequence_number,
    }
    parts = [
        # time_unix_nano = 1, observed_time_unix_nano = 11: fixed64
        _times(0x09, to_ns(event.timestamp), 0x59, to_ns(event.observed_timestamp)),
        b"\x10%c" % event.severity_number,  # severity_number = 2; 1 to 24, one byte
        _field(0x1A, event.severity_text.encode()),  # severity_text = 3
        _field(0x2A, _value(event.body)),  # body = 5
        _flags(0x45, event.trace_flags),  # flags = 8: fixed32
        _field(0x4A, bytes.fromhex(event.trace_id)),  # trace_id = 9
        _field(0x52, bytes.fromhex(event.span_id)),  # span_id = 10
    ]
    # attributes = 6
    parts += [_pair(0x32, key, item) for key, item in event.attributes.items() if item is not None]
    parts += [_pair(0x32, key, item) for key, item in more.items() if item is not None]
    return b"".join(parts)


def test_request(resource: Mapping[str, Any], now_ns: int) -> bytes:
    """A request with one test record that is no audit event, to check whether a backend accepts data."""
    body = {"event_type": "export_test", "summary": "exporter test record; not an audit event"}
    found = b"".join(
        (
            _times(0x09, now_ns, 0x59, now_ns),
            b"\x10\x09",
            _field(0x1A, b"INFO"),
            _field(0x2A, _value(body)),
            _pair(0x32, "av.export.test", True),
        )
    )
    return export_request(
        [EncodedRecord(0, "export_test", msgspec.json.encode(resource), _field(0x12, found))]
    )


def export_request(records: Iterable[EncodedRecord]) -> bytes:
    """An ExportLogsServiceRequest of these records, grouped by resource and in order within it."""
    groups: dict[bytes, list[bytes]] = {}
    for one in records:
        groups.setdefault(one.resource, [_NAMED]).append(one.record)
    # resource_logs = 1; in it scope_logs = 2
    return b"".join(
        _field(0x0A, _resource(block) + _field(0x12, b"".join(group))) for block, group in groups.items()
    )


@lru_cache(maxsize=4_096)
def _resource(block: bytes) -> bytes:
    """The resource of a ResourceLogs (1), its attributes (1)."""
    members = msgspec.json.decode(block, type=dict[str, Any])
    return _field(0x0A, b"".join(_pair(0x0A, key, item) for key, item in members.items() if item is not None))


def _pair(tag: int, key: str, value: Any) -> bytes:
    """A KeyValue as a field of that tag."""
    if isinstance(value, str):  # nearly all: one-byte lengths, written in one step
        head, text = _key(key), value.encode()
        size = len(text)
        if (whole := len(head) + size + 4) < 0x80:
            return b"%c%c%b\x12%c\x0a%c%b" % (tag, whole, head, size + 2, size, text)
    return _field(tag, _key(key) + _field(0x12, _value(value)))  # value = 2


@lru_cache(maxsize=4_096)
def _key(key: str) -> bytes:
    return _field(0x0A, key.encode())  # key = 1


def _value(value: Any) -> bytes:
    """The content of an AnyValue."""
    if isinstance(value, str):
        return _field(0x0A, value.encode())  # string_value = 1
    if isinstance(value, bool):
        return b"\x10\x01" if value else b"\x10\x00"  # bool_value = 2
    if isinstance(value, int):
        return b"\x18" + varint(value & 0xFFFF_FFFF_FFFF_FFFF)  # int_value = 3, two's complement
    if isinstance(value, float):
        return _double(0x21, value)  # double_value = 4
    if isinstance(value, Mapping):  # kvlist_value = 6, its values = 1
        return _field(0x32, b"".join(_pair(0x0A, key, item) for key, item in value.items()))
    if isinstance(value, list | tuple):  # array_value = 5, its values = 1
        return _field(0x2A, b"".join(_field(0x0A, _value(item)) for item in value))
    return b""


def _field(tag: int, inner: bytes) -> bytes:
    size = len(inner)
    if size < 0x80:
        return b"%c%c%b" % (tag, size, inner)
    if size < 0x4000:
        return b"%c%c%c%b" % (tag, size & 0x7F | 0x80, size >> 7, inner)
    return b"%c%b%b" % (tag, varint(size), inner)


_NAMED: Final = _field(0x0A, _field(0x0A, SCOPE.encode()))  # scope = 1 of a ScopeLogs, its name = 1

"""Mapping to OpenTelemetry: trace and span ids, W3C trace context, log records.

Law: a conversation always has the same trace id (the seed's code: uuid5); a session that is a UUID is its
own trace id; no id is all zero. Every audit event maps to a LogRecord of OTLP/JSON without loss: what has no
field in the log model becomes an `av.*` attribute.
"""

import os
import re
import uuid
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final, NamedTuple

from observatory.protocol import clock
from observatory.protocol.identity import NAMESPACE, canonical_uuid, hyphenated

_TRACEPARENT: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_MEMBER: Final = re.compile(
    r"([a-z][a-z0-9_\-*/]{0,255}|[a-z0-9][a-z0-9_\-*/]{0,240}@[a-z][a-z0-9_\-*/]{0,13})"
    r"=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]"
)
_ZERO_TRACE: Final = "0" * 32
_ZERO_SPAN: Final = "0" * 16


def conversation_to_trace_id(conversation_id: str) -> str:
    """The 32 hex digits every message of a conversation shares."""
    return uuid.uuid5(NAMESPACE, conversation_id).hex


def generate_span_id() -> str:
    """Eight random bytes as hex, never all zero."""
    while (span := os.urandom(8).hex()) == _ZERO_SPAN:
        pass
    return span


# Called for a step, and soon again as the parent of the next one.
@lru_cache(maxsize=8_192)
def span_id_of(step_id: str) -> str:
    """A step's span id: the first 16 hex of the SHA-256 of its name."""
    span = sha256(step_id.encode()).hexdigest()[:16]
    return span if span != _ZERO_SPAN else _ZERO_SPAN[:-1] + "1"


@lru_cache(maxsize=65536)
def trace_id_of_session(session_id: str) -> str:
    """A session's trace id: its own hex when it is a UUID, else that of a conversation of that name."""
    canonical = canonical_uuid(session_id)
    if canonical is None or (digits := canonical.replace("-", "")) == _ZERO_TRACE:
        return conversation_to_trace_id(session_id)
    return digits


def uuid_of_trace(trace_id: str) -> str:
    """A trace id as a UUID's text."""
    return hyphenated(trace_id.lower())


def format_traceparent(trace_id: str, span_id: str, flags: int = 1) -> str:
    """The W3C `traceparent` header, version 00."""
    return f"00-{trace_id}-{span_id}-{flags:02x}"


def parse_traceparent(header: str) -> tuple[str, str, int] | None:
    """Trace id, parent span id and flags; None for a header to be ignored (W3C Trace Context 3.2)."""
    match = _TRACEPARENT.fullmatch(header.strip())
    if match is None:
        return None
    version, trace_id, span_id, flags, more = match.groups()
    # Version ff is forbidden; only versions after 00 may have more parts.
    if version == "ff" or (version == "00" and more) or trace_id == _ZERO_TRACE or span_id == _ZERO_SPAN:
        return None
    return trace_id, span_id, int(flags, 16)


class TraceContext(NamedTuple):
    """The caller's position in its own trace: W3C Trace Context."""

    trace_id: str
    span_id: str
    flags: int
    state: str | None


def read_context(traceparent: Any, tracestate: Any = None) -> TraceContext | None:
    """Read headers or metadata. Invalid values are ignored, as the standard requires, never refused.

    Without a valid `traceparent` the `tracestate` is ignored too; an invalid `tracestate` alone is dropped.
    """
    parent = parse_traceparent(traceparent) if isinstance(traceparent, str) else None
    return None if parent is None else TraceContext(*parent, _state(tracestate))


def _state(text: Any) -> str | None:
    """At most 32 members and 512 characters, each `key=value`, no key twice (W3C Trace Context 3.3)."""
    if not isinstance(text, str) or len(text) > 512:
        return None
    members = [one for part in text.split(",") if (one := part.strip(" \t"))]
    keys = [match[1] for one in members if (match := _MEMBER.fullmatch(one))]
    if not 0 < len(members) <= 32 or len(keys) != len(members) or len(set(keys)) != len(keys):
        return None
    return ",".join(members)


def any_value(value: Any) -> dict[str, Any]:
    """OTLP/JSON AnyValue; 64-bit integers are text there."""
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case str():
            return {"stringValue": value}
        case Mapping():
            return {"kvlistValue": {"values": key_values(value)}}
        case list() | tuple():
            return {"arrayValue": {"values": [any_value(item) for item in value]}}
        case _:
            return {}


def key_values(mapping: Mapping[str, Any]) -> list[dict[str, Any]]:
    """OTLP/JSON attributes; null is left out, as attributes have none."""
    return [{"key": key, "value": any_value(item)} for key, item in mapping.items() if item is not None]


def to_log_record(event: Mapping[str, Any]) -> dict[str, Any]:
    """A served audit event as `{"resource": …, "log_record": …}` of OTLP/JSON."""
    chain = event["hash_chain"]
    attributes = {
        **event["attributes"],
        "av.audit_event_id": event["audit_event_id"],
        "av.parent_span_id": event["parent_span_id"],
        "av.hash_chain.event_hash": chain["event_hash"],
        "av.hash_chain.previous_hash": chain["previous_hash"],
        "av.hash_chain.sequence_number": chain["sequence_number"],
    }
    record = {
        "timeUnixNano": str(clock.to_ns(event["timestamp"])),
        "observedTimeUnixNano": str(clock.to_ns(event["observed_timestamp"])),
        "traceId": event["trace_id"],
        "spanId": event["span_id"],
        "flags": event["trace_flags"],
        "severityNumber": event["severity_number"],
        "severityText": event["severity_text"],
        "body": any_value(event["body"]),
        "attributes": key_values(attributes),
    }
    return {
        "resource": {"attributes": key_values(event["resource"])},
        "log_record": record,
    }

"""Spans and log records as a test tells them, and the steps they become."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from observatory.features.otlp.records import OtlpLog, OtlpSpan
from observatory.features.otlp.span_values import IngestTally
from observatory.features.otlp.spans import Record, SpanFamily, SpanStep

Json = dict[str, Any]
TRACE, AT = "0af7651916cd43dd8448eb211c80319c", 1_700_000_000_000_000_000


def span(name: str = "chat m", /, number: int = 1, parent: int = 0, kind: int = 1, **more: Any) -> OtlpSpan:
    attributes = more.pop("attributes", {})
    received: Json = {
        "trace_id": TRACE,
        "span_id": f"{number:016x}",
        "parent_id": f"{parent:016x}" if parent else "",
        "name": name,
        "kind": kind,
        "start_ns": AT,
        "end_ns": AT + 1_500_000_000,
        "attributes": attributes,
        "failed": False,
        "trouble": "",
        "flags": 1,
        "state": "",
        "resource": {"service.name": "research", "service.version": "1.4.0"},
        "scope": "test",
        "size": 100,
    }
    return OtlpSpan(**(received | more))


def log(name: str, attributes: Json, **more: Any) -> OtlpLog:
    received: Json = {
        "trace_id": "",
        "span_id": "",
        "name": name,
        "at_ns": AT,
        "attributes": attributes,
        "body": f"claude_code.{name}",
        "severity": 9,
        "resource": {"service.name": "claude-code", "service.version": "2.1.224"},
        "scope": "com.anthropic.claude_code.events",
        "size": 100,
    }
    return OtlpLog(**(received | more))


def steps_of(
    spans: Sequence[OtlpSpan], record: Record | None = None
) -> tuple[list[SpanStep | None], IngestTally]:
    return SpanFamily(spans).steps(None, record)


def bodies(*spans: OtlpSpan, bound: str | None = None) -> list[Json]:
    return [json.loads(one.body) for one in SpanFamily(spans).steps(bound)[0] if one]


def body(**attributes: Any) -> Json:
    found = bodies(span(attributes={key.replace("__", "."): value for key, value in attributes.items()}))
    return found[0]


CLAUDE = {"session.id": "6e0f1c52-8d7e-4a55-9d0c-111111111111", "prompt.id": "p1"}

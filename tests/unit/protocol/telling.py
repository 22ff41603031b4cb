"""Spans and log records as a test tells them, and the steps they become."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from observatory.features.otlp.records import Log, Span
from observatory.features.otlp.span_values import Tally
from observatory.features.otlp.spans import Family, Record, Step

Json = dict[str, Any]
TRACE, AT = "0af7651916cd43dd8448eb211c80319c", 1_700_000_000_000_000_000


def span(name: str = "chat m", /, number: int = 1, parent: int = 0, kind: int = 1, **more: Any) -> Span:
    attributes = more.pop("attributes", {})
    told: Json = {
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
    return Span(**(told | more))


def log(name: str, attributes: Json, **more: Any) -> Log:
    told: Json = {
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
    return Log(**(told | more))


def steps_of(spans: Sequence[Span], record: Record | None = None) -> tuple[list[Step | None], Tally]:
    return Family(spans).steps(None, record)


def bodies(*spans: Span, bound: str | None = None) -> list[Json]:
    return [json.loads(one.body) for one in Family(spans).steps(bound)[0] if one]


def body(**attributes: Any) -> Json:
    found = bodies(span(attributes={key.replace("__", "."): value for key, value in attributes.items()}))
    return found[0]


CLAUDE = {"session.id": "6e0f1c52-8d7e-4a55-9d0c-111111111111", "prompt.id": "p1"}

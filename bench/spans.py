"""Spans as an instrumented mesh sends them: model calls and tools under an agent, in OTLP's protobuf."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

ASKED = '[{"role":"user","parts":[{"type":"text","content":"how did revenue of segment %d develop?"}]}]'
SAID = '[{"role":"assistant","parts":[{"type":"text","content":"it grew by %d percent in the year"}]}]'


class Batch(NamedTuple):
    body: bytes
    spans: int


def batches(spans: int, size: int) -> Iterator[Batch]:
    """A number of spans, `size` in a request: of five, one is the agent's, three a model's, one a tool's."""
    for begin in range(0, spans, size):
        count = min(size, spans - begin)
        yield Batch(_request(begin, count), count)


def _request(begin: int, count: int) -> bytes:
    request = ExportTraceServiceRequest()
    block = request.resource_spans.add()
    for key, value in (("service.name", "research"), ("service.version", "1.4.0")):
        block.resource.attributes.add(key=key).value.string_value = value
    spans = block.scope_spans.add().spans
    trace, root = b"", b""
    for number in range(begin, begin + count):
        place = number % 5
        if place == 0 or not trace:
            trace, root = os.urandom(16), os.urandom(8)
        now = time.time_ns()
        span = spans.add(
            trace_id=trace,
            span_id=root if place == 0 else os.urandom(8),
            parent_span_id=b"" if place == 0 else root,
            kind=3 if place in (1, 2, 3) else 1,
            start_time_unix_nano=now,
            end_time_unix_nano=now + 12_000_000,
        )
        said: dict[str, Any] = {
            "gen_ai.agent.name": f"agent-{number // 5 % 40}",
            "gen_ai.conversation.id": f"case-{number // 5 % 200}",
        }
        if place == 0:
            span.name = "invoke_agent"
            said["gen_ai.operation.name"] = "invoke_agent"
        elif place == 4:
            span.name = "execute_tool search"
            said |= {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "search",
                "gen_ai.tool.call.arguments": f'{{"query":"revenue {number}"}}',
                "gen_ai.tool.call.result": f"{number} documents",
            }
        else:
            span.name = "chat pocket-1"
            said |= {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": "anthropic",
                "gen_ai.request.model": "pocket-1",
                "gen_ai.response.model": "pocket-1-2026",
                "gen_ai.request.temperature": 0.2,
                "gen_ai.usage.input_tokens": 900 + number % 100,
                "gen_ai.usage.output_tokens": 80,
                "gen_ai.input.messages": ASKED % number,
                "gen_ai.output.messages": SAID % (number % 9),
            }
        for key, value in said.items():
            held = span.attributes.add(key=key).value
            if isinstance(value, str):
                held.string_value = value
            elif isinstance(value, int):
                held.int_value = value
            else:
                held.double_value = value
    body: bytes = request.SerializeToString()
    return body

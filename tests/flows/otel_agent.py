"""A stranger's agent: the official OpenTelemetry SDK, exporters and instrumentations, as they are shipped.

`python -m tests.flows.otel_agent URL KEY WIRE WAY SESSION`: WIRE is `http` or `grpc` (URL then is host:port),
WAY is `genai` (the official instrumentation of the `openai` package, asking a model on this machine) or
`openinference`. Nothing of the house is imported.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ANSWER = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1_700_000_000,
    "model": "pocket-1",
    "choices": [
        {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": "revenue grew by four percent"},
        }
    ],
    "usage": {"prompt_tokens": 31, "completion_tokens": 11, "total_tokens": 42},
}


class Model(BaseHTTPRequestHandler):
    """Speaks OpenAI's API and always says the same."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        body = json.dumps(ANSWER).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


def exporter(wire: str, url: str, key: str) -> Any:
    headers = {"authorization": f"Bearer {key}"}
    if wire == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as Grpc

        return Grpc(endpoint=url, headers=headers, insecure=True)
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter(endpoint=f"{url}/v1/traces", headers=headers)


def genai(tracer: Any, session: str) -> None:
    import openai
    from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor

    OpenAIInstrumentor().instrument()  # type: ignore[no-untyped-call]
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    client = openai.OpenAI(base_url=f"http://127.0.0.1:{server.server_address[1]}/v1", api_key="none")
    said = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "genai-planner",
        "gen_ai.conversation.id": session,
    }
    with tracer.start_as_current_span("invoke_agent genai-planner", attributes=said):
        client.chat.completions.create(
            model="pocket-1", messages=[{"role": "user", "content": "what about revenue?"}]
        )
        tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "ledger"}
        with tracer.start_as_current_span("execute_tool ledger", attributes=tool):
            pass
    server.shutdown()


def openinference(provider: Any, session: str) -> None:
    from openinference.instrumentation import OITracer, TraceConfig, using_session

    tracer = OITracer(provider.get_tracer("stranger"), config=TraceConfig())

    @tracer.tool
    def search(query: str) -> str:
        return f"nothing about {query}"

    @tracer.agent(name="oi-researcher")
    def research(question: str) -> str:
        return search(question)

    with using_session(session):
        research("revenue")


def main() -> None:
    url, key, wire, way, session = sys.argv[1:]
    os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "gen_ai_latest_experimental"
    os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "span_only"
    from opentelemetry import trace
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(
        resource=Resource.create({"service.name": "stranger", "service.version": "3.2.1"})
    )
    provider.add_span_processor(BatchSpanProcessor(exporter(wire, url, key)))
    trace.set_tracer_provider(provider)
    if way == "genai":
        genai(provider.get_tracer("stranger"), session)
    else:
        openinference(provider, session)
    if not provider.force_flush(20_000):
        sys.exit("not flushed")


if __name__ == "__main__":
    main()

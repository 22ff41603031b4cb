"""OTLP in through public doors: strangers' agents, unmodified, show up; what is not recorded is said."""

from __future__ import annotations

import gzip
import json
import os
import re
import socket
import subprocess
import sys
import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from tests.flows.server import Server
from tests.waiting import until

Json = dict[str, Any]
PROTOBUF = {"content-type": "application/x-protobuf"}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {"OBSERVATORY_OTLP_GRPC": f"127.0.0.1:{port}"}
    with Server(tmp_path_factory.mktemp("otlp") / "data", environment=environment) as running:
        running.grpc = f"127.0.0.1:{port}"  # type: ignore[attr-defined]
        yield running


def span(attributes: Json, number: int = 1, parent: int = 0, trace: str | None = None) -> Json:
    def value(one: Any) -> Json:
        return {"intValue": str(one)} if isinstance(one, int) else {"stringValue": one}

    return {
        "traceId": trace or uuid.uuid4().hex,
        "spanId": f"{number:016x}",
        **({"parentSpanId": f"{parent:016x}"} if parent else {}),
        "name": "work",
        "kind": 1,
        "startTimeUnixNano": "1700000000000000000",
        "endTimeUnixNano": "1700000001000000000",
        "attributes": [{"key": key, "value": value(one)} for key, one in attributes.items()],
    }


def request(*spans: Json, service: str = "svc") -> Json:
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": list(spans)}]}]}


def steps(server: Server, session: str) -> list[Json]:
    items = server.http().get("/v1/messages", params={"session_id": session}).json()["items"]
    return [one["message"] for one in reversed(items)]


def refusals(server: Server) -> Counter[int]:
    received = server.http().get("/metrics").text
    return Counter(
        {
            int(c): int(n)
            for c, n in re.findall(
                r'^observatory_message_responses_total\{code="(\d+)"\} (\d+)', received, re.M
            )
        }
    )


@pytest.mark.parametrize(("wire", "way"), [("http", "genai"), ("grpc", "openinference")])
def test_a_strangers_agent_shows_up_without_new_code_s800(gateway: Server, wire: str, way: str) -> None:
    """S800, S811, S812: the official SDK and exporters, an instrumentation of each school, both wires."""
    session = f"case-{way}"
    url = gateway.url if wire == "http" else gateway.grpc  # type: ignore[attr-defined]
    words = [url, gateway.credentials["agent_key"], wire, way, session]
    ran = subprocess.run(
        [sys.executable, "-m", "tests.flows.otel_agent", *words],
        env={**os.environ, "NO_PROXY": "*", "no_proxy": "*"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    found = until(lambda: steps(gateway, session))
    agent = "genai-planner" if way == "genai" else "oi-researcher"
    assert {one["identity"]["agent_id"] for one in found} == {agent}
    assert {one["identity"]["capability_version"] for one in found} == {"3.2.1"}
    tools = {one["action"].get("tool_call") for one in found} - {None}
    assert tools == ({"ledger"} if way == "genai" else {"search"})
    if way == "genai":
        (call,) = [one for one in found if one["identity"].get("model") == "pocket-1"]
        assert call["state_delta"]["tokens_consumed"] == 42
        assert "what about revenue?" in call["cognition"]["intent"]
        assert call["action"]["tool_output_summary"] == "revenue grew by four percent"
    http = gateway.http()
    dag = until(lambda: _whole(http.get(f"/v1/sessions/{session}/dag").json(), len(found)))
    children = [one for one in found if one["meta"]["parent_step_id"]]
    assert len(dag["edges"]) == len(children) == len(found) - 1
    assert http.get(f"/v1/agents/{agent}").json()["agent_type"] == "stranger"
    seen = http.get("/v1/otlp").json()
    assert seen["recorded"] >= len(found)
    assert seen["grpc"] == gateway.grpc  # type: ignore[attr-defined]
    assert all(one["count"] > 0 for one in seen["unmapped"])


def _whole(dag: Json, count: int) -> Json:
    return dag if len(dag.get("nodes", [])) >= count else {}


def test_what_is_not_recorded_is_counted_and_said_s813_s814(gateway: Server) -> None:
    """S807, S809, S813, S814: partial success by the specification; sent again it is recorded once."""
    http = gateway.http("agent")
    tool = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "t",
        "gen_ai.conversation.id": "once",
    }
    trace = uuid.uuid4().hex
    body = request(
        span({"http.method": "GET", "secret.thing": "hush"}, 1, trace=trace),
        span(tool | {"colour.of.sky": "blue"}, 2, 1, trace=trace),
    )
    before = http.get("/v1/otlp")
    assert before.status_code == 403, "an agent's key reads nothing"
    for _ in range(2):
        received = http.post("/v1/traces", json=body)
        assert received.status_code == 200
        partial = received.json()["partialSuccess"]
        assert partial["rejectedSpans"] == "1"
        assert "without agent attributes" in partial["errorMessage"]
    assert len(steps(gateway, "once")) == 1
    names = {one["name"] for one in gateway.http().get("/v1/otlp").json()["unmapped"]}
    assert "colour.of.sky" in names
    assert "secret.thing" not in names

    # The same id with other content is refused alone, and told.
    other = request(
        span(tool | {"gen_ai.tool.call.result": "else"}, 2, 1, trace=trace), span(tool, 3, trace=trace)
    )
    received = http.post("/v1/traces", json=other).json()["partialSuccess"]
    assert received["rejectedSpans"] == "1"
    assert "refused" in received["errorMessage"]
    assert len(steps(gateway, "once")) == 2

    # Packed protobuf, with nothing to say against it, is answered with nothing.
    wire = ExportTraceServiceRequest()
    one = (
        wire.resource_spans.add().scope_spans.add().spans.add(trace_id=os.urandom(16), span_id=os.urandom(8))
    )
    one.attributes.add(key="openinference.span.kind").value.string_value = "AGENT"
    one.attributes.add(key="session.id").value.string_value = "packed"
    packed = gzip.compress(wire.SerializeToString())
    received = http.post("/v1/traces", content=packed, headers=PROTOBUF | {"content-encoding": "gzip"})
    assert (received.status_code, received.content) == (200, b"")
    assert received.headers["content-type"] == "application/x-protobuf"
    assert ExportTraceServiceResponse.FromString(received.content).ByteSize() == 0
    assert steps(gateway, "packed")[0]["identity"]["agent_id"] == "unknown_service"

    events = {
        "resourceLogs": [
            {
                "resource": {
                    "attributes": [{"key": "service.name", "value": {"stringValue": "claude-code"}}]
                },
                "scopeLogs": [
                    {
                        "logRecords": [
                            {
                                "timeUnixNano": "1700000000000000000",
                                "body": {"stringValue": "claude_code.api_request"},
                                "attributes": [
                                    {"key": "event.name", "value": {"stringValue": "api_request"}},
                                    {"key": "session.id", "value": {"stringValue": "desk-1"}},
                                    {"key": "model", "value": {"stringValue": "claude-opus-5"}},
                                    {"key": "input_tokens", "value": {"intValue": 20}},
                                    {"key": "cost_usd", "value": {"doubleValue": 0.5}},
                                ],
                            },
                            {"body": {"stringValue": "a line of some program"}},
                        ]
                    }
                ],
            }
        ]
    }
    received = http.post("/v1/logs", json=events)
    assert received.json()["partialSuccess"]["rejectedLogRecords"] == "1"
    assert steps(gateway, "desk-1")[0]["state_delta"] == {"tokens_consumed": 20, "cost": 0.5}


def test_what_is_no_otlp_is_refused_in_its_own_form_s810_s815(gateway: Server) -> None:
    """S810, S815, S934: a status in the sender's form; huge, packed, foreign and forbidden alike; counted."""
    http = gateway.http("agent")
    before = refusals(gateway)
    bad = http.post("/v1/traces", content=b"\xff\xff", headers=PROTOBUF)
    assert (bad.status_code, bad.headers["content-type"]) == (400, "application/x-protobuf")
    assert b"ExportTraceServiceRequest" in bad.content
    answers = {
        400: http.post("/v1/logs", content=b"{", headers={"content-type": "application/json"}),
        415: http.post("/v1/traces", content=b"x", headers={"content-type": "text/plain"}),
        413: http.post(
            "/v1/traces",
            content=gzip.compress(b" " * (33 << 20)),
            headers={"content-type": "application/json", "content-encoding": "gzip"},
        ),
        401: http.post("/v1/traces", json={}, headers={"authorization": "Bearer obs_none"}),
        403: gateway.http("operator").post("/v1/traces", json=request()),
    }
    for code, answer in answers.items():
        if code == 403 and answer.status_code == 200:
            continue  # whoever may send messages may send spans
        assert answer.status_code == code, answer.text
        assert isinstance(answer.json()["message"], str)
    many = request(*[span({"openinference.span.kind": "CHAIN"}, n) for n in range(1, 10_002)])
    assert (
        http.post(
            "/v1/traces", content=json.dumps(many), headers={"content-type": "application/json"}
        ).status_code
        == 413
    )
    assert http.post("/v1/traces", json={}).json() == {}
    counted = refusals(gateway)
    assert [counted[code] - before[code] for code in (400, 401, 413, 415)] == [2, 1, 2, 1], (
        "S934: each is one"
    )


def test_a_trace_in_pieces_stays_together_and_is_recorded_once_s931_s932(gateway: Server) -> None:
    """S931, S932: what is on record tells where a late span belongs; another grouping changes nothing."""
    http, reader, trace = gateway.http("agent"), gateway.http(), uuid.uuid4().hex
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "boss"}
    chat, tool = {"gen_ai.operation.name": "chat"}, {"gen_ai.operation.name": "execute_tool"}
    early = span(chat, 2, 1, trace=trace)  # ended, and sent, before the agent's span that tells the rest
    root = span(agent | {"gen_ai.conversation.id": "pieces"}, 1, trace=trace)
    late, later = span(chat, 3, 1, trace=trace), span(tool, 4, 3, trace=trace)
    for part in (early, root, late, later):
        assert http.post("/v1/traces", json=request(part)).json() == {}
    found = steps(gateway, "pieces")
    assert [one["identity"]["agent_id"] for one in found] == ["boss"] * 3
    alone = steps(gateway, str(uuid.UUID(trace)))
    assert [one["identity"]["agent_id"] for one in alone] == ["svc"], "nobody could know"
    (node,) = until(lambda: reader.get(f"/v1/sessions/{uuid.UUID(trace)}/dag").json()["nodes"])
    assert "parent_elsewhere" in node["flags"]
    before = reader.get("/v1/messages", params={"limit": 1}).json()["items"][0]["sequence_number"]
    events = {"after": before, "limit": 10}
    for group in ((early, root, late, later), (later, late), (late, early), (root,)):
        assert http.post("/v1/traces", json=request(*group)).json() == {}
    assert reader.get("/v1/messages", params=events).json()["items"] == []
    trail = reader.get("/v1/audit/tenant", params={"severity_min": 21, "limit": 100}).json()["items"]
    assert [one for one in trail if one["hash_chain"]["sequence_number"] > before] == [], (
        "nobody is suspected"
    )


def test_over_grpc_a_key_is_asked_for_before_anything_is_read_s812(gateway: Server) -> None:
    """S812, S816: refusals as gRPC says them; beyond those that are read, calls wait."""
    method = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
    key = (("authorization", f"Bearer {gateway.credentials['agent_key']}"),)
    packed = grpc.Compression.Gzip

    def code(call: Any, *given: Any, **more: Any) -> grpc.StatusCode:
        with pytest.raises(grpc.RpcError) as refused:
            call(*given, timeout=20, **more)
        found: grpc.StatusCode = refused.value.code()
        return found

    with grpc.insecure_channel(gateway.grpc) as channel:  # type: ignore[attr-defined]
        said = threading.Event()

        def never() -> Iterator[bytes]:
            said.wait(20)
            yield b""

        try:
            assert code(channel.stream_unary(method), never()) is grpc.StatusCode.UNAUTHENTICATED
        finally:
            said.set()
        send = channel.unary_unary(method)
        assert code(send, b"\xff\xff", metadata=key) is grpc.StatusCode.INVALID_ARGUMENT
        many = ExportTraceServiceRequest()
        spans = many.resource_spans.add().scope_spans.add().spans
        for _ in range(10_001):
            spans.add()
        assert code(send, many.SerializeToString(), metadata=key) is grpc.StatusCode.RESOURCE_EXHAUSTED
        huge = bytes(40 << 20)
        assert code(send, huge, metadata=key, compression=packed) is grpc.StatusCode.RESOURCE_EXHAUSTED
        wire = ExportTraceServiceRequest()
        wire.resource_spans.add().scope_spans.add().spans.add(name="no step")
        calls = [send.future(wire.SerializeToString(), metadata=key, timeout=30) for _ in range(300)]
        for call in calls:
            assert ExportTraceServiceResponse.FromString(call.result()).partial_success.rejected_spans == 1

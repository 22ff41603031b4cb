"""The MCP server over doors and a record that are functions: what a call comes to, and what is told of it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from observatory.errors import GatewayStopped, QueueFull
from observatory.features.mcp import tools
from observatory.features.mcp.server import McpServer
from observatory.pipeline.state import Command, Principal, SubmissionResult
from observatory.protocol.responses import Refused

Json = dict[str, Any]
WHO = Principal(tenant_id="tnt_1", role="agent", key_id="key_1")
HEADERS = [(b"content-type", b"application/json"), (b"accept", b"application/json"), (b"host", b"localhost")]


class Record:
    """Takes acts, or fails as a gateway does that cannot write."""

    def __init__(self, problem: Exception | SubmissionResult | None = None) -> None:
        self.problem, self.received = problem, list[Json]()

    async def submit(self, act: Command) -> SubmissionResult:
        if isinstance(self.problem, Exception):
            raise self.problem
        if self.problem is not None:
            return self.problem
        verdict = act.decide(SimpleNamespace(now_ns=1))
        self.received.append(verdict.events[0].detail | {"severity": verdict.events[0].severity})
        return verdict


def called(record: Record, tool: str, answer: tuple[int, Any], **arguments: Any) -> tuple[int, Json]:
    """(code, body) of one call whose door answers so."""

    async def ask(method: str, path: str, query: Mapping[str, Any], body: Any) -> tuple[int, Any]:
        if isinstance(answer[1], Exception):
            raise answer[1]
        return answer

    async def run() -> tuple[int, Json]:
        server = McpServer(record.submit, lambda: 1)
        daemon = asyncio.create_task(server.run())
        params = {"name": tool, "arguments": arguments}
        body = json.dumps({"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": params}).encode()
        code, _, received = await server.answer(WHO, HEADERS, body, ask)
        daemon.cancel()
        return code, json.loads(received)

    return asyncio.run(run())


SESSION = {"session_id": "s"}
FINE: tuple[int, Json] = (200, {"root": "sha256:" + "0" * 64, "size": 1})
REFUSAL: tuple[int, Json] = (409, {"status": "refused", "reason": "not_verified", "detail": "not yet"})


@pytest.mark.parametrize(
    ("problem", "code"),
    [
        (QueueFull(), 429),
        (GatewayStopped("stopping"), 503),
        (SubmissionResult(503, Refused(reason="not_durable")), 503),
        (SubmissionResult(401, Refused(reason="unauthorized")), 401),
    ],
)
def test_a_call_that_cannot_be_put_on_record_fails_s406(
    problem: Exception | SubmissionResult, code: int
) -> None:
    """S406: whatever the tool answered; the sentence says whether it was carried out."""
    for answer, word in ((FINE, "was carried out"), (REFUSAL, "call it again")):
        heard, received = called(Record(problem), "merkle_finalize", answer, **SESSION)
        assert heard == code and received["id"] == 4 and "result" not in received
        assert word in received["error"]["message"] or code == 401


@pytest.mark.parametrize(
    ("tool", "answer", "outcome", "reason", "severity"),
    [
        ("merkle_finalize", FINE, "ok", None, 9),
        ("merkle_finalize", REFUSAL, "refused", "not_verified", 13),
        ("merkle_finalize", (503, {"reason": "not_durable", "detail": "away"}), "error", "not_durable", 17),
        ("merkle_finalize", (500, None), "error", "code_500", 17),
        ("merkle_finalize", (0, ZeroDivisionError("a defect")), "error", "internal_error", 17),
        (
            "audit_verify_chain",
            (200, {"valid": False, "records": 3, "first_broken_index": 1}),
            *("error", "chain_broken", 17),
        ),
    ],
)
def test_how_a_call_ended_is_told_once_s405(
    tool: str, answer: tuple[int, Any], outcome: str, reason: str | None, severity: int
) -> None:
    """S405, S408, S410."""
    record = Record()
    code, received = called(record, tool, answer, **SESSION)
    assert code == 200 and received["result"]["isError"] is (outcome != "ok")
    event = record.received.pop()
    assert record.received == []
    assert (event["tool"], event["outcome"], event["reason"]) == (tool, outcome, reason)
    assert (event["who"], event["severity"]) == ("key_1", severity)
    assert "a defect" not in json.dumps(received)
    said = " ".join(block["text"] for block in received["result"]["content"])
    assert tools.NEXT.get(reason or "", "") in said


def test_a_broken_chain_tells_where_and_to_stop_s410() -> None:
    """S410."""
    broken = {"valid": False, "records": 3, "first_broken_index": 1}
    _, received = called(Record(), "audit_verify_chain", (200, broken), **SESSION)
    assert received["result"]["structuredContent"] == broken
    assert "inform a person" in received["result"]["content"][1]["text"]


def test_the_sdk_is_not_loaded_by_the_gateways_start_s412() -> None:
    """S412: a gateway that nobody asks by MCP does not pay for it."""
    code = "import sys, observatory.bootstrap, observatory.features.mcp.server; print('mcp' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout == "False\n"


def test_every_argument_has_its_sentence_and_every_tool_its_schema_s403() -> None:
    """S403: a new argument without words is red."""
    for tool in tools.TOOLS:
        schema = tool.input_schema
        assert set(schema["required"]) <= set(schema["properties"]) <= set(tools.EXPECTS)
        assert "pattern" not in json.dumps(schema), "many a client trips over patterns with look-ahead"
    assert len(tools.BY_NAME) == len(tools.TOOLS) == 11

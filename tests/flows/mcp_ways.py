"""The two ways to the MCP door, each with the SDK's own client, in both eras of the protocol."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult

from tests.flows.server import Server

Json = dict[str, Any]
T = TypeVar("T")
# way, and how the client begins: with `initialize` (up to 2025-11-25) or `server/discover` (2026-07-28)
WAYS = [("http", "legacy"), ("http", "auto"), ("stdio", "legacy"), ("stdio", "auto")]
HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


@asynccontextmanager
async def connected(
    server: Server, way: str = "http", mode: str = "auto", key: str | None = None
) -> AsyncIterator[Client]:
    key = server.key("operator") if key is None else key
    if way == "stdio":
        words = ["-m", "observatory.cli", "mcp", "--url", server.url]
        started = StdioServerParameters(command=sys.executable, args=words, env={"OBSERVATORY_KEY": key})
        async with Client(started, mode=mode) as client:
            yield client
        return
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx2.AsyncClient(headers=headers, trust_env=False, timeout=30) as http:
        transport = streamable_http_client(f"{server.url}/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:
            yield client


class Hand:
    """Calls tools and hands out what they answered."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def ask(self, tool: str, **arguments: Any) -> CallToolResult:
        return await self.client.call_tool(tool, arguments)

    async def do(self, tool: str, **arguments: Any) -> Json:
        """Its answer; a refusal fails the test."""
        result = await self.ask(tool, **arguments)
        assert not result.is_error, text_of(result)
        found: Json = result.structured_content
        return found

    async def refused(self, tool: str, **arguments: Any) -> Json:
        """`{status, reason, detail, next}`; whatever passes fails the test."""
        result = await self.ask(tool, **arguments)
        assert result.is_error, text_of(result)
        found: Json = result.structured_content
        assert found["detail"] in text_of(result) and (found["next"] or "") in text_of(result)
        return found


def text_of(result: CallToolResult) -> str:
    return " ".join(block.text for block in result.content if block.type == "text")


def played(
    server: Server,
    story: Callable[[Hand], Awaitable[T]],
    way: str = "http",
    mode: str = "auto",
    key: str | None = None,
) -> T:
    async def run() -> T:
        async with connected(server, way, mode, key) as client:
            return await story(Hand(client))

    return asyncio.run(run())


def post(server: Server, body: Any, role: str = "operator", **headers: str) -> httpx2.Response:
    """One message as it is, without a client that would not send it."""
    sent = {"json": body} if not isinstance(body, bytes) else {"content": body}
    answer: httpx2.Response = server.http(role).post("/mcp", headers=HEADERS | headers, **sent)
    return answer


def call(tool: Any, arguments: Any = None, ident: Any = 1) -> Json:
    params = {"name": tool} | ({} if arguments is None else {"arguments": arguments})
    return {"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": params}


def trail(server: Server, event_type: str = "mcp_tool_called") -> list[Json]:
    """Bodies of the tenant's events of that type, oldest first."""
    page = server.http("admin").get("/v1/audit/tenant", params={"limit": 1_000}).json()
    return [one["body"] for one in reversed(page["items"]) if one["body"]["event_type"] == event_type]

"""The MCP door's own limits, over a house of functions."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest

from observatory.features.mcp.routes import MAX_IN_PROGRESS, McpEndpoint
from observatory.pipeline.state import Principal
from observatory.protocol.asgi import call_app

WHO = Principal(tenant_id="tnt_1", role="agent", key_id="key_1")
OTHER = Principal(tenant_id="tnt_2", role="agent", key_id="key_2")
HALF = MAX_IN_PROGRESS // 2
HEADERS = [(b"authorization", b"Bearer obs_1"), (b"content-type", b"application/json")]


class Room:
    """Answers when it is let."""

    def __init__(self) -> None:
        self.let, self.full, self.inside = asyncio.Event(), asyncio.Event(), 0
        self.away: list[str] = []

    async def answer(self, who: Principal, headers: Any, body: bytes, ask: Any) -> Any:
        self.inside += 1
        if self.inside == HALF:
            self.full.set()
        await self.let.wait()
        return 200, [], body

    async def record_refused_call(self, who: Principal, reason: str) -> None:
        self.away.append(reason)


def harness(room: Room | None) -> Any:
    async def identify(headers: Any, may_be_cached: bool, certificate: Any) -> Principal:
        assert may_be_cached is False
        return OTHER if headers[b"authorization"].endswith(b"2") else WHO

    counted: list[int] = []
    auth = SimpleNamespace(identify=identify, is_origin_allowed=lambda headers: False)
    return SimpleNamespace(
        auth=auth,
        services=SimpleNamespace(get=lambda kind: room),
        request_metrics=SimpleNamespace(count=counted.append),
        counted=counted,
    )


@pytest.mark.parametrize("more", [0, 3])
def test_so_many_are_answered_at_once_and_the_rest_is_sent_away_s402(more: int) -> None:
    """S402, S405: with when to come again, and on record; whoever is inside is answered all the same, and
    another tenant finds room."""

    async def run() -> None:
        room = Room()
        there = harness(room)
        door = McpEndpoint(there, None)

        async def knock(headers: Any = HEADERS) -> tuple[int, Any, bytes]:
            return await call_app(door, "POST", "/mcp", headers, b"{}")

        inside = [asyncio.create_task(knock()) for _ in range(HALF)]
        await room.full.wait()
        late = [await knock() for _ in range(more)]
        others = [(b"authorization", b"Bearer obs_2"), HEADERS[1]]
        inside += [asyncio.create_task(knock(others)) for _ in range(HALF // 2)]
        await asyncio.sleep(0.01)
        late += [await knock(others) for _ in range(more)]
        room.let.set()
        assert {(await one)[0] for one in inside} == {200}
        assert [code for code, _, _ in late] == [429] * more * 2
        assert room.away == ["queue_full"] * more * 2
        assert all(dict(headers)[b"retry-after"] == b"1" for _, headers, _ in late)
        assert (await knock())[0] == 200, "there is room again"
        assert sorted(there.counted) == [200] * (HALF + HALF // 2 + 1) + [429] * more * 2

    asyncio.run(run())


def test_a_gateway_without_the_room_says_so_s401() -> None:
    """S401: and an origin that is not ours is sent away before its key is looked at."""

    async def run() -> None:
        door = McpEndpoint(harness(None), None)
        code, _, body = await call_app(door, "POST", "/mcp", HEADERS, b"{}")
        assert code == 404 and json.loads(body)["error"]["data"]["reason"] == "not_found"
        foreign = [(b"origin", b"https://evil.example"), *HEADERS]
        assert (await call_app(door, "POST", "/mcp", foreign, b"{}"))[0] == 403

    asyncio.run(run())

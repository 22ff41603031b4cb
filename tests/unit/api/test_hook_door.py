"""The public door of webhooks: what is bounded before anything is looked at."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from observatory.features.hooks import routes_calls as hook_door
from observatory.features.hooks.routes_calls import receive_webhook
from observatory.features.hooks.worker import HookReply
from observatory.http.answers import Refusal
from observatory.http.rate_limit import RateLimiter

MOST = 2_048


class Room:
    """Takes whatever comes this far."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.knows = True

    async def is_open(self, hook_id: str) -> bool:
        return self.knows

    async def call(self, hook_id: str, headers: Any, body: bytes, caller: str, may_pass: Any) -> HookReply:
        self.bodies.append(body)
        return HookReply(202, {}) if may_pass(hook_id) else HookReply(429, {}, 1)


def harness() -> Any:
    settings = SimpleNamespace(webhook_bytes=MOST)
    paces = {"callers": RateLimiter(burst=2, per_s=0), "called": RateLimiter(burst=1, per_s=0)}
    hooks = Room()
    return SimpleNamespace(settings=settings, hooks=hooks, service=lambda kind: hooks, **paces)


def knock(at: Any, parts: Sequence[bytes | None], host: str = "192.0.2.1", **headers: str) -> Any:
    """In place of None nothing more comes."""

    async def stream() -> AsyncIterator[bytes]:
        for part in parts:
            if part is None:
                await asyncio.Event().wait()
            else:
                yield part

    client = SimpleNamespace(host=host)
    request = SimpleNamespace(client=client, headers=headers, stream=stream, scope={"headers": []})
    handler: Any = receive_webhook.fn
    return asyncio.run(handler(request, at, "whk_1"))


def test_one_address_and_one_hook_have_their_pace_s530() -> None:
    """S530: who comes too often is told when to come again, before a byte of it is read."""
    at = harness()
    found = [knock(at, [b"{}"], host) for host in ("192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.2")]
    assert [one.status_code for one in found] == [202, 429, 429, 429]
    assert [one.headers.get("retry-after") for one in found] == [None, "1", "1", "1"]
    assert len(at.hooks.bodies) == 3, "the third came to nobody"


def test_who_never_ends_is_not_waited_for_s530(monkeypatch: pytest.MonkeyPatch) -> None:
    """S530: no stranger holds a place for ever by sending slowly."""
    monkeypatch.setattr(hook_door, "BODY_S", 0.02)
    at = harness()
    with pytest.raises(Refusal) as refused:
        knock(at, [b"{", None])
    assert refused.value.code == 408 and at.hooks.bodies == []


def test_of_a_hook_that_is_not_there_no_body_is_read_s530() -> None:
    """S530: whoever guesses names costs a look, not a body."""
    at = harness()
    at.hooks.knows = False
    assert knock(at, [None]).status_code == 404


@pytest.mark.parametrize(
    ("parts", "headers", "code"),
    [
        ([b"x" * MOST], {}, None),
        ([b"x" * 1_024, b"y" * 1_024], {}, None),
        ([b"x" * MOST, b"y"], {}, 413),
        ([], {"content-length": str(MOST + 1)}, 413),
        ([b"x" * (MOST + 1)], {"content-length": "1"}, 413),
        ([b"{}"], {"content-encoding": "gzip"}, 415),
        ([b"{}"], {"content-encoding": "identity"}, None),
    ],
)
def test_no_more_than_the_setting_is_ever_held_s530(
    parts: list[bytes], headers: dict[str, str], code: int | None
) -> None:
    """S530: by what is said and by what comes; and the bytes are those that were sent."""
    at = harness()
    if code is None:
        assert knock(at, parts, **headers).status_code == 202
        assert at.hooks.bodies == [b"".join(parts)]
        return
    with pytest.raises(Refusal) as refused:
        knock(at, parts, **headers)
    assert refused.value.code == code and at.hooks.bodies == []

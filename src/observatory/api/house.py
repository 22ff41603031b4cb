"""What every door can reach: one struct, built by `bootstrap.py`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from litestar import Request
from litestar.di import NamedDependency

from observatory.api.auth import Auth
from observatory.api.pace import Pace
from observatory.daemons.child import Child
from observatory.daemons.dispatcher import Dispatcher
from observatory.daemons.federation import Federation
from observatory.daemons.feed import Feed
from observatory.daemons.publisher import Publisher
from observatory.daemons.sealer import Sealer
from observatory.gateway.committer import Committer
from observatory.insight.derived import Derived
from observatory.ports import Store
from observatory.protocol.asgi import Answer, Headers
from observatory.settings import Settings
from observatory.state import Act, Principal, Verdict


@dataclass
class Doors:
    """Counts by answer code, for `/metrics`."""

    answers: dict[int, int] = field(default_factory=dict)

    def count(self, code: int, times: int = 1) -> None:
        self.answers[code] = self.answers.get(code, 0) + times


class McpRoom(Protocol):
    """What speaks MCP; the doors and `mcp_server.py` know each other by this alone."""

    async def answer(self, who: Principal, headers: Headers, body: bytes, ask: Any) -> Answer:
        """To one POST of a known caller. `ask` is one of our own doors, asked with the caller's key."""

    async def turned_away(self, who: Principal, reason: str) -> None:
        """Put on record that the door refused what a known caller sent, unread."""


@dataclass
class House:
    settings: Settings
    store: Store
    committer: Committer
    publisher: Publisher
    dispatcher: Dispatcher
    auth: Auth
    derived: Derived
    analyst: Child
    feed: Feed
    doors: Doors = field(default_factory=Doors)
    clock: Callable[[], int] = time.time_ns
    started_ns: int = field(default_factory=time.time_ns)
    sealer: Sealer = field(init=False)  # made with the house it works for
    federation: Federation = field(init=False)  # the same
    # At the doors without a key: one address, and one log that is known.
    knocks: Pace = field(default_factory=lambda: Pace(burst=512, per_s=64))
    offers: Pace = field(default_factory=lambda: Pace(burst=128, per_s=2))
    mcp: McpRoom | None = None

    async def act(self, act: Act, tenant_id: str | None = None) -> Verdict:
        """Submit an act that may change access; whatever was cached of it is forgotten."""
        verdicts = await self.committer.submit(tenant_id or act.principal.tenant_id, [act])
        self.auth.forget()
        return verdicts[0]

    async def command(self, act: Act) -> Verdict:
        """Submit an act that leaves everybody's access as it is."""
        return (await self.committer.submit(act.principal.tenant_id, [act]))[0]

    @property
    def url(self) -> str:
        """How people reach this gateway: what login links begin with."""
        host = self.settings.host
        shown = "127.0.0.1" if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
        return self.settings.public_url or f"http://{shown}:{self.settings.port}"

    def principal_of_house(self, tenant_id: str) -> Principal:
        """The gateway acting by itself, as on first start."""
        return Principal(tenant_id=tenant_id, role="admin", key_id="sys_gateway")


# How a route asks for the house and the request.
Here = NamedDependency[House]
Call = Request[Any, Any, Any]

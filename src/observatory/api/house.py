"""What every door can reach: one struct, built by `bootstrap.py`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from litestar import Request
from litestar.di import NamedDependency

from observatory.api.auth import Auth
from observatory.daemons.child import Child
from observatory.daemons.dispatcher import Dispatcher
from observatory.daemons.feed import Feed
from observatory.daemons.publisher import Publisher
from observatory.gateway.committer import Committer
from observatory.insight.derived import Derived
from observatory.ports import Store
from observatory.settings import Settings
from observatory.state import Act, Principal, Verdict


@dataclass
class Doors:
    """Counts by answer code, for `/metrics`."""

    answers: dict[int, int] = field(default_factory=dict)

    def count(self, code: int, times: int = 1) -> None:
        self.answers[code] = self.answers.get(code, 0) + times


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

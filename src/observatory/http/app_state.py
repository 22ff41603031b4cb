"""What every door can reach: one struct, built by `bootstrap.py`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from litestar import Request
from litestar.di import NamedDependency

from observatory.errors import ObservatoryError
from observatory.features.access import commands as access
from observatory.features.alerting.worker import Alerts
from observatory.features.certificates.worker import Certificates
from observatory.features.exporters.worker import Exporter
from observatory.features.hooks.worker import Hooks
from observatory.features.inbox.worker import Dispatcher
from observatory.features.otlp.counters import Seen
from observatory.features.schedule.types_rows import Schedule
from observatory.features.schedule.worker import Scheduler
from observatory.features.transparency.worker import Sealer
from observatory.features.transparency.worker_federation import Federation
from observatory.features.webhooks.worker import Webhooks
from observatory.http.authentication import Auth
from observatory.http.insight_lag import InsightLag
from observatory.http.limits import Bounds
from observatory.http.metrics_of_requests import Doors
from observatory.http.rate_limit import Pace
from observatory.http.violators import Violators
from observatory.pipeline.committer import Committer
from observatory.pipeline.ports import Store
from observatory.pipeline.state import Act, Principal, Verdict
from observatory.protocol.asgi import Answer, App, Headers
from observatory.runtime.child_process import Child
from observatory.runtime.derived import Derived
from observatory.runtime.feed import Feed
from observatory.runtime.metrics import Measured
from observatory.runtime.publisher import Publisher
from observatory.runtime.runner import Drains
from observatory.runtime.wall_clock import WallClock
from observatory.settings import Settings


class McpRoom(Protocol):
    """What speaks MCP; the doors and `mcp_server.py` know each other by this alone."""

    async def answer(self, who: Principal, headers: Headers, body: bytes, ask: Any) -> Answer:
        """To one POST of a known caller. `ask` is one of our own doors, asked with the caller's key."""

    async def turned_away(self, who: Principal, reason: str) -> None:
        """Put on record that the door refused what a known caller sent, unread."""


class NatsRoom(Protocol):
    """What carries requests, messages and channels that come by NATS to the face."""

    def open(self, face: App) -> None:
        """From now on; before, nothing is taken."""

    def health(self) -> dict[str, Any]:
        """As the bus's part of `/v1/fleet/health` tells it."""


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
    schedule: Schedule = field(init=False)  # the store, as the schedule's doors see it
    scheduler: Scheduler = field(init=False)  # made with the house it works for
    webhooks: Webhooks = field(init=False)  # the same
    alerts: Alerts = field(init=False)  # the same
    exporter: Exporter = field(init=False)  # the same
    certificates: Certificates = field(init=False)  # the same
    # At the doors without a key: one address, and one log that is known.
    knocks: Pace = field(default_factory=lambda: Pace(burst=512, per_s=64))
    offers: Pace = field(default_factory=lambda: Pace(burst=128, per_s=2))
    # At the door of webhooks: one address, and one hook by who holds its secret.
    callers: Pace = field(default_factory=lambda: Pace(burst=512, per_s=64))
    called: Pace = field(default_factory=lambda: Pace(burst=600, per_s=20))
    violators: Violators = field(default_factory=Violators)
    hooks: Hooks = field(init=False)  # made with the house it works for
    mcp: McpRoom | None = None
    nats: NatsRoom | None = None
    otlp_seen: dict[str, Seen] = field(default_factory=dict)  # by tenant
    measured: list[Measured] = field(default_factory=list)  # who is asked for `/metrics`
    stopping: bool = False  # told to stop: what is inside is finished, nothing more comes in
    draining: list[Drains] = field(default_factory=list)  # who is waited for then, for a while
    wall: WallClock = field(init=False)
    lag: InsightLag = field(init=False)
    bounds: Bounds = field(init=False)

    _noting: set[asyncio.Task[None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.wall = WallClock(lambda: self.clock())
        self.measured.append(self.wall)
        self.lag = InsightLag(self.store, self.derived)
        self.bounds = Bounds(self.settings)

    async def act(self, act: Act, tenant_id: str | None = None) -> Verdict:
        """Submit an act that may change access; whatever was cached of it is forgotten."""
        verdicts = await self.committer.submit(tenant_id or act.principal.tenant_id, [act])
        self.auth.forget()
        return verdicts[0]

    async def command(self, act: Act) -> Verdict:
        """Submit an act that leaves everybody's access as it is."""
        return (await self.committer.submit(act.principal.tenant_id, [act]))[0]

    def note_use(self, who: Principal) -> None:
        """Of a sign-in; nobody waits for it."""
        task = asyncio.get_running_loop().create_task(self._note_use(who))
        self._noting.add(task)
        task.add_done_callback(self._noting.discard)

    async def _note_use(self, who: Principal) -> None:
        with suppress(ObservatoryError):  # not storable now: noted again in a minute
            await self.command(access.note_use(who, self.clock()))

    @property
    def url(self) -> str:
        """How people reach this gateway: what login links begin with."""
        host = self.settings.host
        scheme = "https" if self.settings.is_tls else "http"
        shown = "127.0.0.1" if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
        return self.settings.public_url or f"{scheme}://{shown}:{self.settings.port}"

    def principal_of_house(self, tenant_id: str) -> Principal:
        """The gateway acting by itself, as on first start."""
        return Principal(tenant_id=tenant_id, role="admin", key_id="sys_gateway")


# How a route asks for the house and the request.
Here = NamedDependency[House]
Call = Request[Any, Any, Any]

"""The state that every endpoint and worker of a gateway shares: one object, built by `bootstrap.py`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from litestar import Request
from litestar.di import NamedDependency

from observatory.derived.ports import Derived
from observatory.errors import ObservatoryError
from observatory.http.authentication import Auth
from observatory.http.limits import ConnectionLimits
from observatory.http.rate_limit import RateLimiter
from observatory.http.request_metrics import RequestMetrics
from observatory.http.violators import Violators
from observatory.pipeline.authority import note_use
from observatory.pipeline.commit.committer import Committer
from observatory.pipeline.ports import Bus, Store
from observatory.pipeline.state import Command, Principal, SubmissionResult
from observatory.protocol.asgi import App
from observatory.runtime.child_process import AnalystProcess
from observatory.runtime.feed import LiveFeed
from observatory.runtime.insight_lag import InsightLag
from observatory.runtime.metrics import MetricsSource
from observatory.runtime.outbound_http import OutboundHttp
from observatory.runtime.publisher import Publisher
from observatory.runtime.runner import Drainable, Worker
from observatory.runtime.tls import Tls
from observatory.runtime.wall_clock import WallClock
from observatory.runtime.worker_context import PeriodicTask
from observatory.settings import Settings

S = TypeVar("S")


@dataclass
class AppState:
    settings: Settings
    store: Store
    committer: Committer
    publisher: Publisher
    auth: Auth
    derived: Derived
    analyst: AnalystProcess
    feed: LiveFeed
    request_metrics: RequestMetrics = field(default_factory=RequestMetrics)
    clock: Callable[[], int] = time.time_ns
    started_ns: int = field(default_factory=time.time_ns)
    bus: Bus = field(kw_only=True)
    outward: OutboundHttp = field(kw_only=True)
    # Of `Feature`, whose annotations name this class: Litestar resolves those of every field here.
    features: tuple[Any, ...] = field(kw_only=True)
    tls: Tls | None = None
    serving: bool = False  # False in commands and tests: workers that need a server stay off
    accept_rollback: bool = False
    workers: dict[str, Worker] = field(default_factory=dict)  # started after every feature has started
    due: list[PeriodicTask] = field(default_factory=list)  # run periodically
    on_serve: list[Callable[[App], None]] = field(default_factory=list)  # called with the ASGI application
    on_stop: list[Callable[[], None]] = field(
        default_factory=list
    )  # called when no new requests are accepted
    # Degraded although messages are stored: a sentence for `/readyz`, or None.
    warnings: list[Callable[[], str | None]] = field(default_factory=list)
    bus_health: Callable[[], dict[str, Any]] | None = None  # None: the bus is in this process
    services: dict[type[Any], Any] = field(default_factory=dict)
    # At endpoints without a key: per address, and per known log.
    peer_address_limiter: RateLimiter = field(default_factory=lambda: RateLimiter(burst=512, per_s=64))
    offers: RateLimiter = field(default_factory=lambda: RateLimiter(burst=128, per_s=2))
    # Inbound webhooks: limits per address, and per hook for callers that hold its secret.
    callers: RateLimiter = field(default_factory=lambda: RateLimiter(burst=512, per_s=64))
    called: RateLimiter = field(default_factory=lambda: RateLimiter(burst=600, per_s=20))
    violators: Violators = field(default_factory=Violators)
    measured: list[MetricsSource] = field(default_factory=list)  # sources of `/metrics`
    stopping: bool = False  # asked to stop: open requests are finished, new ones are refused
    draining: list[Drainable] = field(default_factory=list)  # waited for on shutdown, up to `shutdown_s`
    wall: WallClock = field(init=False)
    lag: InsightLag = field(init=False)
    bounds: ConnectionLimits = field(init=False)

    _note_tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.wall = WallClock(lambda: self.clock())
        self.measured.append(self.wall)
        self.lag = InsightLag(self.store, self.derived)
        self.bounds = ConnectionLimits(self.settings)

    def add(self, service: S) -> S:
        """Register a service under its type, for `service`."""
        self.services[type(service)] = service
        return service

    def service(self, kind: type[S]) -> S:
        """The service a feature registered under this type; KeyError when that feature has not started."""
        found: S = self.services[kind]
        return found

    async def act(self, act: Command, tenant_id: str | None = None) -> SubmissionResult:
        """Submit a command that may change access; the authentication cache is cleared."""
        verdicts = await self.committer.submit(tenant_id or act.principal.tenant_id, [act])
        self.auth.forget()
        return verdicts[0]

    async def command(self, act: Command) -> SubmissionResult:
        """Submit a command that changes no user's access."""
        return (await self.committer.submit(act.principal.tenant_id, [act]))[0]

    def note_use(self, who: Principal) -> None:
        """Record the use of a sign-in, in the background."""
        task = asyncio.get_running_loop().create_task(self._note_use(who))
        self._note_tasks.add(task)
        task.add_done_callback(self._note_tasks.discard)

    async def _note_use(self, who: Principal) -> None:
        with suppress(ObservatoryError):  # cannot be stored now: retried in a minute
            await self.command(note_use(who, self.clock()))

    @property
    def url(self) -> str:
        """The public URL of this gateway: what login links begin with."""
        host = self.settings.host
        scheme = "https" if self.settings.is_tls else "http"
        address = "127.0.0.1" if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
        return self.settings.public_url or f"{scheme}://{address}:{self.settings.port}"

    def gateway_principal(self, tenant_id: str) -> Principal:
        """The gateway as an actor, as on first start."""
        return Principal(tenant_id=tenant_id, role="admin", key_id="sys_gateway")


# How a route receives the state and the request.
Here = NamedDependency[AppState]
Call = Request[Any, Any, Any]

"""The reaper: periodic work. It finds what is due in committed rows and submits commands to the pipeline.

Law: it decides nothing. Every command checks again under the tenant's lock, so any number of gateways may
run a reaper. Silence counts only while the gateway was up: no agent is evicted before the gateway has run for
the timeout. Other features add their periodic work to `dues`: a name, an interval, and a call that submits.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from observatory.errors import ObservatoryError
from observatory.features.registry import circuit_breaker as breaker
from observatory.features.registry import commands_eviction as reaping
from observatory.features.registry import commands_grants as grants
from observatory.pipeline import addresses
from observatory.pipeline.agents import ADDRESS_COLUMNS, TIMES, addresses_of
from observatory.pipeline.ports import AgentBacklog
from observatory.pipeline.rows import AgentRow
from observatory.pipeline.state import Command, SubmissionResult, TenantConfig
from observatory.runtime import worker_context as home
from observatory.runtime.metrics import Measure
from observatory.runtime.worker_context import PeriodicTask

log = logging.getLogger("observatory.reaper")
# Per tenant and poll; the rest is found by the next poll.
LIMIT = 500
MAX_REROUTES = 2_000  # of all backlogs together: far below the queue's limit
ROOMS_AT_ONCE = 100
HAND_ON_S = 1.0
SHORTEST_S = 0.05


class ReaperContext(home.WorkerContext, Protocol):
    """What the reaper needs of the gateway."""

    @property
    def clock(self) -> Callable[[], int]: ...


class TaskCounters:
    """Counters of one due, for `/metrics`."""

    def __init__(self) -> None:
        self.runs = self.failures = 0
        self.late_s = 0.0
        self.done_at: float | None = None

    def measures(self, name: str, now: float) -> list[Measure]:
        labels = {"due": name}
        measures = [
            Measure("observatory_due_runs_total", "counter", "Runs", self.runs, labels),
            Measure("observatory_due_failures_total", "counter", "Failed runs", self.failures, labels),
            Measure(
                "observatory_due_late_seconds", "gauge", "How late the last run began", self.late_s, labels
            ),
        ]
        if self.done_at is not None:
            age_s = now - self.done_at
            measures.append(
                Measure("observatory_due_age_seconds", "gauge", "Since the last run", age_s, labels)
            )
        return measures


class Reaper:
    def __init__(
        self,
        app: ReaperContext,
        dues: Sequence[PeriodicTask] = (),
        believed: Callable[[int], int] = lambda now_ns: now_ns,
    ) -> None:
        """`believed`: a clock that jumped evicts no agent, ends no decision and shreds nothing (S1164)."""
        self._app, self._believed = app, believed
        reaping.apply_settings(app.settings)
        self._started_ns = app.clock()
        self._backlogs = home.TenantWatch(app.store)
        own = (
            PeriodicTask("heartbeats", app.settings.heartbeat_check_s, self.reap),
            PeriodicTask("waiting work", HAND_ON_S, self.hand_on),
        )
        self._dues = {due.name: due for due in (*own, *dues)}
        self._counters = {name: TaskCounters() for name in self._dues}

    def measures(self) -> list[Measure]:
        now = time.monotonic()
        return [one for name, counters in self._counters.items() for one in counters.measures(name, now)]

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        next_at = {name: loop.time() + due.every_s for name, due in self._dues.items()}
        while True:
            await asyncio.sleep(max(SHORTEST_S, min(next_at.values()) - loop.time()))
            for name, due in self._dues.items():
                counters, late_s = self._counters[name], loop.time() - next_at[name]
                if late_s < 0:
                    continue
                counters.runs, counters.late_s = counters.runs + 1, late_s
                try:
                    await due.call(self._believed(self._app.clock()))
                except ObservatoryError as error:  # database unavailable, queue full: found by the next run
                    counters.failures += 1
                    log.warning("%s postponed: %s", name, error)
                counters.done_at = time.monotonic()
                next_at[name] = loop.time() + due.every_s

    async def reap(self, now_ns: int) -> int:
        """Evict agents that have been silent too long; returns how many."""
        evicted = 0
        if now_ns - self._started_ns < TIMES.timeout_ns:
            return evicted
        for tenant_id in await home.active_tenants(self._app.store):
            who = self._app.gateway_principal(tenant_id)
            silent = await self._app.store.silent(tenant_id, now_ns - TIMES.timeout_ns, LIMIT)
            verdicts = await self._submit(tenant_id, [reaping.evict(who, one, now_ns) for one in silent])
            gone = [one for one, verdict in zip(silent, verdicts, strict=True) if verdict.answer == 1]
            for one in gone:
                rooms = await self._app.store.rooms(tenant_id, one.agent_no)
                parts = [rooms[i : i + ROOMS_AT_ONCE] for i in range(0, len(rooms), ROOMS_AT_ONCE)]
                acts = [reaping.leave_sessions(who, one.entity_id, part, now_ns) for part in parts]
                await self._submit(tenant_id, acts)
            evicted += len(gone)
        if evicted:
            await self.hand_on(now_ns)
        return evicted

    async def hand_on(self, now_ns: int) -> int:
        """Reroute waiting work to agents that can take it now; returns how many deliveries."""
        handed = 0
        for tenant_id, head in await self._backlogs.awake():
            backlog = await self._app.store.backlog(tenant_id)
            if not backlog:
                self._backlogs.rest(tenant_id, head)
            else:
                acts = await self._reroutes(tenant_id, backlog, now_ns)
                handed += sum(verdict.answer == 1 for verdict in await self._submit(tenant_id, acts))
        return handed

    async def _reroutes(self, tenant_id: str, backlog: Sequence[AgentBacklog], now_ns: int) -> list[Command]:
        """A command for each delivery that an agent may be able to take; each decides under the lock."""
        store, who = self._app.store, self._app.gateway_principal(tenant_id)
        agents = {row["agent_no"]: row for row in await store.rows(tenant_id, "agents")}
        settings = await store.rows(tenant_id, "knobs", name=grants.NAME)
        book = grants.routing_config_from_rows(
            settings, await store.rows(tenant_id, "grants", removed_ns=None)
        )
        able = _able(agents.values(), book)
        circuits = {row["capability"]: row for row in await store.rows(tenant_id, "breakers")}
        acts: list[Command] = []
        for part in backlog:
            holder = agents.get(part.agent_no)
            target = _target(part, holder)
            if target is None:
                continue
            takers = able.get(target, set())
            if target.startswith("session:"):
                takers = await self._present(tenant_id, addresses.session_of(target))
            # An evicted agent's work addressed by type or cluster is parked when no other agent can take it.
            at_least_parked = part.agent_no != 0 and part.address is not None
            if (takers or at_least_parked) and len(acts) < MAX_REROUTES:
                share = _share(circuits.get(target.removeprefix("type:")), part, now_ns)
                entity_id = None if holder is None else holder["entity_id"]
                acts += [
                    reaping.reroute_delivery(
                        who, work, entity_id, target, now_ns, _name(agents.get(work.sender_no))
                    )
                    for work in await store.stranded(tenant_id, part.agent_no, part.address, share)
                    if takers - {work.sender_no} or at_least_parked
                ]
        return acts

    async def _present(self, tenant_id: str, session_id: str) -> set[int]:
        sessions = await self._app.store.rows(tenant_id, "sessions", session_id=session_id)
        if not sessions:
            return set()
        number = sessions[0]["session_no"]
        members = await self._app.store.rows(tenant_id, "members", session_no=number)
        return {member["agent_no"] for member in members if member["arrived_ns"]}

    async def _submit(self, tenant_id: str, acts: Sequence[Command]) -> list[SubmissionResult]:
        return await self._app.committer.submit(tenant_id, acts) if acts else []


def _name(row: dict[str, Any] | None) -> str | None:
    return None if row is None else row["entity_id"]


def _able(rows: Iterable[dict[str, Any]], book: TenantConfig) -> dict[str, set[int]]:
    """Address or entity id -> numbers of the registered agents it resolves to."""
    numbers: dict[str, set[int]] = {}
    for row in rows:
        if row["evicted_ns"] is None:
            agent = AgentRow(**{name: row[name] for name in ADDRESS_COLUMNS})
            for address in (*addresses_of(agent, book), agent.entity_id):
                numbers.setdefault(address, set()).add(agent.agent_no)
    return numbers


def _target(part: AgentBacklog, holder: dict[str, Any] | None) -> str | None:
    """The new recipient. What an evicted agent was sent by name goes to another of its type."""
    if part.address is not None:
        return part.address
    return f"type:{holder['agent_type']}" if holder is not None and holder["agent_type"] else None


def _share(circuit: dict[str, Any] | None, part: AgentBacklog, now_ns: int) -> int:
    """How many may be rerouted: all that fit, one as a probe, or none while the circuit is open."""
    if circuit is None or circuit["state"] == "closed" or not (part.address or "").startswith("type:"):
        return LIMIT
    may = breaker.would_admit(circuit["state"], circuit["opened_ns"], circuit["forced_by"], now_ns)
    return 1 if may else (LIMIT if part.agent_no else 0)

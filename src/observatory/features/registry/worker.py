"""The reaper: the house's clock. It finds what is due in committed rows and hands acts to the corridor.

Law: it decides nothing. Every act looks again under the tenant's lock, so any number of gateways may run
one. Silence counts only while the gateway listened: nobody is evicted before it has been up for the timeout.
Others put what they wait for into `dues`: a name, an interval, and a call that submits for itself.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Protocol

import msgspec

from observatory.errors import ObservatoryError
from observatory.features.registry import addresses
from observatory.features.registry import circuit_breaker as breaker
from observatory.features.registry import commands_eviction as reaping
from observatory.features.registry import commands_grants as grants
from observatory.features.registry.stage import NAMED, TIMES, addresses_of
from observatory.pipeline.ports import Backlog
from observatory.pipeline.rows import Agent
from observatory.pipeline.state import Act, Rulebook, Verdict
from observatory.runtime import worker_context as home
from observatory.runtime.metrics import Measure

log = logging.getLogger("observatory.reaper")
# So many of a tenant at a time; the rest is found again at the next look.
LIMIT = 500
MOST = 2_000  # of all backlogs together: far below what the queue takes
ROOMS_AT_ONCE = 100
HAND_ON_S = 1.0
SHORTEST_S = 0.05


class Home(home.Home, Protocol):
    """What of the house the clock needs."""

    @property
    def clock(self) -> Callable[[], int]: ...


class Due(msgspec.Struct, frozen=True):
    """Something that happens by the clock: called with the present time every so often."""

    name: str
    every_s: float
    call: Callable[[int], Awaitable[object]]


class Kept:
    """How one of the dues is kept: for `/metrics`."""

    def __init__(self) -> None:
        self.runs = self.failures = 0
        self.late_s = 0.0
        self.done_at: float | None = None

    def measures(self, name: str, now: float) -> list[Measure]:
        labels = {"due": name}
        told = [
            Measure("observatory_due_runs_total", "counter", "Times it was looked for", self.runs, labels),
            Measure("observatory_due_failures_total", "counter", "Looks that failed", self.failures, labels),
            Measure(
                "observatory_due_late_seconds", "gauge", "How late the last look began", self.late_s, labels
            ),
        ]
        if self.done_at is not None:
            age_s = now - self.done_at
            told.append(Measure("observatory_due_age_seconds", "gauge", "Since the last look", age_s, labels))
        return told


class Reaper:
    def __init__(
        self, house: Home, dues: Sequence[Due] = (), believed: Callable[[int], int] = lambda now_ns: now_ns
    ) -> None:
        """`believed`: a clock that was set far evicts nobody, ends no decision and shreds nothing (S1164)."""
        self._house, self._believed = house, believed
        reaping.obey(house.settings)
        self._started_ns = house.clock()
        self._backlogs = home.Watch(house.store)
        mine = (
            Due("heartbeats", house.settings.heartbeat_check_s, self.reap),
            Due("waiting work", HAND_ON_S, self.hand_on),
        )
        self._dues = {due.name: due for due in (*mine, *dues)}
        self._kept = {name: Kept() for name in self._dues}

    def measures(self) -> list[Measure]:
        now = time.monotonic()
        return [one for name, kept in self._kept.items() for one in kept.measures(name, now)]

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        next_at = {name: loop.time() + due.every_s for name, due in self._dues.items()}
        while True:
            await asyncio.sleep(max(SHORTEST_S, min(next_at.values()) - loop.time()))
            for name, due in self._dues.items():
                kept, late_s = self._kept[name], loop.time() - next_at[name]
                if late_s < 0:
                    continue
                kept.runs, kept.late_s = kept.runs + 1, late_s
                try:
                    await due.call(self._believed(self._house.clock()))
                except ObservatoryError as error:  # database away, queue full: found again next time
                    kept.failures += 1
                    log.warning("%s wait: %s", name, error)
                kept.done_at = time.monotonic()
                next_at[name] = loop.time() + due.every_s

    async def reap(self, now_ns: int) -> int:
        """Evict who has been silent too long; how many were."""
        evicted = 0
        if now_ns - self._started_ns < TIMES.timeout_ns:
            return evicted
        for tenant_id in await home.tenants(self._house.store):
            who = self._house.principal_of_house(tenant_id)
            silent = await self._house.store.silent(tenant_id, now_ns - TIMES.timeout_ns, LIMIT)
            verdicts = await self._submit(tenant_id, [reaping.evict(who, one, now_ns) for one in silent])
            gone = [one for one, verdict in zip(silent, verdicts, strict=True) if verdict.answer == 1]
            for one in gone:
                rooms = await self._house.store.rooms(tenant_id, one.agent_no)
                parts = [rooms[i : i + ROOMS_AT_ONCE] for i in range(0, len(rooms), ROOMS_AT_ONCE)]
                acts = [reaping.leave_rooms(who, one.entity_id, part, now_ns) for part in parts]
                await self._submit(tenant_id, acts)
            evicted += len(gone)
        if evicted:
            await self.hand_on(now_ns)
        return evicted

    async def hand_on(self, now_ns: int) -> int:
        """Give waiting work to whoever can take it now; how much went on."""
        handed = 0
        for tenant_id, head in await self._backlogs.awake():
            backlog = await self._house.store.backlog(tenant_id)
            if not backlog:
                self._backlogs.rest(tenant_id, head)
            else:
                acts = await self._ways(tenant_id, backlog, now_ns)
                handed += sum(verdict.answer == 1 for verdict in await self._submit(tenant_id, acts))
        return handed

    async def _ways(self, tenant_id: str, backlog: Sequence[Backlog], now_ns: int) -> list[Act]:
        """An act for each delivery somebody may be able to take; the lock decides."""
        store, who = self._house.store, self._house.principal_of_house(tenant_id)
        agents = {row["agent_no"]: row for row in await store.rows(tenant_id, "agents")}
        settings = await store.rows(tenant_id, "knobs", name=grants.NAME)
        book = grants.book_of(settings, await store.rows(tenant_id, "grants", removed_ns=None))
        able = _able(agents.values(), book)
        circuits = {row["capability"]: row for row in await store.rows(tenant_id, "breakers")}
        acts: list[Act] = []
        for part in backlog:
            holder = agents.get(part.agent_no)
            target = _target(part, holder)
            if target is None:
                continue
            takers = able.get(target, set())
            if target.startswith("session:"):
                takers = await self._present(tenant_id, addresses.session_of(target))
            # Left with an evicted agent by type or cluster, it is parked when there is nobody else.
            at_least_parked = part.agent_no != 0 and part.address is not None
            if (takers or at_least_parked) and len(acts) < MOST:
                share = _share(circuits.get(target.removeprefix("type:")), part, now_ns)
                entity_id = None if holder is None else holder["entity_id"]
                acts += [
                    reaping.hand_on(who, work, entity_id, target, now_ns, _name(agents.get(work.sender_no)))
                    for work in await store.stranded(tenant_id, part.agent_no, part.address, share)
                    if takers - {work.sender_no} or at_least_parked
                ]
        return acts

    async def _present(self, tenant_id: str, session_id: str) -> set[int]:
        sessions = await self._house.store.rows(tenant_id, "sessions", session_id=session_id)
        if not sessions:
            return set()
        number = sessions[0]["session_no"]
        members = await self._house.store.rows(tenant_id, "members", session_no=number)
        return {member["agent_no"] for member in members if member["arrived_ns"]}

    async def _submit(self, tenant_id: str, acts: Sequence[Act]) -> list[Verdict]:
        return await self._house.committer.submit(tenant_id, acts) if acts else []


def _name(row: dict[str, Any] | None) -> str | None:
    return None if row is None else row["entity_id"]


def _able(rows: Iterable[dict[str, Any]], book: Rulebook) -> dict[str, set[int]]:
    """Address or entity id -> numbers of the agents in the map that it means."""
    found: dict[str, set[int]] = {}
    for row in rows:
        if row["evicted_ns"] is None:
            agent = Agent(**{name: row[name] for name in NAMED})
            for address in (*addresses_of(agent, book), agent.entity_id):
                found.setdefault(address, set()).add(agent.agent_no)
    return found


def _target(part: Backlog, holder: dict[str, Any] | None) -> str | None:
    """Whom to ask. What an evicted agent was sent by name goes to another of its type."""
    if part.address is not None:
        return part.address
    return f"type:{holder['agent_type']}" if holder is not None and holder["agent_type"] else None


def _share(circuit: dict[str, Any] | None, part: Backlog, now_ns: int) -> int:
    """How many may go: all that fit, one as a probe, or none while the circuit is open."""
    if circuit is None or circuit["state"] == "closed" or not (part.address or "").startswith("type:"):
        return LIMIT
    may = breaker.would_admit(circuit["state"], circuit["opened_ns"], circuit["forced_by"], now_ns)
    return 1 if may else (LIMIT if part.agent_no else 0)
